package bench

import (
	"math"
	"time"

	"plumb/providers"
	"plumb/stages/bench/search"
)

// seen is a row as a search sees it. It is made from what the row keeps and nothing else, so that a row of an interrupted run says just what it said then.
func (t Trial) seen(ask search.Ask) search.Seen {
	s := search.Seen{Ask: ask, Effective: time.Duration(math.Round(t.Duration * 1e9)), Sent: t.Sent, Unsent: t.Unsent, Received: t.Received, Loss: t.LossRatio,
		LossSlices: t.LossSlices, LastLoss: span(t.LastLoss), Outage: span(t.Outage), OutageAt: span(t.OutageAt)}
	ways := t.Directions
	if len(ways) == 0 {
		ways = []Direction{{Sent: t.Sent, Unsent: t.Unsent, Received: t.Received, Latency: t.Latency}}
	}
	for i, d := range ways {
		tx, rx := float64(d.Sent)/t.Duration, float64(d.Received)/t.Duration
		if i == 0 || tx < s.TxRate {
			s.TxRate = tx
		}
		if i == 0 || rx < s.RxRate {
			s.RxRate = rx
		}
		s.Latency = append(s.Latency, d.Latency)
	}
	for _, h := range t.Ledger {
		s.Unexplained += uint64(max(h.Unexplained, -h.Unexplained))
	}
	return s
}

func span(s *float64) *time.Duration {
	if s == nil {
		return nil
	}
	d := time.Duration(math.Round(*s * 1e9))
	return &d
}

// answers says whether the row is of a trial that was asked for like this.
func (t Trial) answers(p point, directions int) bool {
	n := float64(directions)
	same := t.FrameSize == p.size && t.Flows == p.flows && t.Repeat == p.repeat && t.Phase == p.ask.Phase && t.Offered == p.ask.Load*n &&
		t.Intended == p.lasts().Seconds() && t.Frames == p.ask.Frames && t.Burst == p.ask.Burst && t.Slice == p.ask.Slice.Seconds() && len(t.Steps) == len(p.ask.Steps)
	for i, s := range p.ask.Steps {
		same = same && t.Steps[i] == Step{Offered: s.Load * n, Duration: s.Duration.Seconds()}
	}
	return same
}

// request is what the generator is asked for.
func (p point) request(t providers.Traffic, drain time.Duration) providers.TrialRequest {
	t.FrameSize, t.Flows = p.size, p.flows
	return providers.TrialRequest{Traffic: t, Load: p.ask.Load, Duration: p.ask.Duration, Frames: p.ask.Frames, Burst: p.ask.Burst, Steps: p.ask.Steps,
		Slice: p.ask.Slice, DisturbAfter: p.ask.After, Drain: drain}
}
