// Package hostkit implements providers.Host on any Conn: facts gathered once, values shared for a run, and round trips counted.
package hostkit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"sync"

	"plumb/providers"
)

// Host is a machine for the length of one run.
type Host struct {
	name   string
	conn   *counted
	gather func(context.Context, providers.Conn) (*providers.Facts, error)

	mu     sync.Mutex
	shared map[any]*entry
	order  []any // keys as they were opened
	reads  providers.Reads
}

type entry struct {
	done  chan struct{}
	value any
	err   error
}

var _ providers.Host = (*Host)(nil)

// New is a host on a connection, which it closes. gather is called at most once at a time, and again only after an error.
func New(name string, conn providers.Conn, gather func(context.Context, providers.Conn) (*providers.Facts, error)) *Host {
	h := &Host{name: name, gather: gather, shared: map[any]*entry{}}
	h.conn = &counted{Conn: conn, count: h.Count}
	return h
}

// Name as in the configuration.
func (h *Host) Name() string { return h.name }

// Conn counts what goes through it.
func (h *Host) Conn() providers.Conn { return h.conn }

type factsKey struct{}

// Facts are gathered the first time.
func (h *Host) Facts(ctx context.Context) (*providers.Facts, error) {
	v, err := h.Shared(ctx, factsKey{}, func(ctx context.Context) (any, error) { return h.gather(ctx, h.conn) })
	if err != nil {
		return nil, err
	}
	return v.(*providers.Facts), nil
}

// Shared returns the value under key, opened the first time. Who waits for somebody else's open waits no longer than its context.
func (h *Host) Shared(ctx context.Context, key any, open func(context.Context) (any, error)) (any, error) {
	h.mu.Lock()
	if e, ok := h.shared[key]; ok {
		h.mu.Unlock()
		select {
		case <-e.done:
			return e.value, e.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e := &entry{done: make(chan struct{})}
	h.shared[key] = e
	h.mu.Unlock()

	e.value, e.err = open(ctx)
	h.mu.Lock()
	if e.err != nil {
		delete(h.shared, key)
	} else {
		h.order = append(h.order, key)
	}
	h.mu.Unlock()
	close(e.done)
	return e.value, e.err
}

// Reads so far.
func (h *Host) Reads() providers.Reads {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reads
}

// Count adds to Reads.
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

// Close closes what is shared, the last opened first, and then the connection.
func (h *Host) Close() error {
	h.mu.Lock()
	var closers []io.Closer
	for i := len(h.order) - 1; i >= 0; i-- {
		if c, ok := h.shared[h.order[i]].value.(io.Closer); ok {
			closers = append(closers, c)
		}
	}
	h.shared, h.order = map[any]*entry{}, nil
	h.mu.Unlock()
	var errs []error
	for _, c := range closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, h.conn.Close())...)
}

// counted counts round trips.
type counted struct {
	providers.Conn
	count func(providers.Reads)
}

func (c *counted) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	c.count(providers.Reads{Commands: 1})
	return c.Conn.Run(ctx, cmd)
}

func (c *counted) ReadFiles(ctx context.Context, patterns ...string) (map[string][]byte, error) {
	c.count(providers.Reads{Files: 1})
	return c.Conn.ReadFiles(ctx, patterns...)
}

func (c *counted) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	c.count(providers.Reads{Writes: 1})
	return c.Conn.WriteFile(ctx, path, data, mode)
}

func (c *counted) Start(ctx context.Context, p providers.Process) error {
	c.count(providers.Reads{Commands: 1})
	return c.Conn.Start(ctx, p)
}

func (c *counted) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c.count(providers.Reads{Dials: 1})
	return c.Conn.Dial(ctx, network, addr)
}
