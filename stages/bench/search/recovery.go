package search

import (
	"errors"
	"fmt"
	"math"
	"time"

	"plumb/providers"
)

// RecoveryConfig is the system recovery test of RFC 2544 section 26.5. Ratios other than the RFC's make a variant, and the label says so.
type RecoveryConfig struct {
	Throughput   float64       // frames/s and direction, above 0: found before, for this frame size
	Max          float64       // the greatest load (the media's maximum); 0: no limit
	Overload     float64       // times the throughput, above 1; 0: 1.1
	OverloadTime time.Duration // 0: 60 s
	Reduced      float64       // of the overload's rate, (0,1); 0: 0.5
	ReducedTime  time.Duration // how long recovery is waited for; 0: 60 s (the RFC names no time)
	MaxTime      time.Duration // the goal: the longest recovery that is a PASS; 0: no goal but that it recovers
}

// Recovery overloads the device and then halves the load: recovery_time is from that moment to when the last lost frame had been sent. A device that loses until the
// end did not recover: a FAIL, and the figure is None. Where the time is longer than a moment, a second trial (phase "baseline") at the reduced load alone tells whether the device loses
// frames without any overload: then the last lost frame says nothing about recovery, and the figure is None.
func Recovery(c RecoveryConfig) (Search, error) {
	c.Overload, c.Reduced = or(c.Overload, 1.1), or(c.Reduced, 0.5)
	c.OverloadTime, c.ReducedTime = or(c.OverloadTime, time.Minute), or(c.ReducedTime, time.Minute)
	var err error
	if c.Throughput < 1 {
		err = fmt.Errorf("the throughput is %g frames/s; recovery needs one that was found, at least 1", c.Throughput)
	}
	if !(c.Overload > 1) || math.IsInf(c.Overload, 0) {
		err = errors.Join(err, fmt.Errorf("the overload is %g times the throughput; it must be above 1", c.Overload))
	}
	if !(c.Reduced > 0 && c.Reduced < 1) {
		err = errors.Join(err, fmt.Errorf("the reduced load is %g of the overload; it is a ratio above 0 and below 1", c.Reduced))
	}
	if c.MaxTime < 0 {
		err = errors.Join(err, fmt.Errorf("the goal is a recovery in %s; it must not be negative", c.MaxTime))
	}
	return recovery{c}, errors.Join(err, load(c.Throughput), load(c.Max), duration("the overload", c.OverloadTime), duration("the reduced load", c.ReducedTime))
}

// moment is a recovery time that is believed as it is: loss that has other causes would hardly end so soon.
const moment = 10 * time.Millisecond

type recovery struct{ c RecoveryConfig }

// overload is the load to begin with.
func (r recovery) overload() float64 {
	over := math.Ceil(r.c.Throughput * r.c.Overload)
	if r.c.Max > 0 {
		over = math.Min(over, math.Floor(r.c.Max))
	}
	return over
}

// reduced is the load to end with.
func (r recovery) reduced() float64 { return math.Max(1, math.Floor(r.overload()*r.c.Reduced)) }

func (r recovery) Next(done []Seen) (Ask, bool) {
	switch len(done) {
	case 0:
		return Ask{Phase: "recovery", Load: r.overload(), Duration: r.c.OverloadTime, Steps: []providers.Step{{Load: r.reduced(), Duration: r.c.ReducedTime}}}, true
	case 1:
		if d, _, failed := r.took(done[0]); failed || d > moment {
			return Ask{Phase: "baseline", Load: r.reduced(), Duration: r.c.ReducedTime}, true
		}
	}
	return Ask{}, false
}

// took is the recovery time, or why there is none; failed: because the device did not recover.
func (r recovery) took(t Seen) (d time.Duration, none string, failed bool) {
	whole := r.c.OverloadTime + r.c.ReducedTime
	switch {
	case t.Loss == 0:
		return 0, fmt.Sprintf("not overloaded: nothing was lost at %s", fps(r.overload())), false
	case t.LastLoss == nil:
		return 0, "the generator cannot tell when a frame was lost", false
	case whole-*t.LastLoss < min(time.Second, r.c.ReducedTime/10):
		return 0, fmt.Sprintf("frames were lost until the end of the %s at the reduced load", r.c.ReducedTime), true
	}
	return max(0, *t.LastLoss-r.c.OverloadTime), "", false
}

func (r recovery) Judge(t Seen) string {
	if t.Phase == "baseline" {
		return ""
	}
	d, none, failed := r.took(t)
	switch {
	case failed:
		return none
	case r.c.MaxTime > 0 && d > r.c.MaxTime:
		return fmt.Sprintf("recovery took %s; the goal is at most %s", d, r.c.MaxTime)
	}
	return ""
}

func (r recovery) Figures(done []Seen) []Figure {
	f := Figure{Name: "recovery_time", Unit: "s", Primary: true, Attributes: [][2]string{
		{"throughput", fps(r.c.Throughput)}, {"overload", fps(r.overload()) + " for " + r.c.OverloadTime.String()},
		{"reduced", fps(r.reduced()) + " for " + r.c.ReducedTime.String()},
	}}
	f.Label = "system recovery time, RFC 2544 section 26.5"
	if r.c.Overload != 1.1 || r.c.Reduced != 0.5 || r.c.OverloadTime < time.Minute {
		f.Label = fmt.Sprintf("system recovery time, a variant of RFC 2544 section 26.5: %s of the throughput for %s (110 %% for 60 s), then %s of that (50 %%)",
			percent(r.c.Overload), r.c.OverloadTime, percent(r.c.Reduced))
	}
	if len(done) == 0 {
		f.Unfinished = true
		return []Figure{f}
	}
	_, f.Unfinished = r.Next(done)
	d, none, _ := r.took(done[0])
	f.Value, f.None = d.Seconds(), none
	if len(done) > 1 {
		f.Attributes = append(f.Attributes, [2]string{"loss at the reduced load alone", percent(done[1].Loss)})
		if done[1].Loss > 0 {
			f.Value, f.None = 0, fmt.Sprintf("not to be told: the device loses %s at the reduced load without any overload", percent(done[1].Loss))
		}
	}
	return []Figure{f}
}
