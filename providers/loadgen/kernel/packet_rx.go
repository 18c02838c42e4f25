package kernel

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// packetRx receives on a TPACKET_V2 ring. Frames stay in it until Release.
type packetRx struct {
	ring   []byte
	frame  int      // bytes
	number uint32   // of frames, a power of two
	next   uint32   // to be looked at
	frames [][]byte // given since the last Release; the last of them is before next
}

func newPacketRx(ring []byte, frame int) packetRx {
	n := len(ring) / frame
	return packetRx{ring: ring, frame: frame, number: uint32(n), frames: make([][]byte, 0, n)}
}

func (q *packetRx) slot(i uint32) []byte {
	at := int(i&(q.number-1)) * q.frame
	return q.ring[at : at+q.frame]
}

func (q *packetRx) Receive(n int) [][]byte {
	first := len(q.frames)
	for ; n > 0 && len(q.frames) < int(q.number); n-- {
		b := q.slot(q.next)
		if atomic.LoadUint32(status(b))&unix.TP_STATUS_USER == 0 {
			break
		}
		q.frames = append(q.frames, received(b))
		q.next++
	}
	return q.frames[first:]
}

func (q *packetRx) Release() {
	for i := q.next - uint32(len(q.frames)); i != q.next; i++ {
		atomic.StoreUint32(status(q.slot(i)), unix.TP_STATUS_KERNEL)
	}
	q.frames = q.frames[:0]
}

func header(b []byte) *unix.Tpacket2Hdr { return (*unix.Tpacket2Hdr)(unsafe.Pointer(&b[0])) }

func status(b []byte) *uint32 { return &header(b).Status }

// received finds the frame behind a header, with its VLAN tag, which the kernel has moved into the header, back in its place: the 14 bytes of
// padding before the frame (netoff is 80 at least, tpacket_rcv of net/packet/af_packet.c) have room for it.
func received(b []byte) []byte {
	h := header(b)
	from, to := int(h.Mac), int(h.Mac)+int(h.Snaplen)
	if h.Status&unix.TP_STATUS_VLAN_VALID == 0 || h.Snaplen < etherHeader {
		return b[from:to:to]
	}
	tpid := uint16(unix.ETH_P_8021Q)
	if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		tpid = h.Vlan_tpid
	}
	copy(b[from-vlanTag:], b[from:from+12])
	from -= vlanTag
	binary.BigEndian.PutUint16(b[from+12:], tpid)
	binary.BigEndian.PutUint16(b[from+14:], h.Vlan_tci)
	return b[from:to:to]
}
