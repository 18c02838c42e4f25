package engine

import (
	"testing"
	"time"

	"plumb/providers"
	"plumb/providers/loadgen/port"
	"plumb/providers/loadgen/port/porttest"
)

// sim runs a trial without threads: time goes on as the test says.
type sim struct {
	t     *testing.T
	now   int64
	ports [2]*porttest.Port
	e     *Engine
	trial *trial
	was   []port.Stats
}

var plainTraffic = providers.Traffic{FrameSize: 64, Flows: 1, Headers: "udp"}

func newSim(t *testing.T, cfg Config, o porttest.Options) *sim {
	s := &sim{t: t, now: 1e9}
	if o.Delay > 0 {
		o.Clock = func() int64 { return s.now }
	}
	s.ports[0], s.ports[1] = porttest.Pair(o)
	if cfg.CPUs == nil {
		cfg.CPUs = []int{0}
	}
	s.e = &Engine{config: cfg, ports: []port.Port{s.ports[0], s.ports[1]}, clock: func() int64 { return s.now }}
	return s
}

// begin makes the trial and starts its stream.
func (s *sim) begin(req Request) {
	s.t.Helper()
	if req.Streams == nil {
		req.Streams = []Stream{{From: 0, To: 1, Traffic: plainTraffic}}
	}
	if err := s.e.check(req, false, 0); err != nil {
		s.t.Fatal(err)
	}
	s.e.token++
	tr, err := s.e.prepare(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.trial, s.was = tr, s.e.stats()
	for _, w := range tr.threads {
		w.arrive()
	}
	s.now = tr.run.start.Load()
}

// run lets the threads take turns every tick, until the time since the begin of the stream.
func (s *sim) run(until, tick time.Duration) {
	s.t.Helper()
	for at := s.trial.run.start.Load(); s.now-at < int64(until); s.now += int64(tick) {
		for _, w := range s.trial.threads {
			if _, err := w.turn(s.now); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// end lets the threads go on until all is over or, with a frame lost, the drain.
func (s *sim) end(drain time.Duration) Result {
	s.t.Helper()
	for range int(drain/time.Microsecond) + 1 {
		for _, w := range s.trial.threads {
			if _, err := w.turn(s.now); err != nil {
				s.t.Fatal(err)
			}
		}
		s.now += 1000
		if s.trial.run.sending.Load() == 0 && s.trial.complete() {
			break
		}
	}
	return s.trial.result(s.was, s.e.stats())
}

// counts are what tests compare.
type counts struct {
	Sent, Unsent, Received, Duplicated, Reordered, Surplus, RxDrops, Behind uint64
}

func countsOf(r Result) (c counts) {
	c.Behind = r.Behind
	for _, d := range r.Directions {
		c.Sent += d.Sent
		c.Unsent += d.Unsent
		c.Received += d.Received
		c.Duplicated += d.Duplicated
		c.Reordered += d.Reordered
		c.Surplus += d.Surplus
		c.RxDrops += d.RxDrops
	}
	return c
}
