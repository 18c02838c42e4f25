package search

import "math"

// tally is what trials said about each value tried, whole loads or burst lengths. A value passes when one trial passed, and fails when more than retries failed
// and none passed: with retries 0 this is plain bisection, else bisection with loss verification (ETSI GS NFV-TST 009 section 12.3.3).
type tally struct {
	retries int
	passed  map[float64]bool
	failed  map[float64]int
}

func newTally(retries int) tally {
	return tally{retries: retries, passed: map[float64]bool{}, failed: map[float64]int{}}
}

func (t tally) add(value float64, pass bool) {
	if pass {
		t.passed[value] = true
	} else {
		t.failed[value]++
	}
}

// bounds are the least value that fails, and the greatest below it that passes; 0: none.
func (t tally) bounds() (lo, hi float64) {
	for v, n := range t.failed {
		if n > t.retries && !t.passed[v] && (hi == 0 || v < hi) {
			hi = v
		}
	}
	for v := range t.passed {
		if v > lo && (hi == 0 || v < hi) {
			lo = v
		}
	}
	return lo, hi
}

// bisect is the value to try next between least and greatest, whole numbers; false: the bounds are near enough, or there is nothing on one side of them. It
// begins at greatest. near says whether bounds are near enough.
func bisect(lo, hi, least, greatest float64, near func(lo, hi float64) bool) (float64, bool) {
	switch {
	case hi == 0 && lo == greatest:
		return 0, false
	case hi == 0:
		return greatest, true
	case hi <= least:
		return 0, false
	case lo == 0 && (near(least, hi) || hi-least < 2):
		return least, true
	case lo == 0:
		lo = least
	case near(lo, hi) || hi-lo < 2:
		return 0, false
	}
	return math.Floor((lo + hi) / 2), true
}

// within says that bounds are a relative width apart at most, with a hair for the last bit.
func within(width float64) func(lo, hi float64) bool {
	return func(lo, hi float64) bool { return hi-lo <= width*hi*(1+1e-12) }
}
