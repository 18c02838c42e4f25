package engine

import (
	"sync/atomic"

	"plumb/providers/loadgen/frame"
	"plumb/providers/loadgen/port"
	"plumb/providers/loadgen/tally"
)

// receiver takes frames from one queue of a port and counts them. It belongs to one thread.
type receiver struct {
	queue   port.RxQueue
	port    int
	token   uint16
	sample  uint64
	slices  map[int]*slices // by stream, of distinct frames; nil: nobody asks
	flows   []*flow         // by the number of the sender; nil: its frames have no business at this port
	surplus uint64
}

// flow is what one receiver gets of one sender.
type flow struct {
	tally  *tally.Tally
	sent   *atomic.Uint64 // by the sender: a frame beyond it was never sent
	limit  uint64         // sent, as last read
	top    uint64         // one more than the highest number that came
	slices *slices        // of its stream, which the receiver's other flows of that stream count in too

	shared arrived // what other threads see
}

// arrived is kept apart, as sent is.
type arrived struct {
	_        [64]byte
	top      atomic.Uint64
	received atomic.Uint64
	_        [48]byte
}

// step counts what has come, at most a batch, and says how much that was. now tells the time since the stream's start.
func (r *receiver) step(now func() int64) int {
	frames := r.queue.Receive(batch)
	if len(frames) == 0 {
		return 0
	}
	prefetchRead(frames)
	t := stamp(now())
	for _, f := range frames {
		stream, seq, stamp, ok := frame.Parse(f, r.token)
		if !ok || int(stream) >= len(r.flows) || r.flows[stream] == nil || !r.flows[stream].has(seq) {
			r.surplus++
			continue
		}
		w := r.flows[stream]
		if seq >= w.top {
			w.top = seq + 1
		}
		before := w.tally.Received()
		w.tally.Record(seq, stamp, t, seq&r.sample == 0)
		if w.slices != nil && w.tally.Received() != before {
			w.slices.add(stamp, 1)
		}
	}
	r.queue.Release()
	for _, w := range r.flows {
		if w != nil {
			w.publish()
		}
	}
	return len(frames)
}

// has says whether so many frames were sent.
func (w *flow) has(seq uint64) bool {
	if seq >= w.limit {
		w.limit = w.sent.Load()
	}
	return seq < w.limit
}

// publish lets other threads know. A store costs more than a look at whether it is needed.
func (w *flow) publish() {
	if got := w.tally.Received(); got != w.shared.received.Load() {
		w.shared.received.Store(got)
		w.shared.top.Store(w.top)
	}
}

// window limits the frames of one sender that are in flight: sent, and neither back nor overtaken by one that is.
type window struct {
	size   uint64
	flows  []*flow // of the sender, at all receivers
	gone   uint64  // frames sent before it was written off what had not come back
	full   bool    // since when it is full, or the last frame came back:
	since  int64
	seen   uint64 // highest number and 1 that was back then
	closed bool   // full when the sender looked last
}

// windowLimit is how long nothing may come back of a window that is full: then what was in flight is taken for lost, or the stream would stand still
// for ever.
const windowLimit = int64(100e6)

// room says how many more may be sent at time t.
func (w *window) room(t int64, sent uint64) int {
	seen := w.gone
	for _, f := range w.flows {
		seen = max(seen, f.shared.top.Load())
	}
	flight := sent - min(sent, seen)
	if w.closed = flight >= w.size; !w.closed {
		w.full = false
		return int(w.size - flight)
	}
	if !w.full || seen > w.seen {
		w.full, w.seen, w.since = true, seen, t
	}
	if t-w.since > windowLimit {
		w.gone, w.full = sent, false
		return int(w.size)
	}
	return 0
}
