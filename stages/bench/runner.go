package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
)

// closeLimit is how long closing a generator may take, also after the run was cancelled.
const closeLimit = 60 * time.Second

// runner runs one benchmark.
type runner struct {
	in         Input
	b          *eval.Benchmark
	journal    *journal // nil: nothing is kept
	old        *kept    // what an interrupted run has of it; nil: nothing, or it was defined in another way
	definition string
	set        settings
	bed        *bed
	gen        providers.Generator
	model      bool // the generator sends nothing
	routes     []route
	reset      *resetting // nil: nothing is reset
	proved     int        // frame size that the path was last proved for
	tried      bool       // a trial was made, after which the device has to rest
	endLoads   func() error
	replay     []Trial // of an interrupted run, still to be gone through
	searches   []*searching
	facts      []HostFacts
	out        Benchmark
}

func newRunner(in Input, b *eval.Benchmark, j *journal, old *account) *runner {
	r := &runner{in: in, b: b, journal: j, out: Benchmark{Addr: b.Addr.String(), Method: b.Method, Generator: b.Generator.String(),
		Trials: []Trial{}, Summary: []Summary{}, Requires: []Require{}}}
	r.definition, _ = definition(in, b) // what cannot be told is never the same as before; decode says what is wrong with it
	if old != nil && r.definition != "" {
		if k := old.kept[r.out.Addr]; k != nil && k.definition == r.definition {
			r.old = k
		}
	}
	return r
}

// run fills r.out. It never leaves a generator open, nor a load. The error is that of the journal.
func (r *runner) run(ctx context.Context) error {
	if r.old != nil && r.old.ended != nil && r.old.ended.Error == "" {
		r.out = r.old.benchmark()
		r.out.Requires = []Require{}
		r.require()
		r.step("kept as it was measured before the run was interrupted: %d trials", len(r.out.Trials))
		return nil
	}
	err := r.measure(ctx)
	var lost *lostRecord
	if errors.As(err, &lost) {
		return lost.err
	}
	r.conclude()
	switch {
	case ctx.Err() != nil && err != nil:
		r.out.Error = "interrupted: " + context.Cause(ctx).Error()
	case err != nil:
		r.out.Error = err.Error()
	}
	r.require()
	ended := r.out
	ended.Trials = nil
	return r.journal.add(record{Benchmark: r.out.Addr, Ended: &ended})
}

// lostRecord is an error of the journal: nothing goes on without it.
type lostRecord struct{ err error }

func (l *lostRecord) Error() string { return l.err.Error() }

// keep records something of the benchmark.
func (r *runner) keep(rec record) error {
	rec.Benchmark = r.out.Addr
	if err := r.journal.add(rec); err != nil {
		return &lostRecord{err}
	}
	return nil
}

func (r *runner) measure(ctx context.Context) (err error) {
	for _, a := range r.b.Path {
		r.out.Path = append(r.out.Path, a.String())
	}
	var loader *schema.Block
	if r.in.Set.Loader != nil {
		loader = r.in.Set.Loader.Schema()
	}
	if r.set, err = decode(r.b, loader); err != nil {
		return err
	}
	s := r.set
	r.out.Headers, r.out.Bidirectional, r.out.LineRate, r.out.MaxLoss, r.out.Settings = s.traffic.Headers, s.traffic.Bidirectional, s.lineRate, s.plan.maxLoss, s.rows
	if r.bed, err = newBed(ctx, r.in, r.b); err != nil {
		return err
	}
	if r.reset, err = r.findReset(ctx); err != nil {
		return err
	}
	if r.facts, err = r.bed.facts(ctx); err != nil {
		return err
	}
	r.in.Events.Begin(r.out.Addr, r.total())
	closeGen, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeGen()) }()
	if err := r.able(); err != nil {
		return err
	}
	r.out.Phases = s.phases(r.model, r.reset)
	if err := r.route(ctx); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	defer func() {
		if r.endLoads != nil {
			err = errors.Join(err, r.endLoads())
		}
	}()
	return r.walk(ctx)
}

// begin records what is to be measured, and takes over what an interrupted run has of it.
func (r *runner) begin() error {
	begun := r.out
	if r.old != nil {
		r.replay, r.out.Proof = slices.Clone(r.old.trials), r.old.proofs
		if len(r.replay) > 0 {
			r.step("going on where it was interrupted: %d trials are kept", len(r.replay))
		}
	}
	return r.keep(record{Begun: &begun, Definition: r.definition, Hosts: r.facts})
}

// total is how many trials there will be, 0 where that depends on what is found.
func (r *runner) total() int { return r.set.plan.trials * r.set.repeat * len(r.set.cells()) }

