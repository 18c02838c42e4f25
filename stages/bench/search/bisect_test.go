package search

import "testing"

func TestTally(t *testing.T) {
	type answer struct {
		value float64
		pass  bool
	}
	for _, c := range []struct {
		name    string
		retries int
		answers []answer
		lo, hi  float64
	}{
		{"nothing", 0, nil, 0, 0},
		{"the first decides", 0, []answer{{10, false}, {5, true}}, 5, 10},
		{"a lossy trial may be repeated twice", 2, []answer{{10, false}, {10, false}}, 0, 0},
		{"and then no more", 2, []answer{{10, false}, {10, false}, {10, false}}, 0, 10},
		{"one that passes is enough", 2, []answer{{10, false}, {10, false}, {10, true}}, 10, 0},
		{"also after it was rejected", 0, []answer{{10, false}, {10, true}}, 10, 0},
		{"what passes above a failure does not count", 0, []answer{{10, true}, {8, false}, {5, true}, {3, true}}, 5, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newTally(c.retries)
			for _, a := range c.answers {
				y.add(a.value, a.pass)
			}
			if lo, hi := y.bounds(); lo != c.lo || hi != c.hi {
				t.Errorf("bounds %g and %g, want %g and %g", lo, hi, c.lo, c.hi)
			}
		})
	}
}

func TestBisect(t *testing.T) {
	for _, c := range []struct {
		name                        string
		lo, hi, least, greatest, at float64
		more                        bool
	}{
		{"begins at the greatest", 0, 0, 1, 100, 100, true},
		{"ends where the greatest passes", 100, 0, 1, 100, 0, false},
		{"halves", 40, 80, 1, 100, 60, true},
		{"halves down to the least", 0, 80, 10, 100, 45, true},
		{"tries the least at last", 0, 11, 10, 100, 10, true},
		{"ends where the least fails", 0, 10, 10, 100, 0, false},
		{"ends at the width", 80, 88, 10, 100, 0, false},
		{"ends at single frames", 1, 2, 1, 100, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if at, more := bisect(c.lo, c.hi, c.least, c.greatest, within(0.1)); at != c.at || more != c.more {
				t.Errorf("%g, %t; want %g, %t", at, more, c.at, c.more)
			}
		})
	}
}
