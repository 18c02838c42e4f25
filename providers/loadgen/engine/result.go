package engine

import (
	"time"

	"plumb/providers"
	"plumb/providers/loadgen/port"
	"plumb/providers/loadgen/tally"
)

// result puts together what senders and receivers counted. It is called when no thread runs any more.
func (t *trial) result(before, after []port.Stats) Result {
	t.settle()
	res := Result{Duration: t.duration()}
	for i := range t.req.Streams {
		d, health, notes := t.direction(i)
		res.Directions = append(res.Directions, d)
		res.Health, res.Notes = append(res.Health, health...), append(res.Notes, notes...)
	}
	for _, s := range t.senders {
		res.Behind += s.behind
	}
	for _, w := range t.threads {
		res.LongestStop = max(res.LongestStop, w.stop)
	}
	t.surplus(&res)
	for i := range after {
		res.LinkChanges += after[i].Links - before[i].Links
		if n := after[i].RxDrops - before[i].RxDrops; n > 0 {
			res.Directions[t.arriving(i)].RxDrops += n
		}
	}
	return res
}

// settle takes back what the other side has not taken: it was never sent. With several streams in one queue nobody knows whose the last frames are; they are not
// those that came back.
func (t *trial) settle() {
	left := map[*txQueue]uint64{}
	for n, s := range t.senders {
		if _, seen := left[s.queue]; !seen {
			left[s.queue] = uint64(s.queue.Pending())
		}
		take := min(left[s.queue], s.sent-min(s.sent, t.received(n)))
		left[s.queue] -= take
		s.sent -= take
		s.unsent += take
	}
}

// received counts distinct frames of sender n.
func (t *trial) received(n int) uint64 {
	var got uint64
	for _, r := range t.receivers {
		if f := r.flows[n]; f != nil {
			got += f.tally.Received()
		}
	}
	return got
}

// direction sums up a stream: the parts of all its sending queues. Each has numbers of its own, so what depends on them is found out one by one.
func (t *trial) direction(stream int) (d providers.Direction, health, notes []string) {
	d.Offered = t.req.Load
	var all []*tally.Tally
	var sent tally.Sent
	var lastLoss *time.Duration
	var due, came []*slices
	for n, s := range t.senders {
		if t.of[n] != stream {
			continue
		}
		var own []*tally.Tally
		for _, r := range t.receivers {
			if f := r.flows[n]; f != nil {
				own = append(own, f.tally)
			}
		}
		all = append(all, own...)
		part := tally.Sent{Frames: s.sent, First: stamp(s.first), Last: stamp(s.last)}
		r, err := tally.Sum(part, own...)
		if err != nil {
			health = append(health, err.Error())
		}
		lastLoss = later(lastLoss, r.LastLoss)
		if s.refusedLast > 0 && !s.pace.unpaced() {
			refused := time.Duration(s.refusedLast - 1)
			lastLoss = later(lastLoss, &refused)
		}
		if s.slices != nil {
			due = append(due, s.slices)
		}
		sent.Frames += s.sent
		d.Sent += s.sent
		d.Unsent += s.unsent
	}
	for _, r := range t.receivers {
		if s := r.slices[stream]; s != nil {
			came = append(came, s)
		}
	}
	r, _ := tally.Sum(sent, all...) // what is wrong was said above
	r.LastLoss = lastLoss
	r.Fill(&d)
	d.LossSlices = lost(due, came)
	return d, health, r.Notes()
}

// surplus goes to the stream that arrives at the port, or to the first.
func (t *trial) surplus(res *Result) {
	for _, r := range t.receivers {
		res.Directions[t.arriving(r.port)].Surplus += r.surplus
	}
}

// arriving is the first stream that comes to a port; 0 when none does.
func (t *trial) arriving(at int) int {
	for i, s := range t.req.Streams {
		if s.To == at {
			return i
		}
	}
	return 0
}

// duration is as Result.Duration.
func (t *trial) duration() time.Duration {
	first, last, whole := int64(endless), int64(0), true
	for _, s := range t.senders {
		whole = whole && s.ended && !s.short
		if s.sent > 0 {
			first, last = min(first, s.first), max(last, s.last)
		}
	}
	switch {
	case t.req.Frames > 0:
	case whole:
		return max(length(t.req), time.Duration(last))
	default:
		return time.Duration(last)
	}
	return time.Duration(max(0, last-min(first, last)))
}
