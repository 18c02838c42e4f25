package search

import (
	"fmt"
	"testing"
	"time"
)

// versus are the goals that MLRsearch and the plain search are compared with: the same final trials and width.
func versus() map[string][]Goal {
	full := func(sum time.Duration, exceed float64) []Goal {
		ndr := Goal{Name: "NDR", Exceed: exceed, Width: 0.005, Initial: time.Second, Final: time.Minute, Sum: sum, Preceding: 2}
		pdr := ndr
		pdr.Name, pdr.Loss = "PDR", 0.005
		return []Goal{ndr, pdr}
	}
	return map[string][]Goal{
		"60 s, 60 s at a load, no excess (RFC 2544)":   full(time.Minute, 0),
		"60 s, 120 s at a load, excess 50 % (TST 009)": full(2*time.Minute, 0.5),
		"1 s, 21 s at a load, excess 50 % (CSIT)":      {NDR(), PDR()},
	}
}

// TestMLRNeedsAtMostHalfOfThePlainTime compares simulated trial time, not this machine's. go test -run AtMostHalf -v prints the table of docs/performance.md.
func TestMLRNeedsAtMostHalfOfThePlainTime(t *testing.T) {
	const line, seeds = 14_880_952, 3 // 64-byte frames at 10 Gbit/s
	models := []struct {
		name string
		set  sim
	}{
		{"step at 1 Mpps", sim{"capacity": 1e6}},
		{"step at 5 Mpps", sim{"capacity": 5e6}},
		{"step at 12 Mpps", sim{"capacity": 12e6}},
		{"soft knee, 4.5 to 5 Mpps", sim{"capacity": 5e6, "knee": "soft"}},
		{"step at 5 Mpps, noise 0.2 %", sim{"capacity": 5e6, "noise": 0.002}},
		{"step at 5 Mpps, loss 1e-9", sim{"capacity": 5e6, "loss": 1e-9}},
		{"step at 5 Mpps, drift -0.005 % a trial", sim{"capacity": 5e6, "drift": -5e-5}},
		{"step at 5 Mpps, buffer 10,000", sim{"capacity": 5e6, "buffer": 10_000}},
	}
	t.Logf("| goals NDR and PDR, width 0.5 %% | model | plain: trials, time | MLRsearch: trials, time | ratio |")
	for _, goals := range []string{"60 s, 60 s at a load, no excess (RFC 2544)", "60 s, 120 s at a load, excess 50 % (TST 009)", "1 s, 21 s at a load, excess 50 % (CSIT)"} {
		for _, m := range models {
			var plainTime, mlrTime time.Duration
			var plainTrials, mlrTrials int
			for seed := range seeds {
				set := sim{"seed": seed}.with(m.set)
				p := drive(t, must(t)(Plain(PlainConfig{Loads: Loads{Max: line}, Goals: versus()[goals]})), set, 1, 2000)
				r := drive(t, must(t)(MLR(MLRConfig{Loads: Loads{Max: line}, Goals: versus()[goals]})), set, 1, 2000)
				plainTime, mlrTime, plainTrials, mlrTrials = plainTime+p.took, mlrTime+r.took, plainTrials+len(p.done), mlrTrials+len(r.done)
				for _, g := range versus()[goals] {
					for _, x := range []run{p, r} {
						if f := x.figures[g.Name]; f.None != "" || f.Upper-f.Lower > 1+g.Width*f.Upper {
							t.Errorf("%s, %s: %+v", m.name, goals, f)
						}
					}
				}
			}
			ratio := mlrTime.Seconds() / plainTime.Seconds()
			t.Logf("| %s | %s | %d, %s | %d, %s | %.2f |", goals, m.name, plainTrials/seeds, mean(plainTime, seeds), mlrTrials/seeds, mean(mlrTime, seeds), ratio)
			if ratio > 0.5 {
				t.Errorf("%s, %s: MLRsearch took %.2f of the plain search's time; want at most half", goals, m.name, ratio)
			}
		}
	}
}

func mean(d time.Duration, n int) string {
	return fmt.Sprint((d / time.Duration(n)).Round(time.Second))
}
