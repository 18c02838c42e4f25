package search

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ThroughputConfig is the throughput search of RFC 2544 section 26.1 by bisection.
type ThroughputConfig struct {
	Loads
	Loss float64 // loss ratio that still passes, [0,1); 0 by the RFC
	// Resolution is how far apart the bounds may be at the end, relative to the upper, (0,1); 0: 0.005.
	Resolution float64
	Trial      time.Duration // of a trial of the search; 0: as Final
	Final      time.Duration // of the trial that a reported rate has passed, at least Trial; 0: 60 s (RFC 2544 section 24)
	// Retries is how often a lossy trial is repeated before its load is rejected: loss verification by ETSI GS NFV-TST 009 section 12.3.3, max(r) there. 0: the first decides.
	Retries int
}

// Throughput searches the greatest load without loss. Where the trials of the search are shorter than the final one, the load found is verified with a final trial; one that
// fails it is stepped down from, and the search goes on between full trials, so that no rate is reported that did not pass one. Its figure is throughput.
func Throughput(c ThroughputConfig) (Search, error) {
	c.Resolution, c.Final = or(c.Resolution, 0.005), or(c.Final, time.Minute)
	c.Trial = or(c.Trial, c.Final)
	return throughput{c}, c.check()
}

func (c ThroughputConfig) check() error {
	errs := []error{c.Loads.check(), ratio("the loss goal", c.Loss), resolution(c.Resolution), retries(c.Retries)}
	if c.Trial <= 0 || c.Trial > c.Final {
		errs = append(errs, fmt.Errorf("trials of %s in the search and %s at last; the first is above 0 and at most the second", c.Trial, c.Final))
	}
	return errors.Join(errs...)
}

func resolution(r float64) error {
	if !(r > 0 && r < 1) {
		return fmt.Errorf("the resolution is %g; it is a ratio above 0 and below 1", r)
	}
	return nil
}

func retries(n int) error {
	if n < 0 || n > 100 {
		return fmt.Errorf("%d retries of a lossy trial; it is 0 to 100", n)
	}
	return nil
}

type throughput struct{ c ThroughputConfig }

// tallies are of the trials of the search and of the full ones. They are kept apart: a load may pass the first and fail the second.
func (s throughput) tallies(done []Seen) (short, full tally) {
	short, full = newTally(s.c.Retries), newTally(s.c.Retries)
	for _, t := range done {
		to := short
		if t.Phase == "verify" {
			to = full
		}
		to.add(t.Load, t.Loss <= s.c.Loss)
	}
	if s.c.Trial == s.c.Final {
		full = short
	}
	return short, full
}

func (s throughput) Next(done []Seen) (Ask, bool) {
	limit, done, ask := s.c.greatest(done)
	if ask != nil {
		return *ask, true
	}
	near := within(s.c.Resolution)
	short, full := s.tallies(done)
	found, over := short.bounds()
	if v, more := bisect(found, over, s.c.least(), limit, near); more {
		return Ask{Phase: "search", Load: v, Duration: s.c.Trial}, true
	}
	if found == 0 || s.c.Trial == s.c.Final {
		return Ask{}, false
	}
	lo, hi := full.bounds()
	verify := Ask{Phase: "verify", Load: found, Duration: s.c.Final}
	switch {
	case hi == 0:
		return verify, lo < found
	case lo == 0 && hi <= s.c.least():
		return Ask{}, false
	case lo == 0: // down, twice as far each time
		verify.Load = math.Max(s.c.least(), hi-(found-hi)-math.Ceil(s.c.Resolution*found))
		return verify, true
	}
	var more bool
	verify.Load, more = bisect(lo, hi, s.c.least(), limit, near)
	return verify, more
}

func (s throughput) Judge(t Seen) string {
	if t.Phase == "maximum" {
		return ""
	}
	return lossy(t, s.c.Loss)
}

func (s throughput) Figures(done []Seen) []Figure {
	f := Figure{Name: "throughput", Unit: "fps", Primary: true, Label: s.label(), Attributes: [][2]string{
		{"loss goal", percent(s.c.Loss)}, {"resolution", percent(s.c.Resolution)}, {"search trial", s.c.Trial.String()}, {"final trial", s.c.Final.String()},
		{"loss verification", plural(s.c.Retries, "retrial")},
	}}
	_, f.Unfinished = s.Next(done)
	limit, done, ask := s.c.greatest(done)
	if ask != nil {
		f.None = "no load was tried yet"
		return []Figure{f}
	}
	short, full := s.tallies(done)
	found, over := short.bounds()
	lo, hi := full.bounds()
	if hi == 0 || over != 0 && over < hi {
		hi = over
	}
	switch {
	case lo != 0:
		f.Value, f.Lower, f.Upper = lo, lo, hi
		if lo == limit {
			f.Bound = ">="
		}
	case f.Unfinished:
		f.None, f.Lower, f.Upper = "no load has passed a full trial yet", found, hi
	default:
		f.None, f.Upper = "below the least load, "+fps(s.c.least()), hi
	}
	return []Figure{f}
}

// label is "RFC 2544 throughput" only for what is; else it says what is different.
func (s throughput) label() string {
	var short []string
	if s.c.Loss > 0 {
		short = append(short, fmt.Sprintf("loss up to %s, not 0", percent(s.c.Loss)))
	}
	if s.c.Final < time.Minute {
		short = append(short, fmt.Sprintf("final trial of %s, not 60 s", s.c.Final))
	}
	verified := ""
	if s.c.Retries > 0 {
		verified = fmt.Sprintf(" with loss verification by ETSI GS NFV-TST 009 section 12.3.3 (a lossy trial is repeated up to %d times)", s.c.Retries)
	}
	if len(short) == 0 {
		return "RFC 2544 throughput" + verified
	}
	return against("throughput"+verified+", as RFC 2544 section 26.1", short)
}
