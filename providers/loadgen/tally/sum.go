package tally

import (
	"fmt"
	"time"

	"plumb/providers"
)

// Sent is what the sender of a stream knows.
type Sent struct {
	Frames      uint64 // sequence numbers from 0 to less than this were sent
	First, Last uint64 // stamps of the first and the last frame
}

// Result is what became of a stream. Received + Lost is what was sent.
type Result struct {
	Received   uint64 // distinct frames
	Lost       uint64
	Duplicated uint64 // came again
	Reordered  uint64 // came after a higher number
	Late       uint64 // came when the window had gone on: lost or duplicates, nobody knows
	// LastLoss is when the last lost frame had been sent, since the first frame; nil: nothing was lost.
	LastLoss *time.Duration
	// Outage is the longest time between two frames in which none came, and OutageAt when it began, since the first frame was sent; nil: fewer
	// than two frames came, or all at one time, or it is not known (Sum).
	Outage, OutageAt *time.Duration
	Latency          *providers.Latency // nil: no samples
	Clipped          uint64             // samples above 100 s: as 100 s in the percentiles
	Skewed           uint64             // samples with a delay below 0: as 0
}

// Sum gives the result of a stream. The tallies are its receivers', one for each queue; they stay as they are. An error says that more came back than was
// sent: then the result is not to be trusted.
//
// From one Tally all is exact that is within its window. LastLoss is the stamp of the next frame that came, and so one frame later than the truth;
// of a missing tail it is the stamp of the last frame. Outage is as exact as the thread looked for frames often.
//
// With several, Received, Duplicated, Reordered and Late are sums: a duplicate in another queue counts as received (so that a lost frame goes
// unnoticed for it), and reordering between queues does not count. LastLoss is known to a 2048th of the stream, or 64 frames if that is more, and
// never too early. Outage is the longest time in which all queues were silent; it is nil unless the 32 longest gaps of each queue, which are kept,
// prove that there was none longer. Jitter and IPDV are of pairs within a queue.
func Sum(sent Sent, ts ...*Tally) (Result, error) {
	var r Result
	var err error
	for _, t := range ts {
		r.Received += t.received
		r.Duplicated += t.duplicated
		r.Reordered += t.reordered
		r.Late += t.late
		if t.next > sent.Frames {
			err = fmt.Errorf("frame number %d came back, but only %d were sent", t.next-1, sent.Frames)
		}
	}
	if r.Received <= sent.Frames {
		r.Lost = sent.Frames - r.Received
	} else if err == nil {
		err = fmt.Errorf("%d distinct frames came back, but only %d were sent", r.Received, sent.Frames)
	}
	if stamp, ok := lastMissing(sent, ts); ok {
		r.LastLoss = since(sent.First, stamp)
	}
	if g, ok := outage(ts); ok {
		r.Outage, r.OutageAt = since(0, g.length()), since(sent.First, g.begin)
	}
	if len(ts) > 0 {
		d := ts[0].delays
		if len(ts) > 1 {
			d = newDelays()
			for _, t := range ts {
				d.join(t.delays)
			}
		}
		r.Latency, r.Clipped, r.Skewed = d.latency(), d.clipped, d.skewed
	}
	return r, err
}

func lastMissing(sent Sent, ts []*Tally) (stamp uint64, ok bool) {
	if len(ts) == 0 {
		return sent.Last, sent.Frames > 0
	}
	if len(ts) == 1 {
		if sent.Frames > ts[0].next {
			return sent.Last, true
		}
		return ts[0].lastMissing()
	}
	p := ts[0].settled()
	for _, t := range ts[1:] {
		p.join(t.settled())
	}
	return p.lastMissing(sent)
}

// since is never negative, whatever clocks do.
func since(begin, stamp uint64) *time.Duration {
	d := max(time.Duration(stamp-begin), 0)
	return &d
}

// Fill writes what a direction has of a result; Offered, Sent, Unsent, Surplus and RxDrops are the caller's.
func (r Result) Fill(d *providers.Direction) {
	d.Received, d.Duplicated, d.Reordered = r.Received, r.Duplicated, r.Reordered
	d.Latency, d.LastLoss, d.Outage, d.OutageAt = r.Latency, r.LastLoss, r.Outage, r.OutageAt
}

// Notes are what a reader of the trial should know, for people: without, nil.
func (r Result) Notes() []string {
	var notes []string
	if r.Late > 0 {
		notes = append(notes, fmt.Sprintf("%d frames came so late that they could not be told from duplicates any more; they count as lost", r.Late))
	}
	if r.Clipped > 0 {
		notes = append(notes, fmt.Sprintf("%d latency samples are above 100 s and count as 100 s in the percentiles", r.Clipped))
	}
	if r.Skewed > 0 {
		notes = append(notes, fmt.Sprintf("%d latency samples came out negative and count as 0: the clocks of the CPUs differ", r.Skewed))
	}
	return notes
}
