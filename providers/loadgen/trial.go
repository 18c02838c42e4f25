package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"plumb/providers"
	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/worker"
)

// rig is the open generator.
type rig struct {
	config   config
	log      func(string)
	host     providers.Host
	mark     providers.Mark
	from, to int // ports of direction 0
	start    func(context.Context, worker.Open) (worker.Tester, error)

	shape  shape
	tester worker.Tester // nil: the ports could not be opened again
}

// notedStop is the least standstill of a thread that a reader is told of: it shows in latencies and bursts.
const notedStop = time.Millisecond

// reopen opens the ports as a shape needs them. When it fails, none is open.
func (r *rig) reopen(ctx context.Context, s shape) error {
	if r.tester != nil {
		if err := r.tester.Close(ctx); err != nil {
			return fmt.Errorf("close the ports: %w", err)
		}
		r.tester = nil
	}
	t, err := r.start(ctx, r.config.open(s))
	if err != nil {
		return err
	}
	r.tester, r.shape = t, s
	return nil
}

// fit opens the ports again when they cannot carry the traffic.
func (r *rig) fit(ctx context.Context, t providers.Traffic) error {
	s, err := r.config.shapeOf(t)
	if err != nil {
		return err
	}
	s.frame = max(s.frame, r.shape.frame) // longer ones do no harm
	if r.tester != nil && s == r.shape {
		return nil
	}
	r.log(fmt.Sprintf("opening the generator's ports again, for frames of up to %d bytes", s.frame))
	return r.reopen(ctx, s)
}

// Abilities of loadgen.
func (r *rig) Abilities() providers.Abilities {
	return providers.Abilities{
		RateControl: true, Bidirectional: r.from != r.to, Latency: true, Bursts: true, Steps: true, Outage: true, Signed: true,
		Headers: []string{"l2", "ipv4", "ipv6", "udp", "udp6", "tcp"}, Shapes: []string{"imix", "vary", "random", "vlan", "vxlan", "ip"},
		Describe: r.describe(),
	}
}

// describe is name and version, what the ports are, and on how many CPUs it runs.
func (r *rig) describe() string {
	var kinds []string
	d := "loadgen " + version
	if r.tester != nil {
		for _, p := range r.tester.Ready().Ports {
			kinds = append(kinds, p.Kind)
		}
	}
	how := "polling"
	if r.config.engine.Idle > 0 {
		how = fmt.Sprintf("sleeping %s when idle", r.config.engine.Idle)
	}
	if p := r.config.engine.Realtime; p > 0 {
		how += fmt.Sprintf(", SCHED_FIFO %d", p)
	}
	return fmt.Sprintf("%s (%s; %d CPUs, %s)", d, strings.Join(kinds, " and "), len(r.config.engine.CPUs), how)
}

// Trial sends and counts. An error is of the ports, the traffic, or the disturbance.
func (r *rig) Trial(ctx context.Context, req providers.TrialRequest) (providers.TrialResult, error) {
	if err := r.fit(ctx, req.Traffic); err != nil {
		return providers.TrialResult{}, err
	}
	d := disturbance{call: req.Disturb}
	res, err := r.tester.Run(ctx, r.request(req), d.wrapped(), req.DisturbAfter)
	if err != nil {
		return providers.TrialResult{}, err
	}
	out := providers.TrialResult{Directions: res.Directions, Duration: res.Duration, Health: res.Health, Notes: res.Notes}
	if req.Disturb == nil && res.LinkChanges > 0 {
		out.Health = append(out.Health, fmt.Sprintf("the link flapped: the other side of the generator's ports came or went %d times", res.LinkChanges))
	}
	if end := req.DisturbAfter + d.took; req.Disturb != nil && req.Frames == 0 && end > res.Duration {
		out.Health = append(out.Health, fmt.Sprintf("the stream ended after %s, but the disturbance took from %s to %s: how long the outage was is not known", res.Duration, req.DisturbAfter, end.Round(time.Millisecond)))
	}
	out.Notes = append(out.Notes, r.notes(res)...)
	return out, nil
}

// request is the trial in the engine's terms.
func (r *rig) request(req providers.TrialRequest) engine.Request {
	q := engine.Request{Load: req.Load, Duration: req.Duration, Frames: uint64(max(0, req.Frames)), Burst: req.Burst, Steps: req.Steps, Slice: req.Slice, Drain: req.Drain,
		Streams: []engine.Stream{{From: r.from, To: r.to, Traffic: req.Traffic}}}
	if req.Bidirectional {
		q.Streams = append(q.Streams, engine.Stream{From: r.to, To: r.from, Traffic: reversed(req.Traffic)})
	}
	return q
}

// reversed is the traffic of the other direction: what was source is destination.
func reversed(t providers.Traffic) providers.Traffic {
	src, dst := "198.18.0.1", "198.19.0.1" // as Traffic says
	if t.Headers == "ipv6" || t.Headers == "udp6" {
		src, dst = "2001:2::1", "2001:2:0:1::1"
	}
	if t.SrcIP != "" {
		src = t.SrcIP
	}
	if t.DstIP != "" {
		dst = t.DstIP
	}
	t.SrcMAC, t.DstMAC = t.DstMAC, t.SrcMAC
	if t.Headers != "l2" {
		t.SrcIP, t.DstIP = dst, src
	}
	if t.VXLAN != nil {
		v := *t.VXLAN
		v.SrcMAC, v.DstMAC, v.SrcIP, v.DstIP = v.DstMAC, v.SrcMAC, v.DstIP, v.SrcIP
		t.VXLAN = &v
	}
	return t
}

func (r *rig) notes(res engine.Result) []string {
	var n []string
	if w := r.config.engine.Window; w > 0 {
		n = append(n, fmt.Sprintf("at most %d frames were on their way at a time (window): this is no open loop as RFC 2544 wants it", w))
	}
	if res.Behind > 0 {
		n = append(n, fmt.Sprintf("the tester fell behind: %d frames were not sent because its threads did not run", res.Behind))
	}
	if res.LongestStop >= notedStop {
		n = append(n, fmt.Sprintf("a thread of the tester stood still for %s: latencies up to that and bursts may be the tester's", res.LongestStop.Round(10*time.Microsecond)))
	}
	return n
}

// Close closes the ports, and ends a worker.
func (r *rig) Close(ctx context.Context) error {
	var err error
	if r.tester != nil {
		err = r.tester.Close(ctx)
	}
	if err != nil {
		return err // the list of sockets stays, for Sweep
	}
	r.tester = nil
	return errors.Join(err, r.forget(ctx))
}

// disturbance measures how long a disturbance took.
type disturbance struct {
	call func(context.Context) error
	took time.Duration
}

// wrapped is nil when there is nothing to call. took is set when the trial is over.
func (d *disturbance) wrapped() func(context.Context) error {
	if d.call == nil {
		return nil
	}
	return func(ctx context.Context) error {
		began := time.Now()
		defer func() { d.took = time.Since(began) }()
		return d.call(ctx)
	}
}
