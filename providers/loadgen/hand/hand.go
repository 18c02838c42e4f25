// Package hand sends between ports as somebody asks for on the command line, once, and says what came back: `plumb loadgen`. There is no testbed,
// no state and no search. Options is what the flags say, Run does it, and Report is what comes out, for text.go to print.
package hand

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"plumb/providers"
	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/frame"
	"plumb/providers/loadgen/port"
	"plumb/providers/loadgen/worker"
)

// Options says what to send. The first of each two ports sends to the second; a single port sends to itself, through whatever reflects.
type Options struct {
	Ports    []worker.PortSpec
	Engine   engine.Config
	Traffic  providers.Traffic
	Load     float64 // frames/s and direction; 0: as fast as possible
	Duration time.Duration
	Frames   uint64 // not 0: so many for each direction instead of Duration
	Burst    int
	Drain    time.Duration
}

// Request is the trial. Errors name the flag.
func (o Options) Request() (engine.Request, error) {
	r := engine.Request{Load: o.Load, Duration: o.Duration, Frames: o.Frames, Burst: o.Burst, Drain: o.Drain}
	switch n := len(o.Ports); {
	case n == 0:
		return r, errors.New("-port is missing: give two, to send from the first to the second")
	case n > 2 && n%2 != 0:
		return r, fmt.Errorf("-port: there are %d; give one that reflects, or an even number: each two make a pair", n)
	case n == 1 && o.Traffic.Bidirectional:
		return r, errors.New("-bidirectional needs two ports")
	}
	for i, p := range o.Ports {
		if slices.ContainsFunc(o.Ports[:i], func(q worker.PortSpec) bool { return p.Kind == q.Kind && p.String() == q.String() }) {
			return r, fmt.Errorf("-port: %s is given twice", p)
		}
	}
	if o.Frames > 0 {
		r.Duration = 0
	}
	if o.Burst > 1 && o.Load == 0 && o.Frames == 0 {
		return r, errors.New("-burst needs a -rate, which says how long the pauses are, or -frames")
	}
	// Frames are tried with addresses that stand for those of the ports, so that what is wrong with them is said before any port is touched.
	dummy := []byte{2, 0, 0, 0, 0, 1}
	if _, err := frame.New(o.Traffic, frame.Options{SrcMAC: dummy, DstMAC: dummy}); err != nil {
		return r, err
	}
	for i := 0; i < len(o.Ports); i += 2 {
		from, to := i, min(i+1, len(o.Ports)-1)
		r.Streams = append(r.Streams, engine.Stream{From: from, To: to, Traffic: o.Traffic})
		if o.Traffic.Bidirectional {
			r.Streams = append(r.Streams, engine.Stream{From: to, To: from, Traffic: frame.Reverse(o.Traffic)})
		}
	}
	return r, nil
}

// Run opens the ports, sends, and closes them. When soft ends, the stream ends before its time, is drained, and what was counted comes back with
// Report.Interrupted; when hard ends, it does so without the drain. watch, if not nil, is called with what the ports have sent and received, when the stream
// begins and for every tick.
func Run(soft, hard context.Context, o Options, tick <-chan time.Time, watch func(Totals)) (*Report, error) {
	req, err := o.Request()
	if err != nil {
		return nil, err
	}
	ports, err := worker.OpenPorts(soft, o.Ports)
	if err != nil {
		return nil, err
	}
	s := session{Options: o, req: req, ports: ports, tick: tick, watch: watch}
	return s.run(soft, hard)
}

// session is a run on open ports, which it owns.
type session struct {
	Options
	req   engine.Request
	ports []port.Port
	meter meter
	tick  <-chan time.Time
	watch func(Totals)
}

func (s *session) run(soft, hard context.Context) (rep *Report, err error) {
	used := s.ports
	if s.watch != nil {
		used = s.meter.wrap(s.ports)
	}
	e, err := engine.New(s.Engine, used)
	if err != nil {
		for _, p := range s.ports {
			err = errors.Join(err, p.Close())
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.Ready(soft); err != nil {
		return nil, err
	}
	defer context.AfterFunc(soft, e.Stop)()
	defer s.watching()()
	res, err := e.Run(hard, s.req, nil, 0)
	if err != nil && (hard.Err() == nil || len(res.Directions) == 0) {
		return nil, err
	}
	return s.report(res, soft.Err() != nil || hard.Err() != nil), nil
}

// watching begins to watch, and returns how to end it.
func (s *session) watching() (end func()) {
	if s.watch == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			s.watch(s.meter.totals())
			select {
			case <-s.tick:
			case <-over:
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}
