package hand

import (
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/port"
	"plumb/providers/loadgen/port/porttest"
	"plumb/providers/loadgen/worker"
)

var update = flag.Bool("update", false, "rewrite golden files")

func ports(names ...string) []worker.PortSpec {
	var out []worker.PortSpec
	for _, n := range names {
		out = append(out, worker.PortSpec{Kind: worker.AFPacket, Interface: n})
	}
	return out
}

var udp = providers.Traffic{FrameSize: 64, Flows: 1, Headers: "udp"}

func TestRequest(t *testing.T) {
	both := udp
	both.Bidirectional = true
	pair := func(r engine.Request) (out [][2]int) {
		for _, s := range r.Streams {
			out = append(out, [2]int{s.From, s.To})
		}
		return out
	}
	for name, c := range map[string]struct {
		o    Options
		want [][2]int
	}{
		"one way":       {Options{Ports: ports("a", "b"), Traffic: udp, Duration: 1}, [][2]int{{0, 1}}},
		"both ways":     {Options{Ports: ports("a", "b"), Traffic: both, Duration: 1}, [][2]int{{0, 1}, {1, 0}}},
		"a loop":        {Options{Ports: ports("a"), Traffic: udp, Duration: 1}, [][2]int{{0, 0}}},
		"two pairs":     {Options{Ports: ports("a", "b", "c", "d"), Traffic: udp, Duration: 1}, [][2]int{{0, 1}, {2, 3}}},
		"four, 2 ways":  {Options{Ports: ports("a", "b", "c", "d"), Traffic: both, Duration: 1}, [][2]int{{0, 1}, {1, 0}, {2, 3}, {3, 2}}},
		"burst, frames": {Options{Ports: ports("a", "b"), Traffic: udp, Frames: 9, Burst: 3, Duration: 1}, [][2]int{{0, 1}}},
	} {
		r, err := c.o.Request()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.want, pair(r)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
		if c.o.Frames > 0 && r.Duration != 0 {
			t.Errorf("%s: both frames and a duration: %+v", name, r)
		}
	}
	r, err := Options{Ports: ports("a", "b"), Traffic: providers.Traffic{FrameSize: 64, Headers: "udp", Bidirectional: true, SrcIP: "192.0.2.1", DstIP: "192.0.2.2"}, Duration: 1}.Request()
	if err != nil || r.Streams[1].Traffic.SrcIP != "192.0.2.2" {
		t.Errorf("the way back has the addresses of the way there: %+v, %v", r, err)
	}
}

func TestRequestRefuses(t *testing.T) {
	both := udp
	both.Bidirectional = true
	small := udp
	small.FrameSize = 63
	for _, c := range []struct {
		o   Options
		why string
	}{
		{Options{Traffic: udp}, "-port is missing"},
		{Options{Ports: ports("a", "b", "c"), Traffic: udp}, "an even number"},
		{Options{Ports: ports("a", "a"), Traffic: udp}, "given twice"},
		{Options{Ports: ports("a"), Traffic: both}, "needs two ports"},
		{Options{Ports: ports("a", "b"), Traffic: udp, Burst: 4}, "needs a -rate"},
		{Options{Ports: ports("a", "b"), Traffic: small}, "63"},
		{Options{Ports: ports("a", "b"), Traffic: providers.Traffic{FrameSize: 64, Headers: "udp", SrcIP: "2001::1"}}, "2001::1"},
	} {
		if _, err := c.o.Request(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v; want an error with %q", c.o, err, c.why)
		}
	}
}

// do runs the real engine on ports in memory.
func do(t *testing.T, soft, hard context.Context, o Options, mem porttest.Options, tick <-chan time.Time, watch func(Totals)) (*Report, []*porttest.Port, error) {
	t.Helper()
	cpu, err := LastCPU()
	if err != nil {
		t.Fatal(err)
	}
	o.Ports, o.Engine.CPUs, o.Engine.Idle = ports("mem0", "mem1"), []int{cpu}, 50*time.Microsecond
	req, err := o.Request()
	if err != nil {
		t.Fatal(err)
	}
	a, b := porttest.Pair(mem)
	s := session{Options: o, req: req, ports: []port.Port{a, b}, tick: tick, watch: watch}
	rep, err := s.run(soft, hard)
	return rep, []*porttest.Port{a, b}, err
}

