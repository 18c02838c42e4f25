package jsonrpc

import (
	"bytes"
	"encoding/json"
	"net"
	"sync"
)

// writer writes messages in their order from a goroutine of its own. So nobody who sends waits for the other side to read, nothing is ever
// cut off in the middle of a message, and the connection need not support deadlines.
type writer struct {
	conn net.Conn
	gone chan struct{} // closed when the goroutine has ended

	mu    sync.Mutex
	wake  *sync.Cond
	queue [][]byte
	last  bool // nothing more will come
}

func newWriter(c net.Conn) *writer {
	w := &writer{conn: c, gone: make(chan struct{})}
	w.wake = sync.NewCond(&w.mu)
	go w.run()
	return w
}

// send queues a message. The error is that of a message that is no JSON.
func (w *writer) send(msg any) error {
	b, err := encode(msg)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.last {
		w.queue = append(w.queue, b)
		w.wake.Signal()
	}
	return nil
}

// finish lets the writer close the connection once all that was sent is written.
func (w *writer) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = true
	w.wake.Signal()
}

// wait ends the writer of a connection that is closed.
func (w *writer) wait() {
	w.finish()
	<-w.gone
}

func (w *writer) run() {
	defer close(w.gone)
	defer w.conn.Close()
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.last {
			w.wake.Wait()
		}
		if len(w.queue) == 0 {
			w.mu.Unlock()
			return
		}
		b := w.queue[0]
		w.queue = w.queue[1:]
		w.mu.Unlock()
		if _, err := w.conn.Write(b); err != nil {
			return // closing the connection makes the reader tell
		}
	}
}

// encode leaves <, > and & as they are: flows and paths are read by people in logs.
func encode(msg any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(msg); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
