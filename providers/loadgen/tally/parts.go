package tally

import "math/bits"

// partCount is how many parts of equal size a stream is cut into at most; more than half of that are used.
const partCount = 4096

// parts counts distinct frames by part of the sequence: what several queues have to tell each other to find out where in the stream frames are missing.
type parts struct {
	shift  uint // a part is 64<<shift frames
	last   int  // one more than the last part that has begun
	counts [partCount]uint64
	stamps [partCount]uint64 // of the first frame that came of a part; 0: none came
}

// begin notes that a word of frames begins with seq.
func (p *parts) begin(seq, stamp uint64) {
	for p.index(seq) >= partCount {
		p.halve()
	}
	if i := p.index(seq); i >= p.last {
		p.stamps[i], p.last = stamp, i+1
	}
}

// add counts frames of the word that begins at base. The part has begun, or one after it.
func (p *parts) add(base uint64, frames int) { p.counts[p.index(base)] += uint64(frames) }

func (p *parts) index(seq uint64) int { return int(min(seq>>6>>p.shift, partCount)) }

// halve makes one part out of two.
func (p *parts) halve() {
	for i := range partCount {
		var count, stamp uint64
		if i < partCount/2 {
			count, stamp = p.counts[2*i]+p.counts[2*i+1], p.stamps[2*i]
			if stamp == 0 {
				stamp = p.stamps[2*i+1]
			}
		}
		p.counts[i], p.stamps[i] = count, stamp
	}
	p.shift++
	p.last = (p.last + 1) / 2
}

// settled is the parts of t with the frames that are still in the window. t stays as it is.
func (t *Tally) settled() *parts {
	p := t.parts
	for base := t.low; base < t.end; base += 64 {
		p.add(base, bits.OnesCount64(t.seen[t.word(base)]))
	}
	return &p
}

// join adds the parts of another queue.
func (p *parts) join(o *parts) {
	other := *o
	for p.shift < other.shift {
		p.halve()
	}
	for other.shift < p.shift {
		other.halve()
	}
	for i := range partCount {
		p.counts[i] += other.counts[i]
		if s := other.stamps[i]; s != 0 && (p.stamps[i] == 0 || s < p.stamps[i]) {
			p.stamps[i] = s
		}
	}
	p.last = max(p.last, other.last)
}

// lastMissing is when the last part with missing frames had been sent: the stamp of the first frame that came of a later part, or else the last of the stream.
func (p *parts) lastMissing(sent Sent) (stamp uint64, ok bool) {
	stamp = sent.Last
	size := uint64(64) << p.shift
	if sent.Frames > uint64(p.last)*size {
		return stamp, true
	}
	for i := p.last - 1; i >= 0; i-- {
		if begin := uint64(i) * size; begin < sent.Frames && p.counts[i] < min(size, sent.Frames-begin) {
			return stamp, true
		}
		if p.stamps[i] != 0 {
			stamp = p.stamps[i]
		}
	}
	return 0, false
}
