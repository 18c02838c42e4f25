package kernel

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

// xskTx sends on an AF_XDP socket. A slot goes round: free, given by Reserve, submitted, taken by the kernel, done (completion ring), free.
type xskTx struct {
	fd    int
	tx    ring[unix.XDPDesc]
	done  ring[uint64]
	base  uint64 // of the slots in the memory
	shift uint   // log2 of a slot's bytes
	chunk uint32

	slots []port.Slot // all, by ID
	given []port.Slot // by the last Reserve
	free  ring[uint32]
	head  uint32 // next in free to be given; free.own is the end

	failed error // by Reserve, for Flush to tell

	// Only where a frame may have several descriptors:
	parts    []uint32 // of each slot, that are not done
	ends     []uint32 // index in tx behind the last descriptor of each frame submitted
	sent     uint32   // frames submitted
	taken    uint32   // frames the kernel took
	exactEnd bool     // this kernel shows after each call how far it came (Linux 6.17)
}

// perCall is how many descriptors a call takes at least, when it can (TX_BATCH_SIZE of net/xdp/xsk.c).
const perCall = 32

func newXSKTx(fd int, sh shape, umem []byte, tx ring[unix.XDPDesc], done ring[uint64]) xskTx {
	q := xskTx{
		fd: fd, tx: tx, done: done, base: sh.txBase(), shift: uint(bits.TrailingZeros32(sh.slot)), chunk: sh.chunk,
		slots: make([]port.Slot, sh.slots), given: make([]port.Slot, sh.slots),
		free: ring[uint32]{entries: make([]uint32, sh.slots)},
	}
	for i := range q.slots {
		at := int(sh.txBase()) + i*int(sh.slot)
		q.slots[i] = port.Slot{Buf: umem[at : at+int(sh.slot) : at+int(sh.slot)], ID: i}
		q.free.put(uint32(i))
	}
	if sh.multi() {
		q.parts, q.ends = make([]uint32, sh.slots), make([]uint32, sh.slots)
	}
	return q
}

func (q *xskTx) Depth() int { return len(q.slots) }

// Reserve tries to send what is left when it has not enough: a caller that gets no slot has nothing to flush.
func (q *xskTx) Reserve(n int) []port.Slot {
	q.reap()
	if int(q.free.own-q.head) < n && q.tx.untaken() > 0 {
		q.failed = q.send()
		q.reap()
	}
	n = min(n, int(q.free.own-q.head))
	for i := range n {
		q.given[i] = q.slots[*q.free.at(q.head + uint32(i))]
	}
	return q.given[:max(n, 0)]
}

// reap frees the slots whose frames are done, in whatever order that happened.
func (q *xskTx) reap() {
	n := q.done.filled()
	if n == 0 {
		return
	}
	for range n {
		id := uint32((*q.done.at(q.done.own) - q.base) >> q.shift)
		q.done.own++
		if q.parts != nil {
			if q.parts[id]--; q.parts[id] > 0 {
				continue
			}
		}
		q.free.put(id)
	}
	q.done.release()
}

func (q *xskTx) Submit(n int) {
	for i := range n {
		s := &q.given[i]
		addr := q.base + uint64(s.ID)<<q.shift
		if q.parts == nil {
			q.tx.put(unix.XDPDesc{Addr: addr, Len: uint32(s.Len)})
			continue
		}
		q.putParts(s.ID, addr, uint32(s.Len))
	}
	q.head += uint32(n)
	q.tx.publish()
}

// putParts writes a descriptor for each chunk of a frame.
func (q *xskTx) putParts(id int, addr uint64, length uint32) {
	for {
		q.parts[id]++
		if length <= q.chunk {
			break
		}
		q.tx.put(unix.XDPDesc{Addr: addr, Len: q.chunk, Options: unix.XDP_PKT_CONTD})
		addr += uint64(q.chunk)
		length -= q.chunk
	}
	q.tx.put(unix.XDPDesc{Addr: addr, Len: length})
	q.ends[int(q.sent)&(len(q.ends)-1)] = q.tx.own
	q.sent++
}

// Flush calls until the ring is empty or the interface takes no more: what is left is pending, and the next Flush tries again. An interface
// that is down takes nothing and is no error (Stats tells).
func (q *xskTx) Flush() error {
	if err := q.failed; err != nil {
		q.failed = nil
		return err
	}
	return q.send()
}

func (q *xskTx) send() error {
	idle := 0
	for left := q.tx.untaken(); left > 0 && q.tx.needsWakeup(); {
		errno := kick(unix.SYS_SENDTO, q.fd)
		now := q.tx.untaken()
		moved := now < left
		left = now
		switch errno {
		case 0:
			if !moved {
				return nil
			}
		case unix.EAGAIN: // 32 are sent, or the interface is busy
			q.exactEnd = q.exactEnd || moved && left > 0
		case unix.EBUSY, unix.ENOBUFS, unix.EINTR: // EBUSY: the interface dropped one frame, which counts as taken
		case unix.ENETDOWN:
			return nil
		case unix.ENXIO:
			return fmt.Errorf("the interface is gone: %w", errno)
		default:
			return fmt.Errorf("send: %w", errno)
		}
		if moved {
			idle = 0
		} else if idle++; q.exactEnd || idle > len(q.tx.entries)/perCall {
			return nil
		}
	}
	return nil
}

func (q *xskTx) Pending() int {
	if q.parts == nil {
		return int(q.tx.untaken())
	}
	consumer := atomic.LoadUint32(q.tx.consumer)
	for q.taken != q.sent && int32(consumer-q.ends[int(q.taken)&(len(q.ends)-1)]) >= 0 {
		q.taken++
	}
	return int(q.sent - q.taken)
}
