package tally

import "testing"

// arrivals are sequence numbers relative to a round of 1024.
var arrivals = map[string]func(i uint64) uint64{
	"in order":       func(i uint64) uint64 { return i },
	"pairs swapped":  func(i uint64) uint64 { return i ^ 1 },
	"every 2nd lost": func(i uint64) uint64 { return 2 * i },
	"all duplicated": func(i uint64) uint64 { return i / 2 },
	"one of 4 queues": func(i uint64) uint64 {
		return 4*i + i*0x9e3779b97f4a7c15>>62
	},
}

func BenchmarkRecord(b *testing.B) {
	for name, seq := range arrivals {
		b.Run(name, func(b *testing.B) {
			ta := New(0)
			b.ReportAllocs()
			i := uint64(0)
			for b.Loop() {
				n := seq(i)
				ta.Record(n, 1000+n*50, 3000+i/32*1600, n&1023 == 0)
				i++
			}
		})
	}
}

func BenchmarkRecordSampled(b *testing.B) {
	ta := New(0)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		ta.Record(i, 1000+i*50, 3000+i*50+i*7919%100000, true)
		i++
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	for name, seq := range arrivals {
		ta := New(256)
		i := uint64(0)
		if got := testing.AllocsPerRun(10000, func() {
			n := seq(i)
			ta.Record(n, 1000+n*50, 3000+i*i%77777, true)
			i++
		}); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
		ta.Record(1<<43, 1, 1<<62, true) // beyond everything
		if got := testing.AllocsPerRun(10, ta.Reset); got != 0 {
			t.Errorf("%s: Reset: %v allocations", name, got)
		}
	}
}