func TestRunCounts(t *testing.T) {
	lossy := porttest.Options{Fate: func(_ int, n uint64) int {
		if n%100 == 7 {
			return 0
		}
		return 1
	}}
	var seen []Totals
	rep, mem, err := do(t, t.Context(), t.Context(), Options{Traffic: udp, Frames: 1000, Drain: 20 * time.Millisecond}, lossy, nil, func(x Totals) { seen = append(seen, x) })
	if err != nil {
		t.Fatal(err)
	}
	d := rep.Directions[0]
	if d.Sent != 1000 || d.Received != 990 || d.Lost != 10 || d.LossRatio != 0.01 || d.Reordered+d.Duplicated+d.Surplus != 0 || rep.Interrupted {
		t.Errorf("%+v", rep)
	}
	if rep.Ports[1].Port != "af_packet:mem1" || rep.Ports[1].Name != "mem1" {
		t.Errorf("%+v", rep.Ports)
	}
	if len(seen) == 0 || seen[0] != (Totals{}) {
		t.Errorf("watched: %v", seen)
	}
	if !mem[0].Closed() || !mem[1].Closed() {
		t.Error("a port is open still")
	}
}

// An interrupt ends a stream that would go on for an hour, and what was counted is there; a second one does not wait for the drain.
func TestRunInterrupted(t *testing.T) {
	for _, second := range []bool{false, true} {
		soft, interrupt := context.WithCancel(t.Context())
		hard, again := context.WithCancel(t.Context())
		tick, over := make(chan time.Time), make(chan struct{})
		go func() {
			for {
				select {
				case tick <- time.Time{}:
				case <-over:
					return
				}
			}
		}()
		// The first frame never arrives, so the drain would take an hour.
		fate := func(_ int, n uint64) int { return int(min(n, 1)) }
		if !second {
			fate = nil
		}
		rep, _, err := do(t, soft, hard, Options{Traffic: udp, Load: 1000, Duration: time.Hour, Drain: time.Hour}, porttest.Options{Fate: fate}, tick, func(x Totals) {
			if x.Received >= 3 {
				interrupt()
				if second {
					again()
				}
			}
		})
		close(over)
		interrupt()
		again()
		if err != nil {
			t.Fatal(err)
		}
		d := rep.Directions[0]
		if !rep.Interrupted || d.Received < 3 || d.Lost > 0 && !second || rep.Seconds > 600 {
			t.Errorf("%+v", rep)
		}
	}
}

func TestRunFails(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	rep, mem, err := do(t, t.Context(), cancelled, Options{Traffic: udp, Frames: 10}, porttest.Options{}, nil, nil)
	if !errors.Is(err, context.Canceled) && (rep == nil || !rep.Interrupted) || !mem[0].Closed() {
		t.Errorf("%+v, %v", rep, err)
	}
	missing := []worker.PortSpec{{Kind: worker.AFPacket, Interface: "plumb-missing"}, {Kind: worker.AFPacket, Interface: "plumb-none"}}
	if _, err := Run(t.Context(), t.Context(), Options{Ports: missing, Traffic: udp, Duration: 1}, nil, nil); err == nil || !strings.Contains(err.Error(), "plumb-missing") {
		t.Error(err)
	}
}

// full is a report with everything in it.
func full() *Report {
	d := time.Millisecond
	a, b := porttest.Pair(porttest.Options{})
	s := session{
		Options: Options{Ports: []worker.PortSpec{{Kind: worker.AFXDP, Interface: "veth0", Netns: "a"}, {Kind: worker.VhostUser, Socket: "/run/t.sock"}}, Traffic: providers.Traffic{Sizes: []int{64, 64, 1518}}},
		req:     engine.Request{Streams: []engine.Stream{{From: 0, To: 1}, {From: 1, To: 0}}},
		ports:   []port.Port{a, b},
	}
	return s.report(
		engine.Result{Directions: []providers.Direction{
			{Offered: 1.5e6, Sent: 14_999_000, Unsent: 1000, Received: 14_998_000, Duplicated: 1, Reordered: 2, Surplus: 3, RxDrops: 4, LastLoss: &d,
				Latency: &providers.Latency{Samples: 14647, Min: 1500, P50: 2000, P90: 3000, P99: 4000, P999: 5000, Max: 1e6, Mean: 2100, PDV: 3500, Jitter: 12.5,
					IPDV: &providers.IPDV{Min: -9e5, P001: -100, P50: 0, P999: 110, Max: 9e5}}},
			{Sent: 10, Unsent: 99, Received: 10},
		}, Duration: 10 * time.Second, Behind: 12, LongestStop: 2500 * time.Microsecond, LinkChanges: 1, Health: []string{"a counter went back"}, Notes: []string{"the histogram overflowed once"}}, true)
}

