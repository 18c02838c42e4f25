package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"plumb/providers/loadgen/engine"
)

// Listen is a whole worker: it makes the socket, with a mode that lets only its own user in, takes one connection, and serves that. The socket is gone when it
// returns, and so is everything that was opened. It ends without an error when the client closes, or goes away; and when nobody connects within a minute.
func Listen(ctx context.Context, socket string, open Opener) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("make the socket of a worker: %w", err)
	}
	defer l.Close() // removes the socket too
	if err := os.Chmod(socket, 0o600); err != nil {
		return fmt.Errorf("make the socket of a worker: %w", err)
	}
	alone := time.AfterFunc(silence, func() { l.Close() })
	defer alone.Stop()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	conn, err := l.Accept()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("nobody connected to %s within %s: %w", socket, silence, err)
	}
	l.Close() // one client, no second
	return Serve(ctx, conn, open)
}

// Serve serves one client until it closes the connection, goes away (not an error), is silent for a minute, or ctx ends. It owns the connection.
// Whatever open has opened is closed when it returns.
func Serve(ctx context.Context, conn net.Conn, open Opener) error {
	return serve(ctx, newLink(conn, silence), open)
}

func serve(ctx context.Context, l *link, open Opener) error {
	s := &server{link: l, open: open}
	defer l.close()
	err := s.talk(ctx)
	if s.engine != nil {
		err = errors.Join(err, s.engine.Close())
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

type server struct {
	*link
	open   Opener
	engine Engine
}

// talk returns nil when the client asked to close.
func (s *server) talk(ctx context.Context) error {
	if err := s.send(message{Hello: &hello{Version: version}}); err != nil {
		return err
	}
	greeted := false
	for {
		m, err := s.next(ctx)
		switch {
		case err != nil:
			return s.refuse(err)
		case m.Close != nil:
			return nil
		case m.Hello != nil:
			greeted = true
		case !greeted:
			return s.refuse(fmt.Errorf("%s before hello", m.name()))
		case m.Open != nil && s.engine == nil:
			err = s.opens(ctx, *m.Open)
		case m.Run != nil && s.engine != nil:
			err = s.runs(ctx, *m.Run)
		case m.Cancel != nil || m.Disturbed != nil:
			// Too late: the trial has ended meanwhile.
		default:
			return s.refuse(fmt.Errorf("message %s does not belong here", m.name()))
		}
		if err != nil {
			return err
		}
	}
}

// refuse tells the client why the connection ends, if it still listens.
func (s *server) refuse(err error) error {
	if !errors.Is(err, io.EOF) {
		_ = s.send(message{Error: &failed{text(err)}}) // what counts is err
	}
	return err
}

// opens opens the ports. A failure is told to the client, which may try again.
func (s *server) opens(ctx context.Context, o Open) error {
	var ready Ready
	failure, err := s.during(ctx, func(ctx context.Context) error {
		e, r, err := s.open(ctx, o)
		if err == nil {
			s.engine, ready = e, r
		}
		return err
	}, func(m message, _ context.CancelFunc) error {
		return fmt.Errorf("message %s while ports are opened", m.name())
	})
	switch {
	case err != nil:
		return err
	case failure != nil:
		return s.send(message{Error: &failed{text(failure)}})
	}
	return s.send(message{Ready: &ready})
}

// runs does one trial.
func (s *server) runs(ctx context.Context, r run) error {
	answer := make(chan error, 1)
	var disturb func(context.Context) error
	var after time.Duration
	if r.Disturb != nil {
		after = *r.Disturb
		disturb = func(ctx context.Context) error {
			if err := s.send(message{Due: &struct{}{}}); err != nil {
				return err
			}
			select {
			case err := <-answer:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	var res engine.Result
	failure, err := s.during(ctx, func(ctx context.Context) error {
		var err error
		res, err = s.engine.Run(ctx, r.Request, disturb, after)
		return err
	}, func(m message, cancel context.CancelFunc) error {
		switch {
		case m.Cancel != nil:
			cancel()
			return nil
		case m.Disturbed != nil && r.Disturb != nil && len(answer) == 0:
			var err error
			if m.Disturbed.Error != "" {
				err = errors.New(m.Disturbed.Error)
			}
			answer <- err
			return nil
		}
		return fmt.Errorf("message %s while a trial runs", m.name())
	})
	if err != nil {
		return err
	}
	err = s.send(message{Result: &result{Result: res, Error: text(failure)}})
	if errors.Is(err, errUnsendable) { // a figure that is not finite, say
		return s.send(message{Result: &result{Error: text(errors.Join(failure, err))}})
	}
	return err
}

// during does something while it listens. failure is what do returned. err says that the connection must end: the client has gone, or said what handle
// does not allow; do was cancelled then, and has ended.
func (s *server) during(ctx context.Context, do func(context.Context) error, handle func(message, context.CancelFunc) error) (failure, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	for {
		select {
		case failure := <-done:
			return failure, nil
		case m, ok := <-s.in:
			switch {
			case !ok:
				err = s.err
			case m.Close != nil:
				err = io.EOF
			default:
				err = handle(m, cancel)
			}
			if err != nil {
				cancel()
				<-done
				return nil, s.refuse(err)
			}
		}
	}
}
