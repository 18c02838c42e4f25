package tally

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
)

// naive remembers everything and reckons afterwards.
type naive struct {
	tx   []uint64 // stamps by sequence number
	came []arrival
}

type arrival struct {
	seq, now uint64
	sampled  bool
}

func (n *naive) result() Result {
	var r Result
	count := make([]int, len(n.tx))
	highest := -1
	var delays, diffs []float64
	lastSample := -1
	for _, a := range n.came {
		if count[a.seq]++; count[a.seq] > 1 {
			r.Duplicated++
			continue
		}
		r.Received++
		if int(a.seq) < highest {
			r.Reordered++
		}
		highest = max(highest, int(a.seq))
		if a.sampled {
			d := float64(a.now - n.tx[a.seq])
			if lastSample >= 0 && n.came[lastSample].seq < a.seq {
				diffs = append(diffs, d-float64(n.came[lastSample].now-n.tx[n.came[lastSample].seq]))
			}
			if lastSample < 0 || n.came[lastSample].seq < a.seq {
				lastSample = slices.Index(n.came, a)
			}
			delays = append(delays, d)
		}
	}
	r.Lost = uint64(len(n.tx)) - r.Received
	for m := len(n.tx) - 1; m >= 0; m-- {
		if count[m] == 0 {
			stamp := n.tx[len(n.tx)-1]
			if m < highest {
				stamp = n.tx[m+1]
			}
			d := time.Duration(stamp - n.tx[0])
			r.LastLoss = &d
			break
		}
	}
	for i := 1; i < len(n.came); i++ {
		if g := time.Duration(n.came[i].now - n.came[i-1].now); g > 0 && (r.Outage == nil || g > *r.Outage) {
			at := time.Duration(n.came[i-1].now - n.tx[0])
			r.Outage, r.OutageAt = &g, &at
		}
	}
	if len(delays) > 0 {
		r.Latency = spread(delays, diffs)
	}
	return r
}

func spread(delays, diffs []float64) *providers.Latency {
	at := func(v []float64, percent float64) float64 {
		return v[min(max(int(percent/100*float64(len(v))+0.5), 1), len(v))-1]
	}
	l := &providers.Latency{Samples: uint64(len(delays))}
	for _, d := range delays {
		l.Mean += d / float64(len(delays))
	}
	slices.Sort(delays)
	l.Min, l.P50, l.P90, l.P99, l.P999, l.Max = delays[0], at(delays, 50), at(delays, 90), at(delays, 99), at(delays, 99.9), delays[len(delays)-1]
	l.PDV = l.P999 - l.Min
	if len(diffs) > 0 {
		for _, d := range diffs {
			l.Jitter += math.Abs(d) / float64(len(diffs))
		}
		slices.Sort(diffs)
		l.IPDV = &providers.IPDV{Min: diffs[0], P001: at(diffs, 0.1), P50: at(diffs, 50), P999: at(diffs, 99.9), Max: diffs[len(diffs)-1]}
	}
	return l
}

// stream makes up what comes of frames: some lost, alone and in rows, some doubled, some late by less than reach.
func stream(r *rand.Rand, frames, reach int) *naive {
	n := &naive{}
	type due struct{ seq, at int }
	var all []due
	now := uint64(1 + r.Uint64N(1e6))
	lossy, late := r.Float64()*r.Float64(), r.Float64()*r.Float64()
	run := 0
	for seq := range frames {
		n.tx = append(n.tx, now)
		now += 1 + r.Uint64N(1000)
		if run > 0 {
			run--
			continue
		}
		if r.Float64() < lossy/4 {
			run = int(r.ExpFloat64() * r.Float64() * float64(reach) / 4)
			continue
		}
		for {
			at := seq
			if r.Float64() < late {
				at += r.IntN(reach)
			}
			all = append(all, due{seq, at})
			if r.Float64() > 0.1 {
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b due) int { return a.at - b.at })
	clock := now
	for _, d := range all {
		if r.IntN(8) == 0 { // a look at the clock is for a batch of frames
			clock += r.Uint64N(1 << r.Uint64N(20))
		}
		n.came = append(n.came, arrival{uint64(d.seq), clock, d.seq%4 == 0})
	}
	return n
}

func TestAgainstNaive(t *testing.T) {
	// Histograms are exact to 3 digits; so is their difference, but not relative to itself.
	about := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b))+1e-6 })
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		window := 128 << r.IntN(4)
		n := stream(r, 1+r.IntN(6000), window-64)
		ta := New(window)
		for _, a := range n.came {
			ta.Record(a.seq, n.tx[a.seq], a.now, a.sampled)
		}
		got, err := Sum(Sent{Frames: uint64(len(n.tx)), First: n.tx[0], Last: n.tx[len(n.tx)-1]}, ta)
		if err != nil {
			t.Fatal(err)
		}
		want := n.result()
		if want.Latency != nil {
			if want.Latency.Min != got.Latency.Min || want.Latency.Max != got.Latency.Max {
				t.Fatalf("seed %d: extremes are not exact", seed)
			}
			if math.Abs(got.Latency.PDV-want.Latency.PDV) > 1e-3*want.Latency.P999 {
				t.Fatalf("seed %d: PDV %v, want %v", seed, got.Latency.PDV, want.Latency.PDV)
			}
			got.Latency.PDV = want.Latency.PDV
		}
		if diff := cmp.Diff(want, got, about); diff != "" {
			t.Fatalf("seed %d, window %d, %d frames: %s", seed, window, len(n.tx), diff)
		}
	}
}

