package search

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// trials are n trials of a duration with a loss ratio, as effective as intended.
func trials(n int, d time.Duration, loss float64) []Seen {
	var out []Seen
	for range n {
		out = append(out, Seen{Ask: Ask{Load: 1e6, Duration: d}, Effective: d, Loss: loss})
	}
	return out
}

// worked are the goals of the worked example in draft-ietf-bmwg-mlrsearch-15.
var worked = []Goal{
	{Name: "A", Final: time.Minute, Sum: time.Minute},
	{Name: "B", Final: time.Minute, Sum: 2 * time.Minute, Exceed: 0.5},
	{Name: "C", Final: time.Second, Sum: 2 * time.Minute, Loss: 0.005, Exceed: 0.5},
	{Name: "D", Final: time.Minute, Sum: time.Minute, Loss: 0.005, Exceed: 0.2},
}

// The draft's tables print "Lower Bound" for goal D after the last two phases; the numbers beside and the draft's own code make it an upper bound.
func TestClassifyWorkedExample(t *testing.T) {
	phases := [][]Seen{
		trials(59, time.Second, 0),
		trials(1, time.Second, 0.01),
		trials(59, time.Second, 0.01),
		trials(1, time.Second, 0),
		trials(1, time.Minute, 0.001),
		trials(1, time.Minute, 0),
	}
	want := [][]Verdict{
		{Undecided, Undecided, Undecided, Undecided},
		{UpperBound, Undecided, Undecided, Undecided},
		{UpperBound, Undecided, Undecided, UpperBound},
		{UpperBound, Undecided, LowerBound, UpperBound},
		{UpperBound, Undecided, LowerBound, UpperBound},
		{UpperBound, LowerBound, LowerBound, UpperBound},
	}
	var all []Seen
	var got [][]Verdict
	for _, phase := range phases {
		all = append(all, phase...)
		var row []Verdict
		for _, g := range worked {
			row = append(row, Classify(g, all))
		}
		got = append(got, row)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts by phase and goal (-want +got):\n%s", diff)
	}
	if v := Classify(worked[3], append(all, trials(1, time.Minute, 0)...)); v != LowerBound {
		t.Errorf("goal D with one more good full trial is %s; want a lower bound", v)
	}
	for i, want := range []float64{0, 1e6, 1e6, 0.999e6} {
		if i == 0 {
			continue // an upper bound has no conditional throughput to speak of
		}
		if got := ConditionalThroughput(worked[i], 1e6, all); got != want {
			t.Errorf("conditional throughput for goal %s is %f, want %f", worked[i].Name, got, want)
		}
	}
}

func TestClassify(t *testing.T) {
	second := Goal{Final: time.Second, Sum: 4 * time.Second, Exceed: 0.5}
	long := Goal{Final: time.Minute, Sum: time.Minute, Exceed: 0.5}
	join := func(parts ...[]Seen) (out []Seen) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	late := trials(1, time.Second, 0)
	late[0].Effective = 4 * time.Second
	early := trials(1, time.Minute, 0)
	early[0].Effective = time.Second
	for _, c := range []struct {
		name   string
		goal   Goal
		trials []Seen
		want   Verdict
	}{
		{"nothing measured", second, nil, Undecided},
		{"short good trials never pass", long, trials(1000, time.Second, 0), Undecided},
		{"short bad trials can fail", long, trials(31, time.Second, 1), UpperBound},
		{"short good time balances short bad time", long, join(trials(31, time.Second, 1), trials(10, time.Second, 0)), Undecided},
		{"half of the time good is enough for half", second, trials(2, time.Second, 0), LowerBound},
		{"half bad and half good passes", second, join(trials(2, time.Second, 1), trials(2, time.Second, 0)), LowerBound},
		{"more than half bad fails", second, trials(3, time.Second, 1), UpperBound},
		{"half bad may still pass", second, trials(2, time.Second, 1), Undecided},
		{"one bad trial fails without excess, however short", Goal{Final: time.Minute, Sum: time.Minute}, trials(1, time.Millisecond, 1e-9), UpperBound},
		{"one good full trial passes without excess", Goal{Final: time.Minute, Sum: time.Minute}, trials(1, time.Minute, 0), LowerBound},
		{"the effective duration counts", second, late, LowerBound},
		{"an effective duration below the intended is none", Goal{Final: time.Minute, Sum: time.Minute}, early, LowerBound},
		{"loss at the goal is good", Goal{Final: 1, Sum: 1, Loss: 0.005}, trials(1, time.Second, 0.005), LowerBound},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Classify(c.goal, c.trials); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestConditionalThroughput(t *testing.T) {
	g := Goal{Final: time.Second, Sum: 4 * time.Second, Exceed: 0.5}
	mixed := append(append(trials(1, time.Second, 0.3), trials(1, time.Second, 0.1)...), trials(2, time.Second, 0.2)...)
	for _, c := range []struct {
		name   string
		goal   Goal
		trials []Seen
		want   float64
	}{
		{"none in full", g, trials(9, time.Millisecond, 0), 0},
		{"the loss at half of the time", g, mixed, 800},
		{"without excess the worst trial", Goal{Final: time.Second, Sum: 4 * time.Second}, mixed, 700},
		{"time that is missing is lost", g, trials(1, time.Second, 0), 0},
		{"time beyond the sum counts", g, append(trials(4, time.Second, 0), trials(5, time.Second, 0.5)...), 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ConditionalThroughput(c.goal, 1000, c.trials); got != c.want {
				t.Errorf("got %f, want %f", got, c.want)
			}
		})
	}
}
