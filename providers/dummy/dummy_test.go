package dummy

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// open opens a generator with the schema's defaults and the numbers that are given.
func open(t *testing.T, set map[string]float64) providers.Generator {
	t.Helper()
	attrs := map[string]cty.Value{}
	for name, a := range (Generator{}).Schema().Block.Attributes {
		attrs[name] = a.Default
		if v, ok := set[name]; ok {
			attrs[name] = cty.NumberFloatVal(v)
		}
	}
	g, err := Generator{}.Open(context.Background(), providers.OpenRequest{Config: cty.ObjectVal(attrs)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func trial(t *testing.T, g providers.Generator, req providers.TrialRequest) providers.TrialResult {
	t.Helper()
	res, err := g.Trial(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestModel(t *testing.T) {
	second := func(load float64, size, flows int) providers.TrialRequest {
		return providers.TrialRequest{Load: load, Duration: time.Second, Traffic: providers.Traffic{FrameSize: size, Flows: flows}}
	}
	for _, c := range []struct {
		name           string
		set            map[string]float64
		req            providers.TrialRequest
		sent, received uint64
		unhealthy      bool
	}{
		{name: "below capacity nothing is lost", req: second(500_000, 64, 1), sent: 500_000, received: 500_000},
		{name: "above capacity the rest is lost", req: second(2_000_000, 64, 1), sent: 2_000_000, received: 1_000_000},
		{name: "maximum is what the tester can", req: second(0, 64, 1), sent: 20_000_000, received: 1_000_000},
		{name: "more than the tester can is no result", set: map[string]float64{"tester_rate": 1000}, req: second(2000, 64, 1), sent: 1000, received: 1000, unhealthy: true},
		{name: "bytes limit large frames", set: map[string]float64{"byte_rate": 1e8}, req: second(1_000_000, 1000, 1), sent: 1_000_000, received: 100_000},
		{name: "flows cost", set: map[string]float64{"flow_penalty": 0.1}, req: second(1_000_000, 64, 1000), sent: 1_000_000, received: 700_000},
		{name: "a proof finds an empty switch", set: map[string]float64{"capacity": 1}, req: providers.TrialRequest{Frames: 32, Traffic: providers.Traffic{FrameSize: 64, Flows: 1}}, sent: 32, received: 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := trial(t, open(t, c.set), c.req)
			d := res.Directions[0]
			if d.Sent != c.sent || d.Received != c.received || (len(res.Health) > 0) != c.unhealthy {
				t.Errorf("sent %d, received %d, health %v; want %d, %d, unhealthy %t", d.Sent, d.Received, res.Health, c.sent, c.received, c.unhealthy)
			}
		})
	}
}

func TestDirectionsShareTheCapacity(t *testing.T) {
	req := providers.TrialRequest{Load: 1_000_000, Duration: time.Second, Traffic: providers.Traffic{FrameSize: 64, Flows: 1, Bidirectional: true}}
	res := trial(t, open(t, nil), req)
	if len(res.Directions) != 2 || res.Directions[0].Received+res.Directions[1].Received != 1_000_000 {
		t.Errorf("got %+v", res.Directions)
	}
}

func TestSeedDecidesTheNoise(t *testing.T) {
	series := func(seed float64) (out []uint64) {
		g := open(t, map[string]float64{"noise": 0.05, "loss": 1e-3, "seed": seed})
		for range 20 {
			out = append(out, trial(t, g, providers.TrialRequest{Duration: time.Second, Traffic: providers.Traffic{FrameSize: 64, Flows: 1}}).Directions[0].Received)
		}
		return out
	}
	a, b, other := series(7), series(7), series(8)
	mean, differs := 0.0, false
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("trial %d: %d and %d with the same seed", i, a[i], b[i])
		}
		differs = differs || a[i] != other[i]
		mean += float64(a[i]) / float64(len(a))
	}
	if !differs {
		t.Error("another seed gives the same noise")
	}
	if math.Abs(mean-999_000) > 50_000 {
		t.Errorf("mean %f is not near the capacity", mean)
	}
}

func TestLatencyGrowsWithTheLoad(t *testing.T) {
	at := func(load float64) *providers.Latency {
		return trial(t, open(t, nil), providers.TrialRequest{Load: load, Duration: time.Second, Traffic: providers.Traffic{FrameSize: 64, Flows: 1}}).Directions[0].Latency
	}
	low, high := at(100_000), at(990_000)
	if low.Min != 10_000 || high.Min != 10_000 || low.P99 >= high.P99 || low.P50 > low.P90 || low.P999 > low.Max {
		t.Errorf("low %+v, high %+v", low, high)
	}
}