// With several queues the place of the last loss is known by part of the stream, and all counts but reordering are those of the whole.
func TestQueuesAgainstNaive(t *testing.T) {
	unknown := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := stream(r, 1+r.IntN(1000<<r.IntN(6)), 64)
		queues := make([]*Tally, 2+r.IntN(3))
		for i := range queues {
			queues[i] = New(1024)
		}
		for _, a := range n.came {
			queues[a.seq*0x9e3779b97f4a7c15>>32%uint64(len(queues))].Record(a.seq, n.tx[a.seq], a.now, false)
		}
		frames := uint64(len(n.tx))
		got, err := Sum(Sent{Frames: frames, First: n.tx[0], Last: n.tx[frames-1]}, queues...)
		if err != nil {
			t.Fatal(err)
		}
		want := n.result()
		if got.Received != want.Received || got.Lost != want.Lost || got.Duplicated != want.Duplicated || got.Late != 0 {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
		kept := uint64(0)
		for _, q := range queues {
			kept = max(kept, q.gaps.least)
		}
		if want.Outage != nil && uint64(*want.Outage) < kept { // rarely: all gaps are alike
			want.Outage, want.OutageAt = nil, nil
			unknown++
		}
		if diff := cmp.Diff([]*time.Duration{want.Outage, want.OutageAt}, []*time.Duration{got.Outage, got.OutageAt}); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if (got.LastLoss == nil) != (want.LastLoss == nil) {
			t.Fatalf("seed %d: last loss %v, want %v", seed, got.LastLoss, want.LastLoss)
		}
		if want.LastLoss == nil {
			continue
		}
		// Not before the truth, and not further after it than two parts: the first frame that came of the next part may be any of it.
		i, _ := slices.BinarySearch(n.tx, n.tx[0]+uint64(*want.LastLoss))
		end := min(i+2*max(64, len(n.tx)/2048), len(n.tx)-1)
		if *got.LastLoss < *want.LastLoss-time.Duration(n.tx[i]-n.tx[max(i-1, 0)]) || *got.LastLoss > time.Duration(n.tx[end]-n.tx[0]) {
			t.Fatalf("seed %d: last loss %v, want %v to %v", seed, *got.LastLoss, *want.LastLoss, time.Duration(n.tx[end]-n.tx[0]))
		}
	}
	if unknown > 5 {
		t.Errorf("%d of 30 outages are not known", unknown)
	}
}

// Whatever comes, in whatever order, with whatever clocks: nothing breaks, and the sums are those of what came.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 200, 7})
	f.Fuzz(func(t *testing.T, moves []byte) {
		a, b := New(128), New(128)
		seq := uint64(1000)
		for i, m := range moves {
			seq += uint64(m) - 100 // may go below 0, which is far ahead
			if m == 255 {
				seq += 1 << 20
			}
			seq &= 1<<44 - 1
			ta := a
			if m&1 == 1 {
				ta = b
			}
			ta.Record(seq, uint64(m)<<uint(i%60), uint64(i)<<uint(m%60), m&2 != 0)
		}
		r, err := Sum(Sent{Frames: 1 << 44, First: 5}, a, b)
		if err != nil {
			t.Fatal(err)
		}
		if r.Received+r.Duplicated+r.Late != uint64(len(moves)) || r.Received+r.Lost != 1<<44 {
			t.Fatalf("%d frames: %+v", len(moves), r)
		}
		if single, err := Sum(Sent{Frames: 1 << 44, First: 5}, a); err != nil || single.LastLoss == nil {
			t.Fatal(single, err)
		}
	})
}
