package search

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// softPDR is the load at which a soft knee (dummy's knee "soft") loses a ratio.
func softPDR(capacity, width, loss float64) float64 {
	knee := capacity * (1 - width)
	rest := capacity - knee
	lo, hi := knee, 2*capacity
	for range 100 {
		mid := (lo + hi) / 2
		if 1-(knee+rest*-math.Expm1(-(mid-knee)/rest))/mid > loss {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}

func TestMLRFindsNDRAndPDR(t *testing.T) {
	const c = 1_000_000.0
	for _, m := range []struct {
		name       string
		set        sim
		directions int
		ndr, pdr   float64 // true values
		above      float64 // how much more a finite trial may find, as a ratio
		below      float64 // how much less noise may make of it
		trials     int
	}{
		{name: "step", ndr: c, pdr: c / 0.995, trials: 130},
		{name: "step, far below the tester", set: sim{"capacity": 12345}, ndr: 12345, pdr: 12345 / 0.995, trials: 130},
		{name: "step, slow", set: sim{"capacity": 200}, ndr: 200, pdr: 200 / 0.995, trials: 130},
		{name: "both directions share the capacity", directions: 2, ndr: c / 2, pdr: c / 2 / 0.995, trials: 130},
		// In 1 s the loss above the knee is a quadratic of the excess: some 450 frames/s more lose less than one frame.
		{name: "soft", set: sim{"knee": "soft"}, ndr: c * 0.9, pdr: softPDR(c, 0.1, 0.005), above: 0.001, trials: 160},
		// A trial of 1 s with n frames loses none with probability exp(-n/1e6). At 100,000 frames/s that is 0.9, and half of the time may exceed.
		{name: "random loss of 1e-6, slow", set: sim{"loss": 1e-6, "capacity": 100_000}, ndr: 100_000, pdr: 100_000 / 0.995, trials: 130},
		// At a million it is 0.37: the true NDR is where it is one half, at ln 2 * 1e6 frames/s. The share of good trials in 21 is sure to 0.22 (two standard deviations), which is a load of
		// 0.33e6 to 1.27e6 frames/s: no width makes that sharper. The PDR does not notice.
		{name: "random loss of 1e-6, fast", set: sim{"loss": 1e-6}, ndr: c * math.Ln2, pdr: c / 0.995, above: 0.5, below: 0.5, trials: 500},
		// A queue takes up the excess of a trial: 10,000 frames in 1 s are 1 % more.
		{name: "a buffer", set: sim{"buffer": 10_000}, ndr: c + 10_000, pdr: (c + 10_000) / 0.995, trials: 130},
		// Higher loads pass again above a range that loses; the relevant bound is below the range.
		{name: "loss inversion", set: sim{"inversion_from": 0.97 * c, "inversion_to": 0.999 * c, "tester_rate": 1.2 * c}, ndr: 0.97 * c, pdr: 0.97 * c, above: 0.035, trials: 250},
		{name: "a tester that finds its own limit", set: sim{"tester_rate": 1.001 * c}, ndr: c, pdr: 1.001 * c, trials: 130},
		{name: "a device that refuses frames", set: sim{"refuses": true}, ndr: c, pdr: c / 0.995, trials: 130},
		{name: "noise", set: sim{"noise": 0.002}, ndr: c, pdr: c / 0.995, above: 0.005, below: 0.005, trials: 300},
		{name: "drift", set: sim{"drift": -0.0002}, ndr: c, pdr: c / 0.995, below: 0.03, trials: 300},
		{name: "invalid trials", set: sim{"fault": "queue", "fault_every": 3}, ndr: c, pdr: c / 0.995, trials: 130},
		{name: "a tester that is slow at times", set: sim{"fault": "slow", "fault_every": 4}, ndr: c, pdr: c / 0.995, trials: 130},
	} {
		for _, known := range []bool{true, false} {
			for seed := range 5 {
				t.Run(fmt.Sprintf("%s/known %t/seed %d", m.name, known, seed), func(t *testing.T) {
					set := sim{"seed": seed}.with(m.set)
					tester := 20e6
					if v, ok := set["tester_rate"]; ok {
						tester = v.(float64)
					}
					cfg := MLRConfig{Loads: Loads{Min: 10}, Goals: []Goal{NDR(), PDR()}}
					if known {
						cfg.Max = tester
					}
					r := drive(t, must(t)(MLR(cfg)), set, max(1, m.directions), m.trials)
					loadsWithin(t, r.done, 10, tester)
					near(t, r.figures["NDR"], m.ndr, 0.005+m.below, m.above)
					near(t, r.figures["PDR"], m.pdr, 0.005+m.below, m.above)
					for _, g := range cfg.Goals {
						bracketed(t, r, g)
					}
					t.Logf("NDR %.0f, PDR %.0f, %d trials, %s", r.figures["NDR"].Value, r.figures["PDR"].Value, len(r.done), r.took)
					if (m.set["fault_every"] != nil) != (r.invalid > 0) {
						t.Errorf("%d trials were invalid", r.invalid)
					}
				})
			}
		}
	}
}

// bracketed checks a goal's figure against its own trials: the bounds are what Classify makes of them, no further apart than the width.
func bracketed(t *testing.T, r run, g Goal) {
	t.Helper()
	at := map[float64][]Seen{}
	for _, s := range r.done {
		if s.Phase == "search" {
			at[s.Load] = append(at[s.Load], s)
		}
	}
	f := r.figures[g.Name]
	if f.None == "" {
		if v := Classify(g, at[f.Lower]); v != LowerBound || f.Value != f.Lower {
			t.Errorf("%s: value %f, lower bound %f is %s", g.Name, f.Value, f.Lower, v)
		}
		if ct := r.figures[g.Name+"_conditional"]; ct.Value > f.Value || ct.Value < f.Value*(1-g.Loss)-1 {
			t.Errorf("%s: conditional throughput %f of %f", g.Name, ct.Value, f.Value)
		}
	}
	if f.Bound == ">=" || f.None != "" {
		return
	}
	if v := Classify(g, at[f.Upper]); v != UpperBound {
		t.Errorf("%s: upper bound %f is %s", g.Name, f.Upper, v)
	}
	if w := (f.Upper - f.Lower) / f.Upper; w > g.Width*1.000001 && f.Upper-f.Lower > 1 {
		t.Errorf("%s: bounds %f and %f are %g apart; want at most %g", g.Name, f.Lower, f.Upper, w, g.Width)
	}
}

func TestMLRIrregular(t *testing.T) {
	goals := []Goal{NDR(), PDR()}
	all := drive(t, must(t)(MLR(MLRConfig{Loads: Loads{Max: 500_000}, Goals: goals})), nil, 1, 60)
	for _, n := range []string{"NDR", "PDR"} {
		if f := all.figures[n]; f.Value != 500_000 || f.Bound != ">=" || f.Lower != 500_000 || f.Upper != 0 {
			t.Errorf("all passes: %+v", f)
		}
	}
	// 10 % are lost whatever the load, which PDR does not stand and a goal of 20 % does.
	lax := PDR()
	lax.Name, lax.Loss = "lax", 0.2
	none := drive(t, must(t)(MLR(MLRConfig{Loads: Loads{Min: 1000, Max: 2e6}, Goals: append(goals, lax)})), sim{"loss": 0.1}, 1, 200)
	for _, n := range []string{"NDR", "PDR", "NDR_conditional"} {
		if f := none.figures[n]; f.None != "below the least load, 1000 fps" || f.Value != 0 {
			t.Errorf("nothing passes: %+v", f)
		}
	}
	near(t, none.figures["lax"], 1e6*0.9/0.8, 0.005, 0.001)
}

func TestMLRTimeLimit(t *testing.T) {
	cfg := MLRConfig{Loads: Loads{Max: 20e6}, Goals: []Goal{NDR()}, TimeLimit: 20 * time.Second, Overhead: 4 * time.Second}
	s := must(t)(MLR(cfg))
	g := sim(nil).open(t)
	var done []Seen
	for {
		ask, more := s.Next(done)
		if !more {
			break
		}
		seen, _ := measure(t, g, ask, 1)
		done = append(done, seen)
	}
	if len(done) != 4 {
		t.Errorf("%d trials of 1 s and 4 s around it; want 4 in 20 s", len(done))
	}
	for _, f := range s.Figures(done) {
		if !f.Unfinished || f.None == "" || f.Name == "NDR" && (f.Lower < 0.9e6 || f.Upper > 20e6) {
			t.Errorf("out of time: %+v", f)
		}
	}
}

// With the goal of RFC 2544 it is a search by RFC 2544: full trials without loss decide.
func TestMLRWithTheGoalOfRFC2544(t *testing.T) {
	r := drive(t, must(t)(MLR(MLRConfig{Loads: Loads{Max: 14_880_952.38}, Goals: []Goal{RFC2544(), {Name: "strict", Width: 0.001, Final: time.Minute, Sum: time.Minute}}})), nil, 1, 100)
	near(t, r.figures["throughput"], 1e6, 0.005, 0)
	near(t, r.figures["strict"], 1e6, 0.001, 0)
	if f := r.figures["throughput"]; f.Label != "RFC 2544 throughput, by MLRsearch" {
		t.Errorf("it is called %q", f.Label)
	}
	loadsWithin(t, r.done, 1, 14_880_952)
	verified := false
	for _, s := range r.done {
		verified = verified || s.Load == r.figures["throughput"].Value && s.Duration == time.Minute && s.Loss == 0
	}
	if !verified {
		t.Error("the rate reported has not passed a trial of 60 s")
	}
}

func TestMLRWarmUpDoesNotCount(t *testing.T) {
	s := must(t)(MLR(MLRConfig{Loads: Loads{Max: 500_000}, Goals: []Goal{NDR()}, WarmUp: 5 * time.Second}))
	ask, _ := s.Next(nil)
	if ask.Phase != "warm_up" || ask.Load != 500_000 || ask.Duration != 5*time.Second {
		t.Errorf("the first trial is %+v", ask)
	}
	bad := Seen{Ask: ask, Effective: ask.Duration, Loss: 1}
	if why := s.Judge(bad); why != "" {
		t.Errorf("a warm-up misses a goal: %s", why)
	}
	if f := s.Figures([]Seen{bad})[0]; f.Upper != 0 {
		t.Errorf("a warm-up is a bound: %+v", f)
	}
}

func TestMLRConfig(t *testing.T) {
	good := Loads{Max: 1000}
	for _, c := range []struct {
		name string
		cfg  MLRConfig
	}{
		{"no goal", MLRConfig{Loads: good}},
		{"two of a name", MLRConfig{Loads: good, Goals: []Goal{NDR(), NDR()}}},
		{"max below min", MLRConfig{Loads: Loads{Min: 10, Max: 9.5}, Goals: []Goal{NDR()}}},
		{"not a number", MLRConfig{Loads: Loads{Max: math.NaN()}, Goals: []Goal{NDR()}}},
		{"no width", MLRConfig{Loads: good, Goals: []Goal{{Name: "x", Final: 1, Sum: 1}}}},
		{"sum below final", MLRConfig{Loads: good, Goals: []Goal{{Name: "x", Width: 0.1, Final: 2, Sum: 1}}}},
		{"initial above final", MLRConfig{Loads: good, Goals: []Goal{{Name: "x", Width: 0.1, Final: 2, Sum: 2, Initial: 3}}}},
		{"loss of all", MLRConfig{Loads: good, Goals: []Goal{{Name: "x", Width: 0.1, Final: 2, Sum: 2, Loss: 1}}}},
		{"excess of all", MLRConfig{Loads: good, Goals: []Goal{{Name: "x", Width: 0.1, Final: 2, Sum: 2, Exceed: 1}}}},
		{"no name", MLRConfig{Loads: good, Goals: []Goal{{Width: 0.1, Final: 2, Sum: 2}}}},
		{"negative limit", MLRConfig{Loads: good, Goals: []Goal{NDR()}, TimeLimit: -1}},
	} {
		if _, err := MLR(c.cfg); err == nil {
			t.Errorf("%s: accepted", c.name)
		}
	}
}
