package kernel

import (
	"math"
	"testing"
)

// shared is a ring whose other side is played by a test.
func shared[T any](n int, start uint32) ring[T] {
	words := []uint32{start, start, 0}
	return ring[T]{producer: &words[0], consumer: &words[1], flags: &words[2], entries: make([]T, n), own: start}
}

func TestRingIndicesWrap(t *testing.T) {
	for _, start := range []uint32{0, 7, math.MaxUint32 - 2} {
		r := shared[uint64](8, start)
		kernel := r // the consumer's view
		for i := range uint64(40) {
			if got := r.untaken(); got != 0 {
				t.Fatalf("start %d: %d untaken in an empty ring", start, got)
			}
			for k := range uint64(5) {
				r.put(i*10 + k)
			}
			if got := kernel.filled(); got != 0 {
				t.Fatalf("start %d: %d are seen before publish", start, got)
			}
			r.publish()
			if got, left := kernel.filled(), r.untaken(); got != 5 || left != 5 {
				t.Fatalf("start %d: %d filled, %d untaken instead of 5", start, got, left)
			}
			for k := range uint64(5) {
				if got := *kernel.at(kernel.own); got != i*10+k {
					t.Fatalf("start %d: entry is %d instead of %d", start, got, i*10+k)
				}
				kernel.own++
			}
			kernel.release()
		}
	}
}

func TestRingNeedsWakeup(t *testing.T) {
	r := shared[uint64](8, 0)
	if r.needsWakeup() {
		t.Error("wakeup without the flag")
	}
	*r.flags = ringNeedWakeup
	if !r.needsWakeup() {
		t.Error("no wakeup with the flag")
	}
}
