package search

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
)

func TestContinuous(t *testing.T) {
	goal := 0.01
	s := must(t)(Continuous(ContinuousConfig{Load: 2e6, Duration: time.Second, MaxLoss: &goal}))
	r := drive(t, s, nil, 1, 1)
	if why := s.Judge(r.done[0]); len(r.done) != 1 || why != "lost 50 % of the frames sent; the goal is at most 1 %" {
		t.Errorf("%d trials, %q", len(r.done), why)
	}
	free := must(t)(Continuous(ContinuousConfig{Duration: time.Second}))
	if r := drive(t, free, nil, 1, 1); free.Judge(r.done[0]) != "" {
		t.Error("a trial without a goal misses it")
	}
}

func TestLossRate(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  LossRateConfig
		set  sim
		want map[string]float64
	}{
		{"down to two without loss", LossRateConfig{Loads: Loads{Max: 1_250_000}}, nil, map[string]float64{"100": 0.2, "90": 1 - 1/1.125, "80": 0, "70": 0}},
		{"one without loss is not two", LossRateConfig{Loads: Loads{Max: 2_000_000}}, sim{"inversion_from": 800_000, "inversion_to": 850_000, "inversion_loss": 0.25},
			map[string]float64{"100": 0.5, "90": 4.0 / 9, "80": 0.375, "70": 1 - 1/1.4, "60": 1 - 1/1.2, "50": 0, "40": 0.25, "30": 0, "20": 0}},
		{"to the least load", LossRateConfig{Loads: Loads{Min: 500_000, Max: 2_000_000}, Step: 0.25}, sim{"capacity": 250_000},
			map[string]float64{"100": 0.875, "75": 1 - 1.0/6, "50": 0.75, "25": 0.5}},
		// Sixty in sixty million are lost at each load: never two trials without loss, so the curve goes down to the end.
		{"random loss of 1e-6", LossRateConfig{Loads: Loads{Max: 1_000_000}, Step: 0.1}, sim{"loss": 1e-6},
			map[string]float64{"100": 1e-6, "90": 1e-6, "80": 1e-6, "70": 1e-6, "60": 1e-6, "50": 1e-6, "40": 1e-6, "30": 1e-6, "20": 1e-6, "10": 1e-6}},
		{"found maximum", LossRateConfig{Loads: Loads{Probe: time.Second}}, sim{"tester_rate": 1_250_000}, map[string]float64{"100": 0.2, "90": 1 - 1/1.125, "80": 0, "70": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := drive(t, must(t)(LossRate(c.cfg)), c.set, 1, 20)
			got := map[string]float64{}
			for n, f := range r.figures {
				got[strings.TrimPrefix(n, "loss_rate_")] = f.Value
			}
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 2e-6 })); diff != "" {
				t.Errorf("loss by share (-want +got):\n%s", diff)
			}
		})
	}
	f := must(t)(LossRate(LossRateConfig{Loads: Loads{Max: 1000}})).Figures([]Seen{{Ask: Ask{Load: 1000}, Loss: 0.5}})[0]
	if f.Label != "frame loss rate at 100 % of 1000 fps, by RFC 2544 section 26.3" || !f.Unfinished {
		t.Errorf("got %+v", f)
	}
	f = must(t)(LossRate(LossRateConfig{Loads: Loads{Max: 1000}, Step: 0.2, Duration: time.Second})).Figures([]Seen{{Ask: Ask{Load: 1000}, Loss: 0.5}})[0]
	if want := "frame loss rate at 100 % of 1000 fps, by RFC 2544 section 26.3 but for: steps of 20 %, not 10 %; trials of 1s, not 60 s"; f.Label != want {
		t.Errorf("it is called %q, want %q", f.Label, want)
	}
}

