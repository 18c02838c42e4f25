package bench

import (
	"math"
	"testing"
)

// Quantiles from Abramowitz and Stegun, table 26.10.
func TestStudentT(t *testing.T) {
	for degrees, want := range map[int]float64{1: 12.706, 4: 2.776, 10: 2.228, 11: 2.201, 12: 2.179, 19: 2.093, 20: 2.086, 29: 2.045, 30: 2.042, 60: 2.000, 120: 1.980} {
		if got := studentT(degrees); math.Abs(got-want) > 0.0006 {
			t.Errorf("%d degrees of freedom: %.4f, want %.3f", degrees, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	s := spreadOf([]float64{4, 2, 8, 6})
	if s.median != 5 || s.mean != 5 || s.min != 2 || s.max != 8 || math.Abs(s.stddev-2.58199) > 1e-5 || math.Abs(s.cv-0.516398) > 1e-6 {
		t.Errorf("%+v", s)
	}
	if math.Abs(s.low-0.892) > 1e-3 || math.Abs(s.high-9.108) > 1e-3 { // 5 -+ 3.182 * 2.58199 / 2
		t.Errorf("interval %f to %f", s.low, s.high)
	}
	if s := spreadOf([]float64{7}); s != (spread{median: 7, mean: 7, min: 7, max: 7}) {
		t.Errorf("one value: %+v", s)
	}
	if s := spreadOf([]float64{0, 0}); s.cv != 0 {
		t.Errorf("zeros: %+v", s)
	}
}
