package builtin

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

// TestRealLoadgen measures a real Open vSwitch with DPDK by Plumb's own generator: what it counts is what the switch counts, frame by frame. It says nothing
// of how fast they are.
func TestRealLoadgen(t *testing.T) { onRealBed(t, (*bed).runLoadgen) }

func (b *bed) runLoadgen() {
	t := b.t
	dir := t.TempDir()
	sock := func(n string) string { return filepath.Join(dir, n) }
	b.apply("host_hugepages", "dut", values{"size": str("2M"), "pages": cty.MapVal(values{"0": num(300)})})
	dpdk := find(b.set.Resources, "ovs_switch").Schema().Block.Blocks["dpdk"]
	sw := b.apply("ovs_switch", "dut", values{"dpdk": conformance.Desired(&dpdk.Block, values{"socket_mem": list(num(512)), "socket_limit": list(num(512)), "pmd_cores": str("0"), "extra": str("--no-pci")})})
	b.apply("ovs_bridge", "br0", values{"name": str("br0"), "datapath": str("netdev")})
	var hops []providers.Subject
	for i, n := range []string{"tg0", "tg1"} {
		hops = append(hops, b.apply("ovs_port", n, values{"bridge": str("br0"), "name": str(n), "type": str("dpdkvhostuserclient"), "ofport": num(int64(i + 1)), "vhost_server_path": str(sock(n))}))
	}
	flows := func() {
		b.apply("ovs_flows", "br0", values{"bridge": str("br0"), "flows": list(str("in_port=1 actions=output:2"), str("in_port=2 actions=output:1"))})
	}
	flows()

	g := loadgenType(b.set)
	block := g.Schema().Block
	port := block.Blocks["port"].Block
	config := conformance.Desired(&block, values{"cpus": str("1"), "share_cores": cty.True, "realtime": num(1), "sample": num(64),
		"port": list(conformance.Desired(&port, values{"vhost_user": str(sock("tg0"))}), conformance.Desired(&port, values{"vhost_user": str(sock("tg1"))}))})
	frames := providers.Traffic{FrameSize: 64, Flows: 10, Headers: "udp"}
	gen, err := g.Open(t.Context(), providers.OpenRequest{Host: b.host, Mark: providers.Mark{Testbed: "loadgen-test", Address: "generator.loadgen.tg"}, Path: hops, Log: b.log, Config: config, Traffic: frames})
	if err != nil {
		t.Fatalf("open generator: %v", err)
	}
	defer closeGenerator(t, gen)
	t.Log(gen.Abilities().Describe)

	counters := find(b.set.Resources, "ovs_port").(providers.Counter)
	count := func() []providers.Counters {
		c, err := counters.Count(t.Context(), b.host, hops)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	both := frames
	both.Bidirectional = true
	imix := providers.Traffic{FrameSize: 362, Sizes: []int{64, 64, 64, 64, 64, 64, 64, 594, 594, 594, 594, 1518}, Flows: 100, Headers: "ipv4"}
	// What a port sent to find out whether the switch is there comes out with the first frames.
	if res, err := gen.Trial(t.Context(), providers.TrialRequest{Traffic: both, Frames: 32, Drain: time.Second}); err != nil || res.Directions[0].Received != 32 || res.Directions[1].Received != 32 {
		t.Fatalf("32 frames each way: %+v, %v", res, err)
	}
	for name, req := range map[string]providers.TrialRequest{
		"a few frames": {Traffic: frames, Frames: 100},
		"one way":      {Traffic: frames, Load: 50e3, Duration: time.Second},
		"both ways":    {Traffic: both, Load: 30e3, Duration: time.Second},
		"a mix":        {Traffic: imix, Load: 20e3, Duration: time.Second},
		"bursts":       {Traffic: frames, Load: 20e3, Duration: time.Second, Burst: 200},
		"steps":        {Traffic: frames, Load: 40e3, Duration: time.Second / 2, Steps: []providers.Step{{Load: 10e3, Duration: time.Second / 2}}},
		"maximum":      {Traffic: both, Duration: time.Second},
	} {
		req.Drain = 2 * time.Second
		was := count()
		res, err := gen.Trial(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		now := count()
		t.Logf("%s: %s %v %q", name, res.Duration, res.Directions, res.Notes)
		if len(res.Health) > 0 {
			t.Errorf("%s: %q", name, res.Health)
		}
		for i, d := range res.Directions {
			in, out := hops[i].Addr, hops[1-i].Addr
			lost := dropped(now[1-i]) - dropped(was[1-i])
			if got := now[i].Rx - was[i].Rx; got != d.Sent {
				t.Errorf("%s, direction %d: %d sent, and %s counted %d", name, i, d.Sent, in, got)
			}
			if got := now[1-i].Tx - was[1-i].Tx; got != d.Received {
				t.Errorf("%s, direction %d: %d received, and %s counted %d", name, i, d.Received, out, got)
			}
			if d.Sent != d.Received+lost || d.Sent == 0 || d.Surplus+d.Duplicated+d.Reordered+d.RxDrops != 0 {
				t.Errorf("%s, direction %d: %s dropped %d: %+v", name, i, out, lost, d)
			}
			if l := d.Latency; l == nil || l.Min <= 0 || l.P50 < l.Min || l.P99 < l.P50 || l.Max < l.P99 || l.Max > 5e9 {
				t.Errorf("%s, direction %d: latency %+v", name, i, l)
			}
		}
	}
	b.resetMeasured(gen, frames, sw, flows)
}

// resetMeasured kills the switch in the middle of a stream, and measures for how long nothing came through.
func (b *bed) resetMeasured(gen providers.Generator, frames providers.Traffic, sw providers.Subject, flows func()) {
	t := b.t
	kill := func(ctx context.Context) error {
		if err := find(b.set.Resources, "ovs_switch").(providers.Resetter).Reset(ctx, b.host, b.mark(sw.Addr), sw, "kill"); err != nil {
			return fmt.Errorf("reset: %w", err)
		}
		b.built = b.built[:len(b.built)-1] // what follows replaces them
		flows()
		return nil
	}
	res, err := gen.Trial(t.Context(), providers.TrialRequest{Traffic: frames, Load: 10e3, Duration: 15 * time.Second, Drain: time.Second, Disturb: kill, DisturbAfter: time.Second})
	if err != nil {
		t.Fatalf("reset: %v", err)
	}
	d := res.Directions[0]
	if d.Outage == nil || d.OutageAt == nil || d.LastLoss == nil {
		t.Fatalf("reset: %+v", res)
	}
	t.Logf("reset: outage %s at %s, last loss at %s: %+v, %q, %q", d.Outage, d.OutageAt, d.LastLoss, d, res.Health, res.Notes)
	if *d.OutageAt < time.Second/2 || *d.Outage <= 0 || *d.OutageAt+*d.Outage > res.Duration || len(res.Health) > 0 {
		t.Errorf("reset: outage %s at %s, of %s: %q", d.Outage, d.OutageAt, res.Duration, res.Health)
	}
	if lost := d.Sent + d.Unsent - d.Received; lost == 0 {
		t.Errorf("reset: nothing was lost: %+v", d)
	}
}

func loadgenType(set *providers.Set) providers.GeneratorType {
	for _, g := range set.Generators {
		if g.Schema().Type == "loadgen" {
			return g
		}
	}
	return nil
}

// dropped is all that a hop says it lost.
func dropped(c providers.Counters) uint64 {
	var n uint64
	for _, d := range c.Drops {
		n += d
	}
	return n
}
