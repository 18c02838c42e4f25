package bench

import (
	"fmt"
	"time"
)

// point is one trial to make.
type point struct {
	size, flows, repeat int
	load                float64 // frames/s and direction; 0: maximum
	duration            time.Duration
}

// method decides what to try. It is pure: all it knows is what was measured. Searches fit in as well as walks.
type method interface {
	// next says what to try after the trials that counted so far (PASS or FAIL, in order); false: done.
	next(counted []Trial) (point, bool)
	// total is how many trials there will be, 0 where that depends on what is found.
	total() int
	// fails says why a trial that counts misses the goal; "" when it does not.
	fails(t Trial) string
}

// continuous offers one load to every frame size and flow count.
type continuous struct {
	points  []point
	maxLoss *float64 // percent
}

func newContinuous(s settings) continuous {
	c := continuous{maxLoss: s.maxLoss}
	for _, size := range s.sizes {
		for _, flows := range s.flows {
			for r := range s.repeat {
				c.points = append(c.points, point{size: size, flows: flows, repeat: r + 1, load: s.load, duration: s.duration})
			}
		}
	}
	return c
}

func (c continuous) next(counted []Trial) (point, bool) {
	if len(counted) >= len(c.points) {
		return point{}, false
	}
	return c.points[len(counted)], true
}

func (c continuous) total() int { return len(c.points) }

func (c continuous) fails(t Trial) string {
	if c.maxLoss == nil || t.LossRatio*100 <= *c.maxLoss {
		return ""
	}
	return fmt.Sprintf("lost %.4g %% of the frames sent; the goal is at most %g %%", t.LossRatio*100, *c.maxLoss)
}

// phases says in words what each trial consists of and where it falls short of RFC 2544.
func (s settings) phases() []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.warmUp > 0 {
		add("Warm-up: the same stream for %s, not counted.", s.warmUp)
	} else {
		add("No warm-up: the first frames of a trial meet cold caches.")
	}
	add("Settle: %s of silence%s.", s.settle, short(s.settle, 2*time.Second, "RFC 2544 section 23 b waits 2 s"))
	add("Measured stream: %s%s.", s.duration, short(s.duration, time.Minute, "RFC 2544 section 24 asks for at least 60 s"))
	add("Drain: %s for frames in flight%s.", s.drain, short(s.drain, 2*time.Second, "RFC 2544 section 23 d waits 2 s"))
	if rest := s.warmUp + s.settle; rest < 5*time.Second {
		add("Between trials: no rest of its own; RFC 2544 section 23 e waits at least 5 s for the device to restabilise.")
	}
	return out
}

func short(is, want time.Duration, why string) string {
	if is >= want {
		return ""
	}
	return " (" + why + ")"
}
