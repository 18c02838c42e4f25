package vhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

// attachment is an open vhost-user port.
type attachment struct {
	cfg    Config
	memory *memory
	link   *link
	tx     []*txQueue
	rx     []*rxQueue
	owned  *socketID // of our socket; nil: we connect

	cancel context.CancelFunc
	done   sync.WaitGroup
	closed atomic.Bool
}

var _ port.Port = (*attachment)(nil)

// Open makes a port and returns before a back-end is there: Ready waits for that. The port lasts until Close, whatever becomes of ctx. Whenever
// the back-end goes, the port waits for the next one, or connects again, and Stats counts it. After an error nothing is left.
//
// The memory, all of it there from the beginning, is MaxFrame and about 100 bytes for each entry of each ring.
func Open(ctx context.Context, c Config) (port.Port, error) {
	p, err := open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open vhost-user port %s: %w", c.Socket, err)
	}
	return p, nil
}

func open(ctx context.Context, c Config) (_ *attachment, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c, err = c.filled(); err != nil {
		return nil, err
	}
	txLen, rxLen := poolSize(c.TxSize, c.MaxFrame), poolSize(c.RxSize, c.MaxFrame)
	m, err := newMemory("vhost-frames", c.Queues*(txLen+rxLen), c.Hugepages)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = m.close()
		}
	}()
	p := &attachment{cfg: c, memory: m, link: &link{cfg: c, frames: m, changed: make(chan struct{})}}
	at := 0
	take := func(n int) pool {
		q := newPool(m.bytes[at:], frameGuest+uint64(at), n, c.MaxFrame)
		at += len(q.mem)
		return q
	}
	for i := range c.Queues {
		tx, rx := newTxQueue(p.link, i, take(c.TxSize), c.TxSize, c.MaxFrame), newRxQueue(p.link, i, take(c.RxSize), c.RxSize)
		p.tx, p.rx = append(p.tx, tx), append(p.rx, rx)
		p.link.tx, p.link.rx = append(p.link.tx, tx.pool), append(p.link.rx, rx.pool)
		p.link.ends = append(p.link.ends, &tx.end, &rx.end)
	}
	if c.Server {
		if p.link.listener, p.owned, err = listen(ctx, c); err != nil {
			return nil, err
		}
	}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.done.Go(func() { p.link.run(ctx) })
	return p, nil
}

// Name is the socket's path.
func (p *attachment) Name() string { return p.cfg.Socket }

func (p *attachment) MAC() net.HardwareAddr     { return p.cfg.MAC }
func (p *attachment) Queues() int               { return p.cfg.Queues }
func (p *attachment) MaxFrame() int             { return p.cfg.MaxFrame }
func (p *attachment) Tx(queue int) port.TxQueue { return p.tx[queue] }
func (p *attachment) Rx(queue int) port.RxQueue { return p.rx[queue] }

// Stats: RxDrops are frames that no buffer of ours could hold. A back-end that finds the ring full keeps that count itself, as a transmit drop
// of its port.
func (p *attachment) Stats() port.Stats {
	state, _ := p.link.look()
	s := port.Stats{Links: state.links, Up: state.session != nil}
	for _, q := range p.rx {
		s.RxDrops += q.drops.Load()
	}
	return s
}

// Close stops the back-end's work on our memory, waiting Timeout for it at most, and frees everything.
func (p *attachment) Close() error {
	if !p.closed.CompareAndSwap(false, true) {
		p.done.Wait()
		return nil
	}
	p.cancel()
	p.done.Wait()
	p.link.free()
	var errs []error
	if p.owned != nil {
		errs = append(errs, p.owned.remove(p.cfg.Socket))
	}
	errs = append(errs, p.memory.close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close vhost-user port %s: %w", p.cfg.Socket, err)
	}
	return nil
}

// socketID tells our socket from one that somebody else put in its place.
type socketID struct{ dev, ino uint64 }

// listen makes the socket.
func listen(ctx context.Context, c Config) (*net.UnixListener, *socketID, error) {
	if err := clearStale(ctx, c.Socket); err != nil {
		return nil, nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket, Net: "unix"})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("listen: its folder does not exist: %w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	l.SetUnlinkOnClose(false) // Close looks whether it is still ours
	id, err := identify(c.Socket)
	if err == nil && c.Mode != 0 {
		err = os.Chmod(c.Socket, c.Mode)
	}
	if err != nil {
		return nil, nil, errors.Join(err, l.Close(), os.Remove(c.Socket))
	}
	return l, id, nil
}

// clearStale removes a socket that nobody listens on any more.
func clearStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is something that is no socket: it is left alone")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		conn.Close()
		return errors.New("somebody listens on this socket already: the other side owns it, or another generator runs")
	case !errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("find out whether the socket is in use: %w", err)
	}
	return os.Remove(path)
}

func identify(path string) (*socketID, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return nil, fmt.Errorf("look at the socket: %w", err)
	}
	return &socketID{dev: uint64(st.Dev), ino: st.Ino}, nil
}

// remove removes the socket if it is still the same.
func (id *socketID) remove(path string) error {
	now, err := identify(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || *now != *id {
		return err
	}
	return os.Remove(path)
}
