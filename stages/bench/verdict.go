package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"plumb/providers"
	"plumb/stages/bench/search"
)

// wireOverhead is what each frame takes on the wire beside itself: 8 bytes of preamble and start delimiter, 12 of inter-frame gap
// (IEEE 802.3).
const wireOverhead = 20

// LineRateFPS is the theoretical maximum of frames per second on a link of the given bit rate (RFC 2544 appendix B): whole frames
// with preamble and gap.
func LineRateFPS(bps float64, frameSize int) float64 {
	return float64(uint64(bps / float64((frameSize+wireOverhead)*8)))
}

// point is one trial to make.
type point struct {
	cell
	repeat int // from 1; 0: before the repeats
	ask    search.Ask
}

// lasts is how long the stream is asked to be, with its steps.
func (p point) lasts() time.Duration {
	d := p.ask.Duration
	for _, s := range p.ask.Steps {
		d += s.Duration
	}
	return d
}

// due is how many frames each direction is asked for; 0 at maximum load, which asks for no number.
func (p point) due() float64 {
	if p.ask.Frames > 0 {
		return float64(p.ask.Frames)
	}
	n := p.ask.Load * p.ask.Duration.Seconds()
	for _, s := range p.ask.Steps {
		n += s.Load * s.Duration.Seconds()
	}
	return n
}

// measured is one attempt at a point as it came from the generator and the counters.
type measured struct {
	point
	attempt    int
	started    time.Time
	tolerance  float64 // see settings
	signed     bool
	directions int // asked for
	generator  string
	result     providers.TrialResult
	routes     []route // of a model none
	names      []string
	moved      []providers.Counters // nil: the counters could not be read
	trouble    []string             // what makes the trial not count, found around it
	notes      []string
	watched    []providers.Observation
}

// trial makes the row: sums, rates, ledger and whether it counts. It judges no goal: what counts is a PASS here.
func (m measured) trial() Trial {
	res := m.result
	t := Trial{FrameSize: m.size, Flows: m.flows, Phase: m.ask.Phase, Repeat: m.repeat, Attempt: m.attempt, Started: m.started,
		Intended: m.lasts().Seconds(), Duration: res.Duration.Seconds(), Frames: m.ask.Frames, Burst: m.ask.Burst, Slice: m.ask.Slice.Seconds(),
		Offered: m.ask.Load * float64(m.directions), Observations: m.watched, Notes: slices.Concat(m.notes, res.Notes)}
	for _, s := range m.ask.Steps {
		t.Steps = append(t.Steps, Step{Offered: s.Load * float64(m.directions), Duration: s.Duration.Seconds()})
	}
	for i, d := range res.Directions {
		t.LossSlices = search.AddLoss(t.LossSlices, i == 0, d.LossSlices)
		t.Sent, t.Unsent, t.Received = t.Sent+d.Sent, t.Unsent+d.Unsent, t.Received+d.Received
		t.Duplicated, t.Reordered, t.Surplus = t.Duplicated+d.Duplicated, t.Reordered+d.Reordered, t.Surplus+d.Surplus
		t.LossRatio = max(t.LossRatio, lossRatio(d, m.ask.Load))
		t.LastLoss = later(t.LastLoss, d.LastLoss)
		if d.Outage != nil && (t.Outage == nil || d.Outage.Seconds() > *t.Outage) {
			t.Outage, t.OutageAt = seconds(d.Outage), seconds(d.OutageAt)
		}
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
		t.RxBitrate = t.RxRate * float64(m.size+wireOverhead) * 8
	}
	if m.moved != nil {
		for i, d := range res.Directions {
			if i < len(m.routes) {
				refused := d.Unsent
				if m.ask.Load == 0 {
					refused = 0
				}
				t.Ledger = append(t.Ledger, m.routes[i].ledger(m.generator, d, refused, m.moved)...)
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

// lossRatio is the share of frames that did not arrive. At an offered load a frame that the device's full queue refused is lost; at maximum only what was
// sent can be. More received than sent is no loss: invalid says so.
func lossRatio(d providers.Direction, load float64) float64 {
	due := float64(d.Sent)
	if load > 0 {
		due += float64(d.Unsent)
	}
	if due == 0 {
		return 0
	}
	return max(0, (due-float64(d.Received))/due)
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}

func later(have *float64, d *time.Duration) *float64 {
	if s := seconds(d); s != nil && (have == nil || *s > *have) {
		return s
	}
	return have
}

// invalid says why the trial must not count: nil when it does.
func (m measured) invalid(t Trial) []string {
	out := slices.Concat(m.result.Health, m.trouble)
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if len(m.result.Directions) != m.directions {
		add("the generator reported %d directions of %d", len(m.result.Directions), m.directions)
	}
	switch want := t.Intended; {
	case t.Duration <= 0:
		add("the generator reported no duration")
	case m.ask.Frames == 0 && t.Duration < want*(1-m.tolerance):
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
		if d.Duplicated > 0 {
			add("%s%d frames came back more than once: the path has a loop, or copies frames", way, d.Duplicated)
		}
		if d.Surplus > 0 && !m.signed {
			add("%s%d frames came that the generator had not sent, and it cannot tell its own frames from others", way, d.Surplus)
		}
		if why := m.offRate(d, t.Duration); why != "" {
			add("%s%s", way, why)
		}
	}
	if !m.signed {
		for i, h := range t.Ledger {
			if h.Lost < 0 && h.Role != Receiver { // at the receiver it has been said
				add("%d frames more at %s than left %s: something else sends into the path, and the generator cannot tell its own frames", -h.Lost, h.Name, t.Ledger[i-1].Name)
			}
		}
	}
	if !m.ask.Disturb {
		for i, c := range m.moved {
			if c.LinkResets > 0 {
				add("the link of %s went up or down %d times during the trial", m.names[i], c.LinkResets)
			}
		}
	}
	return out
}

// offRate says that the tester did not offer what it was asked to. What the device's full queue refused was offered: it is the device's loss.
func (m measured) offRate(d providers.Direction, lasted float64) string {
	due, offered := m.due(), float64(d.Sent+d.Unsent)
	switch {
	case due == 0 || d.Sent == 0:
		return ""
	case m.ask.Frames > 0:
		if d.Sent+d.Unsent != uint64(m.ask.Frames) {
			return fmt.Sprintf("the sender offered %d frames of %d", d.Sent+d.Unsent, m.ask.Frames)
		}
		return ""
	case lasted > 0: // a stream that took longer by a little was asked for more
		due *= lasted / m.lasts().Seconds()
	}
	if math.Abs(offered-due) > due*m.tolerance+1 {
		return fmt.Sprintf("the sender reached %.1f %% of the offered load", 100*offered/due)
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
