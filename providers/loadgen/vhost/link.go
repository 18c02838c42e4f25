package vhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// link connects to the back-end, again and again, and hands each connection's session to the queues. Its goroutine sleeps in accept, in a timer
// or in a read that ends with the connection.
type link struct {
	cfg      Config
	frames   *memory
	tx, rx   []pool
	listener *net.UnixListener // nil: we connect
	ends     []*end            // of all queues; fixed before run

	// current is the session that works, nil while there is none. The queues follow it.
	current atomic.Pointer[session]
	retired []*session // sessions that ended and that a queue may still use; run's own

	mu      sync.Mutex
	state   linkState     // guarded by mu
	changed chan struct{} // closed and replaced when state changes; guarded by mu
}

// linkState is what others may know.
type linkState struct {
	links   uint64 // how often the back-end came or went
	session *session
	why     error // why there was no connection, or none any more, last time
}

// pause is between two attempts: long enough not to be a load, short beside any restart.
const pause = 100 * time.Millisecond

// run serves connections until ctx ends, then says goodbye to the back-end.
func (l *link) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.connected(ctx)
		l.update(func(s *linkState) { s.why = err })
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// connected waits for a connection, and lasts as long as that.
func (l *link) connected(ctx context.Context) error {
	conn, err := l.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	hangUp := context.AfterFunc(ctx, func() { conn.Close() })
	wake := make(chan error, 1)
	p := &peer{conn: conn, timeout: l.cfg.Timeout}
	s, err := l.open(p, func(err error) {
		wake <- err
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	})
	if err != nil {
		return err
	}
	if !hangUp() {
		s.close()
		return ctx.Err()
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		s.close()
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()

	l.current.Store(s)
	l.update(func(st *linkState) { st.session, st.why = s, nil; st.links++ })
	err = watch(ctx, conn, wake)
	l.current.Store(nil)
	if ctx.Err() != nil {
		p.until = time.Now().Add(l.cfg.Timeout)
		_ = p.detach(len(s.rings())) // a back-end that does not listen finds the connection closed instead
	}
	l.retired = append(l.retired, s)
	l.update(func(st *linkState) { st.session, st.why = nil, err; st.links++ })
	return err
}

// watch sleeps until the connection ends, and says why it did.
func watch(ctx context.Context, conn net.Conn, wake <-chan error) error {
	var b [1]byte
	n, err := conn.Read(b[:]) // nothing is due: every answer was read
	select {
	case err := <-wake:
		return err
	default:
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case n > 0:
		return errors.New("the back-end sent a message that was not asked for")
	}
	return ended(err)
}

// dial waits for the back-end to connect, or connects.
func (l *link) dial(ctx context.Context) (*net.UnixConn, error) {
	if l.listener == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", l.cfg.Socket)
		if err != nil {
			return nil, fmt.Errorf("connect to the back-end: %w", err)
		}
		return conn.(*net.UnixConn), nil
	}
	stop := context.AfterFunc(ctx, func() { l.listener.Close() })
	defer stop()
	conn, err := l.listener.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf("wait for the back-end: %w", err)
	}
	return conn, nil
}

// open does the handshake for a new session.
func (l *link) open(p *peer, wake func(error)) (*session, error) {
	features, err := p.negotiate(l.cfg.Queues)
	if err != nil {
		return nil, err
	}
	l.sweep()
	s, err := newSession(l.cfg, l.tx, l.rx, features, wake)
	if err != nil {
		return nil, err
	}
	if err := p.attach(l.frames, s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// sweep frees the sessions that no queue uses any more.
func (l *link) sweep() {
	l.retired = slices.DeleteFunc(l.retired, func(s *session) bool {
		for _, e := range l.ends {
			if e.using.Load() == s {
				return false
			}
		}
		s.close()
		return true
	})
}

// free gives everything back. run has ended and no queue is in use.
func (l *link) free() {
	if l.listener != nil {
		_ = l.listener.Close() // closed already, if ctx ended while it waited
	}
	for _, s := range l.retired {
		s.close()
	}
	l.retired = nil
}

func (l *link) update(change func(*linkState)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.state)
	close(l.changed)
	l.changed = make(chan struct{})
}

// look is the state, and what is closed when that has changed.
func (l *link) look() (linkState, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}
