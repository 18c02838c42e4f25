package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Goal is what a load has to stand (MLRsearch's Search Goal). No field has a hidden default: 0 means 0. Start from NDR, PDR, RFC2544 or TST009.
type Goal struct {
	Name string // "NDR"; a figure's name, unique in its search
	// Loss is the greatest loss ratio of a good trial, [0,1): the goal loss ratio.
	Loss float64
	// Exceed is the share of the time that may be in trials with more loss, [0,1): the goal exceed ratio. 0: one bad trial fails a load; 0.5: most of the
	// time decides, so that one hiccup of the host does not.
	Exceed float64
	// Width is how far apart the bounds may be at the end, relative to the upper, (0,1): the goal width.
	Width float64
	// Final is the duration of a full trial, above 0; shorter ones can fail a load, never pass it.
	Final time.Duration
	// Sum is the time in full trials that decides a load for certain, at least Final: the goal duration sum.
	Sum time.Duration
	// Initial is the duration of the first, coarse trials, at most Final; 0: Final.
	Initial time.Duration
	// Preceding is how many easier targets (shorter, wider) are solved before this one, 0 to 10. It needs no Initial below Final to save time.
	Preceding int
}

// NDR is the goal of no loss with FD.io CSIT's parameters: trials of 1 s, 21 s in all at a load, half of the time may exceed.
func NDR() Goal {
	return Goal{Name: "NDR", Loss: 0, Exceed: 0.5, Width: 0.005, Final: time.Second, Sum: 21 * time.Second, Initial: time.Second, Preceding: 2}
}

// PDR is NDR's with a loss of at most 0.5 %.
func PDR() Goal {
	g := NDR()
	g.Name, g.Loss = "PDR", 0.005
	return g
}

// RFC2544 is the goal that makes MLRsearch a throughput search of RFC 2544: 60 s without any loss (draft-ietf-bmwg-mlrsearch, table of goals).
func RFC2544() Goal {
	return Goal{Name: "throughput", Width: 0.005, Final: time.Minute, Sum: time.Minute, Initial: time.Second, Preceding: 2}
}

// TST009 is the goal of ETSI GS NFV-TST 009 section 12.3.3, binary search with loss verification, with two trials a load: 120 s in all, of which half may exceed.
func TST009() Goal {
	g := RFC2544()
	g.Sum, g.Exceed = 2*time.Minute, 0.5
	return g
}

func (g Goal) check() error {
	if g.Name == "" {
		return errors.New("a goal has no name")
	}
	errs := []error{ratio("the loss ratio", g.Loss), ratio("the exceed ratio", g.Exceed)}
	if !(g.Width > 0 && g.Width < 1) {
		errs = append(errs, fmt.Errorf("the width is %g; it is a ratio above 0 and below 1", g.Width))
	}
	if g.Final <= 0 || g.Sum < g.Final || g.Initial < 0 || g.Initial > g.Final {
		errs = append(errs, fmt.Errorf("the durations are initial %s, final %s, sum %s; each is at most the next, and final is above 0", g.Initial, g.Final, g.Sum))
	}
	if g.Preceding < 0 || g.Preceding > 10 {
		errs = append(errs, fmt.Errorf("%d preceding targets; it is 0 to 10", g.Preceding))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("goal %s: %w", g.Name, err)
	}
	return nil
}

// hair is a difference, in seconds, that is none: sums that are equal on paper may differ in the last bit.
const hair = 1e-9

// Verdict is what trials at one load say about it.
type Verdict int

const (
	Undecided  Verdict = iota // more trials could still decide either way
	LowerBound                // the load passes
	UpperBound                // the load fails
)

func (v Verdict) String() string { return [...]string{"undecided", "lower bound", "upper bound"}[v] }

// Classify judges a load by all trials made at just that load, for one goal. It is the load classification of draft-ietf-bmwg-mlrsearch-15: a trial
// counts by its effective duration; it is full when its intended duration reaches the goal's, and high when it lost more than the goal allows. Short
// good trials alone never pass a load; short bad ones can fail it; once full time reaches the goal's sum the load is always decided.
// It uses Loss, Exceed, Final and Sum.
func Classify(g Goal, trials []Seen) Verdict { return classify(g, outcomes(trials)) }

// outcome is what counts of a trial.
type outcome struct {
	intended, effective time.Duration
	loss                float64
}

func outcomes(trials []Seen) []outcome {
	var out []outcome
	for _, t := range trials {
		out = append(out, outcome{t.Duration, t.effective(), t.Loss})
	}
	return out
}

func classify(g Goal, trials []outcome) Verdict {
	var fullLow, fullHigh, shortLow, shortHigh float64 // seconds
	for _, t := range trials {
		low, s := t.loss <= g.Loss, t.effective.Seconds()
		switch full := t.intended >= g.Final; {
		case full && low:
			fullLow += s
		case full:
			fullHigh += s
		case low:
			shortLow += s
		default:
			shortHigh += s
		}
	}
	// Short bad time counts as far as short good time does not balance it; balance is how much good time one unit of bad time needs.
	balance := g.Exceed / (1 - g.Exceed)
	high := fullHigh + math.Max(0, shortHigh-shortLow*balance)
	whole := math.Max(fullLow+high, g.Sum.Seconds())
	allowed := whole * g.Exceed
	optimist := high <= allowed+hair           // should all that remains be good
	pessimist := whole-fullLow <= allowed+hair // should all that remains be bad
	switch {
	case optimist && pessimist:
		return LowerBound
	case !optimist && !pessimist:
		return UpperBound
	}
	return Undecided
}

// ConditionalThroughput is the forwarding rate that a load stands for, given all trials made at just that load: the load less the loss at the quantile 1-Exceed of
// the time in full trials, good ones first; time that is missing to the goal's sum counts as all lost. It is never above the load.
// It uses Exceed, Final and Sum.
func ConditionalThroughput(g Goal, load float64, trials []Seen) float64 {
	return conditional(g, load, outcomes(trials))
}

func conditional(g Goal, load float64, trials []outcome) float64 {
	var full []outcome
	sum := 0.0
	for _, t := range trials {
		if t.intended >= g.Final {
			full = append(full, t)
			sum += t.effective.Seconds()
		}
	}
	if len(full) == 0 {
		return 0
	}
	slices.SortStableFunc(full, func(a, b outcome) int { return cmp.Compare(a.loss, b.loss) })
	remaining := math.Max(g.Sum.Seconds(), sum) * (1 - g.Exceed)
	loss := full[0].loss
	for _, t := range full {
		if remaining <= hair {
			break
		}
		loss = t.loss
		remaining -= t.effective.Seconds()
	}
	if remaining > hair {
		loss = 1
	}
	return load * (1 - loss)
}
