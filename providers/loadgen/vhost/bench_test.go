package vhost

import (
	"testing"
)

const burst = 32

// sendBurst is the transmit side of a hot loop; the device takes everything at once.
func (b *bench) sendBurst(frame int) {
	slots := b.tx.Reserve(burst)
	for i := range slots {
		slots[i].Buf[0]++
		slots[i].Len = frame
	}
	b.tx.Submit(len(slots))
	_ = b.tx.Flush()
	if b.txD.seen += burst; b.tx.ring.inOrder {
		b.txD.done += burst
	} else {
		for i := range slots {
			b.txD.result(uint32(slots[i].ID), 0, 1)
		}
	}
	b.txD.flush(true)
}

// receiveBurst is the receive side; the device writes results and no frames.
func (b *bench) receiveBurst(frame int) (sum byte) {
	for range burst {
		id := b.rxD.seen % b.rxD.size
		if b.session.mergeable {
			b.rx.pool.whole(int(id))[10] = 1
		}
		b.rxD.seen++
		b.rxD.result(uint32(id), virtioHeader+frame, 1)
	}
	b.rxD.flush(true)
	for _, f := range b.rx.Receive(burst) {
		sum += f[0]
	}
	b.rx.Release()
	return sum
}

func newHotBench() map[string]*bench {
	all := map[string]*bench{}
	for name, features := range featureSets {
		b := newBench(1024, 1514, features)
		b.rx.Receive(1)
		all[name] = b
	}
	return all
}

// TestNoAllocation: nothing on the hot path allocates.
func TestNoAllocation(t *testing.T) {
	for name, b := range newHotBench() {
		if n := testing.AllocsPerRun(1000, func() { b.sendBurst(60); b.receiveBurst(60) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if b.broken != nil || b.tx.Pending() != 0 {
			t.Errorf("%s: %d pending, broken %v", name, b.tx.Pending(), b.broken)
		}
	}
}

// BenchmarkTx is the driver's own cost of a frame: the device does next to nothing.
func BenchmarkTx(b *testing.B) {
	for name, q := range newHotBench() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N/burst + 1 {
				q.sendBurst(60)
			}
		})
	}
}

// BenchmarkRx includes the writing of the results.
func BenchmarkRx(b *testing.B) {
	for name, q := range newHotBench() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N/burst + 1 {
				q.receiveBurst(60)
			}
		})
	}
}

// BenchmarkPort sends frames through a back-end that polls in another thread, and takes them back.
func BenchmarkPort(b *testing.B) {
	f := newFixture(b, Config{Server: true, RxSize: 4096, TxSize: 1024})
	back := newBackend(b)
	back.poll = true
	f.start(back)
	if err := f.Ready(testContext(b)); err != nil {
		b.Fatal(err)
	}
	f.exchange(0, 1)
	tx, rx := f.Tx(0), f.Rx(0)
	b.ReportAllocs()
	b.ResetTimer()
	for sent, got := 0, 0; got < b.N; {
		slots := tx.Reserve(min(burst, b.N-sent, 1024-(sent-got)))
		for i := range slots {
			slots[i].Len = 60
		}
		sent += len(slots)
		tx.Submit(len(slots))
		if err := tx.Flush(); err != nil {
			b.Fatal(err)
		}
		got += len(rx.Receive(burst))
		rx.Release()
	}
}
