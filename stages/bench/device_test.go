package bench

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// device is a generator that is a model, of a device with a known truth: what the methods have to find.
type device struct {
	capacity float64 // forwarded frames/s, of both directions together
	rate     float64 // frames/s and direction that the tester can send
	buffer   float64 // frames
	latency  float64 // ns
	recovers time.Duration
	outage   time.Duration
	able     providers.Abilities
	made     int            // trials
	invalid  map[int]string // by trial, from 1: why it does not count
	stop     func(made int) // before a trial is made
	asked    []providers.TrialRequest
	closed   int
}

func newDevice() *device {
	return &device{capacity: 1e6, rate: 2e6, buffer: 26_000, latency: 12_000, recovers: 70 * time.Millisecond, outage: 300 * time.Millisecond, able: providers.Abilities{
		RateControl: true, Bidirectional: true, Latency: true, Bursts: true, Steps: true, Outage: true, Signed: true, Model: true, Describe: "a device"}}
}

func (d *device) Schema() *schema.Generator { return &schema.Generator{Type: "model"} }
func (d *device) Claims(context.Context, providers.Host, cty.Value) (providers.Claims, error) {
	return providers.Claims{}, nil
}
func (d *device) Open(context.Context, providers.OpenRequest) (providers.Generator, error) {
	return d, nil
}
func (d *device) Sweep(context.Context, providers.Host, string) error { return nil }
func (d *device) Abilities() providers.Abilities                      { return d.able }
func (d *device) Close(context.Context) error                         { d.closed++; return nil }

func (d *device) Trial(ctx context.Context, req providers.TrialRequest) (providers.TrialResult, error) {
	if d.stop != nil {
		d.stop(d.made)
	}
	if err := ctx.Err(); err != nil {
		return providers.TrialResult{}, err
	}
	d.made++
	d.asked = append(d.asked, req)
	ways := 1.0
	if req.Bidirectional {
		ways = 2
	}
	capacity := d.capacity / ways
	res := providers.TrialResult{Duration: req.Duration}
	for _, s := range req.Steps {
		res.Duration += s.Duration
	}
	if why := d.invalid[d.made]; why != "" {
		res.Health = []string{why}
	}
	var sent, lost float64
	part := func(load float64, t time.Duration) {
		n := math.Round(load * t.Seconds())
		sent, lost = sent+n, lost+math.Max(0, math.Round(n*(1-capacity/load)))
	}
	one := providers.Direction{Offered: req.Load, Latency: &providers.Latency{Samples: 1000, Min: d.latency, P50: d.latency, P90: d.latency, P99: d.latency, P999: d.latency, Max: d.latency, Mean: d.latency}}
	switch {
	case req.Frames > 0:
		sent = float64(req.Frames)
		lost = math.Max(0, math.Round(sent*(1-capacity/d.rate)-d.buffer))
		res.Duration = time.Duration(sent / d.rate * 1e9)
	case req.Load == 0:
		part(d.rate, req.Duration)
	default:
		part(req.Load, req.Duration)
		for _, s := range req.Steps {
			part(s.Load, s.Duration)
		}
	}
	if len(req.Steps) > 0 && lost > 0 {
		at := req.Duration + d.recovers
		one.LastLoss = &at
	}
	if req.Disturb != nil {
		if err := req.Disturb(ctx); err != nil {
			return res, err
		}
		lost += math.Round(req.Load * d.outage.Seconds())
		one.Outage, one.OutageAt = &d.outage, &req.DisturbAfter
	}
	one.Sent, one.Received = uint64(sent), uint64(sent-lost)
	for range int(ways) {
		res.Directions = append(res.Directions, one)
	}
	return res, ctx.Err()
}

// deviceBench is an Input with one benchmark of a device, which needs no path.
func deviceBench(t *testing.T, d *device, method string, shared, traffic, config map[string]cty.Value) Input {
	t.Helper()
	in, _ := bench(t, newModel(false), traffic, shared, config)
	in.Benchmarks[0].Method, in.Benchmarks[0].Path = method, nil
	if config == nil {
		in.Benchmarks[0].MethodCfg = cty.EmptyObjectVal
	}
	in.Set.Generators = []providers.GeneratorType{d}
	return in
}

