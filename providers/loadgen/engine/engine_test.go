package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
	"plumb/providers/loadgen/port/porttest"
)

// What a trial counts when the threads get to run every microsecond.
func TestCounts(t *testing.T) {
	const second = time.Second
	both := []Stream{{From: 0, To: 1, Traffic: plainTraffic}, {From: 1, To: 0, Traffic: plainTraffic}}
	many := providers.Traffic{Sizes: []int{64, 64, 64, 594, 1518}, FrameSize: 400, Flows: 7, Headers: "udp"}
	for name, c := range map[string]struct {
		cfg   Config
		ports porttest.Options
		req   Request
		want  counts
	}{
		"one way":           {req: Request{Load: 100e3, Duration: second / 10}, want: counts{Sent: 10000, Received: 10000}},
		"faster than turns": {req: Request{Load: 20e6, Duration: second / 100}, want: counts{Sent: 200_000, Received: 200_000}},
		"both ways":         {req: Request{Streams: both, Load: 100e3, Duration: second / 10}, want: counts{Sent: 20000, Received: 20000}},
		"a mix of sizes":    {req: Request{Streams: []Stream{{From: 1, To: 0, Traffic: many}}, Load: 100e3, Duration: second / 10}, want: counts{Sent: 10000, Received: 10000}},
		"three queues":      {ports: porttest.Options{Queues: 3}, req: Request{Streams: both, Load: 100e3, Duration: second / 10}, want: counts{Sent: 20000, Received: 20000}},
		"three queues, two CPUs": {cfg: Config{CPUs: []int{0, 1}}, ports: porttest.Options{Queues: 3}, req: Request{Streams: both, Load: 100e3, Duration: second / 10},
			want: counts{Sent: 20000, Received: 20000}},
		"two streams in one queue": {req: Request{Streams: []Stream{both[0], {From: 0, To: 1, Traffic: many}}, Load: 100e3, Duration: second / 10}, want: counts{Sent: 20000, Received: 20000}},
		"every tenth is lost": {ports: porttest.Options{Fate: func(_ int, n uint64) int { return min(1, int(n%10)) }}, req: Request{Load: 100e3, Duration: second / 10},
			want: counts{Sent: 10000, Received: 9000}},
		"every tenth comes twice": {ports: porttest.Options{Fate: func(_ int, n uint64) int {
			if n%10 == 0 {
				return 2
			}
			return 1
		}}, req: Request{Load: 100e3, Duration: second / 10}, want: counts{Sent: 10000, Received: 10000, Duplicated: 1000}},
		"just some frames":         {req: Request{Frames: 8}, want: counts{Sent: 8, Received: 8}},
		"frames, three queues":     {ports: porttest.Options{Queues: 3}, req: Request{Frames: 8}, want: counts{Sent: 8, Received: 8}},
		"fewer frames than queues": {ports: porttest.Options{Queues: 3}, req: Request{Frames: 2}, want: counts{Sent: 2, Received: 2}},
		"frames at a load":         {req: Request{Frames: 100, Load: 1e6}, want: counts{Sent: 100, Received: 100}},
		"more frames than a ring":  {ports: porttest.Options{Depth: 64}, req: Request{Frames: 10_000}, want: counts{Sent: 10_000, Received: 10_000}},
		"bursts":                   {req: Request{Load: 100e3, Duration: second / 10, Burst: 500}, want: counts{Sent: 10_000, Received: 10_000}},
		"bursts above a ring":      {ports: porttest.Options{Depth: 64}, req: Request{Load: 100e3, Duration: second / 10, Burst: 500}, want: counts{Sent: 10_000, Received: 10_000}},
		"steps": {req: Request{Load: 100e3, Duration: second / 10, Steps: []providers.Step{{Load: 50e3, Duration: second / 10}}},
			want: counts{Sent: 15_000, Received: 15_000}},
		"a window": {cfg: Config{Window: 100}, ports: porttest.Options{Delay: 50e3}, req: Request{Load: 1e6, Duration: second / 10}, want: counts{Sent: 100_000, Received: 100_000}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t, c.cfg, c.ports)
			s.begin(c.req)
			s.run(length(c.req), time.Microsecond)
			res := s.end(time.Second / 100)
			if diff := cmp.Diff(c.want, countsOf(res)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(res.Health)+len(res.Notes) > 0 {
				t.Errorf("health %q, notes %q", res.Health, res.Notes)
			}
			for i, d := range res.Directions {
				if l := d.Latency; l == nil || l.Samples == 0 || l.Max > 100e3 {
					t.Errorf("direction %d: latency %+v", i, l)
				}
				if lost := d.Received < d.Sent; lost != (d.LastLoss != nil) {
					t.Errorf("direction %d: last loss %v", i, d.LastLoss)
				}
			}
		})
	}
}

