package engine

import (
	"fmt"
	"sync/atomic"

	"plumb/providers/loadgen/frame"
	"plumb/providers/loadgen/port"
)

// batch is how many frames go to a port, or are taken from it, at once. It is small enough for one thread that does both to alternate between them
// long before a ring overflows.
const batch = 64

// sender sends the part of a stream that goes through one queue. It belongs to one thread; what others read is atomic.
type sender struct {
	queue   *txQueue
	builder *frame.Builder
	who     int32 // number of the sender: which frames in the queue's buffers are its own
	pace    *pace
	catchUp uint64
	sample  uint64  // a power of two less 1: frames whose number has none of these bits are stamped when they are written
	now     clock   // since the start of the stream
	window  *window // nil: an open loop

	// done counts frames whose time is over one way or another: sent, refused or missed.
	done, sent, unsent, behind uint64
	refusedLast                int64   // when a frame was refused last, and 1; 0: never
	slices                     *slices // of what was due, sent or refused; nil: nobody asks
	stall                      int64   // since when the port takes nothing of a stream that has a number of frames only; 0: it does
	first, last                int64   // when frames were sent; last is also that of the end of the schedule
	ended                      bool
	short                      bool // ended before its time

	shared sent // what other threads see
}

// sent is kept apart from what a thread writes all the time, so that readers do not slow the writer down.
type sent struct {
	_     [64]byte
	count atomic.Uint64
	over  atomic.Bool
	_     [48]byte
}

// txQueue is a port's queue with what is in its buffers. All its senders are of one thread.
type txQueue struct {
	port.TxQueue
	held []held // by Slot.ID
}

// held says which frame a buffer holds, so that only what differs has to be written.
type held struct {
	who  int32 // sender's number and 1; 0: nobody's
	size int32
}

// stallLimit is how long a port may take nothing when a stream ends only after a number of frames: as the path's proof does. The rest is then
// unsent.
const stallLimit = int64(1e9)

// step sends what is due at time t, t ns after the stream's start, at most a batch. It says whether it sent anything.
func (s *sender) step(t int64) (bool, error) {
	due, passed := s.pace.at(t, s.done)
	unpaced := due == noLimit || s.pace.unpaced()
	if late := due - s.done; !unpaced && late > s.catchUp {
		s.forfeit(late-s.catchUp, t)
	}
	n := int(min(due-s.done, batch))
	if s.window != nil {
		n = min(n, s.window.room(t, s.sent))
	}
	if n == 0 {
		if s.window != nil && t >= s.pace.lasted { // a window that is closed at the end of the schedule opens too late
			s.refuse(due-s.done, t)
			s.done = due
		}
		return false, s.finish(t)
	}
	got, err := s.send(n, t, unpaced && n == batch && s.queue.Depth() >= 4*batch)
	if err != nil {
		return false, err
	}
	switch {
	case got == n:
		s.stall = 0
	case unpaced:
		s.stalled(t, got)
	case passed > s.done: // the port is full: it refuses also what else is due
		s.refuse(passed-s.done, t)
		s.done = passed
	}
	return got > 0, s.finish(t)
}

// send writes and submits up to n frames; fewer when the port has no room. With whole it waits for room for all: a port that sets the rate is nearly full all the time, and gets
// a batch at once rather than a few frames each time it has taken some.
func (s *sender) send(n int, t int64, whole bool) (int, error) {
	slots := s.queue.Reserve(n)
	if len(slots) == 0 || whole && len(slots) < n {
		return 0, nil
	}
	prefetchWrite(slots, s.builder.Size(s.sent)-frame.SignatureSize)
	for i := range slots {
		s.write(&slots[i], s.sent+uint64(i), t)
	}
	s.shared.count.Store(s.sent + uint64(len(slots))) // before the first can come back
	s.queue.Submit(len(slots))
	if err := s.queue.Flush(); err != nil {
		return 0, fmt.Errorf("send: %w", err)
	}
	if s.sent == 0 {
		s.first = t
	}
	s.sent += uint64(len(slots))
	s.done += uint64(len(slots))
	s.last = t
	return len(slots), nil
}

func (s *sender) write(slot *port.Slot, n uint64, t int64) {
	at := stamp(t)
	if n&s.sample == 0 {
		at = stamp(s.now())
	}
	if s.slices != nil {
		s.slices.add(at, 1)
	}
	size := s.builder.Size(n)
	if slot.ID >= len(s.queue.held) {
		s.queue.held = append(s.queue.held, make([]held, slot.ID+1-len(s.queue.held))...) // the first time around only
	}
	if h := &s.queue.held[slot.ID]; h.who == s.who+1 && h.size == int32(size) {
		slot.Len = s.builder.Restamp(slot.Buf, n, at)
		return
	}
	s.queue.held[slot.ID] = held{who: s.who + 1, size: int32(size)}
	slot.Len = s.builder.Write(slot.Buf, n, at)
}

// forfeit gives up frames that cannot be caught up. It is the other side's doing when the window was closed, and the tester's else.
func (s *sender) forfeit(n uint64, t int64) {
	s.done += n
	if s.window != nil && s.window.closed {
		s.refuse(n, t)
		return
	}
	s.behind += n
}

// refuse counts frames that were due and that the other side did not take.
func (s *sender) refuse(n uint64, t int64) {
	if n == 0 {
		return
	}
	s.unsent += n
	s.refusedLast = t + 1
	if s.slices != nil {
		s.slices.add(stamp(t), n)
	}
}

// stalled ends a stream of a number of frames whose port takes nothing for too long.
func (s *sender) stalled(t int64, got int) {
	switch {
	case s.pace.limit == noLimit:
	case got > 0:
		s.stall = 0
	case s.stall == 0:
		s.stall = max(1, t)
	case t-s.stall > stallLimit:
		s.unsent += s.pace.limit - s.done
		s.done = s.pace.limit
	}
}

// finish notes the end of the schedule.
func (s *sender) finish(t int64) error {
	if !s.ended && s.pace.over(t, s.done) {
		s.ended = true
		s.shared.over.Store(true)
	}
	return nil
}

// cut ends the schedule before its time.
func (s *sender) cut(t int64) {
	s.ended, s.short, s.last = true, true, t
	s.shared.over.Store(true)
}

// stamp is a time since the start of the stream as frames carry it: 0 is no time.
func stamp(t int64) uint64 { return uint64(max(0, t)) + 1 }