func TestLatency(t *testing.T) {
	s := must(t)(Latency(LatencyConfig{Load: 500_000, AtThroughput: true, Repeats: 20}))
	r := drive(t, s, nil, 1, 1)
	if a := r.done[0].Ask; a.Duration != 2*time.Minute || a.Load != 500_000 || a.Phase != "latency" {
		t.Errorf("asked for %+v", a)
	}
	// At half of the capacity the mean wait doubles the 10 us of the empty switch.
	for name, want := range map[string]float64{"latency_min": 10_000, "latency_mean": 20_000, "latency_p50": 10_000 * (1 + math.Ln2), "latency_p999": 10_000 * (1 + math.Log(1000)), "pdv": 10_000 * math.Log(1000)} {
		if f := r.figures[name]; math.Abs(f.Value-want) > 1e-6*want || f.Unit != "ns" || f.None != "" {
			t.Errorf("%s is %+v; want %f ns", name, f, want)
		}
	}
	if l := r.figures["latency_p50"].Label; l != "typical latency (median), by RFC 8219" {
		t.Errorf("it is called %q", l)
	}
	short := must(t)(Latency(LatencyConfig{Load: 500_000, Duration: time.Second}))
	if l := short.Figures(nil)[0].Label; l != "typical latency (median), by RFC 8219 but for: at a given load, not at the throughput; stream of 1s, not 120 s; 1 run, not 20" {
		t.Errorf("it is called %q", l)
	}
	dead := Seen{Ask: r.done[0].Ask, Latency: []*providers.Latency{nil}}
	if f := s.Figures([]Seen{dead})[0]; f.None == "" {
		t.Errorf("a latency of nothing: %+v", f)
	}
	worse := []*providers.Latency{{Samples: 500, P50: 10}, {Samples: 500, P50: 20}}
	if f := s.Figures([]Seen{{Latency: worse}})[0]; f.Value != 20 {
		t.Errorf("of two directions the figure is %f, want the greater", f.Value)
	}
}

func TestBackToBack(t *testing.T) {
	for _, c := range []struct {
		name           string
		set            sim
		line, capacity float64
		truth          float64
		retries        int
		low            float64 // how much less random loss may make of it
	}{
		{name: "half of the rate", set: sim{"buffer": 1000}, line: 2e6, capacity: 1e6, truth: 2000},
		{name: "nearly the rate", set: sim{"buffer": 1000}, line: 1.25e6, capacity: 1e6, truth: 5000},
		{name: "a large buffer", set: sim{"buffer": 1_000_000}, line: 10e6, capacity: 8e6, truth: 5_000_000},
		{name: "random loss of 1e-6", set: sim{"buffer": 10_000, "loss": 1e-6}, line: 2e6, capacity: 1e6, truth: 20_000, retries: 5},
		// exp(-5) of the longest bursts that fit lose none at random: what is found is shorter.
		{name: "random loss of 1e-6, large buffer", set: sim{"buffer": 1_000_000, "loss": 1e-6}, line: 10e6, capacity: 8e6, truth: 5_000_000, retries: 20, low: 0.7},
	} {
		for seed := range 5 {
			t.Run(fmt.Sprintf("%s/seed %d", c.name, seed), func(t *testing.T) {
				s := must(t)(BackToBack(BackToBackConfig{Throughput: c.capacity, Max: c.line, MinStep: 10, Retries: c.retries}))
				r := drive(t, s, sim{"tester_rate": c.line, "capacity": c.capacity, "seed": seed}.with(c.set), 1, 800)
				f := r.figures["back_to_back"]
				if f.None != "" || f.Value > c.truth || f.Value < c.truth*(1-c.low)-10 || f.Upper-f.Lower > 10 {
					t.Errorf("got %+v, want %f in steps of 10", f, c.truth)
				}
				// The corrected time is that of the buffer: what the switch forwards meanwhile is not in it.
				buffer := f.Value * (1 - c.capacity/c.line) / c.line
				if got := r.figures["corrected_buffer_time"].Value; math.Abs(got-buffer) > 1e-12 {
					t.Errorf("corrected buffer time is %g s, want %g s", got, buffer)
				}
			})
		}
	}
}