// A thread that stood still makes up for as much as it may, and says what it did not.
func TestBehind(t *testing.T) {
	s := newSim(t, Config{CatchUp: 100}, porttest.Options{})
	s.begin(Request{Load: 1e6, Duration: 10 * time.Millisecond})
	s.run(2*time.Millisecond, time.Microsecond)
	s.now += 3e6
	s.run(10*time.Millisecond, time.Microsecond)
	res := s.end(time.Millisecond)
	want := counts{Sent: 7100, Received: 7100, Behind: 2900}
	got := countsOf(res)
	if d := int64(got.Behind - want.Behind); d < -2 || d > 2 || got.Sent+got.Behind != 10_000 || got.Unsent != 0 {
		t.Errorf("%+v; want about %+v", got, want)
	}
}

// Frames for which the port has no room are lost at an offered load, each in its time, and are no fault of the tester.
func TestRefused(t *testing.T) {
	for _, tick := range []time.Duration{time.Microsecond / 2, time.Microsecond, 20 * time.Microsecond} {
		s := newSim(t, Config{}, porttest.Options{Depth: 64})
		s.begin(Request{Load: 1e6, Duration: 10 * time.Millisecond})
		s.run(2*time.Millisecond, tick)
		s.ports[0].Stall(true)
		s.run(5*time.Millisecond, tick)
		s.ports[0].Stall(false)
		s.run(10*time.Millisecond, tick)
		got := countsOf(s.end(time.Millisecond))
		if got.Sent+got.Unsent != 10_000 || got.Unsent < 2890 || got.Unsent > 2940 || got.Received != got.Sent || got.Behind != 0 {
			t.Errorf("turns of %s: %+v; want 3000 less what a ring of 64 holds unsent", tick, got)
		}
	}
}

// A port that sets the rate gets whole batches, until the last frames of a number of them.
func TestWholeBatches(t *testing.T) {
	for name, c := range map[string]struct {
		depth int
		req   Request
	}{
		"maximum":       {4 * batch, Request{Duration: 10 * time.Millisecond}},
		"frames":        {4 * batch, Request{Frames: 100*batch + 7}},
		"a small ring":  {batch / 2, Request{Frames: 100*batch + 7}},
		"another depth": {8 * batch, Request{Frames: 100*batch + 7}},
	} {
		s := newSim(t, Config{}, porttest.Options{Depth: c.depth, Delay: 10e3})
		s.begin(c.req)
		s.run(10*time.Millisecond, time.Microsecond)
		got := countsOf(s.end(time.Second))
		if got.Sent == 0 || got.Received != got.Sent || got.Unsent != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if c.req.Frames > 0 && got.Sent != c.req.Frames || c.req.Frames == 0 && got.Sent%batch != 0 {
			t.Errorf("%s: %d sent", name, got.Sent)
		}
	}
}

