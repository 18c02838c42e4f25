package search

import (
	"errors"
	"fmt"
	"time"
)

// SoakConfig is a long run at one load.
type SoakConfig struct {
	Load     float64       // frames/s and direction; 0: as fast as the tester can. A share of a throughput is worked out by the caller
	Duration time.Duration // in all; 0: 10 min
	// Slice is the longest trial: each slice is a trial of its own, so that an interrupted soak keeps what it has; 0: 60 s. Between slices the stream pauses.
	Slice   time.Duration
	MaxLoss *float64 // loss ratio that the whole may have; nil: no goal. A slice that loses more is a FAIL of its own
	// Explained makes lost frames whose place or cause no hop names a FAIL.
	Explained bool
}

// Soak runs a load for a long time in slices. Its figures are of the whole: soak_loss, soak_rate (forwarded, frames/s and direction) and, when asked for, soak_unexplained frames.
func Soak(c SoakConfig) (Search, error) {
	c.Duration, c.Slice = or(c.Duration, 10*time.Minute), or(c.Slice, time.Minute)
	err := errors.Join(load(c.Load), duration("the soak", c.Duration), duration("a slice", c.Slice), lossGoal(c.MaxLoss))
	if err == nil && c.Duration/c.Slice > 100_000 {
		err = fmt.Errorf("%s in slices of %s are more than 100,000 trials; take longer slices", c.Duration, c.Slice)
	}
	return soak{c}, err
}

type soak struct{ c SoakConfig }

func (s soak) Next(done []Seen) (Ask, bool) {
	left := s.c.Duration - time.Duration(len(done))*s.c.Slice
	if left <= 0 {
		return Ask{}, false
	}
	return Ask{Phase: "soak", Load: s.c.Load, Duration: min(left, s.c.Slice)}, true
}

func (s soak) Judge(t Seen) string {
	if why := missed(t, s.c.MaxLoss); why != "" {
		return why
	}
	if s.c.Explained && t.Unexplained > 0 {
		return fmt.Sprintf("%d frames are unaccounted for: no hop names their loss", t.Unexplained)
	}
	return ""
}

func (s soak) Figures(done []Seen) []Figure {
	_, more := s.Next(done)
	var lost, offered, received, seconds float64
	var unexplained uint64
	for _, t := range done {
		n := t.offered()
		lost, offered = lost+t.Loss*n, offered+n
		d := t.effective().Seconds()
		received, seconds = received+t.RxRate*d, seconds+d
		unexplained += t.Unexplained
	}
	attributes := [][2]string{{"load", atLoad(s.c.Load)}, {"duration", s.c.Duration.String()}, {"slices", fmt.Sprint(len(done))}}
	loss := Figure{Name: "soak_loss", Unit: "ratio", Primary: true, Unfinished: more, Attributes: attributes, Label: "loss ratio over " + s.c.Duration.String()}
	rate := Figure{Name: "soak_rate", Unit: "fps", Unfinished: more, Attributes: attributes, Label: "mean forwarding rate over " + s.c.Duration.String()}
	if offered > 0 {
		loss.Value, rate.Value = lost/offered, received/seconds
	} else if !more {
		loss.None, rate.None = "nothing was sent", "nothing was sent"
	}
	if s.c.MaxLoss != nil {
		goal := fmt.Sprintf("at most %s: ", percent(*s.c.MaxLoss))
		if loss.Value <= *s.c.MaxLoss && loss.None == "" {
			goal += "met"
		} else {
			goal += "missed"
		}
		if more {
			goal += " so far"
		}
		loss.Attributes = append(loss.Attributes[:len(attributes):len(attributes)], [2]string{"goal", goal})
	}
	out := []Figure{loss, rate}
	if s.c.Explained {
		out = append(out, Figure{Name: "soak_unexplained", Unit: "frames", Value: float64(unexplained), Primary: true, Unfinished: more, Attributes: attributes,
			Label: "lost frames whose place no hop names"})
	}
	return out
}

func atLoad(v float64) string {
	if v == 0 {
		return "maximum"
	}
	return fps(v)
}
