package search

import (
	"errors"
	"fmt"
	"time"
)

// ResetConfig is the reset test of RFC 2544 section 26.6, as RFC 6201 updates it.
type ResetConfig struct {
	Load     float64       // frames/s and direction, above 0; by the RFC the throughput of the smallest frames
	Kind     string        // of reset, for the label: "restart", "kill"
	Duration time.Duration // of the stream; 0: 60 s. It must outlast the outage
	After    time.Duration // into the stream; 0: 5 s
	MaxTime  time.Duration // the goal: the longest outage that is a PASS; 0: no goal but that the path comes back
	// AtThroughput says that Load is the throughput found for this frame size, as the RFC asks.
	AtThroughput bool
}

// Reset resets the device once while traffic flows and measures how long the path is interrupted, by both methods of RFC 6201: reset_time by the timestamps of the last frame
// before and the first after, reset_time_loss by lost frames over offered rate. A path that does not come back within the stream is a FAIL, and its
// figures are None.
func Reset(c ResetConfig) (Search, error) {
	c.Duration, c.After = or(c.Duration, time.Minute), or(c.After, 5*time.Second)
	var err error
	if c.Load == 0 {
		err = errors.New("a reset is measured at a given load: lost frames are counted in time by it")
	}
	if c.After < 0 || c.After >= c.Duration {
		err = errors.Join(err, fmt.Errorf("the reset comes %s into a stream of %s; it must be within", c.After, c.Duration))
	}
	if c.MaxTime < 0 {
		err = errors.Join(err, fmt.Errorf("the goal is an outage of %s; it must not be negative", c.MaxTime))
	}
	return reset{c}, errors.Join(err, load(c.Load), duration("the stream", c.Duration))
}

type reset struct{ c ResetConfig }

func (r reset) Next(done []Seen) (Ask, bool) {
	return Ask{Phase: "reset", Load: r.c.Load, Duration: r.c.Duration, Disturb: true, After: r.c.After}, len(done) == 0
}

// lost is the outage by the loss.
func (r reset) lost(t Seen) time.Duration {
	return time.Duration(t.Loss * float64(t.Duration))
}

// gone says that nothing came back after the reset: as good as all that was sent since is lost. Frames in queues at the time make up the hundredth.
func (r reset) gone(t Seen) bool {
	return float64(r.lost(t)) >= 0.99*float64(r.c.Duration-r.c.After)
}

func (r reset) never() string {
	return fmt.Sprintf("the path did not come back within the %s that the stream went on after the reset", r.c.Duration-r.c.After)
}

func (r reset) Judge(t Seen) string {
	if r.gone(t) {
		return r.never()
	}
	out := r.lost(t)
	if t.Outage != nil {
		out = *t.Outage
	}
	if r.c.MaxTime > 0 && out > r.c.MaxTime {
		return fmt.Sprintf("the path was interrupted for %s; the goal is at most %s", out, r.c.MaxTime)
	}
	return ""
}

func (r reset) Figures(done []Seen) []Figure {
	var short []string
	if !r.c.AtThroughput {
		short = append(short, "at a given load, not at the throughput")
	}
	kind := ""
	if r.c.Kind != "" {
		kind = " (" + r.c.Kind + ")"
	}
	attributes := [][2]string{{"reset", r.c.Kind}, {"load", fps(r.c.Load)}, {"stream", r.c.Duration.String()}, {"reset after", r.c.After.String()}}
	stamps := Figure{Name: "reset_time", Unit: "s", Primary: true, Attributes: attributes, Label: "reset time" + kind + " by timestamps" + against(", RFC 6201 section 4", short)}
	byLoss := Figure{Name: "reset_time_loss", Unit: "s", Attributes: attributes, Label: "reset time" + kind + " by frame loss" + against(", RFC 6201 section 4", short)}
	switch {
	case len(done) == 0:
		stamps.Unfinished, byLoss.Unfinished = true, true
	case r.gone(done[0]):
		stamps.None, byLoss.None = r.never(), r.never()
	default:
		t := done[0]
		byLoss.Value = r.lost(t).Seconds()
		switch {
		case t.Outage == nil:
			stamps.None = "the generator cannot time an outage"
			byLoss.Primary = true
		case t.OutageAt != nil && *t.OutageAt+*t.Outage < r.c.After:
			stamps.None = fmt.Sprintf("no interruption: the longest gap between two frames, %s, was before the reset", *t.Outage)
		default:
			stamps.Value = t.Outage.Seconds()
		}
	}
	return []Figure{stamps, byLoss}
}
