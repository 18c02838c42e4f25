package jsonrpc

import (
	"encoding/json"
	"net"
)

// Peer is the serving side of a connection: test servers and fake daemons are built on it.
type Peer struct{ out *writer }

// Handler answers a request by calling reply once, now or later, from any goroutine. Requests of one connection come in their order. A
// fault that is not nil is the reply's error.
type Handler func(p *Peer, method string, params json.RawMessage, reply func(result, fault any))

// Serve answers the requests that come in on c until it ends, and closes it. Notifications of the other side are given to the handler with
// a reply that does nothing. Replies that come after the end are dropped.
func Serve(c net.Conn, handle Handler) {
	p := &Peer{out: newWriter(c)}
	defer p.out.wait()
	defer c.Close()
	dec := NewDecoder(c, Limit)
	for {
		raw, err := dec.Next()
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(raw, &m) != nil {
			return
		}
		switch {
		case m.Method == nil: // a reply to an echo of ours, and there are none
		case null(m.ID):
			handle(p, *m.Method, m.Params, func(any, any) {})
		case *m.Method == "echo":
			p.send(response(m))
		default:
			handle(p, *m.Method, m.Params, func(result, fault any) {
				p.send(map[string]any{"result": result, "error": fault, "id": m.ID})
			})
		}
	}
}

// Notify sends a notification. It does not wait for the other side to read.
func (p *Peer) Notify(method string, params ...any) {
	p.send(map[string]any{"method": method, "params": params, "id": nil})
}

// Close ends the connection once all that was sent has been written.
func (p *Peer) Close() { p.out.finish() }

// send takes only what the handlers make; a result that is no JSON is a mistake in one of them.
func (p *Peer) send(msg any) {
	if err := p.out.send(msg); err != nil {
		panic(err)
	}
}