// open opens the generator. The returned function closes it, with a context that outlives ctx.
func (r *runner) open(ctx context.Context) (func() error, error) {
	g := r.bed.generator
	r.step("opening %s", r.out.Generator)
	if err := r.in.Recorder.Opened(g.Addr.Type, g.Host); err != nil {
		return nil, fmt.Errorf("record that %s is opened: %w", r.out.Generator, err)
	}
	closed := func() error {
		if err := r.in.Recorder.Closed(g.Addr.Type, g.Host); err != nil {
			return fmt.Errorf("record that %s is closed: %w", r.out.Generator, err)
		}
		return nil
	}
	traffic := r.set.traffic
	traffic.FrameSize, traffic.Flows = r.set.sizes[0], r.set.flows[0]
	gen, err := r.bed.genType.Open(ctx, providers.OpenRequest{
		Host: r.bed.genHost, Mark: providers.Mark{Testbed: r.in.Testbed, Address: r.out.Generator}, Config: plain(g.Config),
		Path: r.bed.path(), Traffic: traffic, Log: func(s string) { r.step("%s", s) },
	})
	if err != nil { // it has left nothing behind
		return nil, errors.Join(fmt.Errorf("open %s: %w", r.out.Generator, err), closed())
	}
	r.gen = gen
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		if err := gen.Close(ctx); err != nil { // stays recorded, for the next run to sweep
			return fmt.Errorf("close %s: %w", r.out.Generator, err)
		}
		return closed()
	}, nil
}

// able refuses what the generator cannot do, before the first frame.
func (r *runner) able() error {
	a, s := r.gen.Abilities(), r.set
	r.out.Tool, r.out.Signed, r.model = a.Describe, a.Signed, a.Model
	headers := a.Headers
	if headers == nil {
		headers = []string{"l2", "ipv4", "udp"}
	}
	need := s.plan.needs
	for _, c := range []struct {
		lacks         bool
		cannot, write string
	}{
		{need.rate && !a.RateControl, "cannot send at a given rate", `write load = "max" in a continuous benchmark`},
		{need.bursts && !a.Bursts, "cannot send bursts", "leave bursts out"},
		{need.steps && !a.Steps, "cannot change its rate within a stream, which recovery is measured by", "leave recovery out"},
		{need.outage && !a.Outage, "cannot time an outage, which a reset is measured by", "leave reset out"},
		{need.latency && !a.Latency, "cannot measure latency", "leave latency out"},
		{s.traffic.Bidirectional && !a.Bidirectional, "sends in one direction only", "write bidirectional = false"},
		{!slices.Contains(headers, s.traffic.Headers), fmt.Sprintf("cannot make frames with headers = %q", s.traffic.Headers), fmt.Sprintf("write one of %q", headers)},
	} {
		if c.lacks {
			return fmt.Errorf("%s (%s) %s; %s or choose another generator", r.out.Generator, a.Describe, c.cannot, c.write)
		}
	}
	for _, shape := range s.shapes() {
		if !slices.Contains(a.Shapes, shape) {
			return fmt.Errorf("%s (%s) cannot make such traffic: %s; choose another generator", r.out.Generator, a.Describe, shapeWords[shape])
		}
	}
	for _, n := range s.flows {
		if a.MaxFlows > 0 && n > a.MaxFlows {
			return fmt.Errorf("%s (%s) makes at most %d flows, not %d", r.out.Generator, a.Describe, a.MaxFlows, n)
		}
	}
	if need.outage && r.reset == nil && !r.model {
		return errors.New("reset does not say what is reset: write target = and a reference to a resource, such as ovs_switch.dut")
	}
	return nil
}

// shapeWords are Abilities.Shapes as the configuration has them.
var shapeWords = map[string]string{"imix": "a mix of sizes (imix)", "vary": "another way to tell flows apart (vary)", "random": "flows in random order (order)",
	"vlan": "VLAN tags (vlans)", "vxlan": "VXLAN (vxlan)", "ip": "given IP addresses (src_ip, dst_ip)"}

// route works out which counter counts what; it has to ask which hops pass frames on by themselves. A model has no path.
func (r *runner) route(ctx context.Context) error {
	if r.model {
		return nil
	}
	if len(r.out.Path) == 0 {
		return fmt.Errorf("the path is empty; name the hops from where frames come in to where they leave")
	}
	now, err := r.bed.count(ctx)
	if err != nil {
		return err
	}
	through := make([]bool, len(now))
	for i, c := range now {
		through[i] = c.Through
	}
	if r.routes, err = routes(r.out.Path, r.bed.hops, through, r.set.traffic.Bidirectional); err != nil {
		return err
	}
	said := map[int]bool{}
	for _, rt := range r.routes {
		for _, h := range rt.hops {
			if h.mixed && !said[h.subject] {
				said[h.subject] = true
				r.note("The counters of %s count two passages together, so it has no line in the ledger; what it loses shows at the next line.", h.name)
			}
		}
	}
	return nil
}

func (r *runner) step(format string, args ...any) {
	r.in.Events.Step(r.out.Addr, fmt.Sprintf(format, args...))
}

// note keeps a note once.
func (r *runner) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(r.out.Notes, n) {
		r.out.Notes = append(r.out.Notes, n)
	}
}

// plain is a value without marks: providers see none.
func plain(v cty.Value) cty.Value { v, _ = v.UnmarkDeep(); return v }
