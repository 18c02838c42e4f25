package kernel

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

func TestShapeOfMemory(t *testing.T) {
	tests := map[string]struct {
		cfg  Config
		want shape
	}{
		"short frames":               {Config{MaxFrame: 1518, RxSize: 8192, TxSize: 1024}, shape{chunk: 2048, rxChunks: 8192, slots: 1024, slot: 2048}},
		"as long as a chunk has":     {Config{MaxFrame: 1792, RxSize: 64, TxSize: 64}, shape{chunk: 2048, rxChunks: 64, slots: 64, slot: 2048}},
		"larger chunk":               {Config{MaxFrame: 1793, RxSize: 64, TxSize: 64}, shape{chunk: 4096, rxChunks: 64, slots: 64, slot: 4096}},
		"received in two":            {Config{MaxFrame: 3841, RxSize: 64, TxSize: 64}, shape{chunk: 4096, rxChunks: 128, slots: 64, slot: 4096, arena: 128 * 4096}},
		"received and sent in three": {Config{MaxFrame: 9018, RxSize: 64, TxSize: 64}, shape{chunk: 4096, rxChunks: 256, slots: 64, slot: 16384, arena: 256 * 4096}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, shapeOf(test.cfg), cmp.AllowUnexported(shape{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// fakeTx is a sending queue whose kernel is the test.
func fakeTx(sh shape, start uint32) *xskTx {
	n := int(sh.slots * sh.perSlot())
	q := newXSKTx(-1, sh, make([]byte, sh.size()), shared[unix.XDPDesc](n, start), shared[uint64](n, start))
	return &q
}

// take is what a kernel does with the next descriptor.
func (q *xskTx) take() unix.XDPDesc {
	d := *q.tx.at(*q.tx.consumer)
	*q.tx.consumer++
	return d
}

func (q *xskTx) complete(addr uint64) {
	*q.done.at(*q.done.producer) = addr
	*q.done.producer++
}

func ids(slots []port.Slot) (all []int) {
	for _, s := range slots {
		all = append(all, s.ID)
	}
	return all
}

func TestXSKSlotsGoRound(t *testing.T) {
	q := fakeTx(shape{chunk: 2048, rxChunks: 2, slots: 4, slot: 2048}, math.MaxUint32-1)
	if q.Depth() != 4 {
		t.Fatalf("depth is %d", q.Depth())
	}
	slots := q.Reserve(3)
	if diff := cmp.Diff([]int{0, 1, 2}, ids(slots)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3}, ids(q.Reserve(10))); diff != "" {
		t.Errorf("what was not submitted is given again: %s", diff)
	}
	slots = q.Reserve(3)
	for i := range slots {
		slots[i].Len = 60 + i
		slots[i].Buf[0] = byte(100 + i)
	}
	q.Submit(2)
	if got := q.Pending(); got != 2 {
		t.Errorf("%d pending instead of 2", got)
	}
	if diff := cmp.Diff([]int{2, 3}, ids(q.Reserve(3))); diff != "" {
		t.Error(diff)
	}
	base := uint64(2 * 2048)
	if diff := cmp.Diff([]unix.XDPDesc{{Addr: base, Len: 60}, {Addr: base + 2048, Len: 61}}, []unix.XDPDesc{q.take(), q.take()}); diff != "" {
		t.Error(diff)
	}
	if got := q.Pending(); got != 0 {
		t.Errorf("%d pending after all were taken", got)
	}
	if diff := cmp.Diff([]int{2, 3}, ids(q.Reserve(4))); diff != "" {
		t.Errorf("taken is not free: %s", diff)
	}
	q.complete(base + 2048) // not in order
	slots = q.Reserve(4)
	if diff := cmp.Diff([]int{2, 3, 1}, ids(slots)); diff != "" {
		t.Error(diff)
	}
	if slots[2].Buf[0] != 101 {
		t.Error("the content of a slot did not stay")
	}
	q.complete(base)
	q.Submit(3)
	if diff := cmp.Diff([]int{0}, ids(q.Reserve(4))); diff != "" {
		t.Error(diff)
	}
	if q.Submit(0); q.Pending() != 3 {
		t.Errorf("%d pending instead of 3", q.Pending())
	}
	if got := q.Reserve(0); len(got) != 0 {
		t.Error("slots that nobody asked for")
	}
}

func TestXSKFramesOfSeveralChunks(t *testing.T) {
	q := fakeTx(shape{chunk: 4096, rxChunks: 4, slots: 4, slot: 16384, arena: 1}, math.MaxUint32-2)
	slots := q.Reserve(3)
	for i, n := range []int{9000, 4096, 4097} {
		slots[i].Len = n
	}
	q.Submit(3)
	base := uint64(4 * 4096)
	want := []unix.XDPDesc{
		{Addr: base, Len: 4096, Options: unix.XDP_PKT_CONTD}, {Addr: base + 4096, Len: 4096, Options: unix.XDP_PKT_CONTD}, {Addr: base + 8192, Len: 808},
		{Addr: base + 16384, Len: 4096},
		{Addr: base + 2*16384, Len: 4096, Options: unix.XDP_PKT_CONTD}, {Addr: base + 2*16384 + 4096, Len: 1},
	}
	var got []unix.XDPDesc
	for _, pending := range []int{3, 3, 2, 1, 1, 0} {
		got = append(got, q.take())
		if q.Pending() != pending {
			t.Errorf("%d pending after %d descriptors, instead of %d", q.Pending(), len(got), pending)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	for i, d := range got {
		q.complete(d.Addr)
		free := []int{3}
		if i >= 2 {
			free = append(free, 0)
		}
		if i >= 3 {
			free = append(free, 1)
		}
		if i >= 5 {
			free = append(free, 2)
		}
		if diff := cmp.Diff(free, ids(q.Reserve(4))); diff != "" {
			t.Errorf("free after completion %d: %s", i, diff)
		}
	}
}

// fakeRx is a receiving queue whose kernel is the test.
func fakeRx(sh shape, start uint32) *xskRx {
	q := newXSKRx(-1, sh, make([]byte, sh.size()), shared[unix.XDPDesc](int(sh.rxChunks), start), shared[uint64](int(sh.rxChunks), start))
	q.fillAll()
	return &q
}

// arrive puts a frame into the next chunks of the fill ring, with the headroom of 256 bytes, as a kernel does.
func (q *xskRx) arrive(frame []byte, chunk int) {
	for len(frame) > 0 {
		addr := *q.fill.at(*q.fill.consumer) + unix.XDP_PACKET_HEADROOM
		*q.fill.consumer++
		n := copy(q.umem[addr:int(addr)-unix.XDP_PACKET_HEADROOM+chunk], frame)
		frame = frame[n:]
		d := unix.XDPDesc{Addr: addr, Len: uint32(n)}
		if len(frame) > 0 {
			d.Options = unix.XDP_PKT_CONTD
		}
		*q.rx.at(*q.rx.producer) = d
		*q.rx.producer++
	}
}

func TestXSKReceive(t *testing.T) {
	const chunk = 4096
	for _, start := range []uint32{0, math.MaxUint32 - 3} {
		q := fakeRx(shape{chunk: chunk, rxChunks: 16, arena: 16 * chunk}, start)
		seen := map[uint64]bool{}
		for _, a := range q.fill.entries {
			seen[a] = true
		}
		if len(seen) != 16 || *q.fill.producer-start != 16 {
			t.Fatalf("the fill ring has %d chunks of 16", len(seen))
		}
		for round := range 50 {
			var want [][]byte
			for i, n := range []int{60, 9000, 3840, 3841} {
				want = append(want, bytes.Repeat([]byte{byte(round*4 + i)}, n))
				q.arrive(want[i], chunk)
			}
			got := slices.Clone(q.Receive(1))
			got = append(got, q.Receive(1)...) // what the first call gave is still valid
			got = append(got, q.Receive(100)...)
			if !slices.EqualFunc(want, got, bytes.Equal) {
				t.Fatalf("start %d, round %d: other frames came", start, round)
			}
			if len(q.Receive(1)) != 0 {
				t.Fatal("a frame came twice")
			}
			if *q.rx.consumer == q.rx.own || *q.fill.producer == *q.fill.consumer+16 {
				t.Fatal("chunks were given back before Release")
			}
			q.Release()
			if *q.fill.producer != *q.fill.consumer+16 || *q.rx.consumer != *q.rx.producer {
				t.Fatalf("round %d: not all chunks were given back", round)
			}
		}
		for i := range 16 {
			delete(seen, q.fill.entries[i])
		}
		if len(seen) != 0 {
			t.Errorf("chunks are lost: %v", seen)
		}
	}
}

// A frame whose last chunk is not there yet is not given in part.
func TestXSKReceiveWaitsForTheEnd(t *testing.T) {
	q := fakeRx(shape{chunk: 4096, rxChunks: 16, arena: 16 * 4096}, 0)
	q.arrive(make([]byte, 9000), 4096)
	*q.rx.producer--
	if got := q.Receive(4); len(got) != 0 {
		t.Fatalf("got %d bytes of a frame that is not complete", len(got[0]))
	}
	*q.rx.producer++
	if got := q.Receive(4); len(got) != 1 || len(got[0]) != 9000 {
		t.Fatal("the complete frame did not come")
	}
}

func TestRedirectProgramAssembles(t *testing.T) {
	for _, frags := range []bool{false, true} {
		spec := redirectProgram(3, frags)
		if (spec.Flags != 0) != frags {
			t.Errorf("flags are %#x", spec.Flags)
		}
		targets := map[string]bool{}
		for _, ins := range spec.Instructions {
			if s := ins.Symbol(); s != "" {
				targets[s] = true
			}
		}
		for _, ins := range spec.Instructions {
			if r := ins.Reference(); r != "" && !targets[r] {
				t.Errorf("jump to %s, which is nowhere", r)
			}
		}
	}
}

// xskTxRound sends 32 frames, which the kernel takes and gives back at once.
func xskTxRound(tb testing.TB) func() {
	q := fakeTx(shape{chunk: 2048, rxChunks: 64, slots: 1024, slot: 2048}, 0)
	return func() {
		slots := q.Reserve(32)
		for i := range slots {
			slots[i].Len = 60
		}
		q.Submit(len(slots))
		if err := q.Flush(); err != nil {
			tb.Fatal(err)
		}
		for range slots {
			q.complete(q.take().Addr)
		}
		if q.Pending() != 0 {
			tb.Fatal("pending")
		}
	}
}

// xskRxRound receives 32 frames.
func xskRxRound(tb testing.TB) func() {
	q := fakeRx(shape{chunk: 2048, rxChunks: 1024}, 0)
	frame := make([]byte, 60)
	return func() {
		for range 32 {
			q.arrive(frame, 2048)
		}
		if len(q.Receive(64)) != 32 {
			tb.Fatal("frames are lost")
		}
		q.Release()
	}
}

func BenchmarkXSKTx(b *testing.B) { turns(b, xskTxRound(b)) }
func BenchmarkXSKRx(b *testing.B) { turns(b, xskRxRound(b)) }
