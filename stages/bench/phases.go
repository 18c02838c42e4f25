package bench

import (
	"fmt"
	"time"
)

// phases says in words what each trial consists of, and where it falls short of RFC 2544 section 23. x is what a reset does, nil for none.
func (s *settings) phases(model bool, x *resetting) []string {
	if model {
		return []string{"A model: no frames were sent, no counters read, and no phase took any time."}
	}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case s.warmUp == 0:
		add("No warm-up: the first frames of a trial meet cold caches, and nothing was learned (RFC 2544 section 23 a and b send learning frames first).")
	case s.learnOnce:
		add("Warm-up: %s of the same stream before the first trial of each search, not counted; RFC 2544 section 23 a and b have the device learn before every trial.", s.warmUp)
	default:
		add("Warm-up: the same stream for %s before each trial, not counted: the learning of RFC 2544 section 23 a and b.", s.warmUp)
	}
	add("Settle: %s of silence%s.", s.settle, short(s.settle, 2*time.Second, "RFC 2544 section 23 b waits 2 s"))
	add("%s", s.stream())
	if x != nil {
		add("%s", x.words())
	}
	add("Drain: %s for frames in flight%s.", s.drain, short(s.drain, 2*time.Second, "RFC 2544 section 23 d waits 2 s"))
	if s.rest > 0 {
		add("Rest: %s before the next trial%s.", s.rest, short(s.rest, 5*time.Second, "RFC 2544 section 23 e waits at least 5 s"))
	} else {
		add("Between trials: no rest of its own (RFC 2544 section 23 e waits at least 5 s for the device to restabilise).")
	}
	return out
}

// stream says how long the measured streams are.
func (s *settings) stream() string {
	p := s.plan
	if p.streams == nil {
		return "Measured stream: bursts of a number of frames instead of a duration."
	}
	text := "Measured stream: "
	least := p.streams[0]
	for i, d := range p.streams {
		if i > 0 {
			text += ", then "
		}
		text += d.String()
		least = max(least, d)
	}
	if p.base != nil {
		text += fmt.Sprintf("; in the search for the throughput before, up to %s", p.base.Final)
		least = min(least, p.base.Final)
	}
	return text + short(least, time.Minute, "RFC 2544 section 24 asks for at least 60 s") + "."
}

func short(is, want time.Duration, why string) string {
	if is >= want {
		return ""
	}
	return " (shortened: " + why + ")"
}
