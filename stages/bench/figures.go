package bench

import (
	"cmp"
	"slices"

	"plumb/stages/bench/search"
)

// searches says whether a method's trials are at loads that a search chose, so that they have no common summary.
func searches(method string) bool { return method != "continuous" }

// conclude works out what the trials say, also when they came to no end.
func (r *runner) conclude() {
	r.out.Summary = append([]Summary{}, summarize(r.out.Trials, searches(r.out.Method), r.set.unsteady)...)
	r.out.Figures = figures(r.searches, r.set.unsteady)
	r.out.Took = 0
	for _, t := range r.out.Trials {
		r.out.Took += t.Took
	}
}

// figureKey tells figures apart: of one name there is one for each cell, and the throughput before the repeats is another than the method's.
type figureKey struct {
	cell
	name string
	base bool
}

// figures puts together what the repeats of each cell found, in the order in which it was first found. unsteady is the coefficient of variation above which a
// figure is marked.
func figures(runs []*searching, unsteady float64) []Figure {
	type group struct {
		found  []search.Figure
		trials int
		took   float64
	}
	var order []figureKey
	groups := map[figureKey]*group{}
	for _, run := range runs {
		for _, f := range run.search.Figures(run.seen) {
			k := figureKey{run.cell, f.Name, run.repeat == 0}
			g := groups[k]
			if g == nil {
				g = &group{}
				groups[k] = g
				order = append(order, k)
			}
			g.found, g.trials, g.took = append(g.found, f), g.trials+len(run.seen), g.took+run.took
		}
	}
	var out []Figure
	for _, k := range order {
		g := groups[k]
		f := combine(g.found, unsteady)
		f.FrameSize, f.Flows, f.Trials, f.Took = k.size, k.flows, g.trials, g.took
		if k.base {
			f.Primary = false // what the method found heads the report
		}
		out = append(out, f)
	}
	return out
}

// combine makes one figure of the repeats'. Those that were not finished count only where none was.
func combine(found []search.Figure, unsteady float64) Figure {
	first := found[0]
	f := Figure{Name: first.Name, Label: first.Label, Unit: first.Unit, Primary: first.Primary, Attributes: first.Attributes, Values: []float64{}}
	finished := slices.DeleteFunc(slices.Clone(found), func(s search.Figure) bool { return s.Unfinished })
	f.Unfinished = len(finished) < len(found)
	if len(finished) > 0 {
		found = finished
	}
	bounded := 0
	var valued []search.Figure
	for _, s := range found {
		if s.None != "" {
			f.Nones = append(f.Nones, s.None)
			continue
		}
		f.Values, valued = append(f.Values, s.Value), append(valued, s)
		if s.Bound != "" {
			bounded++
		}
	}
	if len(f.Values) == 0 {
		return f
	}
	if bounded == len(f.Values) {
		f.Bound = valued[0].Bound
	}
	s := spreadOf(f.Values)
	f.Median, f.Mean, f.Min, f.Max, f.StdDev, f.CV, f.Low, f.High = s.median, s.mean, s.min, s.max, s.stddev, s.cv, s.low, s.high
	f.Unsteady = len(f.Values) > 1 && s.cv > unsteady
	// The repeat in the middle has the bounds; of an even number the lower one.
	slices.SortStableFunc(valued, func(a, b search.Figure) int { return cmp.Compare(a.Value, b.Value) })
	middle := valued[(len(valued)-1)/2]
	f.Lower, f.Upper = middle.Lower, middle.Upper
	return f
}
