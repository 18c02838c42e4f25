package vhost

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bench is one queue pair over plain memory, with a device at the other side of each ring and no socket.
type bench struct {
	link     *link
	session  *session
	tx       *txQueue
	rx       *rxQueue
	txD, rxD *device
	broken   error
}

const testBase = 1 << 20

func newBench(size, max int, features uint64) *bench {
	b := &bench{}
	b.link = &link{changed: make(chan struct{})}
	frames := make([]byte, 2*poolSize(size, max))
	tx := newPool(frames, testBase, size, max)
	rx := newPool(frames[len(tx.mem):], testBase+uint64(len(tx.mem)), size, max)
	b.tx, b.rx = newTxQueue(b.link, 0, tx, size, max), newRxQueue(b.link, 0, rx, size)
	b.link.ends = []*end{&b.tx.end, &b.rx.end}
	mem := func(addr uint64, n int) []byte {
		if addr < testBase || addr+uint64(n) > testBase+uint64(len(frames)) {
			return nil
		}
		return frames[addr-testBase:][:n]
	}
	b.connect(features, tx, rx, mem)
	return b
}

func (b *bench) connect(features uint64, tx, rx pool, mem func(uint64, int) []byte) {
	size := int(b.tx.size)
	avail, used, total := ringLayout(size)
	half := func() ([]byte, *device) {
		m := make([]byte, total)
		return m, &device{size: uint16(size), desc: m, avail: m[avail:], used: m[used:], mem: mem}
	}
	var txMem, rxMem []byte
	txMem, b.txD = half()
	rxMem, b.rxD = half()
	inOrder := features&featureInOrder != 0
	b.session = &session{
		tx: []*ring{newRing(txMem, size, tx, false, inOrder)}, rx: []*ring{newRing(rxMem, size, rx, true, inOrder)},
		mergeable: features&featureMergeable != 0, wake: func(err error) { b.broken = err; b.link.current.Store(nil) },
	}
	b.link.current.Store(b.session)
}

// send sends one frame, which must be possible.
func (b *bench) send(frame []byte) int {
	s := b.tx.Reserve(1)
	s[0].Len = copy(s[0].Buf, frame)
	b.tx.Submit(1)
	return s[0].ID
}

// arrive lets the device receive a frame, in as many buffers as it takes; false when there are too few.
func (d *device) arrive(frame []byte, mergeable bool) bool {
	d.frame = append(append(d.frame[:0], make([]byte, virtioHeader)...), frame...)
	frame = d.frame
	ids, bufs := d.ids[:0], d.bufs[:0]
	defer func() { d.ids, d.bufs = ids, bufs }()
	room := 0
	for room < len(frame) {
		id, buf, ok := d.pop()
		if !ok {
			d.seen -= uint16(len(ids))
			return false
		}
		ids, bufs, room = append(ids, id), append(bufs, buf), room+len(buf)
	}
	if mergeable {
		binary.LittleEndian.PutUint16(frame[10:], uint16(len(ids)))
	}
	for i, id := range ids {
		n := copy(bufs[i], frame)
		d.result(uint32(id), n, 1)
		frame = frame[n:]
	}
	return true
}

var featureSets = map[string]uint64{
	"in order, mergeable": featureInOrder | featureMergeable, "in order": featureInOrder, "any order, mergeable": featureMergeable, "any order": 0,
}

// TestRoundTrip sends everything that there is more often than idx has values, and takes it back.
func TestRoundTrip(t *testing.T) {
	for name, features := range featureSets {
		t.Run(name, func(t *testing.T) {
			b := newBench(8, 128, features)
			random := rand.New(rand.NewPCG(1, 2))
			b.rx.Receive(1) // posts the buffers
			for i, sent := 0, 0; sent < 70000; i++ {
				slots := b.tx.Reserve(random.IntN(9))
				for j := range slots {
					slots[j].Len = 60 + sent%60
					binary.BigEndian.PutUint32(slots[j].Buf, uint32(sent))
					sent++
				}
				b.tx.Submit(len(slots))
				if got := b.tx.Pending(); got != len(slots) {
					t.Fatalf("%d frames pending of %d", got, len(slots))
				}
				for range slots {
					id, frame, ok := b.txD.pop()
					if !ok || !bytes.Equal(frame[:virtioHeader], make([]byte, virtioHeader)) {
						t.Fatalf("the device got %x, %v", frame, ok)
					}
					b.txD.result(uint32(id), 0, 1)
					if !b.rxD.arrive(frame[virtioHeader:], b.session.mergeable) {
						t.Fatal("the receive ring is full")
					}
				}
				b.txD.flush(true)
				b.rxD.flush(true)
				if got := b.tx.Pending(); got != 0 {
					t.Fatalf("%d frames pending after all were taken", got)
				}
				first := sent - len(slots)
				for n := len(slots); n > 0; {
					got := b.rx.Receive(1 + random.IntN(n))
					for _, f := range got {
						if want := uint32(first); binary.BigEndian.Uint32(f) != want || len(f) != 60+first%60 {
							t.Fatalf("frame %d of %d bytes instead of %d of %d", binary.BigEndian.Uint32(f), len(f), want, 60+first%60)
						}
						first++
						n--
					}
				}
				b.rx.Release()
			}
			if b.broken != nil || b.txD.interrupts() || b.rxD.interrupts() {
				t.Errorf("broken %v, interrupts wanted %v %v", b.broken, b.txD.interrupts(), b.rxD.interrupts())
			}
		})
	}
}

