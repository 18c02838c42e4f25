package frame

import (
	"testing"

	"plumb/providers"
)

func benchmarks() map[string]providers.Traffic {
	simple, _ := IMIX("simple")
	return map[string]providers.Traffic{
		"udp 64, 1 flow":              {Headers: "udp", FrameSize: 64},
		"udp 64, 1000 flows by port":  {Headers: "udp", FrameSize: 64, Flows: 1000},
		"udp 64, 1000000 by ip":       {Headers: "udp", FrameSize: 64, Flows: 1000000, Vary: "ip"},
		"udp 64, 1000000 ip random":   {Headers: "udp", FrameSize: 64, Flows: 1000000, Vary: "ip", Order: "random"},
		"l2 64, 1 flow":               {Headers: "l2", FrameSize: 64},
		"udp6 1518, 1000 by port":     {Headers: "udp6", FrameSize: 1518, Flows: 1000},
		"udp mix, 12 flows":           {Headers: "udp", Sizes: simple, Flows: 12},
		"udp vxlan 114, 1000 by port": {Headers: "udp", FrameSize: 114, Flows: 1000, VXLAN: &providers.VXLAN{SrcIP: "10.0.0.1", DstIP: "10.0.0.2"}},
	}
}

func BenchmarkWrite(b *testing.B) { each(b, (*Builder).Write) }

func BenchmarkRestamp(b *testing.B) { each(b, (*Builder).Restamp) }

func each(b *testing.B, write func(*Builder, []byte, uint64, uint64) int) {
	for name, tr := range benchmarks() {
		b.Run(name, func(b *testing.B) {
			bl := build(b, tr, own)
			const slots = 256
			ring := make([]byte, slots*2048)
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				write(bl, ring[n%slots*2048:][:2048], n, n)
				n++
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	bl := build(b, providers.Traffic{Headers: "udp", FrameSize: 64}, own)
	const slots = 256
	ring := make([]byte, slots*64)
	for n := range uint64(slots) {
		bl.Write(ring[n*64:], n, n)
	}
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		if _, _, _, ok := Parse(ring[n%slots*64:][:60], own.Token); !ok {
			b.Fatal("not known again")
		}
		n++
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for name, tr := range benchmarks() {
		bl := build(t, tr, own)
		buf := make([]byte, 2048)
		n := uint64(0)
		if got := testing.AllocsPerRun(1000, func() {
			size := bl.Write(buf, n, n)
			bl.Restamp(buf, n, n+1)
			Parse(buf[:size], own.Token)
			n++
		}); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
