package search

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestThroughput(t *testing.T) {
	const c = 1_000_000.0
	for _, m := range []struct {
		name         string
		set          sim
		cfg          ThroughputConfig
		directions   int
		truth        float64
		below, above float64 // beyond the resolution
		trials       int
		bound        string
	}{
		{name: "step", truth: c, trials: 14},
		{name: "step, search trials of 2 s", cfg: ThroughputConfig{Trial: 2 * time.Second}, truth: c, trials: 15},
		{name: "finer", cfg: ThroughputConfig{Resolution: 0.0001}, truth: c, trials: 20},
		{name: "both directions", directions: 2, truth: c / 2, trials: 15},
		{name: "a capacity of a few frames", set: sim{"capacity": 3.0}, truth: 3, trials: 26},
		{name: "soft", set: sim{"knee": "soft"}, truth: 0.9 * c, above: 0.001, trials: 15},
		{name: "with a tolerance", cfg: ThroughputConfig{Loss: 0.005}, truth: c / 0.995, trials: 14},
		// 2 s with a buffer let 25,000 frames/s more pass than 60 s do: the verification steps down from there.
		{name: "a buffer hides loss from short trials", set: sim{"buffer": 50_000}, cfg: ThroughputConfig{Trial: 2 * time.Second}, truth: c + 50_000.0/60, trials: 30},
		// Of full trials with n frames/s and 1e-6 random loss, exp(-60n/1e6) lose nothing: half at 11,552 frames/s. That is what RFC 2544 finds of a switch that forwards a million; bisection stops
		// anywhere where both outcomes are likely, between 90 and 1 in 100.
		{name: "random loss of 1e-6", set: sim{"loss": 1e-6}, truth: math.Ln2 / 60 * 1e6, below: 0.9, above: 6, trials: 40},
		// Repeating a lossy trial ten times takes the half to where one in 15 loses nothing.
		{name: "random loss of 1e-6, loss verification", set: sim{"loss": 1e-6}, cfg: ThroughputConfig{Retries: 10}, truth: -math.Log(1-math.Pow(0.5, 1.0/11)) / 60 * 1e6, below: 0.8, above: 1, trials: 200},
		{name: "random loss of 1e-6 at a slow switch", set: sim{"loss": 1e-6, "capacity": 100.0}, cfg: ThroughputConfig{Retries: 2}, truth: 100, trials: 80},
		{name: "the tester's maximum passes", set: sim{"tester_rate": 0.7 * c}, truth: 0.7 * c, trials: 2, bound: ">="},
		{name: "a device that refuses frames", set: sim{"refuses": true}, truth: c, trials: 15},
		{name: "loss inversion", set: sim{"inversion_from": 0.4 * c, "inversion_to": 0.5 * c, "tester_rate": 1.2 * c}, truth: c, trials: 14},
		{name: "drift", set: sim{"drift": -0.0005}, truth: c, below: 0.02, trials: 20},
		{name: "noise", set: sim{"noise": 0.002}, cfg: ThroughputConfig{Trial: time.Second}, truth: c, below: 0.02, above: 0.01, trials: 40},
		{name: "invalid trials", set: sim{"fault": "slow", "fault_every": 3}, truth: c, trials: 15},
	} {
		for _, known := range []bool{true, false} {
			for seed := range 5 {
				t.Run(fmt.Sprintf("%s/known %t/seed %d", m.name, known, seed), func(t *testing.T) {
					set := sim{"seed": seed}.with(m.set)
					tester := 20e6
					if v, ok := set["tester_rate"]; ok {
						tester = v.(float64)
					}
					if m.cfg.Max = 0; known {
						m.cfg.Max = tester
					}
					s := must(t)(Throughput(m.cfg))
					r := drive(t, s, set, max(1, m.directions), m.trials)
					loadsWithin(t, r.done, 1, tester)
					f := r.figures["throughput"]
					truth, bound := m.truth, m.bound
					if set["refuses"] == true && !known { // it takes no more than it forwards, even at maximum
						bound = ">="
					}
					near(t, f, truth, or(m.cfg.Resolution, 0.005)+m.below, m.above)
					if f.Bound != bound {
						t.Errorf("bound %q, want %q", f.Bound, bound)
					}
					passedFull(t, s.(throughput).c, r, f)
				})
			}
		}
	}
}

