package vhost

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

// TestRealOpenVswitch sends frames both ways through Open vSwitch between two ports with two pairs of queues each, counted exactly by us and by
// it; then the switch ends and is started again in the middle of a stream, and it works as before.
func TestRealOpenVswitch(t *testing.T) {
	for _, server := range []bool{true, false} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			o := newRealOVS(t)
			ends := [2]port.Port{}
			for i, name := range []string{"p0", "p1"} {
				c := o.port(name, server)
				c.Queues, c.RxSize, c.TxSize, c.Hugepages = 2, 2048, 1024, i == 0
				p, err := Open(testContext(t), c)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := p.Close(); err != nil {
						t.Error(err)
					}
				})
				ends[i] = p
			}
			const frames = 50000
			both := func() {
				t.Helper()
				o.flows("in_port=p0,actions=output:p1", "in_port=p1,actions=output:p0",
					"cookie=1,priority=40000,in_port=p0,dl_type=0x88b6,actions=output:p1", "cookie=2,priority=40000,in_port=p1,dl_type=0x88b6,actions=output:p0")
				for _, p := range ends {
					if err := p.Ready(testContext(t)); err != nil {
						t.Fatal(err)
					}
				}
				drain(ends[0], ends[1])
				names := [2]string{"p0", "p1"}
				before := [2][2]int{}
				for i, name := range names {
					if !server {
						break // it keeps no counters for ports of this type
					}
					before[i] = [2]int{o.counted(name, "rx"), o.counted(name, "tx")}
				}
				for i := range ends {
					stream(t, ends[i], ends[1-i], frames)
				}
				for i, name := range names {
					o.wait("flow counter", func() bool { return o.matched(i+1) >= frames })
					if n := o.matched(i + 1); n != frames {
						t.Errorf("the flow from %s took %d frames, want %d", name, n, frames)
					}
					if !server {
						continue
					}
					rx, tx := o.settled(name, "rx", before[i][0]+frames)-before[i][0], o.settled(name, "tx", before[i][1]+frames)-before[i][1]
					if rx != frames || tx != frames {
						t.Errorf("%s: the switch received %d frames and sent %d, want %d", name, rx, tx, frames)
					}
				}
			}
			both()
			links := ends[0].Stats().Links
			if server {
				o.kill(o.switchd)
			} else {
				o.stop()
			}
			flood(t, ends[0], func() bool { return !ends[0].Stats().Up && !ends[1].Stats().Up })
			o.start()
			both()
			for i, p := range ends {
				if s := p.Stats(); !s.Up || s.Links < links+2 || s.RxDrops != 0 {
					t.Errorf("port %d: %+v", i, s)
				}
			}
		})
	}
}

// drain throws away what has come: the probes of Ready.
func drain(ports ...port.Port) {
	for _, p := range ports {
		for q := range p.Queues() {
			for len(p.Rx(q).Receive(64)) > 0 {
				p.Rx(q).Release()
			}
		}
	}
}

const streamMagic = 0x706c756d

// frame makes a frame of a stream.
func frame(s *port.Slot, from, to port.Port, seq, length int) {
	b := s.Buf
	copy(b, to.MAC())
	copy(b[6:], from.MAC())
	b[12], b[13] = 0x88, 0xb6 // local experimental EtherType 2
	binary.BigEndian.PutUint32(b[14:], streamMagic)
	binary.BigEndian.PutUint64(b[18:], uint64(seq))
	s.Len = length
}

