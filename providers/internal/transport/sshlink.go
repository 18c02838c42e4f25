package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"plumb/providers"
)

// DialFunc opens a connection from somewhere: this machine, or a host that another one is reached through.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// link is one SSH connection, with those that it goes through.
type link struct {
	client  *ssh.Client
	target  *sshTarget
	dead    chan struct{} // closed when it has ended
	through []io.Closer   // clients of jump hosts
	given   atomic.Bool   // given up, though it may not have ended yet
	wire    *wire
}

// wire is the stream below a connection. It knows that it has ended before anything above does: x/crypto tells the end of a stream no different whether the command's output was over or the
// connection.
type wire struct {
	net.Conn
	ended atomic.Bool
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil {
		w.ended.Store(true)
	}
	return n, err
}

func (l *link) close() {
	l.given.Store(true)
	_ = l.client.Close()
	for i := len(l.through) - 1; i >= 0; i-- {
		_ = l.through[i].Close()
	}
}

func (l *link) alive() bool {
	select {
	case <-l.dead:
		return false
	default:
		return !l.given.Load() && !l.wire.ended.Load()
	}
}

// connect makes the connection, through jump hosts where ssh_config says so.
func (s *SSH) connect(ctx context.Context) (*link, error) {
	files, err := readSSHFiles(s.cfg.Config)
	if err != nil {
		return nil, err
	}
	target, err := files.resolve(s.cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, target.timeout)
	defer cancel()
	dial, through := s.dial, []io.Closer(nil)
	fail := func(err error) (*link, error) {
		for i := len(through) - 1; i >= 0; i-- {
			_ = through[i].Close()
		}
		return nil, err
	}
	if !s.jumped { // jump = host.NAME leads there already
		way, err := files.way(target, nil)
		if err != nil {
			return nil, err
		}
		for _, jump := range way {
			c := SSHConfig{Passphrase: s.cfg.Passphrase}
			client, _, err := handshake(ctx, dial, jump, c)
			if err != nil {
				return fail(fmt.Errorf("jump host %s: %w", jump.alias, err))
			}
			through = append(through, client)
			dial = client.DialContext
		}
	}
	client, wire, err := handshake(ctx, dial, target, s.cfg)
	if err != nil {
		return fail(fmt.Errorf("%w%s", err, files.skip))
	}
	l := &link{client: client, wire: wire, target: target, dead: make(chan struct{}), through: through}
	go func() { _ = client.Wait(); close(l.dead) }()
	go l.keepAlive(target.alive)
	return l, nil
}

// handshake connects to one machine and logs in.
func handshake(ctx context.Context, dial DialFunc, t *sshTarget, cfg SSHConfig) (*ssh.Client, *wire, error) {
	check, algorithms, err := hostKeys(t)
	if err != nil {
		return nil, nil, err
	}
	login := newLogin(t, cfg)
	defer login.close()
	conn, err := dial(ctx, "tcp", t.address())
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", t.address(), err)
	}
	w := &wire{Conn: conn}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // connections through SSH have no deadlines
	var refused *keyProblem
	c, channels, requests, err := ssh.NewClientConn(w, t.address(), &ssh.ClientConfig{
		User: t.user, Auth: login.methods, HostKeyAlgorithms: algorithms, ClientVersion: "SSH-2.0-Plumb",
		HostKeyCallback: func(name string, addr net.Addr, key ssh.PublicKey) error {
			err := check(name, addr, key)
			errors.As(err, &refused)
			return err
		},
	})
	if !stop() && err == nil {
		_ = c.Close()
		err = ctx.Err()
	}
	if err == nil {
		return ssh.NewClient(c, channels, requests), w, nil
	}
	_ = conn.Close()
	switch {
	case refused != nil:
		return nil, nil, fmt.Errorf("%s: %w", t.address(), refused)
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("connect to %s: no SSH server has answered within %s: %w", t.address(), t.timeout, ctx.Err())
	case strings.Contains(err.Error(), "ssh: unable to authenticate"):
		return nil, nil, fmt.Errorf("%s: %w", t.address(), login.failed(t))
	}
	return nil, nil, fmt.Errorf("connect to %s: %w", t.address(), err)
}

// keepAlive ends a link whose host has not answered for three intervals, so that nobody waits for it for hours.
func (l *link) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	answers := make(chan struct{}, 1)
	asked, missed := false, 0
	for {
		select {
		case <-l.dead:
			return
		case <-answers:
			asked, missed = false, 0
			continue
		case <-tick.C:
		}
		if asked {
			if missed++; missed >= 3 {
				l.close()
				return
			}
			continue
		}
		asked = true
		go func() {
			if _, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil); err == nil {
				answers <- struct{}{}
			}
		}()
	}
}

// attempt is a connection that is being made; all who need one wait for it.
type attempt struct {
	done chan struct{}
	link *link
	err  error
}

// get gives the connection, and makes it when there is none or it has ended. An error wraps providers.ErrUnreachable.
func (s *SSH) get(ctx context.Context) (*link, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", s.name, net.ErrClosed)
	}
	if s.link != nil && s.link.alive() {
		defer s.mu.Unlock()
		return s.link, nil
	}
	a := s.making
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		s.making = a
		// The one who came first may give up: the others still want it.
		go s.make(context.WithoutCancel(ctx), a)
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.link, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *SSH) make(ctx context.Context, a *attempt) {
	l, err := s.connect(ctx)
	if err == nil {
		s.endOrphans(l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making = nil
	switch {
	case err != nil:
		a.err = fmt.Errorf("%s %w: %w", s.name, providers.ErrUnreachable, err)
	case s.closed:
		l.close()
		a.err = fmt.Errorf("%s: %w", s.name, net.ErrClosed)
	default:
		if s.link != nil {
			s.link.close()
		}
		s.made++
		s.link, a.link = l, l
		s.slots = newSlots(s.cfg.Sessions)
	}
	close(a.done)
}
