package tally

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
)

// Each delay below is small enough to have a class of its own in the histogram, so that percentiles are exact.
func TestLatency(t *testing.T) {
	type sample struct {
		seq   uint64
		delay int64
	}
	for _, c := range []struct {
		name    string
		queues  [][]sample
		want    *providers.Latency
		clipped uint64
		skewed  uint64
	}{
		{"none", [][]sample{nil}, nil, 0, 0},
		{"one", [][]sample{{{0, 700}}}, &providers.Latency{Samples: 1, Min: 700, P50: 700, P90: 700, P99: 700, P999: 700, Max: 700, Mean: 700}, 0, 0},
		{"five", [][]sample{{{0, 100}, {1, 300}, {2, 200}, {3, 200}, {4, 500}}}, &providers.Latency{
			Samples: 5, Min: 100, P50: 200, P90: 500, P99: 500, P999: 500, Max: 500, Mean: 260, PDV: 400, Jitter: 150,
			IPDV: &providers.IPDV{Min: -100, P001: -100, P50: 0, P999: 300, Max: 300},
		}, 0, 0},
		{"out of order has no difference", [][]sample{{{0, 100}, {2, 200}, {1, 900}, {3, 150}}}, &providers.Latency{
			Samples: 4, Min: 100, P50: 150, P90: 900, P99: 900, P999: 900, Max: 900, Mean: 337.5, PDV: 800, Jitter: 75,
			IPDV: &providers.IPDV{Min: -50, P001: -50, P50: -50, P999: 100, Max: 100},
		}, 0, 0},
		{"only faster and faster", [][]sample{{{0, 900}, {1, 500}, {2, 300}, {3, 200}}}, &providers.Latency{
			Samples: 4, Min: 200, P50: 300, P90: 900, P99: 900, P999: 900, Max: 900, Mean: 475, PDV: 700, Jitter: 700. / 3,
			IPDV: &providers.IPDV{Min: -400, P001: -400, P50: -200, P999: -100, Max: -100},
		}, 0, 0},
		{"clocks that differ", [][]sample{{{0, -5}, {1, 0}}}, &providers.Latency{Samples: 2, IPDV: &providers.IPDV{}}, 0, 1},
		{"two queues", [][]sample{{{0, 100}, {2, 200}}, {{1, 50}, {3, 20}}}, &providers.Latency{
			Samples: 4, Min: 20, P50: 50, P90: 200, P99: 200, P999: 200, Max: 200, Mean: 92.5, PDV: 180, Jitter: 65,
			IPDV: &providers.IPDV{Min: -30, P001: -30, P50: -30, P999: 100, Max: 100},
		}, 0, 0},
		{"a queue without samples", [][]sample{nil, {{1, 50}, {3, 20}}}, &providers.Latency{
			Samples: 2, Min: 20, P50: 20, P90: 50, P99: 50, P999: 50, Max: 50, Mean: 35, PDV: 30, Jitter: 30,
			IPDV: &providers.IPDV{Min: -30, P001: -30, P50: -30, P999: -30, Max: -30},
		}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ts []*Tally
			for _, q := range c.queues {
				ta := New(128)
				for _, s := range q {
					ta.Record(s.seq, 1000, uint64(1000+s.delay), true)
				}
				ts = append(ts, ta)
			}
			for range 2 { // Sum changes nothing
				got, err := Sum(sent(10), ts...)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got.Latency); diff != "" {
					t.Error(diff)
				}
				if got.Clipped != c.clipped || got.Skewed != c.skewed {
					t.Errorf("clipped %d, skewed %d", got.Clipped, got.Skewed)
				}
			}
		})
	}
}

func TestLatencyBeyondTheHistogram(t *testing.T) {
	ta := New(128)
	ta.Record(0, 1000, 1000+250e9, true)
	ta.Record(1, 1000, 1000+1, true)
	ta.Record(2, 1000, 1000+250e9, true)
	ta.Record(3, 1, math.MaxInt64, true)
	got, err := Sum(sent(4), ta)
	if err != nil {
		t.Fatal(err)
	}
	l := got.Latency
	if got.Clipped != 3 || l.Samples != 4 || l.Min != 1 || l.Max != math.MaxInt64-1 || l.IPDV.Max != math.MaxInt64-1-250e9 || l.IPDV.Min != 1-250e9 {
		t.Errorf("clipped %d of %+v, %+v", got.Clipped, l, l.IPDV)
	}
	if math.Abs(l.P90-100e9) > 0.1e9 || math.Abs(l.IPDV.P001+100e9) > 0.1e9 {
		t.Errorf("not at the edge: %+v, %+v", l, l.IPDV)
	}
}

func TestUnsampledAndRepeatedFramesHaveNoDelay(t *testing.T) {
	ta := New(128)
	ta.Record(0, 1000, 2000, true)
	ta.Record(0, 1000, 9000, true)
	ta.Record(1, 1000, 9000, false)
	got, err := Sum(sent(2), ta)
	if err != nil {
		t.Fatal(err)
	}
	if got.Latency.Samples != 1 || got.Latency.Max != 1000 {
		t.Errorf("%+v", got.Latency)
	}
}
