package bench

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"plumb/providers"
)

// wireOverhead is what each frame takes on the wire beside itself: 8 bytes of preamble and start delimiter, 12 of inter-frame gap
// (IEEE 802.3).
const wireOverhead = 20

// LineRateFPS is the theoretical maximum of frames per second on a link of the given bit rate (RFC 2544 appendix B): whole frames
// with preamble and gap.
func LineRateFPS(bps float64, frameSize int) float64 {
	return float64(uint64(bps / float64((frameSize+wireOverhead)*8)))
}

// measured is one attempt at a point as it came from the generator and the counters.
type measured struct {
	point     point
	attempt   int
	started   time.Time
	tolerance float64 // see settings
	signed    bool
	generator string
	result    providers.TrialResult
	routes    []route
	moved     []providers.Counters // nil: the counters could not be read
	trouble   []string             // what makes the trial not count, found around it
	watched   []providers.Observation
}

// trial makes the row: sums, rates, ledger and whether it counts. It judges no goal: what counts is a PASS here.
func (m measured) trial() Trial {
	res := m.result
	t := Trial{FrameSize: m.point.size, Flows: m.point.flows, Repeat: m.point.repeat, Attempt: m.attempt, Started: m.started,
		Duration: res.Duration.Seconds(), Offered: m.point.load * float64(max(1, len(res.Directions))), Observations: m.watched}
	for _, d := range res.Directions {
		t.Sent, t.Unsent, t.Received = t.Sent+d.Sent, t.Unsent+d.Unsent, t.Received+d.Received
	}
	if len(res.Directions) == 1 {
		t.Latency = res.Directions[0].Latency
	} else {
		for _, d := range res.Directions {
			t.Directions = append(t.Directions, Direction{Sent: d.Sent, Unsent: d.Unsent, Received: d.Received, Latency: d.Latency})
		}
	}
	if t.Duration > 0 {
		t.TxRate, t.RxRate = float64(t.Sent)/t.Duration, float64(t.Received)/t.Duration
		t.RxBitrate = t.RxRate * float64(m.point.size+wireOverhead) * 8
	}
	if t.Sent > 0 {
		t.LossRatio = (float64(t.Sent) - float64(t.Received)) / float64(t.Sent)
	}
	if m.moved != nil {
		for i, d := range res.Directions {
			if i < len(m.routes) {
				t.Ledger = append(t.Ledger, m.routes[i].ledger(m.generator, d.Sent, d.Received, d.RxDrops, m.moved)...)
			}
		}
	}
	t.Reasons = m.invalid(t)
	t.Verdict = Pass
	if len(t.Reasons) > 0 {
		t.Verdict = Invalid
	}
	return t
}

// invalid says why the trial must not count: nil when it does.
func (m measured) invalid(t Trial) []string {
	out := slices.Concat(m.result.Health, m.trouble)
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if want := len(m.routes); len(m.result.Directions) != want {
		add("the generator reported %d directions of %d", len(m.result.Directions), want)
	}
	switch want := m.point.duration.Seconds(); {
	case t.Duration <= 0:
		add("the generator reported no duration")
	case t.Duration < want*(1-m.tolerance):
		add("the stream lasted %.3f s instead of %.3f s", t.Duration, want)
	}
	for i, d := range m.result.Directions {
		way := ""
		if len(m.result.Directions) > 1 {
			way = fmt.Sprintf("direction %d: ", i)
		}
		switch {
		case d.Sent == 0:
			add("%sthe generator sent nothing", way)
		case d.Received > d.Sent:
			add("%s%d frames more came back than were sent", way, d.Received-d.Sent)
		case d.Received == 0:
			add("%snothing came back although the path was proved: a link, the VNF or the switch has gone", way)
		}
		if d.RxDrops > 0 {
			add("%sthe tester dropped %d frames that had come back: its receiver was too slow", way, d.RxDrops)
		}
		if rate := float64(d.Sent) / t.Duration; m.point.load > 0 && t.Duration > 0 && d.Sent > 0 &&
			(rate < m.point.load*(1-m.tolerance) || rate > m.point.load*(1+m.tolerance)) {
			add("%sthe sender reached %.1f %% of the offered load", way, 100*rate/m.point.load)
		}
	}
	if !m.signed {
		for i, h := range t.Ledger {
			if h.Lost < 0 && h.Role != Receiver { // at the receiver it has been said
				add("%d frames more at %s than left %s: something else sends into the path, and the generator cannot tell its own frames", -h.Lost, h.Name, t.Ledger[i-1].Name)
			}
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
