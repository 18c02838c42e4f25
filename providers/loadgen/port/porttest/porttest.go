// Package porttest is a pair of ports in memory that are each other's other side, with a device under test in between that loses, doubles and
// withholds frames as it is told to. It keeps the contract of package port: no allocation and no lock per frame, one thread for each queue. The
// zero Options are a wire that loses nothing.
package porttest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"plumb/providers/loadgen/port"
)

// Options of both directions of a pair.
type Options struct {
	Queues   int // pairs; 0: 1
	Depth    int // frames that a queue holds, a power of two; 0: 1024
	MaxFrame int // bytes; 0: 2048
	// Fate says how often the n-th frame of a queue arrives: 0 loses it, 2 doubles it. nil: once.
	Fate func(queue int, n uint64) int
	// Delay is how long a frame takes, in nanoseconds of Clock; nil: no time.
	Delay int64
	Clock func() int64
}

// Pair makes two ports: what one sends, the other receives on the queue of the same number.
func Pair(o Options) (a, b *Port) {
	o.Queues, o.Depth, o.MaxFrame = max(1, o.Queues), max(1, o.Depth), max(64, o.MaxFrame)
	if o.Depth == 1 {
		o.Depth = 1024
	}
	if o.MaxFrame == 64 {
		o.MaxFrame = 2048
	}
	a, b = &Port{name: "mem0", options: o}, &Port{name: "mem1", options: o}
	for i, p := range []*Port{a, b} {
		p.mac = net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)}
		p.links.Store(1)
		p.up.Store(true)
	}
	for i := range o.Queues {
		ab, ba := newLink(i, a, &o), newLink(i, b, &o)
		a.tx, b.rx = append(a.tx, ab), append(b.rx, &receiver{link: ab, port: b, out: make([][]byte, 0, o.Depth)})
		b.tx, a.rx = append(b.tx, ba), append(a.rx, &receiver{link: ba, port: a, out: make([][]byte, 0, o.Depth)})
	}
	return a, b
}

// Port is one of the two. Its methods beyond port.Port play the other side, and may be called while threads use the queues.
type Port struct {
	name    string
	mac     net.HardwareAddr
	options Options
	tx      []*link
	rx      []*receiver
	links   atomic.Uint64
	drops   atomic.Uint64
	up      atomic.Bool
	full    atomic.Bool // the other side takes nothing
	strays  atomic.Pointer[[][]byte]
	closed  atomic.Bool
}

var _ port.Port = (*Port)(nil)

func (p *Port) Name() string              { return p.name }
func (p *Port) MAC() net.HardwareAddr     { return p.mac }
func (p *Port) Queues() int               { return p.options.Queues }
func (p *Port) Tx(queue int) port.TxQueue { return p.tx[queue] }
func (p *Port) Rx(queue int) port.RxQueue { return p.rx[queue] }
func (p *Port) MaxFrame() int             { return p.options.MaxFrame }
func (p *Port) Close() error              { p.closed.Store(true); return nil }
func (p *Port) Closed() bool              { return p.closed.Load() }
func (p *Port) Stats() port.Stats {
	return port.Stats{RxDrops: p.drops.Load(), Links: p.links.Load(), Up: p.up.Load()}
}
func (p *Port) Ready(ctx context.Context) error {
	if !p.up.Load() {
		return fmt.Errorf("%s: the other side is away", p.name)
	}
	return ctx.Err()
}

// Stall keeps the other side from taking what this port sends, or lets it go on.
func (p *Port) Stall(on bool) { p.full.Store(on) }

// Flap lets the other side go and come back.
func (p *Port) Flap() { p.links.Add(2) }

// Drop says that n frames found this port's receive ring full.
func (p *Port) Drop(n uint64) { p.drops.Add(n) }

// Stray lets the frames arrive at this port's queue 0, once.
func (p *Port) Stray(frames ...[]byte) { p.strays.Store(&frames) }

// link is one queue's way to the other port: a ring with one writer and one reader.
type link struct {
	queue   int
	from    *Port
	fate    func(int, uint64) int
	delay   int64
	clock   func() int64
	mask    uint64
	slots   []port.Slot
	copies  []int32
	leaves  []int64 // when the frame arrives
	given   []port.Slot
	sent    atomic.Uint64 // by the writer
	taken   atomic.Uint64 // by the device under test, of sent
	free    atomic.Uint64 // by the reader: what is below may be overwritten
	flushes atomic.Uint64
}

func newLink(queue int, from *Port, o *Options) *link {
	l := &link{queue: queue, from: from, fate: o.Fate, delay: o.Delay, clock: o.Clock, mask: uint64(o.Depth - 1), slots: make([]port.Slot, o.Depth),
		copies: make([]int32, o.Depth), leaves: make([]int64, o.Depth), given: make([]port.Slot, 0, o.Depth)}
	if o.Depth&(o.Depth-1) != 0 {
		panic(fmt.Sprintf("depth %d is not a power of two", o.Depth))
	}
	for i := range l.slots {
		l.slots[i] = port.Slot{Buf: make([]byte, o.MaxFrame), ID: i}
	}
	return l
}

func (l *link) Depth() int { return len(l.slots) }

func (l *link) Reserve(n int) []port.Slot {
	head := l.sent.Load()
	n = min(n, len(l.slots)-int(head-l.free.Load()))
	l.given = l.given[:0]
	for i := range uint64(max(0, n)) {
		l.given = append(l.given, l.slots[(head+i)&l.mask])
	}
	return l.given
}

func (l *link) Submit(n int) {
	head := l.sent.Load()
	var arrives int64
	if l.clock != nil {
		arrives = l.clock() + l.delay
	}
	for i := range uint64(n) {
		at := (head + i) & l.mask
		l.slots[at].Len = l.given[i].Len
		l.leaves[at] = arrives
		l.copies[at] = 1
		if l.fate != nil {
			l.copies[at] = int32(l.fate(l.queue, head+i))
		}
	}
	l.sent.Store(head + uint64(n))
	l.take()
}

// take lets the device under test take what was sent. It is called by both sides.
func (l *link) take() uint64 {
	sent := l.sent.Load()
	if !l.from.full.Load() {
		for was := l.taken.Load(); was < sent && !l.taken.CompareAndSwap(was, sent); was = l.taken.Load() {
		}
	}
	return l.taken.Load()
}

func (l *link) Flush() error { l.flushes.Add(1); return nil }

func (l *link) Pending() int { return int(l.sent.Load() - l.take()) }

// receiver reads a link.
type receiver struct {
	*link
	port *Port // that it belongs to
	next uint64
	done int32 // copies of the next frame given already
	out  [][]byte
}

func (r *receiver) Receive(n int) [][]byte {
	r.out = r.out[:0]
	if r.queue == 0 && r.port.strays.Load() != nil {
		return append(r.out, *r.port.strays.Swap(nil)...)
	}
	taken := r.take()
	for r.next < taken && len(r.out) < n {
		at := r.next & r.mask
		if r.clock != nil && r.leaves[at] > r.clock() {
			break
		}
		if r.done >= r.copies[at] {
			r.next, r.done = r.next+1, 0
			continue
		}
		r.out = append(r.out, r.slots[at].Buf[:r.slots[at].Len])
		r.done++
	}
	if len(r.out) == 0 {
		r.Release() // lost frames, which nobody will give back
	}
	return r.out
}

func (r *receiver) Release() {
	for r.next < r.taken.Load() && r.done >= r.copies[r.next&r.mask] {
		r.next, r.done = r.next+1, 0
	}
	r.free.Store(r.next)
}
