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

// Recovery overloads the device and then halves the load: recovery_time is from that moment to when the last frame that the overload cost had been sent.
//
// A path may lose a frame now and then whatever the load, so the last lost frame alone says nothing. The trial reports its loss over time, and the time is where a higher rate
// of loss gives way to a lower one (lossChange). Where nothing at all is lost from there on, it is exact; else to a slice. A device that goes on losing more than recoveryLoss, or
// whose loss changes only at the very end, did not recover: a FAIL, and the figure is None.
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

const (
	// recoverySlice is how fine the loss is looked at over time; longer where the reduced load is short or very long.
	recoverySlice = 10 * time.Millisecond
	// recoveryLoss is the loss ratio at the reduced load above which a device does not carry it.
	recoveryLoss = 1e-3
)

// changeEvidence is the logarithm of the likelihood ratio from which a change is believed: loss at one steady rate shows as much less than once in ten thousand trials.
const changeEvidence = 12

// lossChange finds where a higher rate of loss gives way to a lower one: the number of slices before the change that makes what was counted most likely, if both parts follow
// Poisson's distribution; 0 when one rate explains it as well. lost is by slice.
func lossChange(lost []float64) int {
	all := 0.0
	for _, n := range lost {
		all += n
	}
	likely := func(sum float64, slices int) float64 {
		if sum == 0 {
			return 0
		}
		return sum * math.Log(sum/float64(slices))
	}
	same := likely(all, len(lost))
	change, best, before := 0, float64(changeEvidence), 0.0
	for i := 1; i < len(lost); i++ {
		before += lost[i-1]
		rest := all - before
		if before/float64(i) <= rest/float64(len(lost)-i) {
			continue
		}
		if e := likely(before, i) + likely(rest, len(lost)-i) - same; e > best {
			change, best = i, e
		}
	}
	return change
}

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
	if len(done) > 0 {
		return Ask{}, false
	}
	return Ask{Phase: "recovery", Load: r.overload(), Duration: r.c.OverloadTime, Slice: r.slice(),
		Steps: []providers.Step{{Load: r.reduced(), Duration: r.c.ReducedTime}}}, true
}

// slice cuts the reduced load into twenty slices at least, and the whole into fifty thousand at most.
func (r recovery) slice() time.Duration {
	return max(min(recoverySlice, r.c.ReducedTime/20), (r.c.OverloadTime+r.c.ReducedTime)/50_000, 1)
}

// took is the recovery time and the path's own loss, or why there is none; failed: because the device did not recover.
func (r recovery) took(t Seen) (d time.Duration, own float64, none string, failed bool) {
	whole := r.c.OverloadTime + r.c.ReducedTime
	late := fmt.Sprintf("frames were lost until the end of the %s at the reduced load", r.c.ReducedTime)
	switch {
	case t.Loss == 0:
		return 0, 0, fmt.Sprintf("not overloaded: nothing was lost at %s", fps(r.overload())), false
	case t.LossSlices == nil && t.LastLoss == nil:
		return 0, 0, "the generator cannot tell when a frame was lost", false
	case t.LossSlices == nil && whole-*t.LastLoss < min(time.Second, r.c.ReducedTime/10):
		return 0, 0, late, true
	case t.LossSlices == nil:
		return max(0, *t.LastLoss-r.c.OverloadTime), 0, "", false
	}
	at := func(i int) float64 {
		if i < len(t.LossSlices) {
			return float64(t.LossSlices[i])
		}
		return 0
	}
	slice := t.Slice
	step, end := int(r.c.OverloadTime/slice), int((whole+slice-1)/slice)
	reduced := make([]float64, end-step)
	for i := range reduced {
		reduced[i] = at(step + i)
	}
	change := lossChange(reduced)
	rest := 0.0
	for _, n := range reduced[change:] {
		rest += n
	}
	ways := float64(max(1, len(t.Latency)))
	own = rest / (r.reduced() * ways * slice.Seconds() * float64(len(reduced)-change))
	d = max(0, time.Duration(step+change)*slice-r.c.OverloadTime)
	switch {
	case own > recoveryLoss, change > 0 && r.c.ReducedTime-d < min(time.Second, r.c.ReducedTime/10):
		return 0, own, late, true
	case rest == 0 && t.LastLoss != nil: // then the last frame that the overload cost is known exactly
		d = max(0, min(d, *t.LastLoss-r.c.OverloadTime))
	}
	return d, own, "", false
}

func (r recovery) Judge(t Seen) string {
	d, _, none, failed := r.took(t)
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
	d, own, none, _ := r.took(done[0])
	f.Value, f.None = d.Seconds(), none
	if own > 0 && none == "" {
		f.Attributes = append(f.Attributes, [2]string{"the path's own loss at the reduced load", percent(own)}, [2]string{"resolution", done[0].Slice.String()})
	}
	return []Figure{f}
}
