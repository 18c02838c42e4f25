package search

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// BurstsConfig is the test with bursty traffic of RFC 2544 section 21.
type BurstsConfig struct {
	Loads                    // of averages; Max is what the frames of a burst follow one another at
	Lengths    []int         // frames, 2 or more, each once; nil: 16, 64, 256, 1024
	Resolution float64       // of the average rate, as ThroughputConfig.Resolution
	Duration   time.Duration // of a trial; 0: 60 s (RFC 2544 section 24)
	Loss       float64       // loss ratio that still passes, [0,1); 0 by the RFC
	Retries    int           // as ThroughputConfig.Retries
}

// Bursts searches, for each length of burst, the greatest average rate without loss, which is the least gap between bursts. Its figures are, for each length, burst_16 in
// frames/s and burst_gap_16 in seconds: the silence between bursts beyond the spacing of their frames.
func Bursts(c BurstsConfig) (Search, error) {
	c.Resolution, c.Duration = or(c.Resolution, 0.005), or(c.Duration, time.Minute)
	if c.Lengths == nil {
		c.Lengths = []int{16, 64, 256, 1024}
	}
	errs := []error{c.Loads.check(), resolution(c.Resolution), duration("a trial", c.Duration), ratio("the loss goal", c.Loss), retries(c.Retries)}
	seen := map[int]bool{}
	for _, n := range c.Lengths {
		if n < 2 || seen[n] {
			errs = append(errs, fmt.Errorf("bursts of %d frames; each length is 2 or more and stands once", n))
		}
		seen[n] = true
	}
	if len(c.Lengths) == 0 {
		errs = append(errs, errors.New("there is no length of burst to try"))
	}
	return bursts{c}, errors.Join(errs...)
}

type bursts struct{ c BurstsConfig }

func (b bursts) bounds(done []Seen, length int) (lo, hi float64) {
	t := newTally(b.c.Retries)
	for _, s := range done {
		if s.Burst == length {
			t.add(s.Load, s.Loss <= b.c.Loss)
		}
	}
	return t.bounds()
}

// next is the load to try for one length.
func (b bursts) next(done []Seen, length int, limit float64) (float64, bool) {
	lo, hi := b.bounds(done, length)
	return bisect(lo, hi, b.leastFor(length, limit), limit, within(b.c.Resolution))
}

// leastFor is the least average rate that is tried with a length: a trial has two bursts at least.
func (b bursts) leastFor(length int, limit float64) float64 {
	return math.Min(limit, math.Max(b.c.least(), math.Ceil(2*float64(length)/b.c.Duration.Seconds())))
}

func (b bursts) Next(done []Seen) (Ask, bool) {
	limit, done, ask := b.c.greatest(done)
	if ask != nil {
		return *ask, true
	}
	for _, n := range b.c.Lengths {
		if v, more := b.next(done, n, limit); more {
			return Ask{Phase: "burst", Load: v, Duration: b.c.Duration, Burst: n}, true
		}
	}
	return Ask{}, false
}

func (b bursts) Judge(t Seen) string {
	if t.Phase == "maximum" {
		return ""
	}
	return lossy(t, b.c.Loss)
}

func (b bursts) Figures(done []Seen) []Figure {
	limit, done, ask := b.c.greatest(done)
	var short []string
	if b.c.Loss > 0 {
		short = append(short, fmt.Sprintf("loss up to %s, not 0", percent(b.c.Loss)))
	}
	if b.c.Duration < time.Minute {
		short = append(short, fmt.Sprintf("trials of %s, not 60 s", b.c.Duration))
	}
	rule := against(", by RFC 2544 section 21", short)
	var out []Figure
	for _, n := range b.c.Lengths {
		attributes := [][2]string{{"burst", plural(n, "frame")}, {"rate in a burst", fps(limit)}, {"resolution", percent(b.c.Resolution)}, {"trial", b.c.Duration.String()}}
		rate := Figure{Name: fmt.Sprintf("burst_%d", n), Unit: "fps", Primary: true, Attributes: attributes, Label: fmt.Sprintf("greatest average rate in bursts of %d frames", n) + rule}
		gap := Figure{Name: fmt.Sprintf("burst_gap_%d", n), Unit: "s", Attributes: attributes, Label: fmt.Sprintf("least gap between bursts of %d frames", n) + rule}
		lo, hi := b.bounds(done, n)
		more := ask != nil
		if !more {
			_, more = b.next(done, n, limit)
		}
		switch {
		case lo > 0:
			rate.Value, rate.Lower, rate.Upper = lo, lo, hi
			// The greater rate has the lesser gap.
			gap.Value, gap.Upper = b.gap(n, lo, limit), b.gap(n, lo, limit)
			if hi > 0 {
				gap.Lower = b.gap(n, hi, limit)
			}
			if lo == limit {
				rate.Bound = ">="
			}
		case more:
			rate.None = "no load has passed yet"
		default:
			rate.None, rate.Upper = "below the least load, "+fps(b.leastFor(n, limit)), hi
		}
		rate.Unfinished, gap.Unfinished, gap.None = more, more, rate.None
		out = append(out, rate, gap)
	}
	return out
}

// gap is the silence between bursts, in seconds, at an average rate.
func (b bursts) gap(length int, average, peak float64) float64 {
	return float64(length)/average - float64(length)/peak
}
