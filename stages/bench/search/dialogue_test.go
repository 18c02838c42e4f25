package search

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMLRDialogue keeps what MLRsearch asks for, trial by trial, so that a change to its strategy shows: fewer trials are the point of it.
func TestMLRDialogue(t *testing.T) {
	long := []Goal{
		{Name: "NDR", Width: 0.005, Initial: time.Second, Final: time.Minute, Sum: time.Minute, Preceding: 2},
		{Name: "PDR", Loss: 0.005, Width: 0.005, Initial: time.Second, Final: time.Minute, Sum: time.Minute, Preceding: 2},
	}
	var out strings.Builder
	for _, c := range []struct {
		name  string
		set   sim
		cfg   MLRConfig
		goals []Goal
	}{
		{"a step at 1 Mpps", nil, MLRConfig{Loads: Loads{Max: 20e6}}, long},
		{"a step at 1 Mpps, greatest load not known", sim{"tester_rate": 2e6}, MLRConfig{}, long},
		{"a soft knee from 0.9 to 1 Mpps", sim{"knee": "soft"}, MLRConfig{Loads: Loads{Max: 20e6}}, long},
		{"a capacity that grows by 1 % with each trial", sim{"drift": 0.01}, MLRConfig{Loads: Loads{Max: 20e6}}, long[:1]},
		{"a capacity that falls by 0.2 % with each trial", sim{"drift": -0.002}, MLRConfig{Loads: Loads{Max: 20e6}}, long[:1]},
		{"the goals of CSIT, widths of 0.5 and 2 %", nil, MLRConfig{Loads: Loads{Max: 20e6}}, []Goal{NDR(), func() Goal { g := PDR(); g.Width = 0.02; return g }()}},
	} {
		c.cfg.Goals = c.goals
		r := drive(t, must(t)(MLR(c.cfg)), c.set, 1, 200)
		fmt.Fprintf(&out, "== %s\n", c.name)
		for i, s := range r.done {
			times := 1
			if i > 0 && r.done[i-1].Load == s.Load && r.done[i-1].Duration == s.Duration && r.done[i-1].Phase == s.Phase {
				continue
			}
			for i+times < len(r.done) && r.done[i+times].Load == s.Load && r.done[i+times].Duration == s.Duration {
				times++
			}
			fmt.Fprintf(&out, "%-8s %2d x %8s at %8.0f lost %.4f %%\n", s.Phase, times, s.Duration, s.Load, 100*s.Loss)
		}
		for _, g := range c.goals {
			f := r.figures[g.Name]
			fmt.Fprintf(&out, "%s %.0f, bounds %.0f and %.0f; %d trials, %s\n", g.Name, f.Value, f.Lower, f.Upper, len(r.done), r.took)
		}
	}
	const golden = "testdata/mlr.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("trials (-want +got; -update takes them over):\n%s", diff)
	}
}
