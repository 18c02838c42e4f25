package vhost

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// ring is the driver's half of a split virtqueue (virtio 1.2, section 2.7) over shared memory. Buffer n has descriptor n, and nothing but its
// length is ever changed. Positions are free-running: entry = position & mask. One thread uses it; the other side is another process.
type ring struct {
	size, mask uint16
	// inOrder: the device uses buffers in the order in which they were made available (VIRTIO_F_IN_ORDER). Then buffer n is always in entry n.
	inOrder bool
	desc    []descriptor
	// avail and used are their ring's flags (low half) and idx (high half) in one word: there are no atomic halves in Go, and one store or load of
	// the word is the release or acquire that orders the entries.
	avail, used *uint32
	entries     []uint16 // of the available ring: buffer numbers
	results     []result // the used ring

	next  uint16 // position up to which buffers were made available
	taken uint16 // position up to which used ones were taken back
	with  []bool // by buffer: the device has it. Only when it may choose, that is without inOrder.

	batch       uint16 // used in order: entries of a batch that come without a result, up to the last
	batchLength uint32 // what that result says
	kick        int    // eventfd on which the device waits if it does not poll; -1: none
	one         [8]byte
}

type descriptor struct {
	addr  uint64
	len   uint32
	flags uint16
	next  uint16
}

type result struct{ id, len uint32 }

const (
	descWrite   = 2 // VIRTQ_DESC_F_WRITE
	noInterrupt = 1 // VIRTQ_AVAIL_F_NO_INTERRUPT
	noNotify    = 1 // VIRTQ_USED_F_NO_NOTIFY
)

// ringLayout is where the parts of a ring of n entries are, and how much memory they take together. Each part has cache lines of its own.
func ringLayout(n int) (avail, used, total int) {
	avail = roundUp(16*n, line)
	used = avail + roundUp(4+2*n+2, line)
	return avail, used, used + roundUp(4+8*n+2, line)
}

// newRing makes an empty ring in mem, which is zero, for the n buffers of p. The device may write to them with writable.
func newRing(mem []byte, n int, p pool, writable, inOrder bool) *ring {
	avail, used, _ := ringLayout(n)
	r := &ring{
		size: uint16(n), mask: uint16(n - 1), inOrder: inOrder, kick: -1, one: [8]byte{1},
		desc:    unsafe.Slice((*descriptor)(unsafe.Pointer(&mem[0])), n),
		avail:   (*uint32)(unsafe.Pointer(&mem[avail])),
		entries: unsafe.Slice((*uint16)(unsafe.Pointer(&mem[avail+4])), n),
		used:    (*uint32)(unsafe.Pointer(&mem[used])),
		results: unsafe.Slice((*result)(unsafe.Pointer(&mem[used+4])), n),
	}
	flags := uint16(0)
	if writable {
		flags = descWrite
	}
	for i := range r.desc {
		r.desc[i] = descriptor{addr: p.address(i), len: uint32(virtioHeader + p.room), flags: flags}
		r.entries[i] = uint16(i)
	}
	if !inOrder {
		r.with = make([]bool, n)
	}
	atomic.StoreUint32(r.avail, noInterrupt)
	return r
}

// publish makes n more entries available.
func (r *ring) publish(n uint16) {
	r.next += n
	atomic.StoreUint32(r.avail, noInterrupt|uint32(r.next)<<16)
}

// usedIdx is up to which position the device has used buffers, as it says.
func (r *ring) usedIdx() uint16 { return uint16(atomic.LoadUint32(r.used) >> 16) }

// fresh is how many used buffers were not taken back yet.
func (r *ring) fresh() (uint16, error) {
	n, has := r.usedIdx()-r.taken, r.next-r.taken
	if n > has {
		return 0, fmt.Errorf("the back-end gave back %d buffers and had only %d", n, has)
	}
	return n, nil
}

// outstanding is how many buffers the device has not used yet: never more than were made available, whatever it says.
func (r *ring) outstanding() int {
	n, err := r.fresh()
	if err != nil {
		n = 0
	}
	return int(r.next - r.taken - n)
}

// peek is the next used buffer, without taking it back. There must be a fresh one.
func (r *ring) peek() (int, error) {
	if r.inOrder {
		return int(r.taken & r.mask), nil
	}
	id := r.results[r.taken&r.mask].id
	if id >= uint32(r.size) || !r.with[id] {
		return 0, fmt.Errorf("the back-end gave back buffer %d, which it did not have", id)
	}
	return int(id), nil
}

// take takes back buffer id, which peek gave, of fresh ones, and says how many bytes the device wrote; full is what a whole buffer holds.
func (r *ring) take(id int, fresh uint16, full uint32) (length uint32, err error) {
	res := r.results[r.taken&r.mask]
	length = res.len
	switch {
	case !r.inOrder:
		r.with[id] = false
	case r.batch > 0:
		// A device that works in order may write one result for several buffers: it stands in the first one's entry and tells of the last; the
		// others are full (virtio 1.2, 2.7.9).
		r.batch--
		if length = full; r.batch == 0 {
			length = r.batchLength
		}
	case res.id >= uint32(r.size):
		return 0, fmt.Errorf("the back-end gave back buffer %d of a ring of %d", res.id, r.size)
	case res.id != uint32(id):
		r.batch, r.batchLength = (uint16(res.id)-uint16(id))&r.mask, res.len
		if r.batch >= fresh {
			return 0, fmt.Errorf("the back-end gave back buffer %d where %d was next, out of order", res.id, id)
		}
		length = full
	}
	if length > full {
		return 0, fmt.Errorf("the back-end wrote %d bytes into a buffer of %d", length, full)
	}
	r.taken++
	return length, nil
}

// wantsKick says whether the device sleeps: it has to be asked after publish.
func (r *ring) wantsKick() bool { return atomic.LoadUint32(r.used)&noNotify == 0 }