// The numbers are of a link of 10 Gbit/s and frames of 64 bytes: a burst of 26,000 and a throughput of 8 Mpps.
func TestBackToBackWorkedExample(t *testing.T) {
	const line = 10e9 / 8 / 84
	s := must(t)(BackToBack(BackToBackConfig{Throughput: 8e6, Max: line, MinStep: 2000}))
	var done []Seen
	for {
		ask, more := s.Next(done)
		if !more {
			break
		}
		seen := Seen{Ask: ask}
		if ask.Frames > 26_000 {
			seen.Loss = 0.01
		}
		done = append(done, seen)
	}
	f := byName(t, s.Figures(done))
	if f["back_to_back"].Value != 26_000 {
		t.Fatalf("got %+v; the steps from 2000 meet 26,000", f["back_to_back"])
	}
	for name, want := range map[string]float64{"buffer_time": 1.747e-3, "corrected_buffer_time": 0.808e-3} {
		if got := f[name].Value; math.Abs(got-want) > 0.5e-6 {
			t.Errorf("%s is %g s, want %g s", name, got, want)
		}
	}
}

func TestBackToBackWithoutAValue(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  BackToBackConfig
		set  sim
		none string
		max  int
	}{
		{"at the theoretical maximum", BackToBackConfig{Throughput: 1e6, Max: 1e6}, nil, "not applicable: the throughput, 1000000 fps, is the theoretical maximum, 1000000 fps", 0},
		{"unbounded", BackToBackConfig{Throughput: 1e6, Max: 2e6, MaxTime: time.Second}, nil, "unbounded: a burst of 1s, 2000000 frames, lost nothing", 20},
		{"shorter than a step", BackToBackConfig{Throughput: 1e6, Max: 2e6}, sim{"buffer": 10, "tester_rate": 2e6}, "a burst of 64 frames, the least step, lost frames", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := drive(t, must(t)(BackToBack(c.cfg)), c.set, 1, c.max)
			for n, f := range r.figures {
				if f.None != c.none || f.Value != 0 {
					t.Errorf("%s: %+v", n, f)
				}
			}
		})
	}
}

func TestBursts(t *testing.T) {
	// A burst of n frames at twice the capacity leaves n/2 in the queue: 16 and 64 fit into 64, and what is left has gone before the next burst up to the capacity.
	s := must(t)(Bursts(BurstsConfig{Loads: Loads{Min: 100, Max: 2e6}, Duration: time.Second}))
	r := drive(t, s, sim{"tester_rate": 2e6, "buffer": 64}, 1, 100)
	loadsWithin(t, r.done, 100, 2e6)
	for _, n := range []int{16, 64} {
		near(t, r.figures[fmt.Sprintf("burst_%d", n)], 1e6, 0.005, 1e-4)
		gap := r.figures[fmt.Sprintf("burst_gap_%d", n)]
		if want := float64(n)/1e6 - float64(n)/2e6; math.Abs(gap.Value-want) > 0.011*want || gap.Lower > gap.Value || gap.Upper < gap.Value {
			t.Errorf("the gap after %d frames is %+v, want %g s", n, gap, want)
		}
	}
	for _, n := range []int{256, 1024} {
		if f := r.figures[fmt.Sprintf("burst_%d", n)]; f.None != fmt.Sprintf("below the least load, %d fps", 2*n) {
			t.Errorf("bursts of %d do not fit: %+v", n, f)
		}
	}
	all := drive(t, must(t)(Bursts(BurstsConfig{Lengths: []int{16}})), sim{"tester_rate": 900_000}, 2, 100)
	near(t, all.figures["burst_16"], 500_000, 0.005, 0)
	for _, lengths := range [][]int{{}, {1}, {16, 16}} {
		if _, err := Bursts(BurstsConfig{Lengths: lengths}); err == nil {
			t.Errorf("accepted lengths %v", lengths)
		}
	}
}

