package kernel

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestPacketSlotsGoRound(t *testing.T) {
	const frame = 256
	q := newPacketTx(-1, make([]byte, 4*frame), frame)
	slots := q.Reserve(9)
	if diff := cmp.Diff([]int{0, 1, 2, 3}, ids(slots)); diff != "" {
		t.Fatal(diff)
	}
	for i := range slots {
		slots[i].Len = 60 + i
		slots[i].Buf[0] = byte(i)
	}
	q.Submit(3)
	for i := range uint32(4) {
		h, want := q.header(i), unix.Tpacket2Hdr{Status: unix.TP_STATUS_SEND_REQUEST, Len: 60 + i}
		if i == 3 {
			want = unix.Tpacket2Hdr{}
		}
		if h.Status != want.Status || h.Len != want.Len || q.ring[i*frame+txData] != byte(i) {
			t.Errorf("frame %d has status %d and length %d", i, h.Status, h.Len)
		}
	}
	if q.Pending() != 3 {
		t.Errorf("%d pending instead of 3", q.Pending())
	}
	q.header(0).Status = unix.TP_STATUS_SENDING // taken, but not yet free
	if q.Pending() != 2 {
		t.Errorf("%d pending instead of 2", q.Pending())
	}
	q.header(0).Status, q.header(1).Status, q.header(2).Status = unix.TP_STATUS_SENDING, unix.TP_STATUS_AVAILABLE, unix.TP_STATUS_SENDING
	if q.Pending() != 0 {
		t.Errorf("%d pending instead of 0", q.Pending())
	}
	if diff := cmp.Diff([]int{3}, ids(q.Reserve(4))); diff != "" {
		t.Errorf("slots go out in the order of the ring: %s", diff)
	}
	q.header(0).Status = unix.TP_STATUS_AVAILABLE
	slots = q.Reserve(4)
	if diff := cmp.Diff([]int{3, 0, 1}, ids(slots)); diff != "" {
		t.Error(diff)
	}
	if slots[1].Buf[0] != 0 || slots[2].Buf[0] != 1 {
		t.Error("the content of a slot did not stay")
	}
}

// arrive puts a frame into a slot, as a kernel does.
func (q *packetRx) arrive(i uint32, frame []byte, h unix.Tpacket2Hdr) {
	b := q.slot(i)
	h.Status |= unix.TP_STATUS_USER
	h.Len, h.Snaplen, h.Mac = uint32(len(frame)), uint32(len(frame)), 66
	copy(b[h.Mac:], frame)
	*header(b) = h
}

func TestPacketReceive(t *testing.T) {
	q := newPacketRx(make([]byte, 4*2048), 2048)
	next := uint32(0)
	for round := range 10 {
		for i := range 3 {
			q.arrive(next, bytes.Repeat([]byte{byte(round*3 + i)}, 60+i), unix.Tpacket2Hdr{})
			next++
		}
		got := append(append([][]byte(nil), q.Receive(1)...), q.Receive(9)...)
		if len(got) != 3 {
			t.Fatalf("round %d: %d frames instead of 3", round, len(got))
		}
		for i, f := range got {
			if !bytes.Equal(f, bytes.Repeat([]byte{byte(round*3 + i)}, 60+i)) {
				t.Errorf("round %d: frame %d is %x", round, i, f)
			}
		}
		q.Release()
		for i := range uint32(4) {
			if *status(q.slot(i)) != unix.TP_STATUS_KERNEL {
				t.Fatalf("round %d: slot %d was not given back", round, i)
			}
		}
	}
	for i := range uint32(4) {
		q.arrive(next+i, []byte("fourteen bytes"), unix.Tpacket2Hdr{})
	}
	if got := len(q.Receive(9)) + len(q.Receive(9)); got != 4 {
		t.Errorf("a full ring gave %d frames", got)
	}
}

func TestPacketVLANTagGoesBack(t *testing.T) {
	const addresses, rest = "\x01\x02\x03\x04\x05\x06\x11\x12\x13\x14\x15\x16", "\x08\x00data"
	tests := map[string]struct {
		h    unix.Tpacket2Hdr
		want string
	}{
		"none":            {unix.Tpacket2Hdr{}, addresses + rest},
		"old kernel":      {unix.Tpacket2Hdr{Status: unix.TP_STATUS_VLAN_VALID, Vlan_tci: 0x2064}, addresses + "\x81\x00\x20\x64" + rest},
		"service tag":     {unix.Tpacket2Hdr{Status: unix.TP_STATUS_VLAN_VALID | unix.TP_STATUS_VLAN_TPID_VALID, Vlan_tci: 0x64, Vlan_tpid: 0x88a8}, addresses + "\x88\xa8\x00\x64" + rest},
		"priority, VID 0": {unix.Tpacket2Hdr{Status: unix.TP_STATUS_VLAN_VALID | unix.TP_STATUS_VLAN_TPID_VALID, Vlan_tpid: 0x8100}, addresses + "\x81\x00\x00\x00" + rest},
	}
	for name, test := range tests {
		q := newPacketRx(make([]byte, 2048), 2048)
		q.arrive(0, []byte(addresses+rest), test.h)
		if got := string(q.Receive(1)[0]); got != test.want {
			t.Errorf("%s: %x instead of %x", name, got, test.want)
		}
	}
}

// packetTxRound sends 32 frames, which the kernel takes at once.
func packetTxRound(tb testing.TB) func() {
	q := newPacketTx(-1, make([]byte, 1024*2048), 2048)
	return func() {
		slots := q.Reserve(32)
		for i := range slots {
			slots[i].Len = 60
		}
		q.Submit(len(slots))
		for i := range slots {
			q.header(uint32(slots[i].ID)).Status = unix.TP_STATUS_AVAILABLE
		}
		if err := q.Flush(); err != nil || q.Pending() != 0 {
			tb.Fatal(err, q.Pending())
		}
	}
}

// packetRxRound receives 32 frames.
func packetRxRound(tb testing.TB) func() {
	q := newPacketRx(make([]byte, 1024*2048), 2048)
	frame, next := make([]byte, 60), uint32(0)
	return func() {
		for range 32 {
			q.arrive(next, frame, unix.Tpacket2Hdr{})
			next++
		}
		if len(q.Receive(64)) != 32 {
			tb.Fatal("frames are lost")
		}
		q.Release()
	}
}

func BenchmarkPacketTx(b *testing.B) { turns(b, packetTxRound(b)) }
func BenchmarkPacketRx(b *testing.B) { turns(b, packetRxRound(b)) }
