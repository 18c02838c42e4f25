package search

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Loads is the range of loads that a search may offer, in frames/s and direction. Searches offer whole frames per second: Min is rounded up and Max down.
type Loads struct {
	// Min is the least load that is tried, 1 or more; 0: 1. When it does not pass, the figure is None ("below the least load") and not 0.
	Min float64
	// Max is the greatest: the smallest of line rate and what the benchmark allows. 0: not known. The first trials then offer as much as the tester can (Ask.Load 0, phase
	// "maximum"), and what the best of them sent is the greatest load afterwards.
	Max float64
	// Probe is how long each of those first trials lasts; 0: 1 s. It is not used when Max is given.
	Probe time.Duration
}

// probes is how many trials tell the greatest load: one alone may meet a moment in which the device, or its core, is busy with something else, and the
// search would then end far below the truth.
const probes = 3

func (l Loads) check() error {
	if l.Min < 0 || math.IsNaN(l.Min) || math.IsInf(l.Min, 0) || l.Max < 0 || math.IsNaN(l.Max) || math.IsInf(l.Max, 0) {
		return errors.New("loads are finite and not negative")
	}
	if l.Max > 0 && math.Floor(l.Max) < l.least() {
		return fmt.Errorf("the greatest load, %s, is below the least, %s", fps(l.Max), fps(l.least()))
	}
	if l.Probe < 0 {
		return fmt.Errorf("the trial at maximum lasts %s; it must not be negative", l.Probe)
	}
	return nil
}

func (l Loads) least() float64 { return math.Max(1, math.Ceil(l.Min)) }

// greatest is the greatest load, and the trials that remain behind the first ones, which only told it. ask is set while those have not all been made.
// A tester that can send less than Min has Min as its greatest load: what comes of it is for the trial's health to say.
func (l Loads) greatest(done []Seen) (limit float64, rest []Seen, ask *Ask) {
	if l.Max > 0 {
		return math.Floor(l.Max), done, nil
	}
	if len(done) < probes {
		return 0, nil, &Ask{Phase: "maximum", Duration: or(l.Probe, time.Second)}
	}
	for _, t := range done[:probes] {
		limit = math.Max(limit, math.Floor(t.TxRate))
	}
	return math.Max(l.least(), limit), done[probes:], nil
}

// or is the value, or what it stands for when it is 0.
func or[T comparable](v, standsFor T) T {
	var zero T
	if v == zero {
		return standsFor
	}
	return v
}

// ratio refuses what is not in [0, 1).
func ratio(what string, v float64) error {
	if !(v >= 0 && v < 1) {
		return fmt.Errorf("%s is %g; it is a ratio, at least 0 and below 1", what, v)
	}
	return nil
}

// lossy says that a trial lost more than a goal allows, "" when it did not.
func lossy(s Seen, goal float64) string {
	if s.Loss <= goal {
		return ""
	}
	return fmt.Sprintf("lost %.4g %% of the frames sent; the goal is at most %g %%", s.Loss*100, goal*100)
}

// offered is the number of frames that a trial's loss is a ratio of.
func (s Seen) offered() float64 {
	if s.Load == 0 {
		return float64(s.Sent)
	}
	return float64(s.Sent) + float64(s.Unsent)
}

// effective is the measured duration, never below the intended one (MLRsearch, section "Trial Effective Duration").
func (s Seen) effective() time.Duration { return max(s.Effective, s.Duration) }

func fps(v float64) string     { return strconv.FormatFloat(v, 'f', -1, 64) + " fps" }
func percent(v float64) string { return strconv.FormatFloat(v*100, 'g', 6, 64) + " %" }
