// Package jsonrpc speaks JSON-RPC 1.0 as Open vSwitch does: objects on a stream without framing, requests in both directions.
// OVSDB (RFC 7047) and the control sockets of the daemons are built on it. Start at Conn.
package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Limit is the size of the largest message taken, in bytes: a monitor of a large database comes as one.
const Limit = 64 << 20

// Notify is called for each notification from the other side, in order, from the goroutine that reads: it must not block
// and must not call Conn.Call.
type Notify func(method string, params json.RawMessage)

// Conn is one connection. It is safe for concurrent use; calls are answered in whatever order the other side chooses.
type Conn struct {
	out    *writer
	notify Notify

	mu      sync.Mutex
	next    int64
	pending map[int64]chan reply
	err     error         // why no more replies will come
	closed  bool          // by us
	done    chan struct{} // closed when the reader has ended
}

type reply struct {
	result, fault json.RawMessage
	err           error
}

// Error is the "error" member of a reply.
type Error struct {
	Method string
	Value  json.RawMessage // not null
}

// Text is the error as it was sent, unquoted if it is a string.
func (e *Error) Text() string {
	var s string
	if json.Unmarshal(e.Value, &s) == nil {
		return s
	}
	return string(e.Value)
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Method, e.Text()) }

// New starts to read from c and owns it. notify may be nil. Close ends it.
func New(c net.Conn, notify Notify) *Conn {
	rc := &Conn{out: newWriter(c), notify: notify, pending: map[int64]chan reply{}, done: make(chan struct{})}
	go rc.read(c)
	return rc
}

// Close closes the connection; calls that wait return net.ErrClosed. It returns when nothing of the connection runs any more.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.out.conn.Close()
	<-c.done
	return err
}

// Done is closed when the connection has ended, from either side.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Call sends a request and waits for its reply, whose result it returns. An error member that is not null comes back as an *Error.
// When ctx ends first, the reply is dropped when it comes, and the connection stays usable: whether the other side did what was asked is
// not known. A context that has ended already sends nothing.
func (c *Conn) Call(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	if params == nil {
		params = []any{}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	answer := make(chan reply, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	c.next++
	id := c.next
	c.pending[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()

	if err := c.out.send(map[string]any{"method": method, "params": params, "id": id}); err != nil {
		return nil, fmt.Errorf("send %s: %w", method, err)
	}
	select {
	case r := <-answer:
		if r.err != nil {
			return nil, r.err
		}
		if !null(r.fault) {
			return nil, &Error{Method: method, Value: r.fault}
		}
		return r.result, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// message is any of request, notification and reply.
type message struct {
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	ID     json.RawMessage `json:"id"`
}

func (c *Conn) read(conn net.Conn) {
	err := c.readAll(conn)
	_ = conn.Close()
	c.out.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		err = net.ErrClosed
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("the other side closed the connection: %w", err)
	default:
		err = fmt.Errorf("read: %w", err)
	}
	c.err = err
	for _, answer := range c.pending {
		select {
		case answer <- reply{err: err}:
		default: // it has its answer
		}
	}
	close(c.done)
}

func (c *Conn) readAll(conn net.Conn) error {
	dec := NewDecoder(conn, Limit)
	for {
		raw, err := dec.Next()
		if err != nil {
			return err
		}
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("a message is not JSON-RPC: %w", err)
		}
		switch {
		case m.Method == nil:
			c.answer(m)
		case null(m.ID):
			if c.notify != nil {
				c.notify(*m.Method, m.Params)
			}
		default:
			// ovsdb-server probes an idle client with echo and hangs up without an answer (RFC 7047 section 4.1.11).
			if err := c.out.send(response(m)); err != nil {
				return err
			}
		}
	}
}

func response(m message) map[string]any {
	if *m.Method != "echo" {
		return map[string]any{"result": nil, "error": "unknown method", "id": m.ID}
	}
	params := m.Params
	if params == nil {
		params = json.RawMessage("[]")
	}
	return map[string]any{"result": params, "error": nil, "id": m.ID}
}

func (c *Conn) answer(m message) {
	var id int64
	if json.Unmarshal(m.ID, &id) != nil {
		return // no request of ours has such an id
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.pending[id]; answer != nil {
		select {
		case answer <- reply{result: m.Result, fault: m.Error}:
		default: // a second reply to one request
		}
	}
}

func null(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
