package vhost

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"plumb/providers/loadgen/port"
)

// rxQueue is a port.RxQueue. Buffers are long enough for a frame of MaxFrame; what spans several (longer ones, under VIRTIO_NET_F_MRG_RXBUF) is
// put together in scratch.
type rxQueue struct {
	end
	index   int
	pool    pool
	frames  [][]byte // that were given and not released
	held    uint16   // buffers of these
	scratch []byte
	filled  int // bytes of scratch
	// drops are frames that are longer than anything a virtio device should give us.
	drops atomic.Uint64
	_     [line]byte // the next queue's thread writes elsewhere
}

var _ port.RxQueue = (*rxQueue)(nil)

// scratchLen holds several frames of any length that IP has.
const scratchLen = 256 << 10

func newRxQueue(l *link, index int, p pool, size int) *rxQueue {
	return &rxQueue{end: end{link: l}, index: index, pool: p, frames: make([][]byte, 0, size), scratch: make([]byte, scratchLen)}
}

// follow moves to a newer session and gives it all buffers. Not before everything of the old one is released: the new back-end would write there.
func (q *rxQueue) follow() bool {
	if len(q.frames) == 0 && q.moved() {
		q.held, q.filled = 0, 0 // of a frame that the old back-end broke off
		q.ring = q.session.rx[q.index]
		q.give(q.ring.size)
	}
	return q.up()
}

// give makes the next n entries of the ring available.
func (q *rxQueue) give(n uint16) {
	r := q.ring
	if !r.inOrder {
		for i := range n {
			r.with[r.entries[(r.next+i)&r.mask]] = true
		}
	}
	r.publish(n)
	if err := q.kick(); err != nil {
		q.session.fail(err)
	}
}

// Receive gives nothing while the back-end is away, or when it sends something wrong; the connection is then made anew.
func (q *rxQueue) Receive(n int) [][]byte {
	if q.link.current.Load() != q.session || q.session == nil {
		if !q.follow() {
			return nil
		}
	}
	first := len(q.frames)
	fresh, err := q.ring.fresh()
	for err == nil && n > 0 && fresh > 0 {
		var used uint16
		if used, err = q.one(fresh); used == 0 {
			break
		}
		fresh -= used
		n--
	}
	if err != nil {
		q.session.fail(err)
	} else if len(q.frames) == 0 {
		q.Release() // of what was dropped: the caller has nothing to release
	}
	return q.frames[first:]
}

// one takes the next frame, if all of it is there and there is room for it, and says how many buffers it took.
func (q *rxQueue) one(fresh uint16) (uint16, error) {
	r, parts, full := q.ring, 1, uint32(virtioHeader+q.pool.room)
	id, err := r.peek()
	if err != nil {
		return 0, err
	}
	if q.session.mergeable {
		switch parts = int(binary.LittleEndian.Uint16(q.pool.whole(id)[10:])); { // num_buffers
		case parts == 0 || parts > int(r.size):
			return 0, fmt.Errorf("the back-end sent a frame of %d buffers", parts)
		case parts > int(fresh):
			return 0, nil
		case parts > 1 && q.filled > 0 && q.filled+parts*int(full) > len(q.scratch):
			return 0, nil // after Release
		}
	}
	length, err := r.take(id, fresh, full)
	switch {
	case err != nil:
		return 0, err
	case length < virtioHeader:
		return 0, fmt.Errorf("the back-end sent a frame of %d bytes, which is not even a virtio header", length)
	}
	q.hold(id)
	if parts == 1 {
		q.frames = append(q.frames, q.pool.frame(id)[:length-virtioHeader])
		return 1, nil
	}
	return uint16(parts), q.merge(id, int(length), parts, fresh, full)
}

// merge puts the frame together whose first part is in buffer id.
func (q *rxQueue) merge(id, length, parts int, fresh uint16, full uint32) error {
	start, fits := q.filled, true
	put := func(b []byte) {
		fits = fits && copy(q.scratch[q.filled:], b) == len(b)
		if fits {
			q.filled += len(b)
		}
	}
	put(q.pool.whole(id)[virtioHeader:length])
	for i := 1; i < parts; i++ {
		id, err := q.ring.peek()
		if err != nil {
			return err
		}
		length, err := q.ring.take(id, fresh-uint16(i), full)
		if err != nil {
			return err
		}
		q.hold(id)
		put(q.pool.whole(id)[:length]) // only the first part has a header
	}
	if !fits {
		q.filled = start
		q.drops.Add(1)
		return nil
	}
	q.frames = append(q.frames, q.scratch[start:q.filled:q.filled])
	return nil
}

// hold notes that a buffer goes back with the next Release.
func (q *rxQueue) hold(id int) {
	if r := q.ring; !r.inOrder {
		r.entries[(r.next+q.held)&r.mask] = uint16(id)
	}
	q.held++
}

// Release gives the buffers back in one batch.
func (q *rxQueue) Release() {
	if q.held == 0 {
		return
	}
	q.give(q.held)
	q.frames, q.held, q.filled = q.frames[:0], 0, 0
}
