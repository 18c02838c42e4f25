package tally

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plumb/providers"
)

const (
	longestDelay = 100_000_000_000 // ns: what takes longer counts as this in percentiles
	digits       = 3               // significant, of percentiles
)

// delays are those of the sampled frames, in nanoseconds.
type delays struct {
	all      *hdrhistogram.Histogram
	min, max int64
	sum      float64
	clipped  uint64 // above longestDelay
	skewed   uint64 // below 0

	// Differences to the sample before, by sign, since a histogram has no negative values. The sum is of absolute values.
	earlier, later   *hdrhistogram.Histogram
	minDiff, maxDiff int64
	sumDiff          float64
	lastSeq          uint64
	last             int64
	begun            bool
}

func newDelays() *delays {
	d := &delays{
		all:     hdrhistogram.New(1, longestDelay, digits),
		earlier: hdrhistogram.New(1, longestDelay, digits),
		later:   hdrhistogram.New(1, longestDelay, digits),
	}
	d.reset()
	return d
}

func (d *delays) reset() {
	d.all.Reset()
	d.earlier.Reset()
	d.later.Reset()
	*d = delays{all: d.all, earlier: d.earlier, later: d.later, min: math.MaxInt64, minDiff: math.MaxInt64, maxDiff: math.MinInt64}
}

// record keeps the delay of a frame. One that comes after a later sample has a delay, but no difference: RFC 8219 section 7.3.2 goes by the order
// of sending.
func (d *delays) record(seq uint64, delay int64) {
	if delay < 0 {
		d.skewed++
		delay = 0
	}
	if delay > longestDelay {
		d.clipped++
	}
	put(d.all, delay)
	d.min, d.max = min(d.min, delay), max(d.max, delay)
	d.sum += float64(delay)
	if d.begun && seq < d.lastSeq {
		return
	}
	if d.begun {
		diff := delay - d.last
		d.minDiff, d.maxDiff = min(d.minDiff, diff), max(d.maxDiff, diff)
		if diff < 0 {
			put(d.earlier, -diff)
			d.sumDiff -= float64(diff)
		} else {
			put(d.later, diff)
			d.sumDiff += float64(diff)
		}
	}
	d.begun, d.lastSeq, d.last = true, seq, delay
}

// put counts a value that is not negative, at the edge if it is too long. Then RecordValue has nothing to refuse.
func put(h *hdrhistogram.Histogram, v int64) {
	_ = h.RecordValue(min(v, longestDelay))
}

// join adds the delays of another queue.
func (d *delays) join(o *delays) {
	d.all.Merge(o.all)
	d.earlier.Merge(o.earlier)
	d.later.Merge(o.later)
	d.min, d.max, d.sum = min(d.min, o.min), max(d.max, o.max), d.sum+o.sum
	d.minDiff, d.maxDiff, d.sumDiff = min(d.minDiff, o.minDiff), max(d.maxDiff, o.maxDiff), d.sumDiff+o.sumDiff
	d.clipped += o.clipped
	d.skewed += o.skewed
}

// latency is nil without samples.
func (d *delays) latency() *providers.Latency {
	n := d.all.TotalCount()
	if n == 0 {
		return nil
	}
	// A histogram gives the upper end of a class, which may be above the greatest value.
	at := func(percent float64) float64 {
		return float64(min(max(d.all.ValueAtPercentile(percent), d.min), d.max))
	}
	l := &providers.Latency{
		Samples: uint64(n), Min: float64(d.min), Max: float64(d.max), Mean: d.sum / float64(n),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9),
	}
	l.PDV = l.P999 - l.Min
	if pairs := d.earlier.TotalCount() + d.later.TotalCount(); pairs > 0 {
		l.Jitter = d.sumDiff / float64(pairs)
		l.IPDV = &providers.IPDV{
			Min: float64(d.minDiff), Max: float64(d.maxDiff),
			P001: d.difference(0.1), P50: d.difference(50), P999: d.difference(99.9),
		}
	}
	return l
}

// difference is a percentile of the differences: the negative ones come first, the greatest of them before all.
func (d *delays) difference(percent float64) float64 {
	below, above := d.earlier.TotalCount(), d.later.TotalCount()
	rank := min(max(int64(percent/100*float64(below+above)+0.5), 1), below+above)
	var v int64
	if rank <= below {
		v = -atRank(d.earlier, below-rank+1)
	} else {
		v = atRank(d.later, rank-below)
	}
	return float64(min(max(v, d.minDiff), d.maxDiff))
}

// atRank is the value of a rank, from 1 to the count of all.
func atRank(h *hdrhistogram.Histogram, rank int64) int64 {
	return h.ValueAtPercentile(100 * float64(rank) / float64(h.TotalCount()))
}
