package kernel

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

// packetTx sends on a TPACKET_V2 ring: the status of a frame says whose it is.
type packetTx struct {
	fd     int
	ring   []byte
	frame  int // bytes
	slots  []port.Slot
	given  []port.Slot
	head   uint32 // next to be submitted
	taken  uint32 // before it, the kernel has taken every frame
	number uint32 // of frames, a power of two
	failed error  // by Reserve, for Flush to tell
}

// txData is where a frame begins: TPACKET2_HDRLEN less the address in it.
const txData = unix.SizeofTpacket2Hdr

func newPacketTx(fd int, ring []byte, frame int) packetTx {
	n := len(ring) / frame
	q := packetTx{fd: fd, ring: ring, frame: frame, number: uint32(n), slots: make([]port.Slot, n), given: make([]port.Slot, n)}
	for i := range q.slots {
		q.slots[i] = port.Slot{Buf: ring[i*frame+txData : (i+1)*frame : (i+1)*frame], ID: i}
	}
	return q
}

func (q *packetTx) header(i uint32) *unix.Tpacket2Hdr {
	return header(q.ring[int(i&(q.number-1))*q.frame:])
}

func (q *packetTx) Depth() int { return len(q.slots) }

// Reserve tries to send what is left when it has not enough: a caller that gets no slot has nothing to flush.
func (q *packetTx) Reserve(n int) []port.Slot {
	n = min(n, len(q.slots))
	free := q.give(0, n)
	if free < n && q.Pending() > 0 {
		q.failed = q.send()
		free = q.give(free, n)
	}
	return q.given[:free]
}

// give goes on from given[from] as long as slots are free, to n at most.
func (q *packetTx) give(from, n int) int {
	for i := from; i < n; i++ {
		at := q.head + uint32(i)
		if atomic.LoadUint32(&q.header(at).Status)&(unix.TP_STATUS_SEND_REQUEST|unix.TP_STATUS_SENDING) != 0 {
			return i
		}
		q.given[i] = q.slots[at&(q.number-1)]
	}
	return max(n, 0)
}

func (q *packetTx) Submit(n int) {
	for i := range n {
		h := q.header(q.head)
		h.Len = uint32(q.given[i].Len)
		atomic.StoreUint32(&h.Status, unix.TP_STATUS_SEND_REQUEST)
		q.head++
	}
}

// Flush calls as long as frames go: what the interface refuses stays in the ring, and the next Flush tries again. An interface that is down
// takes nothing and is no error (Stats tells).
func (q *packetTx) Flush() error {
	if err := q.failed; err != nil {
		q.failed = nil
		return err
	}
	return q.send()
}

func (q *packetTx) send() error {
	for left := q.Pending(); left > 0; {
		errno := kick(unix.SYS_SENDTO, q.fd)
		now := q.Pending()
		moved := now < left
		left = now
		switch errno {
		case 0, unix.EAGAIN, unix.ENOBUFS, unix.EINTR:
			if !moved {
				return nil
			}
		case unix.ENETDOWN:
			return nil
		case unix.ENXIO:
			return fmt.Errorf("the interface is gone: %w", errno)
		case unix.EMSGSIZE:
			return fmt.Errorf("a frame is longer than the MTU allows: %w", errno)
		default:
			return fmt.Errorf("send: %w", errno)
		}
	}
	return nil
}

func (q *packetTx) Pending() int {
	for q.taken != q.head && atomic.LoadUint32(&q.header(q.taken).Status)&unix.TP_STATUS_SEND_REQUEST == 0 {
		q.taken++
	}
	return int(q.head - q.taken)
}
