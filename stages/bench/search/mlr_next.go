package search

import "math"

// grid is the loads that MLRsearch tries: a step is the same ratio everywhere, and each is a whole number of frames per second. So
// goals meet at the same loads, and their trials count for all of them. Steps count down from the greatest load.
type grid struct{ least, greatest, unit float64 }

// load at a number of steps below the greatest.
func (g grid) load(steps float64) float64 {
	return math.Max(g.least, math.Min(g.greatest, math.Round(g.greatest*math.Exp(-g.unit*steps))))
}

// steps of a load below the greatest, as near as whole steps can.
func (g grid) steps(load float64) float64 { return math.Round(math.Log(g.greatest/load) / g.unit) }

// below is the load on the grid at or below one that need not be on it. One that is a rounding error above a step is on it.
func (g grid) below(load float64) float64 {
	if load <= g.least {
		return g.least
	}
	return g.load(math.Max(0, math.Ceil(math.Log(g.greatest/load)/g.unit-1e-6)))
}

// view is what the trials say so far.
type view struct {
	grid
	forwarded float64               // what came through when the greatest load was tried first, frames/s; 0: not tried yet
	at        map[float64][]outcome // by load
}

// bounds are the relevant bounds: the least load that fails, and the greatest below it that passes; 0: none.
func (v view) bounds(g Goal) (lo, hi float64) {
	var passed []float64
	for load, trials := range v.at {
		switch classify(g, trials) {
		case UpperBound:
			if hi == 0 || load < hi {
				hi = load
			}
		case LowerBound:
			passed = append(passed, load)
		}
	}
	for _, load := range passed {
		if load > lo && (hi == 0 || load < hi) {
			lo = load
		}
	}
	return lo, hi
}

// reached says that nothing is left to find for a target: the bounds are near enough, or next to each other, or there can be only one.
func (v view) reached(t target) bool {
	lo, hi := v.bounds(t.Goal)
	return v.near(t, lo, hi)
}

func (v view) near(t target, lo, hi float64) bool {
	switch {
	case lo == 0:
		return hi == v.least
	case hi == 0:
		return lo == v.greatest
	}
	return within(t.Width)(lo, hi) || hi-lo < 2
}

// proposal is a trial that a target asks for.
type proposal struct {
	load   float64
	target target
}

// propose is the next trial for a goal's targets; false: the goal is reached. The target at hand is the one after the hardest that is reached, so that an easier one that
// comes undone by later trials is taken up again only when it is needed.
func (v view) propose(targets []target) (proposal, bool) {
	now := 0
	for i := len(targets) - 1; i >= 0; i-- {
		if v.reached(targets[i]) {
			now = i + 1
			break
		}
	}
	if now == len(targets) {
		return proposal{}, false
	}
	t := targets[now]
	lo, hi := v.bounds(t.Goal)
	var guess [2]float64 // where the bounds are expected
	if now > 0 {
		guess[0], guess[1] = v.bounds(targets[now-1].Goal)
		if load, ok := v.refine(t, lo, hi, guess[0], guess[1]); ok {
			return proposal{load, t}, true
		}
	} else if v.forwarded > 0 {
		guess[0] = v.below(math.Min(v.greatest, v.forwarded/(1-t.Loss)))
		if v.inside(guess[0], lo, hi) && (lo == 0 || hi == 0 || v.steps(lo)-v.steps(hi) > 2*t.units) {
			return proposal{guess[0], t}, true
		}
	}
	for i := range guess {
		guess[i] = or(guess[i], or(guess[1-i], v.greatest))
	}
	return proposal{v.between(t, lo, hi, guess[0], guess[1]), t}, true
}

// inside says that a trial at a load can still move the bounds.
func (v view) inside(load, lo, hi float64) bool {
	return load > lo && (hi == 0 || load < hi)
}

// refine is what comes first for a new target: the middle of the bounds that the easier target ended with, then those bounds themselves, as far as
// each can still tell something.
func (v view) refine(t target, lo, hi, easyLo, easyHi float64) (float64, bool) {
	if easyLo > 0 && easyHi > 0 && !v.near(t, easyLo, easyHi) {
		if mid := v.split(t, easyLo, easyHi); v.inside(mid, lo, hi) {
			return mid, true
		}
	}
	for _, load := range []float64{easyLo, easyHi} {
		if load > 0 && v.inside(load, lo, hi) {
			return load, true
		}
	}
	return 0, false
}

// between is the load to try between bounds that are not near enough, or beyond the one where the other is missing. Away from where the
// bounds were expected it goes in steps that double: they are expected nearby. It is always inside the bounds.
func (v view) between(t target, lo, hi, guessLo, guessHi float64) float64 {
	switch {
	case lo == 0 && hi == 0: // nothing is known, or the same load again
		return guessLo
	case lo == 0:
		return v.down(t, hi, guessLo)
	case hi == 0:
		return v.up(t, lo, guessHi)
	}
	// A step that goes further than the middle is no saving.
	far := v.grid.load((v.steps(lo) + v.steps(hi)) / 2)
	if up := v.up(t, lo, guessHi); lo >= guessHi && up < far {
		return up
	}
	return v.split(t, lo, hi)
}

// down is a load below one that fails; the further it is from where it was expected to pass, the greater the step.
func (v view) down(t target, hi, guess float64) float64 {
	d := math.Max(0, v.steps(hi)-v.steps(guess))
	return math.Max(v.least, math.Min(hi-1, v.load(v.steps(hi)+d+t.units)))
}

// up is down's mirror image.
func (v view) up(t target, lo, guess float64) float64 {
	d := math.Max(0, v.steps(guess)-v.steps(lo))
	return math.Min(v.greatest, math.Max(lo+1, v.load(math.Max(0, v.steps(lo)-d-t.units))))
}

// split is a load between two that are at least 2 apart. Where the interval is wider than two widths the upper part is the greatest power of two of widths
// that fits, so that halving it ends at just one width.
func (v view) split(t target, lo, hi float64) float64 {
	above := v.steps(hi)
	n := v.steps(lo) - above
	part := math.Floor(n / 2)
	if n > 2*t.units {
		part = t.units
		for 2*part < n {
			part *= 2
		}
	}
	load := v.load(above + part)
	if load <= lo || load >= hi { // steps of less than a frame per second, or the least load, which lies off the grid
		load = math.Floor((lo + hi) / 2)
	}
	return load
}
