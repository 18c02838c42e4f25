package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
	"plumb/providers/loadgen/port/porttest"
)

// Loss is counted in the slice in which the frame was due, and the slices add up to the whole.
func TestLossSlices(t *testing.T) {
	const ms = time.Millisecond
	from := func(first, last uint64) func(int, uint64) int {
		return func(_ int, n uint64) int {
			if n >= first && n < last {
				return 0
			}
			return 1
		}
	}
	for name, c := range map[string]struct {
		cfg   Config
		ports porttest.Options
		req   Request
		stall [2]time.Duration
		want  []uint64
		last  time.Duration // of LastLoss, to a slice
	}{
		"nothing asked for": {req: Request{Load: 1e6, Duration: 10 * ms}},
		"nothing lost":      {req: Request{Load: 1e6, Duration: 10 * ms, Slice: 2 * ms}, want: []uint64{0, 0, 0, 0, 0}},
		"the last slice is shorter": {req: Request{Load: 1e6, Duration: 10 * ms, Slice: 3 * ms}, ports: porttest.Options{Fate: from(9900, 20_000)}, want: []uint64{0, 0, 0, 100},
			last: 9 * ms},
		"on the way": {req: Request{Load: 1e6, Duration: 10 * ms, Slice: ms}, ports: porttest.Options{Fate: from(2500, 4200)}, want: []uint64{0, 0, 500, 1000, 200, 0, 0, 0, 0, 0}, last: 4 * ms},
		"in a step": {req: Request{Load: 1e6, Duration: 4 * ms, Steps: []providers.Step{{Load: 100e3, Duration: 6 * ms}}, Slice: 2 * ms}, ports: porttest.Options{Fate: from(3900, 4250)},
			want: []uint64{0, 100, 200, 50, 0}, last: 6 * ms},
		"three queues": {req: Request{Load: 1e6, Duration: 10 * ms, Slice: 5 * ms}, ports: porttest.Options{Queues: 3, Fate: from(3300, 5000)}, want: []uint64{0, 100}, last: 9 * ms},
		"refused":      {req: Request{Load: 1e6, Duration: 10 * ms, Slice: ms}, ports: porttest.Options{Depth: 64}, stall: [2]time.Duration{3 * ms, 5 * ms}, last: 4 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, c.cfg, c.ports)
			s.begin(c.req)
			if c.stall[1] > 0 {
				s.run(c.stall[0], time.Microsecond)
				s.ports[0].Stall(true)
				s.run(c.stall[1], time.Microsecond)
				s.ports[0].Stall(false)
			}
			s.run(length(c.req), time.Microsecond)
			d := s.end(ms).Directions[0]
			var sum uint64
			for _, n := range d.LossSlices {
				sum += n
			}
			if c.req.Slice > 0 && sum != d.Sent+d.Unsent-d.Received {
				t.Errorf("slices add up to %d; %d sent, %d unsent, %d received", sum, d.Sent, d.Unsent, d.Received)
			}
			if c.stall[1] == 0 {
				if diff := cmp.Diff(c.want, d.LossSlices); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			} else if d.Unsent < 1800 || d.LossSlices[3] < 900 || d.LossSlices[4] < 900 || d.LossSlices[2]+d.LossSlices[6] != 0 {
				t.Errorf("%d unsent, by slice %v", d.Unsent, d.LossSlices)
			}
			if c.last > 0 && (d.LastLoss == nil || *d.LastLoss < c.last || *d.LastLoss > c.last+ms) {
				t.Errorf("last loss at %v; want it within %s", d.LastLoss, c.last)
			}
		})
	}
}

func TestSlicesAreRefused(t *testing.T) {
	for _, req := range []Request{
		{Load: 1, Duration: time.Second, Slice: -1},
		{Frames: 8, Slice: time.Millisecond},
		{Load: 1, Duration: time.Hour, Slice: time.Millisecond},
	} {
		if err := checkSlices(req); err == nil {
			t.Errorf("%+v is cut into slices", req)
		}
	}
}