func TestRecovery(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  RecoveryConfig
		set  sim
		want float64
		none string
		fail string
	}{
		{name: "at once", want: 0},
		{name: "in 1.5 s", set: sim{"recovery_time": 1500.0}, want: 1.5},
		{name: "within the goal", cfg: RecoveryConfig{MaxTime: 2 * time.Second}, set: sim{"recovery_time": 1500.0}, want: 1.5},
		{name: "beyond the goal", cfg: RecoveryConfig{MaxTime: time.Second}, set: sim{"recovery_time": 1500.0}, want: 1.5, fail: "recovery took 1.5s; the goal is at most 1s"},
		{name: "never", set: sim{"recovery_time": 1e6}, none: "frames were lost until the end of the 1m0s at the reduced load", fail: "frames were lost until the end of the 1m0s at the reduced load"},
		{name: "at once, though a frame is lost now and then", set: sim{"loss": 1e-6}, want: 0},
		{name: "in 1.5 s, though a frame is lost now and then", set: sim{"recovery_time": 1500.0, "loss": 1e-6}, want: 1.5},
		{name: "in 20 s, though many frames are lost", set: sim{"recovery_time": 20_000.0, "loss": 1e-4}, want: 20},
		{name: "in 300 ms, refused", set: sim{"recovery_time": 300.0, "refuses": true}, want: 0.3},
		{name: "in 300 ms, refused and lost", set: sim{"recovery_time": 300.0, "refuses": true, "loss": 1e-6}, want: 0.3},
		{name: "no overload", cfg: RecoveryConfig{Max: 1e6}, none: "not overloaded: nothing was lost at 1000000 fps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Throughput = 1e6
			s := must(t)(Recovery(c.cfg))
			r := drive(t, s, c.set, 1, 1)
			f := r.figures["recovery_time"]
			resolution := 1e-6
			if c.set["loss"] != nil {
				resolution = 0.011
			}
			if math.Abs(f.Value-c.want) > resolution || (f.None == "") != (c.none == "") || !strings.HasPrefix(f.None, c.none) {
				t.Errorf("got %+v; want %f, %q", f, c.want, c.none)
			}
			if why := s.Judge(r.done[0]); why != c.fail {
				t.Errorf("judged %q, want %q", why, c.fail)
			}
		})
	}
	ask, _ := must(t)(Recovery(RecoveryConfig{Throughput: 1e6, Max: 1.05e6})).Next(nil)
	want := Ask{Phase: "recovery", Load: 1.05e6, Duration: time.Minute, Slice: 10 * time.Millisecond, Steps: []providers.Step{{Load: 525_000, Duration: time.Minute}}}
	if diff := cmp.Diff(want, ask); diff != "" {
		t.Errorf("110 %% of the throughput is more than the media carry (-want +got):\n%s", diff)
	}
	variant := must(t)(Recovery(RecoveryConfig{Throughput: 1e6, Overload: 1.5, Reduced: 0.75})).Figures(nil)[0].Label
	if variant != "system recovery time, a variant of RFC 2544 section 26.5: 150 % of the throughput for 1m0s (110 % for 60 s), then 75 % of that (50 %)" {
		t.Errorf("the variant is called %q", variant)
	}
}

// The recovery time is true to a slice at any rate and whatever the seed of the random loss.
func TestRecoveryUnderRandomLoss(t *testing.T) {
	for _, rate := range []float64{10e3, 100e3, 1e6, 10e6} {
		for seed := range 10 {
			for _, ms := range []float64{0, 50, 1500, 12_000} {
				set := sim{"capacity": rate, "tester_rate": 40e6, "loss": 1e-6, "seed": seed, "recovery_time": ms}
				ways := 1 + seed%2 // which share the capacity
				r := drive(t, must(t)(Recovery(RecoveryConfig{Throughput: rate / float64(ways)})), set, ways, 1)
				if f := r.figures["recovery_time"]; f.None != "" || math.Abs(f.Value-ms/1000) > 0.011 {
					t.Errorf("%.0f fps, seed %d, %.0f ms: %+v", rate, seed, ms, f)
				}
			}
		}
	}
}

