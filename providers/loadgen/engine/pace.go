package engine

import (
	"math"
	"math/bits"
	"time"

	"plumb/providers"
)

// pace says how many frames of one sender are due at a time. It only ever multiplies and divides whole numbers of the time since the segment
// began, so a rate does not drift over hours: frame k is due at k/rate, rounded to the next nanosecond.
//
// Several queues share a stream's schedule: queue i of n has the frames i, i+n, i+2n and so on, which is an exact share of it at any time.
type pace struct {
	segments      []segment
	burst         uint64 // frames that are due at once, 1 or more
	parts, part   uint64
	limit         uint64 // frames of this sender in all; noLimit without
	current       int
	base          uint64 // frames that were due before the current segment
	began, lasted int64  // ns, of the current segment and of all
}

// segment is a load and for how long.
type segment struct {
	micro uint64 // frames in a million seconds; 0: no limit
	lasts int64  // ns; endless when a number of frames ends it
}

const (
	noLimit = math.MaxUint64
	endless = math.MaxInt64
	// perMicro is the number of nanoseconds in a million seconds.
	perMicro = 1e15
	// maxLoad keeps products within 128 bits; no port comes near it.
	maxLoad = 1e12
)

// newPace is the schedule of queue part of parts. A load of 0 has no limit.
func newPace(req Request, part, parts int) *pace {
	p := &pace{burst: uint64(max(1, req.Burst)), parts: uint64(parts), part: uint64(part), limit: noLimit}
	if req.Frames > 0 {
		p.segments = []segment{{micro: micro(req.Load), lasts: endless}}
		p.limit = p.share(req.Frames)
		p.lasted = endless
		return p
	}
	for _, s := range append([]providers.Step{{Load: req.Load, Duration: req.Duration}}, req.Steps...) {
		p.segments = append(p.segments, segment{micro: micro(s.Load), lasts: int64(s.Duration)})
		p.lasted += int64(s.Duration)
	}
	return p
}

func micro(load float64) uint64 { return uint64(math.Round(load * 1e6)) }

// share is the part of this queue in the stream's first n frames.
func (p *pace) share(n uint64) uint64 {
	if n == noLimit {
		return noLimit
	}
	return (n + p.parts - 1 - p.part) / p.parts
}

// at says how many frames of this sender are due t ns after the start, and how many of those have had their time: the next frame, or the next
// burst, is due, and a port that has not taken them by then has refused them. done is how many this sender is through with. Calls go forward in t.
func (p *pace) at(t int64, done uint64) (due, passed uint64) {
	for p.current < len(p.segments)-1 && t-p.began >= p.segments[p.current].lasts {
		s := p.segments[p.current]
		if s.micro == 0 {
			p.base = done
		} else {
			p.base += p.share(s.total())
		}
		p.began += s.lasts
		p.current++
	}
	s := p.segments[p.current]
	in := t - p.began
	over := in >= s.lasts
	switch {
	case over && s.micro == 0:
		due, passed = done, done
	case over:
		due = p.base + p.share(s.total())
		passed = due
	case s.micro == 0:
		due, passed = noLimit, 0
	default:
		n := min(s.due(in)+p.burst-1, math.MaxInt64) / p.burst * p.burst
		if total := s.total(); n > total {
			n = total
		}
		due, passed = p.base+p.share(n), p.base+p.share((n-1)/p.burst*p.burst)
	}
	return min(due, p.limit), min(passed, p.limit)
}

// over says that nothing more will be due.
func (p *pace) over(t int64, done uint64) bool {
	if done >= p.limit {
		return true
	}
	if t < p.lasted {
		return false
	}
	due, _ := p.at(t, done)
	return done >= due
}

// unpaced says that the port sets the rate at time t: a load without limit.
func (p *pace) unpaced() bool { return p.segments[p.current].micro == 0 }

// due counts the frames k with k/rate <= t.
func (s segment) due(t int64) uint64 {
	hi, lo := bits.Mul64(uint64(max(0, t)), s.micro)
	n, _ := bits.Div64(hi, lo, perMicro)
	return n + 1
}

// total counts the frames k with k/rate < the length.
func (s segment) total() uint64 {
	if s.lasts == endless {
		return noLimit
	}
	hi, lo := bits.Mul64(uint64(s.lasts), s.micro)
	n, rest := bits.Div64(hi, lo, perMicro)
	if rest > 0 {
		n++
	}
	return n
}

// length of the stream; 0 when a number of frames ends it.
func length(req Request) time.Duration {
	if req.Frames > 0 {
		return 0
	}
	d := req.Duration
	for _, s := range req.Steps {
		d += s.Duration
	}
	return d
}
