package hostkit

import (
	"net"
	"sync"
)

// rounds measures the longest chain of round trips: a round trip that begins after another has ended is one further along. What runs side by
// side is as far as its neighbours.
type rounds struct {
	mu   sync.Mutex
	done int // how far the furthest is that has ended
}

// begin notes the start of a round trip and returns what notes its end.
func (r *rounds) begin() (end func()) {
	r.mu.Lock()
	at := r.done + 1
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.done = max(r.done, at)
	}
}

func (r *rounds) longest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// talk is a connection to a daemon. A round trip goes from the first write after a read to the first read after it.
type talk struct {
	net.Conn
	rounds *rounds

	mu  sync.Mutex
	end func() // nil: nothing was asked
}

func (t *talk) Write(b []byte) (int, error) {
	t.mu.Lock()
	if t.end == nil {
		t.end = t.rounds.begin()
	}
	t.mu.Unlock()
	return t.Conn.Write(b)
}

func (t *talk) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end()
		t.end = nil
	}
	return n, err
}
