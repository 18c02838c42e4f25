package kernel

import "testing"

func turns(b *testing.B, round func()) {
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}

// Nothing is allocated for a frame, on any kind of queue.
func TestQueuesDoNotAllocate(t *testing.T) {
	for name, round := range map[string]func(){
		"AF_PACKET, sending":   packetTxRound(t),
		"AF_PACKET, receiving": packetRxRound(t),
		"AF_XDP, sending":      xskTxRound(t),
		"AF_XDP, receiving":    xskRxRound(t),
	} {
		if n := testing.AllocsPerRun(1000, round); n != 0 {
			t.Errorf("%s: %g allocations for 32 frames", name, n)
		}
	}
}
