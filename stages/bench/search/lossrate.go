package search

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// LossRateConfig is the frame loss rate test of RFC 2544 section 26.3.
type LossRateConfig struct {
	Loads                  // Max is the 100 % that the curve starts at
	Step     float64       // of Max, (0, 0.5]; 0: 0.1. The RFC allows steps up to 10 % and encourages finer ones
	Duration time.Duration // of each trial; 0: 60 s (RFC 2544 section 24)
	MaxLoss  *float64      // loss ratio that a trial may have; nil: no goal, a curve has none
}

// LossRate measures the loss from 100 % of the greatest load down in steps, until two trials in a row lose nothing or the next load would be below the least. There is one
// figure for each load, named loss_rate_90 for that at 90 %.
func LossRate(c LossRateConfig) (Search, error) {
	c.Step, c.Duration = or(c.Step, 0.1), or(c.Duration, time.Minute)
	var err error
	if !(c.Step >= 1e-3 && c.Step <= 0.5) {
		err = fmt.Errorf("the step is %g; it is a ratio of the greatest load, 0.001 to 0.5", c.Step)
	}
	return lossRate{c}, errors.Join(err, c.Loads.check(), duration("a trial", c.Duration), lossGoal(c.MaxLoss))
}

type lossRate struct{ c LossRateConfig }

func (r lossRate) Next(done []Seen) (Ask, bool) {
	limit, done, ask := r.c.greatest(done)
	if ask != nil {
		return *ask, true
	}
	if n := len(done); n >= 2 && done[n-1].Loss == 0 && done[n-2].Loss == 0 {
		return Ask{}, false
	}
	// 1-n*Step is never just below 0 by rounding: less than half a step is no step.
	share := 1 - float64(len(done))*r.c.Step
	load := math.Round(limit * share)
	if share < r.c.Step/2 || load < r.c.least() {
		return Ask{}, false
	}
	return Ask{Phase: "curve", Load: math.Min(load, limit), Duration: r.c.Duration}, true
}

func (r lossRate) Judge(t Seen) string {
	if t.Phase == "maximum" {
		return ""
	}
	return missed(t, r.c.MaxLoss)
}

func (r lossRate) Figures(done []Seen) []Figure {
	_, more := r.Next(done)
	limit, done, _ := r.c.greatest(done)
	var short []string
	if r.c.Step > 0.1 {
		short = append(short, fmt.Sprintf("steps of %s, not 10 %%", percent(r.c.Step)))
	}
	if r.c.Duration < time.Minute {
		short = append(short, fmt.Sprintf("trials of %s, not 60 s", r.c.Duration))
	}
	var out []Figure
	for i, t := range done {
		share := percent(1 - float64(i)*r.c.Step)
		out = append(out, Figure{
			Name: "loss_rate_" + share[:len(share)-2], Unit: "ratio", Value: t.Loss, Primary: true, Unfinished: more,
			Label:      fmt.Sprintf("frame loss rate at %s of %s", share, fps(limit)) + against(", by RFC 2544 section 26.3", short),
			Attributes: [][2]string{{"load", fps(t.Load)}, {"share", share}},
		})
	}
	return out
}
