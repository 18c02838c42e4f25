// Package tally counts what came back of a stream: how many frames, how often, in which order, how late, and when the last one got lost. It is pure: it
// knows frames only by sequence number and time stamps. Record neither allocates nor locks.
//
// There is one Tally per stream and receiving queue. Sum puts those of a stream together with what its sender knows. What only one queue can
// tell is said there. Start reading at Record and Sum.
package tally

import "math/bits"

// DefaultWindow in frames is eight rings of 32768.
const DefaultWindow = 1 << 18

// A Tally belongs to one thread until Sum. Sequence numbers begin at 0. Stamps are nanoseconds of one monotonic clock, above 0; where clocks of
// CPUs differ, a delay may come out negative: it counts as 0 and is mentioned (Result.Skewed).
type Tally struct {
	window uint64   // frames, a power of two
	seen   []uint64 // one bit per frame from low to less than end: a ring of words
	stamps []uint64 // a ring; valid only of frames that came late or right behind a missing one: all that LastLoss needs
	low    uint64   // low and end are multiples of 64
	end    uint64
	next   uint64 // one more than the highest sequence number so far

	received, duplicated, reordered, late uint64

	gone   gone
	parts  parts
	gaps   gaps
	delays *delays
}

// gone is the last missing frame among those that the window has left behind.
type gone struct {
	any   bool
	seq   uint64
	after uint64 // stamp of the frame behind it; 0 until that has come
}

// New makes a Tally that remembers a window of so many frames, ending with the highest that came, rounded up to a power of two and at least 128;
// 0: DefaultWindow. It moves by 64 frames, so that up to 63 at its beginning may be gone. Memory is 8.1 bytes per frame of the window, most of it
// touched only by loss, and 0.8 MB for latencies and parts.
func New(window int) *Tally {
	if window <= 0 {
		window = DefaultWindow
	}
	size := uint64(128)
	for size < uint64(window) {
		size *= 2
	}
	return &Tally{window: size, seen: make([]uint64, size/64), stamps: make([]uint64, size), delays: newDelays()}
}

// Reset makes t as new, and keeps its memory.
func (t *Tally) Reset() {
	clear(t.seen)
	t.delays.reset()
	*t = Tally{window: t.window, seen: t.seen, stamps: t.stamps, delays: t.delays}
}

// Received is how many distinct frames came so far.
func (t *Tally) Received() uint64 { return t.received }

// Record counts a frame that was sent at txStamp and found by a thread which had looked at its clock at now. With sampled, its delay is kept.
//
// A frame that comes again counts as duplicated, and one that comes after a higher number as reordered. Both are exact within the window. An older
// frame cannot be told from a duplicate: it counts as Late and not as received, so that in doubt a frame is lost rather than good. The window must
// hold all frames that can overtake another on the way: the rings times the queues.
func (t *Tally) Record(seq, txStamp, now uint64, sampled bool) {
	t.gaps.record(now)
	if seq >= t.next {
		if seq >= t.end {
			t.slide(seq, txStamp)
		}
		if seq != t.next {
			t.stamps[seq&(t.window-1)] = txStamp
		}
		t.next = seq + 1
		t.seen[t.word(seq)] |= 1 << (seq & 63)
	} else if !t.fill(seq, txStamp) {
		return
	}
	t.received++
	if sampled {
		t.delays.record(seq, int64(now-txStamp))
	}
}

// word is where the bit of a frame is.
func (t *Tally) word(seq uint64) uint64 { return seq & (t.window - 1) >> 6 }

// fill counts a frame that is not the highest, and says whether it is the first with its number.
func (t *Tally) fill(seq, txStamp uint64) bool {
	if seq < t.low {
		t.late++
		return false
	}
	word, bit := &t.seen[t.word(seq)], uint64(1)<<(seq&63)
	if *word&bit != 0 {
		t.duplicated++
		return false
	}
	*word |= bit
	t.reordered++
	t.stamps[seq&(t.window-1)] = txStamp
	if t.gone.any && seq == t.gone.seq+1 {
		t.gone.after = txStamp
	}
	return true
}

// slide moves the window, by whole words, until seq is in the last one.
func (t *Tally) slide(seq, txStamp uint64) {
	end := seq&^63 + 64
	low := t.low
	if end > t.window {
		low = end - t.window
	}
	for base := t.low; base < min(low, t.end); base += 64 {
		t.leave(base)
	}
	if low > t.end { // a jump of more than the window: nothing of what is in between was ever seen
		t.gone = gone{any: true, seq: low - 1}
	}
	t.low, t.end = low, end
	t.parts.begin(seq, txStamp)
}

// leave settles the word of frames from base, which the window leaves behind.
func (t *Tally) leave(base uint64) {
	word := &t.seen[t.word(base)]
	t.parts.add(base, bits.OnesCount64(*word))
	if *word != ^uint64(0) {
		t.gone = gone{any: true, seq: base + 63 - uint64(bits.LeadingZeros64(^*word))}
		if behind := t.gone.seq + 1; behind < t.next && t.seen[t.word(behind)]&(1<<(behind&63)) != 0 {
			t.gone.after = t.stamps[behind&(t.window-1)]
		}
	}
	*word = 0
}

// lastMissing is the stamp of the frame that came behind the last missing one below the highest that came; ok is false when none is missing.
func (t *Tally) lastMissing() (stamp uint64, ok bool) {
	for seq := t.next; seq > t.low; seq-- {
		if t.seen[t.word(seq-1)]&(1<<((seq-1)&63)) == 0 {
			return t.stamps[seq&(t.window-1)], true
		}
	}
	return t.gone.after, t.gone.any
}