func TestText(t *testing.T) {
	got := full().Text()
	golden := filepath.Join("testdata", "report.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Loss counts what the port refused at an offered rate, and not at full speed; and it never goes below nothing.
func TestLoss(t *testing.T) {
	for _, c := range []struct {
		d     providers.Direction
		lost  uint64
		ratio float64
	}{
		{providers.Direction{Offered: 10, Sent: 90, Unsent: 10, Received: 80}, 20, 0.2},
		{providers.Direction{Sent: 90, Unsent: 10, Received: 81}, 9, 0.1},
		{providers.Direction{Offered: 10, Unsent: 10}, 10, 1},
		{providers.Direction{Sent: 5, Received: 6}, 0, 0},
		{providers.Direction{}, 0, 0},
	} {
		if w := oneWay(c.d, 1, 672); w.Lost != c.lost || w.LossRatio != c.ratio {
			t.Errorf("%+v: lost %d, %g; want %d, %g", c.d, w.Lost, w.LossRatio, c.lost, c.ratio)
		}
	}
	if w := oneWay(providers.Direction{Sent: 1488095, Received: 1488095}, 0.1, 672); math.Abs(w.TxL1-1e10) > 1e4 {
		t.Errorf("14.88 Mpps of 64 bytes are 10 Gbit/s, not %g", w.TxL1)
	}
	if w := oneWay(providers.Direction{Sent: 1}, 0, 672); w.TxRate != 0 {
		t.Errorf("a rate in no time: %g", w.TxRate)
	}
}

func TestParse(t *testing.T) {
	for s, want := range map[string]float64{"max": 0, "250000": 250000, "500k": 5e5, "500K": 5e5, "14.88M": 14.88e6, "1G": 1e9, "0.5": 0.5, "1e3": 1000} {
		if got, err := ParseRate(s); err != nil || math.Abs(got-want) > 1e-6 {
			t.Errorf("rate %s: %g, %v; want %g", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "NaN", "Inf", "1T", "k", "1 M", "0x10", "1_000", "fast", "1kk"} {
		if got, err := ParseRate(s); err == nil {
			t.Errorf("rate %q: %g", s, got)
		}
	}
	if n, mix, err := ParseSize("1518"); n != 1518 || mix != nil || err != nil {
		t.Error(n, mix, err)
	}
	if n, mix, err := ParseSize("simple"); n != 362 || len(mix) != 12 || err != nil {
		t.Error(n, mix, err)
	}
	for _, s := range []string{"", "63", "9217", "64.5", "xyz"} {
		if n, mix, err := ParseSize(s); err == nil {
			t.Errorf("size %q: %d, %v", s, n, mix)
		}
	}
	if v, err := ParseVLANs("10,100"); err != nil || !cmp.Equal(v, []int{10, 100}) {
		t.Error(v, err)
	}
	if v, err := ParseVLANs(""); err != nil || v != nil {
		t.Error(v, err)
	}
	for _, s := range []string{"0", "4095", "a", "1,2,3", "1,"} {
		if v, err := ParseVLANs(s); err == nil {
			t.Errorf("vlan %q: %v", s, v)
		}
	}
}

func TestLive(t *testing.T) {
	if got, want := Live(3, Totals{1000, 1000}, Totals{3000, 2500}, 2), "   3 s   sent 1,000 frames/s   received 750 frames/s"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// FuzzParseRate: what is taken is a rate that can be offered.
func FuzzParseRate(f *testing.F) {
	f.Add("14.88M")
	f.Add("max")
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseRate(s); err == nil && (math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || v == 0 && s != "max") {
			t.Fatalf("%q: %g", s, v)
		} else if err != nil && errors.Unwrap(err) != nil {
			t.Fatalf("%q: %v", s, err)
		}
	})
}
