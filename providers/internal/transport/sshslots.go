package transport

import (
	"context"
	"sync"
)

// slots limit the sessions of a connection.
type slots struct {
	free chan struct{}

	mu     sync.Mutex
	total  int
	held   int
	relays int // of those that are held
}

// defaultSessions is below MaxSessions of sshd_config(5), 10, so that a session that has ended here but not there yet does not matter.
const defaultSessions = 8

func newSlots(n int) *slots {
	if n < 1 {
		n = defaultSessions
	}
	s := &slots{free: make(chan struct{}, n), total: n}
	for range n {
		s.free <- struct{}{}
	}
	return s
}

func (s *slots) take(ctx context.Context) error {
	select {
	case <-s.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held++
	return nil
}

func (s *slots) give() {
	s.mu.Lock()
	s.held--
	s.mu.Unlock()
	s.free <- struct{}{}
}

// lose gives up a slot that the host refused, for good. false: it was the only one, so that waiting for another to end is no use.
func (s *slots) lose() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == 1 {
		return false
	}
	s.held--
	s.total--
	return true
}

// relay reserves room for a session that lives as long as a socket is open. false: none would be left for commands.
func (s *slots) relay() (total int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.relays+1 >= s.total {
		return s.total, false
	}
	s.relays++
	return s.total, true
}

func (s *slots) endRelay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relays--
}
