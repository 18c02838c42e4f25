package search

import (
	"errors"
	"fmt"
	"time"

	"plumb/providers"
)

// LatencyConfig is the latency test of RFC 2544 section 26.2 with the statistics of RFC 8219 section 7. Its repeats are made by the caller.
type LatencyConfig struct {
	Load     float64       // frames/s and direction, above 0; by the RFC the throughput of the same frame size
	Duration time.Duration // of the stream; 0: 120 s (RFC 2544 section 26.2)
	Repeats  int           // how often the caller runs it, for the label; 0: 1. RFC 2544 and RFC 8219 ask for at least 20
	MaxLoss  *float64      // loss ratio that the trial may have; nil: no goal
	// AtThroughput says that Load is the throughput found for this frame size, as the RFC asks.
	AtThroughput bool
}

// Latency measures the delay of frames at a load. Its figures are of the direction with the greater value: latency_p50 (RFC 8219: typical latency) and
// latency_p999 (worst-case latency), pdv (P99.9 minus minimum) and the rest of the distribution, in nanoseconds.
func Latency(c LatencyConfig) (Search, error) {
	c.Duration, c.Repeats = or(c.Duration, 2*time.Minute), or(c.Repeats, 1)
	var err error
	if c.Load == 0 {
		err = errors.New("latency is measured at a given load: at maximum it is the length of the queue")
	}
	if c.Repeats < 0 {
		err = errors.Join(err, fmt.Errorf("%d repeats; it is 1 or more", c.Repeats))
	}
	return latency{c}, errors.Join(err, load(c.Load), duration("the stream", c.Duration), lossGoal(c.MaxLoss))
}

type latency struct{ c LatencyConfig }

func (l latency) Next(done []Seen) (Ask, bool) {
	return Ask{Phase: "latency", Load: l.c.Load, Duration: l.c.Duration}, len(done) == 0
}

func (l latency) Judge(t Seen) string { return missed(t, l.c.MaxLoss) }

// latencies are the figures by name, the first three at the head of a report.
var latencies = []struct {
	name, label string
	primary     bool
	of          func(*providers.Latency) float64
}{
	{"latency_p50", "typical latency (median)", true, func(l *providers.Latency) float64 { return l.P50 }},
	{"latency_p999", "worst-case latency (99.9th percentile)", true, func(l *providers.Latency) float64 { return l.P999 }},
	{"pdv", "packet delay variation (99.9th percentile minus minimum)", true, func(l *providers.Latency) float64 { return l.PDV }},
	{"latency_min", "least latency", false, func(l *providers.Latency) float64 { return l.Min }},
	{"latency_mean", "mean latency", false, func(l *providers.Latency) float64 { return l.Mean }},
	{"latency_p90", "latency, 90th percentile", false, func(l *providers.Latency) float64 { return l.P90 }},
	{"latency_p99", "latency, 99th percentile", false, func(l *providers.Latency) float64 { return l.P99 }},
	{"latency_max", "greatest latency", false, func(l *providers.Latency) float64 { return l.Max }},
	{"jitter", "mean difference of successive latencies", false, func(l *providers.Latency) float64 { return l.Jitter }},
}

func (l latency) Figures(done []Seen) []Figure {
	rule := l.rule(done)
	var out []Figure
	for _, q := range latencies {
		f := Figure{Name: q.name, Unit: "ns", Primary: q.primary, Label: q.label + rule, Attributes: [][2]string{{"load", fps(l.c.Load)}, {"stream", l.c.Duration.String()}}}
		switch {
		case len(done) == 0:
			f.Unfinished = true
		default:
			f.None = "the generator saw no latency: no sampled frame came back"
			for _, d := range done[0].Latency {
				if d != nil && d.Samples > 0 {
					if v := q.of(d); f.None != "" || v > f.Value {
						f.Value, f.None = v, ""
					}
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// rule says by which rules the figures are, and where they fall short.
func (l latency) rule(done []Seen) string {
	var short []string
	if !l.c.AtThroughput {
		short = append(short, "at a given load, not at the throughput")
	}
	if l.c.Duration < 2*time.Minute {
		short = append(short, fmt.Sprintf("stream of %s, not 120 s", l.c.Duration))
	}
	if l.c.Repeats < 20 {
		short = append(short, fmt.Sprintf("%s, not 20", plural(l.c.Repeats, "run")))
	}
	if len(done) > 0 {
		for _, d := range done[0].Latency {
			if d != nil && d.Samples < 500 {
				short = append(short, fmt.Sprintf("%d frames timed, not 500", d.Samples))
				break
			}
		}
	}
	return against(", by RFC 8219", short)
}

// against is what a figure is called: by the rule, or like it with what is different.
func against(rule string, short []string) string {
	if len(short) == 0 {
		return rule
	}
	out := rule + " but for: "
	for i, s := range short {
		if i > 0 {
			out += "; "
		}
		out += s
	}
	return out
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