// What is still in the port at the end was never sent.
func TestPending(t *testing.T) {
	s := newSim(t, Config{}, porttest.Options{})
	s.begin(Request{Load: 1e6, Duration: time.Millisecond})
	s.run(time.Millisecond/2, time.Microsecond)
	s.ports[0].Stall(true)
	s.run(time.Millisecond, time.Microsecond)
	got := countsOf(s.end(time.Millisecond))
	if want := (counts{Sent: 500, Unsent: 500, Received: 500}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	s.ports[0].Stall(false) // the next trial must not count them
	s.begin(Request{Load: 1e6, Duration: time.Millisecond})
	s.run(time.Millisecond, time.Microsecond)
	got = countsOf(s.end(time.Millisecond))
	if want := (counts{Sent: 1000, Received: 1000, Surplus: 500}); got != want {
		t.Errorf("next trial: %+v; want %+v", got, want)
	}
}

// At a load without limit a full port is no loss, and a step after it is paced again.
func TestMaximum(t *testing.T) {
	s := newSim(t, Config{}, porttest.Options{Depth: 64})
	s.begin(Request{Duration: time.Millisecond, Steps: []providers.Step{{Load: 1e6, Duration: time.Millisecond}}})
	s.run(time.Millisecond/2, time.Microsecond)
	s.ports[0].Stall(true)
	s.run(time.Millisecond, time.Microsecond)
	s.ports[0].Stall(false)
	s.run(2*time.Millisecond, time.Microsecond)
	got := countsOf(s.end(time.Millisecond))
	if got.Unsent != 0 || got.Behind != 0 || got.Sent != got.Received || got.Sent < 500*64+1000 || got.Sent > 502*64+1000 {
		t.Errorf("%+v; want 64 each microsecond for 0.5 ms, then 1000", got)
	}
}

// A number of frames ends although the port takes none.
func TestFramesIntoNothing(t *testing.T) {
	s := newSim(t, Config{}, porttest.Options{Depth: 4})
	s.ports[0].Stall(true)
	s.begin(Request{Frames: 8})
	s.run(2*time.Second, time.Millisecond)
	if s.trial.run.sending.Load() != 0 {
		t.Fatal("the stream is not over after 2 s")
	}
	if got, want := countsOf(s.end(0)), (counts{Unsent: 8}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// A window is open again some time after all in flight was lost, and what had to wait for that is the path's fault.
func TestWindowWritesOff(t *testing.T) {
	lose := false
	s := newSim(t, Config{Window: 50, CatchUp: 10}, porttest.Options{Fate: func(int, uint64) int {
		if lose {
			return 0
		}
		return 1
	}})
	s.begin(Request{Load: 100e3, Duration: time.Second})
	s.run(100*time.Millisecond, 5*time.Microsecond)
	lose = true
	s.run(101*time.Millisecond, 5*time.Microsecond)
	lose = false
	s.run(time.Second, 5*time.Microsecond)
	got := countsOf(s.end(time.Millisecond))
	if got.Sent+got.Unsent != 100_000 || got.Behind != 0 || got.Sent-got.Received != 50 || got.Unsent < 9_900 || got.Unsent > 10_100 {
		t.Errorf("%+v; want 50 lost and 10000, in 100 ms, unsent", got)
	}
}

// A frame now and then that is lost does not make the window smaller.
func TestWindowWithLoss(t *testing.T) {
	s := newSim(t, Config{Window: 20}, porttest.Options{Fate: func(_ int, n uint64) int { return min(1, int(n%100)) }})
	s.begin(Request{Load: 1e6, Duration: 10 * time.Millisecond})
	s.run(10*time.Millisecond, time.Microsecond)
	if got, want := countsOf(s.end(time.Millisecond)), (counts{Sent: 10_000, Received: 9_900}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// What is no frame of this trial is never counted as received: strangers, frames of an earlier trial, and those that come out at another port.
func TestSurplus(t *testing.T) {
	s := newSim(t, Config{}, porttest.Options{})
	s.begin(Request{Frames: 3})
	old := make([]byte, 60)
	s.trial.senders[0].builder.Write(old, 0, 1)
	s.end(time.Millisecond)
	s.begin(Request{Frames: 10})
	own := make([]byte, 60)
	s.trial.senders[0].builder.Write(own, 1, 1)
	future := make([]byte, 60)
	s.trial.senders[0].builder.Write(future, 11, 1)
	s.ports[1].Stray(make([]byte, 60), old, []byte{1, 2, 3}, future)
	s.ports[0].Stray(own)
	if got, want := countsOf(s.end(time.Millisecond)), (counts{Sent: 10, Received: 10, Surplus: 5}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// The path is silent for 3 ms in the middle: how long, when, and until which frame.
func TestOutage(t *testing.T) {
	dead := false
	s := newSim(t, Config{}, porttest.Options{Fate: func(int, uint64) int {
		if dead {
			return 0
		}
		return 1
	}})
	s.begin(Request{Load: 1e6, Duration: 10 * time.Millisecond})
	s.run(2*time.Millisecond, time.Microsecond)
	dead = true
	s.run(5*time.Millisecond, time.Microsecond)
	dead = false
	s.ports[0].Flap()
	s.ports[1].Drop(7)
	s.run(10*time.Millisecond, time.Microsecond)
	res := s.end(time.Millisecond)
	d := res.Directions[0]
	about := func(got *time.Duration, want time.Duration) bool {
		return got != nil && (*got-want).Abs() <= 3*time.Microsecond
	}
	if !about(d.Outage, 3*time.Millisecond) || !about(d.OutageAt, 2*time.Millisecond) || !about(d.LastLoss, 5*time.Millisecond) {
		t.Errorf("outage %v at %v, last loss %v", d.Outage, d.OutageAt, d.LastLoss)
	}
	if d.Sent-d.Received != 3000 || res.LinkChanges != 2 || d.RxDrops != 7 {
		t.Errorf("%+v", res)
	}
}

// Latency is what the path takes.
func TestLatency(t *testing.T) {
	s := newSim(t, Config{Sample: 16}, porttest.Options{Delay: 50e3})
	s.begin(Request{Load: 100e3, Duration: 100 * time.Millisecond})
	s.run(100*time.Millisecond, time.Microsecond)
	l := s.end(time.Millisecond).Directions[0].Latency
	if l == nil || l.Samples != 625 || l.Min < 50e3 || l.Max > 53e3 || l.P50 < 50e3 || l.P50 > 53e3 {
		t.Errorf("%+v; want 625 samples of 50 us", l)
	}
}

// With another number of threads the schedule is the same.
func TestDuration(t *testing.T) {
	for _, c := range []struct {
		req  Request
		want time.Duration
	}{
		{Request{Load: 1000, Duration: time.Second}, time.Second},
		{Request{Frames: 11, Load: 1000}, 10 * time.Millisecond},
		{Request{Frames: 8}, 0},
		{Request{Load: 10, Duration: time.Second, Steps: []providers.Step{{Load: 5, Duration: time.Second}}}, 2 * time.Second},
	} {
		s := newSim(t, Config{}, porttest.Options{})
		s.begin(c.req)
		s.run(length(c.req), time.Microsecond)
		if got := s.end(time.Second / 10).Duration; got != c.want {
			t.Errorf("%+v: %s; want %s", c.req, got, c.want)
		}
	}
}

// A thread that always has something to do sleeps all the same, now and then; one that polls never.
func TestRest(t *testing.T) {
	w := thread{idle: 50 * time.Microsecond}
	rests := func(worked bool) (n int) {
		for now := int64(0); now < int64(time.Millisecond); now += 1000 {
			if w.mayRest(now, worked) {
				n++
			}
		}
		return n
	}
	if n := rests(true); n != 1 {
		t.Errorf("busy for 1 ms, it sleeps %d times; want once, after 0.5 ms", n)
	}
	if n := rests(false); n != 1000 {
		t.Errorf("with nothing to do in 1000 turns, it sleeps %d times", n)
	}
	if w.idle = 0; rests(false) != 0 {
		t.Error("a thread that polls sleeps")
	}
}
