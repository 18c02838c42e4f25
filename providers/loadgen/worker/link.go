package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// silence is how long a side may say nothing until the other takes it for dead. Pings come four times as often, so that a machine whose CPUs the
// generator takes may be late.
const silence = 60 * time.Second

// link carries messages over a connection, which it owns.
type link struct {
	conn  net.Conn
	limit time.Duration
	in    chan message  // closed when nothing comes any more: err says why
	err   error         // valid after in was closed
	quit  chan struct{} // closed by close
	once  sync.Once
	wait  sync.WaitGroup
	write sync.Mutex
}

// newLink starts to listen. limit is that of silence.
func newLink(conn net.Conn, limit time.Duration) *link {
	l := &link{conn: conn, limit: limit, in: make(chan message, 4), quit: make(chan struct{})}
	l.wait.Add(2)
	go l.read()
	go l.ping()
	return l
}

// errSilent says that the other side was not heard of for too long.
var errSilent = errors.New("nothing was heard from the other side")

func (l *link) read() {
	defer l.wait.Done()
	defer close(l.in)
	silent := make(chan struct{})
	// Deadlines of a connection would do, but not every transport has them.
	watchdog := time.AfterFunc(l.limit, func() { close(silent); l.conn.Close() })
	defer watchdog.Stop()
	lines := bufio.NewScanner(l.conn)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		watchdog.Reset(l.limit)
		m, err := decode(lines.Bytes())
		if err != nil {
			l.err = err
			return
		}
		if m.Ping != nil {
			continue
		}
		select {
		case l.in <- m:
		case <-l.quit:
			l.err = net.ErrClosed
			return
		}
	}
	l.err = lines.Err()
	select {
	case <-silent:
		l.err = fmt.Errorf("%w for %s", errSilent, l.limit)
	default:
		if l.err == nil {
			l.err = io.EOF
		}
	}
}

func (l *link) ping() {
	defer l.wait.Done()
	t := time.NewTicker(max(l.limit/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-t.C:
			if l.send(message{Ping: &struct{}{}}) != nil {
				return // read finds out why
			}
		}
	}
}

// send is safe for concurrent use. A connection that takes nothing any more is closed by the watchdog, which ends the wait.
func (l *link) send(m message) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	l.write.Lock()
	defer l.write.Unlock()
	_, err = l.conn.Write(b)
	return err
}

// next is the next message. io.EOF: the other side has closed the connection.
func (l *link) next(ctx context.Context) (message, error) {
	if err := ctx.Err(); err != nil {
		return message{}, err // also when something has come
	}
	select {
	case m, ok := <-l.in:
		if !ok {
			return message{}, l.err
		}
		return m, nil
	case <-ctx.Done():
		return message{}, ctx.Err()
	}
}

// close closes the connection and waits until nothing uses it any more.
func (l *link) close() {
	l.once.Do(func() {
		close(l.quit)
		l.conn.Close()
	})
	l.wait.Wait()
}