// TestBackPressure: Reserve gives what is free, Pending what is not taken.
func TestBackPressure(t *testing.T) {
	b := newBench(4, 60, featureInOrder)
	var got [][2]int
	step := func(ask, submit, use int) {
		n := len(b.tx.Reserve(ask))
		b.tx.Submit(submit)
		for range use {
			id, _, _ := b.txD.pop()
			b.txD.result(uint32(id), 0, 1)
		}
		b.txD.flush(true)
		got = append(got, [2]int{n, b.tx.Pending()})
	}
	step(9, 3, 0) // all four, three of them sent
	step(9, 1, 0) // the last
	step(1, 0, 3) // none
	step(2, 2, 0) // two of the three that came back, over the end of the ring
	step(4, 0, 0)
	if diff := cmp.Diff([][2]int{{4, 3}, {1, 4}, {0, 1}, {2, 3}, {1, 3}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestOutOfOrder: a device that gives buffers back as it likes. No buffer is lost, none is given out twice, and each keeps its content.
func TestOutOfOrder(t *testing.T) {
	const size = 16
	b := newBench(size, 60, 0)
	for i := range b.tx.size {
		copy(b.tx.pool.frame(int(i)), fmt.Sprintf("content %02d", i))
	}
	random := rand.New(rand.NewPCG(3, 4))
	var with []uint16
	out := map[int]bool{}
	for range 5000 {
		slots := b.tx.Reserve(random.IntN(size + 1))
		for i := range slots {
			s := &slots[i]
			if out[s.ID] {
				t.Fatalf("slot %d was given out twice", s.ID)
			}
			if want := fmt.Sprintf("content %02d", s.ID); string(s.Buf[:len(want)]) != want {
				t.Fatalf("slot %d holds %q", s.ID, s.Buf[:len(want)])
			}
			out[s.ID], s.Len = true, 60
		}
		b.tx.Submit(len(slots))
		for {
			id, buf, ok := b.txD.pop()
			if !ok {
				break
			}
			if want := fmt.Sprintf("content %02d", id); string(buf[virtioHeader:][:len(want)]) != want {
				t.Fatalf("the device got %q as buffer %d", buf[virtioHeader:], id)
			}
			with = append(with, id)
		}
		random.Shuffle(len(with), func(i, j int) { with[i], with[j] = with[j], with[i] })
		for n := random.IntN(len(with) + 1); n > 0; n-- {
			id := with[0]
			with = with[1:]
			delete(out, int(id))
			b.txD.result(uint32(id), 0, 1)
		}
		b.txD.flush(true)
		if b.tx.Pending() != len(with) {
			t.Fatalf("%d pending instead of %d", b.tx.Pending(), len(with))
		}
	}
	if b.broken != nil {
		t.Error(b.broken)
	}
}

// TestSpanning: frames longer than a buffer, as VIRTIO_NET_F_MRG_RXBUF allows.
func TestSpanning(t *testing.T) {
	for _, features := range []uint64{featureMergeable, featureMergeable | featureInOrder} {
		b := newBench(64, 60, features)
		b.rx.Receive(1)
		pattern := make([]byte, 65000)
		for i := range pattern {
			pattern[i] = byte(i * 7 / 3)
		}
		for round := range 300 {
			var want []string
			for _, n := range []int{60, 64, 65, 128, 300, 14, 1500} {
				if !b.rxD.arrive(pattern[round:round+n], true) {
					t.Fatalf("round %d: the ring is full", round)
				}
				want = append(want, string(pattern[round:round+n]))
			}
			b.rxD.flush(true)
			var got []string
			for _, f := range b.rx.Receive(100) {
				got = append(got, string(f))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("round %d: %s", round, diff)
			}
			b.rx.Release()
		}
		if b.broken != nil || b.rx.drops.Load() != 0 {
			t.Errorf("broken %v, %d drops", b.broken, b.rx.drops.Load())
		}
	}
}

// TestSpanningParts: a frame of which one buffer is not there yet waits, and scratch that is full waits for Release.
func TestSpanningParts(t *testing.T) {
	b := newBench(8, 60, featureMergeable|featureInOrder)
	b.rx.Receive(1)
	frame := bytes.Repeat([]byte("x"), 130)
	b.rxD.arrive(frame, true) // two buffers
	b.rxD.done--
	b.rxD.flush(true)
	if got := b.rx.Receive(8); len(got) != 0 {
		t.Errorf("half a frame was given: %q", got)
	}
	b.rxD.done++
	b.rxD.flush(true)
	if got := b.rx.Receive(8); len(got) != 1 || !bytes.Equal(got[0], frame) {
		t.Errorf("got %q", got)
	}
	b.rx.scratch = b.rx.scratch[:200]
	b.rxD.arrive(frame, true)
	b.rxD.flush(true)
	if got := b.rx.Receive(8); len(got) != 0 {
		t.Errorf("a frame without room was given: %q", got)
	}
	b.rx.Release()
	if got := b.rx.Receive(8); len(got) != 1 || !bytes.Equal(got[0], frame) {
		t.Errorf("after Release: %q", got)
	}
	b.rx.Release()
	// What never fits is dropped and counted, and its buffers go back although there is nothing to release.
	for range 40 {
		if !b.rxD.arrive(bytes.Repeat([]byte("y"), 400), true) {
			t.Fatal("buffers are lost")
		}
		b.rxD.flush(true)
		if got := b.rx.Receive(8); len(got) != 0 {
			t.Errorf("got %q", got)
		}
	}
	if got := b.rx.drops.Load(); got != 40 || b.broken != nil {
		t.Errorf("%d drops instead of 40, broken %v", got, b.broken)
	}
}

// TestInOrderBatch: a device that works in order may write one result for several buffers.
func TestInOrderBatch(t *testing.T) {
	b := newBench(8, 60, featureInOrder)
	b.rx.Receive(1)
	for round := range 20 {
		for range 5 {
			b.send(make([]byte, 60))
		}
		var last uint16
		for range 5 {
			last, _, _ = b.txD.pop()
		}
		b.txD.result(uint32(last), 0, 5)
		b.txD.flush(true)
		if b.tx.Pending() != 0 || len(b.tx.Reserve(8)) != 8 {
			t.Fatalf("round %d: the batch did not come back", round)
		}
		b.rxD.pop()
		b.rxD.pop()
		last, _, _ = b.rxD.pop()
		b.rxD.result(uint32(last), virtioHeader+20, 3)
		b.rxD.arrive(make([]byte, 30), false)
		b.rxD.flush(true)
		var got []int
		for _, f := range append(b.rx.Receive(2), b.rx.Receive(9)...) {
			got = append(got, len(f))
		}
		if diff := cmp.Diff([]int{64, 64, 20, 30}, got); diff != "" {
			t.Fatalf("round %d: %s", round, diff)
		}
		b.rx.Release()
	}
	if b.broken != nil {
		t.Error(b.broken)
	}
}

// TestLongestRing: 32768 entries are all of a 16-bit index but one bit.
func TestLongestRing(t *testing.T) {
	b := newBench(maxRing, 60, featureInOrder)
	for round := range 3 {
		slots := b.tx.Reserve(maxRing + 1)
		if len(slots) != maxRing {
			t.Fatalf("%d free slots", len(slots))
		}
		for i := range slots {
			slots[i].Len = 60
		}
		b.tx.Submit(maxRing)
		if b.tx.Pending() != maxRing || len(b.tx.Reserve(1)) != 0 {
			t.Fatalf("round %d: %d pending", round, b.tx.Pending())
		}
		for range maxRing {
			id, _, _ := b.txD.pop()
			b.txD.result(uint32(id), 0, 1)
		}
		b.txD.flush(true)
	}
}

// TestDeviceMisbehaves: each ends the session with a reason, and the queues go on giving nothing.
func TestDeviceMisbehaves(t *testing.T) {
	tests := []struct {
		name     string
		features uint64
		do       func(b *bench)
		want     string
	}{
		{"used more than it had", 0, func(b *bench) { b.txD.done += 3; b.txD.flush(true) }, "gave back 3 buffers and had only 1"},
		{"used backwards", featureInOrder, func(b *bench) { b.txD.done--; b.txD.flush(true) }, "gave back 65535 buffers"},
		{"unknown buffer", 0, func(b *bench) { b.txD.result(1000, 0, 1); b.txD.flush(true) }, "buffer 1000, which it did not have"},
		{"buffer that was not sent", 0, func(b *bench) { b.txD.result(3, 0, 1); b.txD.flush(true) }, "buffer 3, which it did not have"},
		{"same buffer twice", 0, func(b *bench) { b.rxD.result(1, 50, 1); b.rxD.result(1, 50, 1); b.rxD.flush(true) }, "buffer 1, which it did not have"},
		{"received too much", featureInOrder, func(b *bench) { b.rxD.done += 5; b.rxD.flush(true) }, "gave back 5 buffers and had only 4"},
		{"wrote too much", featureInOrder, func(b *bench) { b.rxD.result(0, 77, 1); b.rxD.flush(true) }, "wrote 77 bytes into a buffer of 76"},
		{"no header", 0, func(b *bench) { b.rxD.result(0, 11, 1); b.rxD.flush(true) }, "11 bytes, which is not even a virtio header"},
		{"out of order", featureInOrder, func(b *bench) { b.rxD.result(2, 60, 1); b.rxD.flush(true) }, "buffer 2 where 0 was next"},
		{"in order, unknown buffer", featureInOrder, func(b *bench) { b.rxD.result(4, 60, 1); b.rxD.flush(true) }, "buffer 4 of a ring of 4"},
		{"frame of no buffers", featureMergeable, func(b *bench) { b.rxD.result(0, 60, 1); b.rxD.flush(true) }, "frame of 0 buffers"},
		{"frame of too many buffers", featureMergeable, func(b *bench) {
			b.rx.pool.whole(0)[10] = 5
			b.rxD.result(0, 76, 1)
			b.rxD.flush(true)
		}, "frame of 5 buffers"},
		{"bad second part", featureMergeable, func(b *bench) {
			b.rx.pool.whole(0)[10] = 2
			b.rxD.result(0, 76, 1)
			b.rxD.result(9, 76, 1)
			b.rxD.flush(true)
		}, "buffer 9, which it did not have"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(4, 60, tt.features)
			b.rx.Receive(1)
			b.send(make([]byte, 60))
			tt.do(b)
			for range 3 {
				b.rx.Receive(4)
				b.tx.Submit(min(1, len(b.tx.Reserve(4))))
				b.rx.Release()
				_ = b.tx.Flush()
				b.tx.Pending()
			}
			if b.broken == nil || !strings.Contains(b.broken.Error(), tt.want) {
				t.Errorf("the session ended with %v, want %q", b.broken, tt.want)
			}
			// The next one works.
			b.broken = nil
			b.connect(tt.features, b.tx.pool, b.rx.pool, b.rxD.mem)
			b.rx.Receive(1)
			if !b.rxD.arrive([]byte("hello, world"), b.session.mergeable) {
				t.Fatal("no buffers after a new start")
			}
			b.rxD.flush(true)
			if got := b.rx.Receive(1); len(got) != 1 || string(got[0]) != "hello, world" {
				t.Errorf("after a new start: %q, broken %v", got, b.broken)
			}
			if got := len(b.tx.Reserve(9)); got != 4 {
				t.Errorf("%d slots after a new start", got)
			}
		})
	}
}

// TestNewSession: what becomes of slots and counts when the back-end is another one.
func TestNewSession(t *testing.T) {
	for _, features := range []uint64{0, featureInOrder} {
		b := newBench(4, 60, features)
		mem := b.txD.mem
		b.rx.Receive(1)
		for i := range 3 {
			b.send(fmt.Appendf(nil, "%060d", i))
		}
		b.txD.pop()
		id, _, _ := b.txD.pop() // the second one first, where that is allowed
		if features != 0 {
			id = 0
		}
		b.txD.result(uint32(id), 0, 1)
		b.txD.flush(true)
		b.tx.Reserve(4)
		b.rxD.arrive([]byte("old frame"), false)
		b.rxD.flush(true)
		old := b.rx.Receive(1)

		b.link.current.Store(nil)
		if got := b.tx.Pending(); got != 2 {
			t.Errorf("%d frames pending without a back-end, want 2", got)
		}
		if n, m := len(b.tx.Reserve(1)), len(b.rx.Receive(1)); n != 0 || m != 0 {
			t.Errorf("%d slots and %d frames without a back-end", n, m)
		}
		b.connect(features, b.tx.pool, b.rx.pool, mem)
		if got := b.rx.Receive(1); got != nil {
			t.Errorf("a frame %q before the old ones are released", got)
		}
		if b.rxD.arrive([]byte("new frame"), false) {
			t.Error("the new back-end can write over a frame that is still in use")
		}
		if string(old[0]) != "old frame" {
			t.Errorf("the old frame became %q", old[0])
		}
		if got := b.tx.Pending(); got != 0 {
			t.Errorf("%d frames pending in a new session", got)
		}
		b.rx.Release()
		b.rx.Receive(1)
		if !b.rxD.arrive([]byte("new frame"), false) {
			t.Error("no buffers in the new session")
		}
		slots := b.tx.Reserve(9)
		for i, s := range slots {
			if s.ID != i || i < 3 && string(s.Buf[:60]) != fmt.Sprintf("%060d", i) {
				t.Errorf("slot %d is %d with %q", i, s.ID, s.Buf[:60])
			}
		}
		if len(slots) != 4 || b.broken != nil {
			t.Errorf("%d slots, broken %v", len(slots), b.broken)
		}
	}
}

// TestTwoThreads runs driver and device side by side, for the race detector.
func TestTwoThreads(t *testing.T) {
	for name, features := range featureSets {
		t.Run(name, func(t *testing.T) {
			const frames = 5000
			b := newBench(16, 60, features)
			b.rx.Receive(1)
			b.txD.flush(true)
			b.rxD.flush(true)
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				for n := 0; n < frames && !stop.Load(); {
					id, frame, ok := b.txD.pop()
					if !ok {
						runtime.Gosched()
						continue
					}
					for !b.rxD.arrive(frame[virtioHeader:], b.session.mergeable) && !stop.Load() {
						runtime.Gosched()
					}
					b.txD.result(uint32(id), 0, 1)
					b.rxD.flush(true)
					b.txD.flush(true)
					n++
				}
			}()
			sent, got := 0, 0
			for got < frames && b.broken == nil {
				slots := b.tx.Reserve(min(5, frames-sent))
				for i := range slots {
					binary.BigEndian.PutUint64(slots[i].Buf, uint64(sent))
					slots[i].Len = 60
					sent++
				}
				b.tx.Submit(len(slots))
				for _, f := range b.rx.Receive(7) {
					if binary.BigEndian.Uint64(f) != uint64(got) || len(f) != 60 {
						t.Fatalf("frame %x instead of %d", f, got)
					}
					got++
				}
				b.rx.Release()
				runtime.Gosched()
			}
			stop.Store(true)
			<-done
			if b.broken != nil || sent != frames {
				t.Errorf("%d sent, broken %v", sent, b.broken)
			}
		})
	}
}

// FuzzDevice: a device that writes anything anywhere in what it may write to ends the session at worst.
func FuzzDevice(f *testing.F) {
	f.Add(uint64(0), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(uint64(featureInOrder|featureMergeable), bytes.Repeat([]byte{0, 0, 1, 0, 3, 0, 0, 0}, 9))
	f.Add(uint64(featureMergeable), bytes.Repeat([]byte{4, 1, 0, 0}, 40))
	f.Fuzz(func(t *testing.T, features uint64, script []byte) {
		b := newBench(4, 60, features)
		for len(script) >= 4 {
			where, at, value := script[0], int(script[1]), script[2:4]
			script = script[4:]
			area := [][]byte{b.txD.used[:4+8*4], b.rxD.used[:4+8*4], b.rx.pool.mem, b.tx.pool.mem}[where%4]
			copy(area[at*2%len(area):], value)
			for _, fr := range b.rx.Receive(3) {
				if len(fr) > 4*76 {
					t.Fatalf("a frame of %d bytes", len(fr))
				}
			}
			slots := b.tx.Reserve(3)
			for i := range slots {
				slots[i].Len = 60
			}
			b.tx.Submit(len(slots))
			_ = b.tx.Flush()
			if p := b.tx.Pending(); p < 0 || p > 4 {
				t.Fatalf("%d pending", p)
			}
			b.rx.Release()
			if b.broken != nil {
				b.broken = nil
				b.connect(features, b.tx.pool, b.rx.pool, b.rxD.mem)
			}
		}
	})
}
