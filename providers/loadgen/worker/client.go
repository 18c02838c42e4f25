package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"plumb/providers/loadgen/engine"
)

// stopLimit is how long a worker may take to stop a trial, beyond its drain.
const stopLimit = 30 * time.Second

// Client is a Tester in a worker.
type Client struct {
	link  *link
	ready Ready
	after func(context.Context) error // what is to be done when the connection has ended; nil: nothing
	why   func(error) error           // makes more of an error that ended the connection; nil: nothing

	one    sync.Mutex // a trial runs, or the client is being closed
	broken error      // why no further trial can run
	closed bool
}

var _ Tester = (*Client)(nil)

// Connect asks the worker at the other end of a connection to open ports, and waits until it has. It owns the connection, and has closed it when it fails.
func Connect(ctx context.Context, conn net.Conn, o Open) (*Client, error) {
	return connect(ctx, newLink(conn, silence), o)
}

func connect(ctx context.Context, l *link, o Open) (*Client, error) {
	c := &Client{link: l}
	err := l.send(message{Hello: &hello{Version: version}})
	if err == nil {
		err = l.send(message{Open: &o})
	}
	greeted := false
	for {
		var m message
		if err == nil {
			m, err = l.next(ctx)
		}
		switch {
		case err == nil && m.Hello != nil && !greeted:
			greeted = true
			continue
		case err == nil && m.Ready != nil && greeted && len(m.Ready.Ports) == len(o.Ports):
			c.ready = *m.Ready
			return c, nil
		case err == nil && m.Error != nil:
			err = errors.New(m.Error.Error)
		case err == nil:
			err = fmt.Errorf("message %s was not expected from a worker", m.name())
		}
		l.close()
		return nil, err
	}
}

// Ready says what was opened.
func (c *Client) Ready() Ready { return c.ready }

// Run is as Tester's. A connection that breaks is an error, and the worker ends by itself then.
func (c *Client) Run(ctx context.Context, r engine.Request, disturb func(context.Context) error, after time.Duration) (engine.Result, error) {
	if !c.one.TryLock() {
		return engine.Result{}, errors.New("a trial is running already")
	}
	defer c.one.Unlock()
	switch {
	case c.closed:
		return engine.Result{}, errors.New("the generator is closed")
	case c.broken != nil:
		return engine.Result{}, c.broken
	case ctx.Err() != nil:
		return engine.Result{}, ctx.Err()
	}
	res, err, broken := c.trial(ctx, r, disturb, after)
	if broken == nil {
		return res, err
	}
	if c.why != nil {
		broken = c.why(broken)
	}
	// Not wrapped: a worker that was cancelled does not mean that this side was.
	c.broken = fmt.Errorf("the generator's worker: %v", broken)
	return res, c.broken
}

// trial runs one. broken says that the connection is of no more use.
func (c *Client) trial(ctx context.Context, r engine.Request, disturb func(context.Context) error, after time.Duration) (res engine.Result, err, broken error) {
	m := run{Request: r}
	if disturb != nil {
		m.Disturb = &after
	}
	switch err := c.link.send(message{Run: &m}); {
	case errors.Is(err, errUnsendable):
		return res, err, nil // another trial can be sent
	case err != nil:
		return res, nil, err
	}
	d := disturber{call: disturb}
	defer func() {
		// What went wrong here says more than what came back from the worker about it.
		if own := d.end(err != nil || broken != nil); own != nil && broken == nil && ctx.Err() == nil {
			err = own
		}
	}()

	listen, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		if c.link.send(message{Cancel: &struct{}{}}) == nil { // else the connection is gone, which next finds out
			limit := time.AfterFunc(stopLimit+r.Drain, stop)
			context.AfterFunc(listen, func() { limit.Stop() })
		}
	})()
	for {
		m, err := c.link.next(listen)
		switch {
		case err != nil && listen.Err() != nil:
			return res, nil, fmt.Errorf("a trial did not stop within %s", stopLimit+r.Drain)
		case err != nil:
			return res, nil, err
		case m.Result != nil && ctx.Err() != nil:
			return m.Result.Result, ctx.Err(), nil
		case m.Result != nil && m.Result.Error != "":
			return m.Result.Result, errors.New(m.Result.Error), nil
		case m.Result != nil:
			return m.Result.Result, nil, nil
		case m.Due != nil && d.due(ctx, c.link):
		case m.Error != nil:
			return res, nil, errors.New(m.Error.Error)
		default:
			return res, nil, fmt.Errorf("message %s was not expected in a trial", m.name())
		}
	}
}

// disturber disturbs once.
type disturber struct {
	call   func(context.Context) error
	cancel context.CancelFunc // not nil: it was called
	done   chan struct{}      // closed when the worker has its answer
	err    error              // of the call; valid after done
}

// due calls it and answers the worker; false: nobody asked for that.
func (d *disturber) due(ctx context.Context, l *link) bool {
	if d.call == nil || d.cancel != nil {
		return false
	}
	ctx, d.cancel = context.WithCancel(ctx)
	d.done = make(chan struct{})
	go func() {
		defer close(d.done)
		d.err = d.call(ctx)
		_ = l.send(message{Disturbed: &disturbed{Error: text(d.err)}}) // a connection that is gone is found out by who listens
	}()
	return true
}

// end waits for the call, if there was one, and is its error. After a trial that failed for another reason, what is still being done has no use.
func (d *disturber) end(failed bool) error {
	if d.cancel == nil {
		return nil
	}
	if failed {
		d.cancel()
	}
	<-d.done
	d.cancel()
	if failed && errors.Is(d.err, context.Canceled) {
		return nil
	}
	return d.err
}

// Close ends the worker and, after Start, removes all that it has on its host.
func (c *Client) Close(ctx context.Context) error {
	c.one.Lock()
	defer c.one.Unlock()
	if c.closed {
		return nil
	}
	if c.broken == nil {
		_ = c.link.send(message{Close: &struct{}{}}) // the end of the connection says the same
	}
	c.link.close()
	if c.after != nil {
		if err := c.after(ctx); err != nil {
			return err // and may be tried again
		}
	}
	c.closed = true
	return nil
}
