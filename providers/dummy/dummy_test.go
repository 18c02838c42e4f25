package dummy

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// open opens a generator with the schema's defaults and what is given: numbers, strings and bools.
func open(t *testing.T, set map[string]any) providers.Generator {
	t.Helper()
	attrs := map[string]cty.Value{}
	for name, a := range (Generator{}).Schema().Block.Attributes {
		attrs[name] = a.Default
		switch v := set[name].(type) {
		case int:
			attrs[name] = cty.NumberIntVal(int64(v))
		case float64:
			attrs[name] = cty.NumberFloatVal(v)
		case string:
			attrs[name] = cty.StringVal(v)
		case bool:
			attrs[name] = cty.BoolVal(v)
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
		set            map[string]any
		req            providers.TrialRequest
		sent, received uint64
		unhealthy      bool
	}{
		{name: "below capacity nothing is lost", req: second(500_000, 64, 1), sent: 500_000, received: 500_000},
		{name: "above capacity the rest is lost", req: second(2_000_000, 64, 1), sent: 2_000_000, received: 1_000_000},
		{name: "maximum is what the tester can", req: second(0, 64, 1), sent: 20_000_000, received: 1_000_000},
		{name: "more than the tester can is no result", set: map[string]any{"tester_rate": 1000}, req: second(2000, 64, 1), sent: 1000, received: 1000, unhealthy: true},
		{name: "bytes limit large frames", set: map[string]any{"byte_rate": 1e8}, req: second(1_000_000, 1000, 1), sent: 1_000_000, received: 100_000},
		{name: "flows cost", set: map[string]any{"flow_penalty": 0.1}, req: second(1_000_000, 64, 1000), sent: 1_000_000, received: 700_000},
		{name: "a proof finds an empty switch", set: map[string]any{"capacity": 1}, req: providers.TrialRequest{Frames: 32, Traffic: providers.Traffic{FrameSize: 64, Flows: 1}}, sent: 32, received: 32},
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
		g := open(t, map[string]any{"noise": 0.05, "loss": 1e-3, "seed": seed})
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

// stream is a trial of 64-byte frames of one flow.
func stream(load float64, d time.Duration) providers.TrialRequest {
	return providers.TrialRequest{Load: load, Duration: d, Traffic: providers.Traffic{FrameSize: 64, Flows: 1}}
}

func burst(frames int) providers.TrialRequest {
	req := stream(0, 0)
	req.Frames = frames
	return req
}

func TestLossOfTheModel(t *testing.T) {
	inBursts := func(load float64, length int) providers.TrialRequest {
		req := stream(load, time.Second)
		req.Burst = length
		return req
	}
	for _, c := range []struct {
		name         string
		set          map[string]any
		req          providers.TrialRequest
		lost, unsent uint64
	}{
		{name: "a soft knee loses nothing before it begins", set: map[string]any{"knee": "soft"}, req: stream(900_000, time.Second)},
		// 900,000 + 100,000 * (1 - 1/e) come through.
		{name: "and what it bends away at the capacity", set: map[string]any{"knee": "soft"}, req: stream(1_000_000, time.Second), lost: 36_788},
		{name: "a buffer takes the excess of a short trial", set: map[string]any{"buffer": 1000}, req: stream(1_001_000, time.Second)},
		{name: "and of a long one only so much", set: map[string]any{"buffer": 1000}, req: stream(1_001_000, 10*time.Second), lost: 9000},
		{name: "the longest burst that fits", set: map[string]any{"buffer": 1000, "tester_rate": 2e6}, req: burst(2000)},
		{name: "two frames more do not", set: map[string]any{"buffer": 1000, "tester_rate": 2e6}, req: burst(2002), lost: 1},
		{name: "bursts that fit at an average up to the capacity", set: map[string]any{"buffer": 64, "tester_rate": 2e6}, req: inBursts(1e6, 128)},
		{name: "bursts that do not fit", set: map[string]any{"buffer": 64, "tester_rate": 2e6}, req: inBursts(256_000, 256), lost: 64_000},
		{name: "inside an inversion", set: map[string]any{"inversion_from": 4e5, "inversion_to": 5e5}, req: stream(4e5, time.Second), lost: 4000},
		{name: "above an inversion", set: map[string]any{"inversion_from": 4e5, "inversion_to": 5e5}, req: stream(5e5, time.Second)},
		{name: "a device that refuses", set: map[string]any{"refuses": true}, req: stream(2e6, time.Second), unsent: 1e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := trial(t, open(t, c.set), c.req).Directions[0]
			if d.Sent-d.Received != c.lost || d.Unsent != c.unsent {
				t.Errorf("sent %d, received %d, unsent %d; want %d lost and %d unsent", d.Sent, d.Received, d.Unsent, c.lost, c.unsent)
			}
			if (d.LastLoss != nil) != (c.lost+c.unsent > 0) {
				t.Errorf("last loss is %v with %d lost", d.LastLoss, c.lost)
			}
		})
	}
}

func TestRandomLossIsPoissonWhereItIsRare(t *testing.T) {
	g, lossless, sum := open(t, map[string]any{"loss": 1e-6, "capacity": 1e7}), 0, uint64(0)
	const n = 2000
	for range n {
		d := trial(t, g, stream(1e6, time.Second)).Directions[0]
		if d.Received == d.Sent {
			lossless++
		}
		sum += d.Sent - d.Received
	}
	// One in a million of a million: exp(-1) of the trials lose none. Bounds are four standard deviations.
	if share := float64(lossless) / n; math.Abs(share-math.Exp(-1)) > 0.044 {
		t.Errorf("%.3f of the trials lost nothing, want 0.368", share)
	}
	if mean := float64(sum) / n; math.Abs(mean-1) > 0.09 {
		t.Errorf("%.3f frames were lost in a trial, want 1", mean)
	}
}

func TestDriftMovesTheCapacity(t *testing.T) {
	g := open(t, map[string]any{"drift": -0.1})
	var got []uint64
	for range 3 {
		got = append(got, trial(t, g, stream(2e6, time.Second)).Directions[0].Received)
	}
	if diff := cmp.Diff([]uint64{1_000_000, 900_000, 800_000}, got); diff != "" {
		t.Errorf("received by trial (-want +got):\n%s", diff)
	}
}

func TestRecoveryFollowsAnOverload(t *testing.T) {
	req := stream(1.1e6, 10*time.Second)
	req.Steps = []providers.Step{{Load: 550_000, Duration: 10 * time.Second}}
	res := trial(t, open(t, map[string]any{"recovery_time": 1500}), req)
	d := res.Directions[0]
	// A million in the overload, and a tenth of 550,000 in each of the 1.5 s after it.
	if lost := d.Sent - d.Received; d.Sent != 16_500_000 || lost != 1_000_000+82_500 || d.LastLoss == nil || *d.LastLoss != 11500*time.Millisecond || res.Duration != 20*time.Second {
		t.Errorf("sent %d, lost %d, last %v, %s", d.Sent, lost, d.LastLoss, res.Duration)
	}
	req.Load = 900_000
	if d := trial(t, open(t, map[string]any{"recovery_time": 1500}), req).Directions[0]; d.LastLoss != nil || d.Sent != d.Received {
		t.Errorf("without an overload: %+v", d)
	}
}

func TestReset(t *testing.T) {
	calls := 0
	req := stream(500_000, 10*time.Second)
	req.Disturb, req.DisturbAfter = func(context.Context) error { calls++; return nil }, 4*time.Second
	d := trial(t, open(t, map[string]any{"reset_time": 250}), req).Directions[0]
	if calls != 1 || d.Sent-d.Received != 125_000 || d.Outage == nil || *d.Outage != 250*time.Millisecond || *d.OutageAt != 4*time.Second {
		t.Errorf("%d calls, %+v", calls, d)
	}
	if d := trial(t, open(t, map[string]any{"reset_time": 1e6}), req).Directions[0]; d.Sent-d.Received != 3_000_000 || d.Outage != nil {
		t.Errorf("a path that does not come back: %+v", d)
	}
	req.Disturb = nil // the model needs nobody to reset it
	if d := trial(t, open(t, map[string]any{"reset_time": 250}), req).Directions[0]; d.Sent-d.Received != 125_000 {
		t.Errorf("without a function: %+v", d)
	}
	broken := errors.New("no such switch")
	req.Disturb = func(context.Context) error { return broken }
	if _, err := open(t, nil).Trial(context.Background(), req); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestFaultsComeEveryNthTrial(t *testing.T) {
	for fault, wrong := range map[string]func(providers.TrialResult) bool{
		"queue": func(r providers.TrialResult) bool { return len(r.Health) > 0 && r.Directions[0].RxDrops > 0 },
		"link":  func(r providers.TrialResult) bool { return len(r.Health) > 0 },
		"slow": func(r providers.TrialResult) bool {
			d := r.Directions[0]
			return len(r.Health) == 0 && d.Sent == 400_000 && d.Unsent == 0
		},
		"counters": func(r providers.TrialResult) bool {
			return len(r.Health) == 0 && r.Directions[0].Received > r.Directions[0].Sent
		},
	} {
		g := open(t, map[string]any{"fault": fault, "fault_every": 3})
		for i := 1; i <= 6; i++ {
			res := trial(t, g, stream(500_000, time.Second))
			if i%3 == 0 != wrong(res) || i%3 != 0 && (len(res.Health) > 0 || res.Directions[0].Received != 500_000) {
				t.Errorf("fault %s, trial %d: %+v", fault, i, res)
			}
		}
	}
}

func TestAbilities(t *testing.T) {
	a := open(t, nil).Abilities()
	if !a.Model || !a.RateControl || !a.Bidirectional || !a.Latency || !a.Bursts || !a.Steps || !a.Outage || !a.Signed {
		t.Errorf("got %+v", a)
	}
}
