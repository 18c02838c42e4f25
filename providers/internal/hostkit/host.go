// Package hostkit makes a providers.Host of any providers.Conn.
package hostkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"

	"plumb/providers"
)

// Gather finds out what a host is, through a connection that counts.
type Gather func(ctx context.Context, conn providers.Conn) (*providers.Facts, error)

// New makes a host of a connection, which it owns: Close closes it after all that was shared.
func New(name string, conn providers.Conn, facts Gather) *Host {
	h := &Host{name: name, gather: facts, shared: map[any]*entry{}}
	h.conn = &counting{Conn: conn, count: h.Count, rounds: &h.rounds}
	return h
}

// Host is a providers.Host.
type Host struct {
	name   string
	conn   providers.Conn
	gather Gather

	rounds rounds

	mu     sync.Mutex
	reads  providers.Reads
	shared map[any]*entry
	order  []io.Closer // what is to be closed, oldest first
	closed bool
}

// entry is one value of Shared; done is closed when value and err are set.
type entry struct {
	done  chan struct{}
	value any
	err   error
}

var _ providers.Host = (*Host)(nil)

type factsKey struct{}

func (h *Host) Name() string         { return h.name }
func (h *Host) Conn() providers.Conn { return h.conn }

func (h *Host) Facts(ctx context.Context) (*providers.Facts, error) {
	v, err := h.Shared(ctx, factsKey{}, func(ctx context.Context) (any, error) {
		f, err := h.gather(ctx, h.conn)
		if err != nil {
			return nil, fmt.Errorf("gather facts of %s: %w", h.name, err)
		}
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*providers.Facts), nil
}

// Shared runs open with the context of the caller that came first. open may call Shared for other keys.
func (h *Host) Shared(ctx context.Context, key any, open func(context.Context) (any, error)) (any, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, fmt.Errorf("host %s is closed: %w", h.name, net.ErrClosed)
	}
	e, waits := h.shared[key]
	if !waits {
		e = &entry{done: make(chan struct{}), err: errors.New("the function that opens a shared value panicked")}
		h.shared[key] = e
	}
	h.mu.Unlock()

	if waits {
		select {
		case <-e.done:
			return e.value, e.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer close(e.done)
	defer h.keep(key, e)
	e.value, e.err = open(ctx)
	return e.value, e.err
}

// keep notes what is to be closed, and forgets what failed.
func (h *Host) keep(key any, e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.err != nil {
		e.value = nil
		delete(h.shared, key)
		return
	}
	if c, ok := e.value.(io.Closer); ok {
		h.order = append(h.order, c)
	}
}

func (h *Host) Reads() providers.Reads {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.reads
	r.Rounds = h.rounds.longest()
	if c, ok := h.conn.(*counting).Conn.(connected); ok {
		r.Connections = c.Connections()
	}
	return r
}

// connected is a connection that knows how often it was made.
type connected interface{ Connections() int }

func (h *Host) Count(r providers.Reads) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads.Commands += r.Commands
	h.reads.Files += r.Files
	h.reads.Writes += r.Writes
	h.reads.Dials += r.Dials
	h.reads.OVSDB += r.OVSDB
	h.reads.Unixctl += r.Unixctl
}

// Forget waits for values that are being opened, closes all in reverse order, and forgets them.
func (h *Host) Forget() error {
	h.mu.Lock()
	opening, order := h.shared, h.order
	h.shared, h.order = map[any]*entry{}, nil
	h.mu.Unlock()
	for _, e := range opening {
		<-e.done
	}
	// What was being opened has noted itself since.
	h.mu.Lock()
	order = append(order, h.order...)
	h.order = nil
	h.mu.Unlock()
	var errs []error
	for i := len(order) - 1; i >= 0; i-- {
		errs = append(errs, order[i].Close())
	}
	return errors.Join(errs...)
}

// Close forgets all that is shared, then closes the connection. A second Close does nothing.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	return errors.Join(h.Forget(), h.conn.Close())
}

// counting is a connection that counts what is asked of it.
type counting struct {
	providers.Conn
	count  func(providers.Reads)
	rounds *rounds
}

// ThisMachine is that of the connection below.
func (c *counting) ThisMachine() bool { return providers.ThisMachine(c.Conn) }

// ManagementAddress is that of the connection below.
func (c *counting) ManagementAddress() string {
	if m, ok := c.Conn.(providers.Managed); ok {
		return m.ManagementAddress()
	}
	return ""
}

// Plain is a host's connection without the counting, for another host that stands on it and counts for itself.
func Plain(c providers.Conn) providers.Conn {
	if counted, ok := c.(*counting); ok {
		return counted.Conn
	}
	return c
}

func (c *counting) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	c.count(providers.Reads{Commands: 1})
	defer c.rounds.begin()()
	return c.Conn.Run(ctx, cmd)
}

func (c *counting) Start(ctx context.Context, p providers.Process) error {
	c.count(providers.Reads{Commands: 1})
	defer c.rounds.begin()()
	return c.Conn.Start(ctx, p)
}

func (c *counting) ReadFiles(ctx context.Context, patterns ...string) (map[string][]byte, error) {
	c.count(providers.Reads{Files: 1})
	defer c.rounds.begin()()
	return c.Conn.ReadFiles(ctx, patterns...)
}

func (c *counting) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	c.count(providers.Reads{Writes: 1})
	defer c.rounds.begin()()
	return c.Conn.WriteFile(ctx, path, data, mode)
}

func (c *counting) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c.count(providers.Reads{Dials: 1})
	defer c.rounds.begin()()
	conn, err := c.Conn.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &talk{Conn: conn, rounds: c.rounds}, nil
}