func TestLossChange(t *testing.T) {
	many := func(n int, v ...float64) []float64 { return append(v, make([]float64, n)...) }
	for name, c := range map[string]struct {
		lost []float64
		want int
	}{
		"nothing":                     {make([]float64, 100), 0},
		"one rate":                    {[]float64{5, 7, 4, 6, 5, 5, 6, 4, 7, 5}, 0},
		"all in the first":            {many(99, 10), 1},
		"a frame":                     {many(99, 1), 0},
		"a few frames":                {many(997, 1, 1, 1), 3},
		"a higher rate, then a lower": {[]float64{50, 60, 55, 5, 6, 4, 5, 7, 4, 6, 5, 4}, 3},
		"a lower rate, then a higher": {[]float64{5, 6, 4, 5, 50, 60, 55, 52}, 0},
	} {
		if got := lossChange(c.lost); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestReset(t *testing.T) {
	for _, c := range []struct {
		name          string
		cfg           ResetConfig
		set           sim
		stamps, loss  float64
		none, noLoss  string
		fail          string
		lossTolerance float64
	}{
		{name: "250 ms", set: sim{"reset_time": 250.0}, stamps: 0.25, loss: 0.25},
		{name: "250 ms, two directions", set: sim{"reset_time": 250.0}, stamps: 0.25, loss: 0.25},
		{name: "with random loss", set: sim{"reset_time": 250.0, "loss": 1e-6}, stamps: 0.25, loss: 0.25, lossTolerance: 1e-3},
		{name: "no outage"},
		{name: "beyond the goal", cfg: ResetConfig{MaxTime: 100 * time.Millisecond}, set: sim{"reset_time": 250.0}, stamps: 0.25, loss: 0.25,
			fail: "the path was interrupted for 250ms; the goal is at most 100ms"},
		{name: "never back", set: sim{"reset_time": 1e6}, none: "the path did not come back within the 55s that the stream went on after the reset",
			noLoss: "the path did not come back within the 55s that the stream went on after the reset", fail: "the path did not come back within the 55s that the stream went on after the reset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Load, c.cfg.Kind = 400_000, "kill"
			s := must(t)(Reset(c.cfg))
			directions := 1
			if strings.Contains(c.name, "two") {
				directions = 2
			}
			r := drive(t, s, c.set, directions, 1)
			if a := r.done[0].Ask; !a.Disturb || a.After != 5*time.Second || a.Duration != time.Minute {
				t.Errorf("asked for %+v", a)
			}
			if f := r.figures["reset_time"]; math.Abs(f.Value-c.stamps) > 1e-6 || f.None != c.none {
				t.Errorf("by timestamps: %+v; want %f, %q", f, c.stamps, c.none)
			}
			if f := r.figures["reset_time_loss"]; math.Abs(f.Value-c.loss) > 1e-4+c.lossTolerance || f.None != c.noLoss {
				t.Errorf("by loss: %+v; want %f, %q", f, c.loss, c.noLoss)
			}
			if why := s.Judge(r.done[0]); why != c.fail {
				t.Errorf("judged %q, want %q", why, c.fail)
			}
		})
	}
	before := 3 * time.Second
	short := 2 * time.Millisecond
	s := must(t)(Reset(ResetConfig{Load: 1000}))
	if f := s.Figures([]Seen{{Ask: Ask{Duration: time.Minute}, Outage: &short, OutageAt: &before}})[0]; f.None != "no interruption: the longest gap between two frames, 2ms, was before the reset" {
		t.Errorf("a gap before the reset: %+v", f)
	}
	if f := s.Figures([]Seen{{Ask: Ask{Duration: time.Minute}, Loss: 0.01}}); f[0].None != "the generator cannot time an outage" || !f[1].Primary || math.Abs(f[1].Value-0.6) > 1e-9 {
		t.Errorf("without timestamps: %+v", f)
	}
}

func TestSoak(t *testing.T) {
	goal := 1e-5
	s := must(t)(Soak(SoakConfig{Load: 500_000, Duration: 150 * time.Second, MaxLoss: &goal, Explained: true}))
	r := drive(t, s, sim{"loss": 1e-6}, 1, 3)
	var slices []time.Duration
	for _, d := range r.done {
		slices = append(slices, d.Duration)
	}
	if diff := cmp.Diff([]time.Duration{time.Minute, time.Minute, 30 * time.Second}, slices); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	// 75 million frames lose 75 +- 26 (three standard deviations).
	if f := r.figures["soak_loss"]; math.Abs(f.Value-1e-6) > 0.35e-6 || f.Attributes[len(f.Attributes)-1][1] != "at most 0.001 %: met" {
		t.Errorf("got %+v", f)
	}
	if f := r.figures["soak_rate"]; math.Abs(f.Value-500_000) > 1 {
		t.Errorf("got %+v", f)
	}
	if f := r.figures["soak_unexplained"]; f.Value != 0 || f.Unit != "frames" {
		t.Errorf("got %+v", f)
	}
	if f := s.Figures(r.done[:2])[0]; !f.Unfinished {
		t.Errorf("after two of three slices: %+v", f)
	}
	lost := r.done[0]
	lost.Unexplained = 3
	if why := s.Judge(lost); why != "3 frames are unaccounted for: no hop names their loss" {
		t.Errorf("judged %q", why)
	}
	lost.Loss = 0.1
	if why := s.Judge(lost); why != "lost 10 % of the frames sent; the goal is at most 0.001 %" {
		t.Errorf("judged %q", why)
	}
	if f := s.Figures([]Seen{lost, lost, lost})[0]; f.Attributes[len(f.Attributes)-1][1] != "at most 0.001 %: missed" {
		t.Errorf("got %+v", f)
	}
}

func TestConfigsAreHeldToTheirRanges(t *testing.T) {
	bad := 1.5
	second := time.Second
	for name, err := range map[string]error{
		"continuous without a duration": errorOf(Continuous(ContinuousConfig{})),
		"continuous negative":           errorOf(Continuous(ContinuousConfig{Load: -1, Duration: second})),
		"continuous goal":               errorOf(Continuous(ContinuousConfig{Duration: second, MaxLoss: &bad})),
		"loss rate step":                errorOf(LossRate(LossRateConfig{Step: 0.6})),
		"loss rate fine step":           errorOf(LossRate(LossRateConfig{Step: 1e-6})),
		"latency at maximum":            errorOf(Latency(LatencyConfig{})),
		"latency stream":                errorOf(Latency(LatencyConfig{Load: 1, Duration: -1})),
		"back-to-back without rate":     errorOf(BackToBack(BackToBackConfig{Throughput: 1})),
		"back-to-back step":             errorOf(BackToBack(BackToBackConfig{Throughput: 1, Max: 10, MinStep: 1000})),
		"recovery without throughput":   errorOf(Recovery(RecoveryConfig{})),
		"recovery without overload":     errorOf(Recovery(RecoveryConfig{Throughput: 1, Overload: 1})),
		"recovery not reduced":          errorOf(Recovery(RecoveryConfig{Throughput: 1, Reduced: 1})),
		"reset without load":            errorOf(Reset(ResetConfig{})),
		"reset after the stream":        errorOf(Reset(ResetConfig{Load: 1, Duration: second, After: second})),
		"soak slices":                   errorOf(Soak(SoakConfig{Duration: 1000 * time.Hour, Slice: second})),
		"soak negative":                 errorOf(Soak(SoakConfig{Duration: -1})),
		"plain without goals":           errorOf(Plain(PlainConfig{})),
		"probe":                         errorOf(LossRate(LossRateConfig{Loads: Loads{Probe: -1}})),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func errorOf(_ Search, err error) error { return err }