// passedFull checks that the rate reported passed a full trial.
func passedFull(t *testing.T, c ThroughputConfig, r run, f Figure) {
	t.Helper()
	for _, s := range r.done {
		if s.Load == f.Value && s.Duration == c.Final && s.Loss <= c.Loss {
			return
		}
	}
	t.Errorf("the rate reported, %f, has not passed a trial of %s", f.Value, c.Final)
}

func TestThroughputBelowTheLeastLoad(t *testing.T) {
	r := drive(t, must(t)(Throughput(ThroughputConfig{Loads: Loads{Min: 1000, Max: 1e6}})), sim{"loss": 0.1}, 1, 30)
	if f := r.figures["throughput"]; f.None != "below the least load, 1000 fps" || f.Value != 0 || f.Upper != 1000 {
		t.Errorf("got %+v", f)
	}
	if last := r.done[len(r.done)-1]; last.Load != 1000 {
		t.Errorf("the least load was not tried; the last was %f", last.Load)
	}
}

func TestThroughputThatNeverPassesTheFinalTrial(t *testing.T) {
	s := must(t)(Throughput(ThroughputConfig{Loads: Loads{Min: 1000, Max: 1e6}, Trial: time.Second}))
	var done []Seen
	for len(done) < 100 {
		ask, more := s.Next(done)
		if !more {
			break
		}
		seen := Seen{Ask: ask, Effective: ask.Duration}
		if ask.Duration == time.Minute {
			seen.Loss = 1e-9
		}
		done = append(done, seen)
	}
	if f := s.Figures(done)[0]; f.None == "" || f.Unfinished || f.Upper != 1000 {
		t.Errorf("after %d trials: %+v", len(done), f)
	}
}

func TestThroughputLabels(t *testing.T) {
	for _, c := range []struct {
		cfg  ThroughputConfig
		want string
	}{
		{ThroughputConfig{}, "RFC 2544 throughput"},
		{ThroughputConfig{Trial: time.Second}, "RFC 2544 throughput"},
		{ThroughputConfig{Retries: 2}, "RFC 2544 throughput with loss verification by ETSI GS NFV-TST 009 section 12.3.3 (a lossy trial is repeated up to 2 times)"},
		{ThroughputConfig{Final: 10 * time.Second}, "throughput, as RFC 2544 section 26.1 but for: final trial of 10s, not 60 s"},
		{ThroughputConfig{Loss: 0.001}, "throughput, as RFC 2544 section 26.1 but for: loss up to 0.1 %, not 0"},
		{ThroughputConfig{Loss: 0.001, Final: time.Second}, "throughput, as RFC 2544 section 26.1 but for: loss up to 0.1 %, not 0; final trial of 1s, not 60 s"},
	} {
		if got := must(t)(Throughput(c.cfg)).Figures(nil)[0].Label; got != c.want {
			t.Errorf("%+v is called %q, want %q", c.cfg, got, c.want)
		}
		if rfc := strings.HasPrefix(c.want, "RFC 2544"); rfc != (c.cfg.Loss == 0 && (c.cfg.Final == 0 || c.cfg.Final >= time.Minute)) {
			t.Errorf("the test itself calls %+v %q", c.cfg, c.want)
		}
	}
}

func TestThroughputConfig(t *testing.T) {
	for _, c := range []ThroughputConfig{
		{Loss: 1}, {Loss: -0.1}, {Resolution: 1}, {Resolution: -1}, {Trial: 2 * time.Minute}, {Trial: -1}, {Final: -1}, {Retries: -1}, {Retries: 101}, {Loads: Loads{Min: 5, Max: 4}},
	} {
		if _, err := Throughput(c); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}