// stream sends n frames on all queues, few enough at once that no ring overflows, and wants each of them once.
func stream(t *testing.T, from, to port.Port, n int) {
	t.Helper()
	seen := make([]bool, n)
	sent, got := 0, 0
	deadline := time.Now().Add(limit)
	for got < n {
		busy := false
		for q := range from.Queues() {
			slots := from.Tx(q).Reserve(min(32, n-sent, 512-(sent-got)))
			for i := range slots {
				frame(&slots[i], from, to, sent, 60+sent%1400)
				sent++
			}
			from.Tx(q).Submit(len(slots))
			if err := from.Tx(q).Flush(); err != nil {
				t.Fatal(err)
			}
			busy = busy || len(slots) > 0
		}
		for q := range to.Queues() {
			for _, f := range to.Rx(q).Receive(64) {
				if binary.BigEndian.Uint32(f[14:]) != streamMagic {
					continue // the kernel's, over the bridge's own interface
				}
				seq := int(binary.BigEndian.Uint64(f[18:]))
				if seq >= n || seen[seq] || len(f) != 60+seq%1400 {
					t.Fatalf("frame %d of %d bytes came, or came again", seq, len(f))
				}
				seen[seq], busy = true, true
				got++
			}
			to.Rx(q).Release()
		}
		if !busy {
			idle()
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d frames of %d sent came, from %+v to %+v", got, sent, from.Stats(), to.Stats())
		}
	}
	for q := range from.Queues() {
		for from.Tx(q).Pending() > 0 && time.Now().Before(deadline) {
			idle()
		}
		if p := from.Tx(q).Pending(); p != 0 {
			t.Errorf("%d frames of queue %d pending", p, q)
		}
	}
}

// idle gives the switch's other threads the CPU, as a generator that shares it does.
func idle() { _ = unix.Nanosleep(&unix.Timespec{Nsec: 50_000}, nil) }

// flood sends as fast as it can until cond.
func flood(t *testing.T, from port.Port, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for n := 0; !cond(); n++ {
		for q := range from.Queues() {
			slots := from.Tx(q).Reserve(32)
			for i := range slots {
				frame(&slots[i], from, from, n, 60)
			}
			from.Tx(q).Submit(len(slots))
			if err := from.Tx(q).Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %+v", from.Stats())
		}
		runtime.Gosched()
	}
}

// BenchmarkRealDrop is what Open vSwitch accepts on one port and drops by a flow, with one PMD thread on CPU 0 and the sender on CPU 1.
func BenchmarkRealDrop(b *testing.B) {
	for _, size := range []int{64, 1518} {
		for _, inOne := range []int{256, 1024} {
			b.Run(fmt.Sprintf("%d bytes, ring of %d", size, inOne), func(b *testing.B) { benchDrop(b, size, inOne) })
		}
	}
}

func benchDrop(b *testing.B, size, ring int) {
	o := newRealOVS(b)
	c := o.port("p0", true)
	c.TxSize = ring
	p, err := Open(testContext(b), c)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	o.flows("in_port=p0,actions=drop")
	if err := p.Ready(testContext(b)); err != nil {
		b.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		b.Fatal(err)
	}
	one.Set(1)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &old) }()
	_ = os.WriteFile("/proc/"+strconv.Itoa(os.Getpid())+"/autogroup", []byte("-10"), 0)
	before := o.counted("p0", "rx")
	tx := p.Tx(0)
	for id, s := range tx.Reserve(ring) {
		frame(&s, p, p, id, size-4)
	}
	b.ReportAllocs()
	b.ResetTimer()
	start, sent, full := time.Now(), 0, 0
	for sent < b.N {
		slots := tx.Reserve(min(32, b.N-sent))
		if len(slots) == 0 {
			full++
		}
		for i := range slots {
			binary.BigEndian.PutUint64(slots[i].Buf[18:], uint64(sent+i))
			slots[i].Len = size - 4
		}
		sent += len(slots)
		tx.Submit(len(slots))
		if err := tx.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	for tx.Pending() > 0 {
		idle()
	}
	b.ReportMetric(float64(sent)/time.Since(start).Seconds()/1e6, "Mpps")
	b.StopTimer()
	if n := o.settled("p0", "rx", before+sent) - before; n != sent {
		b.Errorf("the switch counted %d frames of %d", n, sent)
	}
	b.ReportMetric(float64(full)/float64(b.N), "full/op")
}