func found(t *testing.T, b Benchmark, name string) Figure {
	t.Helper()
	for _, f := range b.Figures {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no figure %s in %+v; error %q, notes %q", name, b.Figures, b.Error, b.Notes)
	return Figure{}
}

// Every method finds the truth of a device within its resolution, with the defaults of a plain block.
func TestMethodsFindTheTruth(t *testing.T) {
	text, num := cty.StringVal, cty.NumberIntVal
	for _, tc := range []struct {
		method  string
		shared  map[string]cty.Value
		traffic map[string]cty.Value
		config  map[string]cty.Value
		want    map[string]float64
		within  float64 // relative
		label   string  // of the first wanted
		values  int
	}{
		{method: "throughput", want: map[string]float64{"throughput": 1e6}, within: 0.005, values: 1},
		{method: "throughput", traffic: map[string]cty.Value{"bidirectional": cty.True}, want: map[string]float64{"throughput": 0.5e6}, within: 0.005, values: 1},
		{method: "throughput", traffic: map[string]cty.Value{"line_rate": text("500M")}, want: map[string]float64{"throughput": 744047}, values: 1},
		{method: "loss_rate", want: map[string]float64{"loss_rate_100": 0.5, "loss_rate_60": 1 - 1/1.2, "loss_rate_50": 0}, within: 1e-6, values: 1},
		{method: "latency", want: map[string]float64{"latency_p50": 12_000, "throughput": 1e6}, within: 0.005, values: 20},
		{method: "latency", config: map[string]cty.Value{"throughput": text("500k")}, want: map[string]float64{"latency_p999": 12_000}, values: 20},
		{method: "back_to_back", want: map[string]float64{"back_to_back": 52_000}, within: 0.01, values: 5},
		{method: "recovery", want: map[string]float64{"recovery_time": 0.07}, within: 1e-6, values: 5},
		{method: "reset", shared: map[string]cty.Value{"repeat": num(3)}, want: map[string]float64{"reset_time": 0.3, "reset_time_loss": 0.3}, within: 0.01, values: 3},
		{method: "soak", config: map[string]cty.Value{"share": num(50)}, want: map[string]float64{"soak_loss": 0, "soak_rate": 0.5e6}, within: 0.005, values: 1},
		{method: "ndr_pdr", shared: map[string]cty.Value{"repeat": num(2)}, want: map[string]float64{"NDR": 1e6, "PDR": 1e6 / 0.995}, within: 0.005, values: 2},
		{method: "ndr_pdr", config: map[string]cty.Value{"goal": cty.MapVal(map[string]cty.Value{"one percent": cty.ObjectVal(map[string]cty.Value{"loss": num(1)})})},
			want: map[string]float64{"one percent": 1e6 / 0.99}, within: 0.005, values: 1},
	} {
		t.Run(tc.method, func(t *testing.T) {
			traffic := map[string]cty.Value{"frame_sizes": numbers(64)}
			for k, v := range tc.traffic {
				traffic[k] = v
			}
			in := deviceBench(t, newDevice(), tc.method, tc.shared, traffic, tc.config)
			b := measure(t, in).Benchmarks[0]
			if b.Error != "" {
				t.Fatal(b.Error)
			}
			for name, want := range tc.want {
				f := found(t, b, name)
				if len(f.Values) != tc.values && name != "throughput" {
					t.Errorf("%s: values %v", name, f.Values)
				}
				if f.Unfinished || f.Unsteady || math.Abs(f.Median-want) > tc.within*want+1e-9 {
					t.Errorf("%s is %+v, want %g", name, f, want)
				}
			}
			for _, tr := range b.Trials {
				if tr.Verdict == Invalid {
					t.Errorf("INVALID: %+v", tr)
				}
			}
		})
	}
}

func TestBurstsAreAsked(t *testing.T) {
	d := newDevice()
	in := deviceBench(t, d, "burst", nil, nil, map[string]cty.Value{"lengths": numbers(16, 64)})
	b := measure(t, in).Benchmarks[0]
	lengths := map[int]int{}
	for _, q := range d.asked {
		lengths[q.Burst]++
	}
	if b.Error != "" || lengths[16] == 0 || lengths[64] == 0 || len(b.Figures) == 0 {
		t.Errorf("error %q, asked %v, figures %+v", b.Error, lengths, b.Figures)
	}
	in = deviceBench(t, d, "continuous", nil, nil, map[string]cty.Value{"load": cty.StringVal("10k"), "burst": cty.NumberIntVal(32), "duration": cty.StringVal("1s")})
	if b := measure(t, in).Benchmarks[0]; b.Error != "" || b.Trials[0].Burst != 32 || d.asked[len(d.asked)-1].Burst != 32 {
		t.Errorf("%+v", b)
	}
}

func TestNoThroughputNoLatency(t *testing.T) {
	d := newDevice()
	d.capacity = 10
	in := deviceBench(t, d, "latency", nil, nil, map[string]cty.Value{"search": cty.ObjectVal(map[string]cty.Value{"min_load": cty.StringVal("1k")})})
	b := measure(t, in).Benchmarks[0]
	f := found(t, b, "throughput")
	if b.Error != "" || len(f.Values) != 0 || len(f.Nones) != 1 || f.Primary || len(b.Figures) != 1 || len(b.Notes) != 1 {
		t.Errorf("error %q, notes %q, figures %+v", b.Error, b.Notes, b.Figures)
	}
}

func TestGeneratorsAreHeldToTheirAbilities(t *testing.T) {
	text := cty.StringVal
	for _, tc := range []struct {
		method  string
		traffic map[string]cty.Value
		config  map[string]cty.Value
		change  func(*providers.Abilities)
		want    string
	}{
		{method: "throughput", change: func(a *providers.Abilities) { a.RateControl = false }, want: `cannot send at a given rate; write load = "max" in a continuous benchmark`},
		{method: "soak", config: map[string]cty.Value{"load": text("1k")}, change: func(a *providers.Abilities) { a.RateControl = false }, want: `cannot send at a given rate; write load = "max" in a continuous benchmark`},
		{method: "back_to_back", change: func(a *providers.Abilities) { a.Bursts = false }, want: "cannot send bursts; leave bursts out"},
		{method: "burst", change: func(a *providers.Abilities) { a.Bursts = false }, want: "cannot send bursts; leave bursts out"},
		{method: "recovery", change: func(a *providers.Abilities) { a.Steps = false }, want: "cannot change its rate within a stream, which recovery is measured by; leave recovery out"},
		{method: "reset", change: func(a *providers.Abilities) { a.Outage = false }, want: "cannot time an outage, which a reset is measured by; leave reset out"},
		{method: "latency", change: func(a *providers.Abilities) { a.Latency = false }, want: "cannot measure latency; leave latency out"},
		{method: "continuous", traffic: map[string]cty.Value{"headers": text("tcp")}, want: `cannot make frames with headers = "tcp"; write one of ["l2" "ipv4" "udp"]`},
		{method: "continuous", traffic: map[string]cty.Value{"imix": numbers(64, 1518)}, want: "cannot make such traffic: a mix of sizes (imix)"},
		{method: "continuous", traffic: map[string]cty.Value{"frame_sizes": numbers(128), "vlans": numbers(7)}, want: "cannot make such traffic: VLAN tags (vlans)"},
		{method: "continuous", traffic: map[string]cty.Value{"order": text("random")}, want: "cannot make such traffic: flows in random order (order)"},
		{method: "continuous", traffic: map[string]cty.Value{"src_ip": text("198.18.0.9")}, want: "cannot make such traffic: given IP addresses (src_ip, dst_ip)"},
	} {
		t.Run(tc.method+" "+tc.want, func(t *testing.T) {
			d := newDevice()
			if tc.change != nil {
				tc.change(&d.able)
			}
			in := deviceBench(t, d, tc.method, nil, tc.traffic, tc.config)
			b := measure(t, in).Benchmarks[0]
			want := fmt.Sprintf("generator.model.tg (a device) %s or choose another generator", tc.want)
			if want2 := fmt.Sprintf("generator.model.tg (a device) %s; choose another generator", tc.want); b.Error != want && b.Error != want2 || d.made != 0 || d.closed != 1 {
				t.Errorf("%q after %d trials, closed %d times", b.Error, d.made, d.closed)
			}
		})
	}
}
