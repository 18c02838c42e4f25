package search

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ContinuousConfig is one load, offered once.
type ContinuousConfig struct {
	Load     float64       // frames/s and direction; 0: as fast as the tester can
	Duration time.Duration // of the measured stream, above 0
	MaxLoss  *float64      // loss ratio that a trial may have; nil: no goal, what counts passes
}

// Continuous offers one load for one trial. It has no figures: the trial says it all.
func Continuous(c ContinuousConfig) (Search, error) {
	return continuous{c}, errors.Join(load(c.Load), duration("the trial", c.Duration), lossGoal(c.MaxLoss))
}

type continuous struct{ c ContinuousConfig }

func (s continuous) Next(done []Seen) (Ask, bool) {
	return Ask{Load: s.c.Load, Duration: s.c.Duration}, len(done) == 0
}

func (s continuous) Judge(t Seen) string { return missed(t, s.c.MaxLoss) }

func (s continuous) Figures([]Seen) []Figure { return nil }

// missed is lossy with a goal that need not be.
func missed(t Seen, goal *float64) string {
	if goal == nil {
		return ""
	}
	return lossy(t, *goal)
}

func load(v float64) error {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("the load is %g frames/s; it is finite and not negative", v)
	}
	return nil
}

func duration(what string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s lasts %s; it must be above 0", what, d)
	}
	return nil
}

func lossGoal(goal *float64) error {
	if goal == nil {
		return nil
	}
	if !(*goal >= 0 && *goal <= 1) {
		return fmt.Errorf("the loss goal is %g; it is a ratio from 0 to 1", *goal)
	}
	return nil
}
