package vhost

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// session are the rings of one connection.
type session struct {
	memory    *memory
	tx, rx    []*ring
	bases     []int // where in memory each ring is, in the order of rings
	calls     []int // eventfds, in that order too
	mergeable bool
	broken    atomic.Bool
	wake      func(error) // wakes the link, which ends the session
}

// newSession makes rings for the buffers of a port, as the features have it that were agreed on.
func newSession(cfg Config, tx, rx []pool, features uint64, wake func(error)) (_ *session, err error) {
	_, _, txLen := ringLayout(cfg.TxSize)
	_, _, rxLen := ringLayout(cfg.RxSize)
	m, err := newMemory("vhost-rings", cfg.Queues*(txLen+rxLen), false)
	if err != nil {
		return nil, err
	}
	s := &session{memory: m, mergeable: features&featureMergeable != 0, wake: wake}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	at, inOrder := 0, features&featureInOrder != 0
	for i := range cfg.Queues {
		s.bases = append(s.bases, at, at+rxLen)
		s.rx = append(s.rx, newRing(m.bytes[at:], cfg.RxSize, rx[i], true, inOrder))
		s.tx = append(s.tx, newRing(m.bytes[at+rxLen:], cfg.TxSize, tx[i], false, inOrder))
		at += rxLen + txLen
	}
	for _, r := range s.rings() {
		if r.kick, err = newEvent(); err != nil {
			return nil, err
		}
		call, err := newEvent()
		if err != nil {
			return nil, err
		}
		s.calls = append(s.calls, call)
	}
	return s, nil
}

// rings are numbered as virtio-net numbers its queues (virtio 1.2, 5.1.2): receive 0, transmit 0, receive 1, ...
func (s *session) rings() []*ring {
	var all []*ring
	for i := range s.rx {
		all = append(all, s.rx[i], s.tx[i])
	}
	return all
}

// fail ends the session for a reason that only a queue's thread sees. Only the first one counts.
func (s *session) fail(err error) {
	if s.broken.CompareAndSwap(false, true) {
		s.wake(err)
	}
}

// close frees everything; no queue may use it any more.
func (s *session) close() {
	for _, r := range s.rings() {
		if r.kick >= 0 {
			unix.Close(r.kick)
		}
	}
	for _, fd := range s.calls {
		unix.Close(fd)
	}
	_ = s.memory.close() // of a mapping of ours: it can't fail
}

func newEvent() (int, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("make an eventfd: %w", err)
	}
	return fd, nil
}

// notify adds one to an eventfd. One that is full has long been noticed, or never will be.
func notify(fd int, one *[8]byte) error {
	if _, err := unix.Write(fd, one[:]); err != nil && !errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("kick the back-end: %w", err)
	}
	return nil
}
