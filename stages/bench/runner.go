package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
	"plumb/providers"
)

// closeLimit is how long closing a generator may take, also after the run was cancelled.
const closeLimit = 60 * time.Second

// runner runs one benchmark.
type runner struct {
	in     Input
	b      *eval.Benchmark
	set    settings
	method method
	bed    *bed
	gen    providers.Generator
	routes []route
	proved int // frame size that the path was last proved for
	facts  []HostFacts
	out    Benchmark
}

// run fills r.out. It never leaves a generator open.
func (r *runner) run(ctx context.Context) {
	err := r.measure(ctx)
	r.out.Summary = append(r.out.Summary, summarize(r.out.Trials)...)
	switch {
	case ctx.Err() != nil && err != nil:
		r.out.Error = "interrupted: " + context.Cause(ctx).Error()
	case err != nil:
		r.out.Error = err.Error()
	}
	r.require()
}

func (r *runner) measure(ctx context.Context) (err error) {
	for _, a := range r.b.Path {
		r.out.Path = append(r.out.Path, a.String())
	}
	if r.set, err = decode(r.b); err != nil {
		return err
	}
	s := r.set
	r.out.Headers, r.out.Bidirectional, r.out.LineRate, r.out.MaxLoss, r.out.Phases = s.traffic.Headers, s.traffic.Bidirectional, s.lineRate, s.maxLoss, s.phases()
	switch r.b.Method { // decode has refused others
	case "continuous":
		r.method = newContinuous(s)
	}
	if r.bed, err = newBed(ctx, r.in, r.b); err != nil {
		return err
	}
	if r.facts, err = r.bed.facts(ctx); err != nil {
		return err
	}
	r.in.Events.Begin(r.out.Addr, r.method.total())
	closeGen, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeGen()) }()
	if err := r.able(); err != nil {
		return err
	}
	if err := r.route(ctx); err != nil {
		return err
	}
	return r.walk(ctx)
}

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
	gen, err := r.bed.genType.Open(ctx, providers.OpenRequest{
		Host: r.bed.genHost, Mark: providers.Mark{Testbed: r.in.Testbed, Address: r.out.Generator}, Config: plain(g.Config),
		Path: r.bed.path(), Traffic: r.traffic(r.set.sizes[0], r.set.flows[0]), Log: func(s string) { r.step("%s", s) },
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
	a := r.gen.Abilities()
	r.out.Tool, r.out.Signed = a.Describe, a.Signed
	if r.set.load > 0 && !a.RateControl {
		return fmt.Errorf("%s (%s) cannot send at a given rate; write load = \"max\" or choose another generator", r.out.Generator, a.Describe)
	}
	if r.set.traffic.Bidirectional && !a.Bidirectional {
		return fmt.Errorf("%s (%s) sends in one direction only; write bidirectional = false or choose another generator", r.out.Generator, a.Describe)
	}
	for _, n := range r.set.flows {
		if a.MaxFlows > 0 && n > a.MaxFlows {
			return fmt.Errorf("%s (%s) makes at most %d flows, not %d", r.out.Generator, a.Describe, a.MaxFlows, n)
		}
	}
	return nil
}

// route works out which counter counts what; it has to ask which hops pass frames on by themselves.
func (r *runner) route(ctx context.Context) error {
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

// walk makes trials until the method has enough.
func (r *runner) walk(ctx context.Context) error {
	var counted []Trial
	for {
		p, more := r.method.next(counted)
		if !more {
			return nil
		}
		if p.size != r.proved {
			if err := r.prove(ctx, p); err != nil {
				return err
			}
			r.proved = p.size
		}
		t, err := r.insist(ctx, p, len(counted))
		if err != nil {
			return err
		}
		counted = append(counted, t)
	}
}

// insist repeats an INVALID trial up to the limit.
func (r *runner) insist(ctx context.Context, p point, done int) (Trial, error) {
	for attempt := 1; ; attempt++ {
		t, err := r.trial(ctx, p, attempt)
		if err != nil {
			return t, err
		}
		if t.Verdict != Invalid {
			if why := r.method.fails(t); why != "" {
				t.Verdict, t.Reasons = Fail, []string{why}
			}
			done++
		}
		r.out.Trials = append(r.out.Trials, t)
		r.in.Events.Trial(r.out.Addr, t, done, r.method.total())
		if t.Verdict != Invalid {
			return t, nil
		}
		if attempt > r.set.retries {
			return t, fmt.Errorf("%d-byte frames, %d flows: %d trials in a row did not count; the last because %s", p.size, p.flows, attempt, t.Reasons[0])
		}
	}
}

// trial makes one attempt: warm-up, settle, counters, observers, stream with drain, observers, counters. An error means that the generator or a
// host is broken.
func (r *runner) trial(ctx context.Context, p point, attempt int) (Trial, error) {
	req := providers.TrialRequest{Traffic: r.traffic(p.size, p.flows), Load: p.load, Drain: r.set.drain}
	if r.set.warmUp > 0 {
		r.step("%d bytes, %d flows: warm-up %s", p.size, p.flows, r.set.warmUp)
		req.Duration = r.set.warmUp
		if _, err := r.gen.Trial(ctx, req); err != nil {
			return Trial{}, fmt.Errorf("warm-up with %d-byte frames: %w", p.size, err)
		}
	}
	if r.set.settle > 0 {
		if err := r.in.Wait(ctx, r.set.settle); err != nil {
			return Trial{}, err
		}
	}
	before, err := r.bed.count(ctx)
	if err != nil {
		return Trial{}, err
	}
	m := measured{point: p, attempt: attempt, tolerance: r.set.tolerance, signed: r.out.Signed, generator: r.out.Generator, routes: r.routes}
	watch := r.observe(ctx)
	r.step("%d bytes, %d flows: trial %d, %s", p.size, p.flows, p.repeat, p.duration)
	req.Duration = p.duration
	m.started = r.in.Now()
	m.result, err = r.gen.Trial(ctx, req)
	m.watched = watch(ctx)
	if err != nil {
		return Trial{}, fmt.Errorf("trial with %d-byte frames: %w", p.size, err)
	}
	after, err := r.bed.count(ctx)
	switch {
	case ctx.Err() != nil:
		return Trial{}, ctx.Err()
	case err != nil:
		m.trouble = append(m.trouble, err.Error())
	default:
		var backwards []string
		m.moved, backwards = moved(r.bed.names, before, after)
		m.trouble = append(m.trouble, backwards...)
	}
	return m.trial(), nil
}

func (r *runner) traffic(size, flows int) providers.Traffic {
	t := r.set.traffic
	t.FrameSize, t.Flows = size, flows
	return t
}

func (r *runner) step(format string, args ...any) {
	r.in.Events.Step(r.out.Addr, fmt.Sprintf(format, args...))
}

// note keeps a note once.
func (r *runner) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	for _, have := range r.out.Notes {
		if have == n {
			return
		}
	}
	r.out.Notes = append(r.out.Notes, n)
}

// plain is a value without marks: providers see none.
func plain(v cty.Value) cty.Value { v, _ = v.UnmarkDeep(); return v }
