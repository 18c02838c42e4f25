package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// grouped writes a whole number with commas between thousands.
func grouped[T int | int64 | uint64](n T) string {
	s := fmt.Sprint(n)
	sign := ""
	if s[0] == '-' {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// significant writes v with three significant digits, without exponent.
func significant(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	// 9.996 has to become 10.0, not 10.00.
	if r := math.Abs(math.Round(v*math.Pow10(digits)) / math.Pow10(digits)); digits > 0 && math.Floor(math.Log10(r)) > math.Floor(math.Log10(math.Abs(v))) {
		digits--
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// label writes v for a chart: three significant digits, and below one not more than three decimals.
func label(v float64) string {
	switch {
	case v >= 1 || v == 0:
		return significant(v)
	case v < 0.0005:
		return "<0.001"
	}
	return strings.TrimRight(strconv.FormatFloat(v, 'f', 3, 64), "0")
}

// scale is a unit prefix that suits a value.
type scale struct {
	by   float64
	unit string
}

func rateScale(v float64) scale {
	switch {
	case v >= 1e6:
		return scale{1e6, "Mpps"}
	case v >= 1e3:
		return scale{1e3, "kpps"}
	}
	return scale{1, "pps"}
}

func bitScale(v float64) scale {
	switch {
	case v >= 1e9:
		return scale{1e9, "Gbit/s"}
	case v >= 1e6:
		return scale{1e6, "Mbit/s"}
	case v >= 1e3:
		return scale{1e3, "kbit/s"}
	}
	return scale{1, "bit/s"}
}

func (s scale) format(v float64) string { return significant(v/s.by) + " " + s.unit }

// rate writes frames per second: 2.31 Mpps.
func rate(fps float64) string { return rateScale(fps).format(fps) }

// bits writes a bit rate: 1.55 Gbit/s.
func bits(bps float64) string { return bitScale(bps).format(bps) }

// percentOf writes a ratio in percent. What is not zero is never written as zero, and what is not all never as all.
func percentOf(ratio float64) string {
	p := ratio * 100
	switch {
	case p == 0:
		return "0 %"
	case math.Abs(p) < 0.001:
		return strings.Replace(fmt.Sprintf("%.1e %%", p), "e-0", "e-", 1)
	case math.Abs(p) < 0.1:
		return fmt.Sprintf("%.3f %%", p)
	case p > 99.99 && p < 100:
		return ">99.99 %"
	}
	return fmt.Sprintf("%.2f %%", p)
}

// short writes a span of time for people.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Millisecond).String()
}

// when writes a time for people, in UTC.
func when(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04:05 UTC") }

// plural writes "1 trial", "2 trials".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + one + "s"
}

// nice is a round axis maximum of at least v, with the step between ticks.
func nice(v float64) (top, step float64) {
	if v <= 0 {
		return 1, 0.25
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if top = m * unit; top >= v*0.9999 {
			n := 4.0
			if slices.Contains([]float64{2.5, 5, 10, 1}, m) {
				n = 5
			}
			if m == 3 || m == 6 || m == 1.2 {
				n = 3
			}
			return top, top / n
		}
	}
	return v, v / 4
}
