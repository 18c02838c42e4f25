package bench

import (
	"math"
	"slices"
)

// spread is what repeats of one figure say together.
type spread struct {
	median, mean, min, max float64
	stddev                 float64 // of the sample; 0 with fewer than two values
	cv                     float64 // stddev over mean; 0 with fewer than two values or a mean of 0
	low, high              float64 // 95 % confidence interval of the mean; both 0 with fewer than two values
}

// spreadOf needs at least one value.
func spreadOf(v []float64) spread {
	s := spread{median: median(v), min: slices.Min(v), max: slices.Max(v)}
	n := float64(len(v))
	for _, x := range v {
		s.mean += x / n
	}
	if len(v) < 2 {
		return s
	}
	var squares float64
	for _, x := range v {
		squares += (x - s.mean) * (x - s.mean)
	}
	s.stddev = math.Sqrt(squares / (n - 1))
	if s.mean != 0 {
		s.cv = s.stddev / math.Abs(s.mean)
	}
	half := studentT(len(v)-1) * s.stddev / math.Sqrt(n)
	s.low, s.high = s.mean-half, s.mean+half
	return s
}

// median of at least one value; of an even number the mean of the middle two.
func median(in []float64) float64 {
	v := slices.Sorted(slices.Values(in))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// student are the 0.975 quantiles of Student's t distribution for 1 to 10 degrees of freedom (Abramowitz and Stegun, Handbook of Mathematical Functions, table
// 26.10), where the expansion of studentT is not close enough.
var student = [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}

// studentT is the 0.975 quantile of Student's t distribution: half of the two-sided 95 % interval in standard errors. Above the table it is the expansion around
// the normal quantile, Abramowitz and Stegun 26.7.5, which is right to four digits there.
func studentT(degrees int) float64 {
	if degrees <= len(student) {
		return student[degrees-1]
	}
	const z = 1.959963984540054 // the 0.975 quantile of the normal distribution
	const (
		g1 = (z*z*z + z) / 4
		g2 = (5*z*z*z*z*z + 16*z*z*z + 3*z) / 96
		g3 = (3*z*z*z*z*z*z*z + 19*z*z*z*z*z + 17*z*z*z - 15*z) / 384
	)
	n := float64(degrees)
	return z + g1/n + g2/(n*n) + g3/(n*n*n)
}
