package bench

import (
	"context"
	"fmt"
	"time"

	"plumb/providers"
	"plumb/stages/bench/search"
)

// searching is one search of one cell, as far as it got.
type searching struct {
	cell
	repeat int // 0: for the throughput before
	search search.Search
	seen   []search.Seen
	took   float64 // seconds of its trials that counted and of those that did not
}

// walk runs the method for every frame size and flow count.
func (r *runner) walk(ctx context.Context) error {
	for _, c := range r.set.cells() {
		k, measurable, err := r.throughput(ctx, c)
		if err != nil {
			return err
		}
		for repeat := 1; measurable && repeat <= r.set.repeat; repeat++ {
			s, err := r.set.plan.make(k)
			if err != nil {
				return fmt.Errorf("%d-byte frames, %d flows: %w", c.size, c.flows, err)
			}
			if _, err := r.search(ctx, c, repeat, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// throughput finds out what is known of a cell before its search, where the method needs it by a search of its own. A cell without throughput cannot be
// measured; a note says so.
func (r *runner) throughput(ctx context.Context, c cell) (known, bool, error) {
	k := known{theoretical: r.set.theoretical(c.size), throughput: r.set.plan.given}
	if r.set.plan.base == nil {
		return k, true, nil
	}
	s, err := r.set.baseFor(k)
	if err != nil {
		return k, false, fmt.Errorf("%d-byte frames, %d flows: search for the throughput: %w", c.size, c.flows, err)
	}
	r.step("%d bytes, %d flows: searching the throughput", c.size, c.flows)
	seen, err := r.search(ctx, c, 0, s)
	if err != nil {
		return k, false, err
	}
	for _, t := range seen {
		if t.Load == 0 {
			k.tester = max(k.tester, t.TxRate)
		}
	}
	for _, f := range s.Figures(seen) {
		if f.Name != "throughput" {
			continue
		}
		if f.None != "" {
			r.note("%d-byte frames, %d flows: %s was not measured, since there is no throughput: %s.", c.size, c.flows, r.b.Method, f.None)
			return k, false, nil
		}
		k.throughput, k.found = f.Value, true
	}
	return k, true, nil
}

// search makes trials until the search has enough, and returns those that counted.
func (r *runner) search(ctx context.Context, c cell, repeat int, s search.Search) ([]search.Seen, error) {
	run := &searching{cell: c, repeat: repeat, search: s}
	r.searches = append(r.searches, run)
	for {
		ask, more := s.Next(run.seen)
		if !more {
			return run.seen, nil
		}
		t, err := r.insist(ctx, point{c, repeat, ask}, run)
		if err != nil {
			return nil, err
		}
		run.seen = append(run.seen, t.seen(ask))
	}
}

// insist makes a trial count: an INVALID one is repeated up to the limit. What an interrupted run has of it comes first, and does not count towards the limit.
func (r *runner) insist(ctx context.Context, p point, run *searching) (Trial, error) {
	attempt := 0
	for len(r.replay) > 0 && r.replay[0].answers(p, r.set.directions()) {
		t := r.replay[0]
		r.replay, attempt = r.replay[1:], t.Attempt
		r.add(t, run)
		if t.Verdict != Invalid {
			return t, nil
		}
	}
	if len(r.replay) > 0 {
		if err := r.forget(); err != nil {
			return Trial{}, err
		}
	}
	for tries := 0; ; tries++ {
		if err := r.ready(ctx, p.cell); err != nil {
			return Trial{}, err
		}
		attempt++
		t, err := r.trial(ctx, p, attempt, len(run.seen) == 0 && tries == 0)
		if err != nil {
			return t, err
		}
		if t.Verdict != Invalid {
			if why := run.search.Judge(t.seen(p.ask)); why != "" {
				t.Verdict, t.Reasons = Fail, []string{why}
			}
		}
		r.add(t, run)
		if err := r.keep(record{Trial: &t}); err != nil {
			return t, err
		}
		r.in.Events.Trial(r.out.Addr, t, r.counted(), r.total())
		if t.Verdict != Invalid {
			return t, nil
		}
		if tries >= r.set.retries {
			return t, fmt.Errorf("%d-byte frames, %d flows: %d trials in a row did not count; the last because %s", p.size, p.flows, tries+1, t.Reasons[0])
		}
	}
}

func (r *runner) add(t Trial, run *searching) {
	r.out.Trials = append(r.out.Trials, t)
	run.took += t.Took
}

func (r *runner) counted() int {
	n := 0
	for _, t := range r.out.Trials {
		if t.Verdict != Invalid {
			n++
		}
	}
	return n
}

// forget gives up what is left of an interrupted run: it does not answer what the search asks now.
func (r *runner) forget() error {
	r.note("%d trials of the interrupted run were made anew: they do not answer what the search asks.", len(r.replay))
	r.replay = nil
	begun := r.out
	begun.Trials, begun.Proof = nil, nil
	recs := []record{{Begun: &begun, Definition: r.definition, Anew: true}}
	if r.out.Proof != nil {
		recs = append(recs, record{Proof: r.out.Proof})
	}
	for i := range r.out.Trials {
		recs = append(recs, record{Trial: &r.out.Trials[i]})
	}
	for _, rec := range recs {
		if err := r.keep(rec); err != nil {
			return err
		}
	}
	return nil
}

// ready proves the path for a frame size that it was not just proved for, and starts the loads that disturb before the first trial.
func (r *runner) ready(ctx context.Context, c cell) error {
	if !r.model && c.size != r.proved {
		if err := r.prove(ctx, c); err != nil {
			return err
		}
		r.proved = c.size
	}
	if r.endLoads != nil {
		return nil
	}
	var err error
	r.endLoads, err = r.disturb(ctx)
	return err
}

// trial makes one attempt: rest, warm-up, settle, counters, observers, stream with drain, observers, counters. An error means that the generator or a
// host is broken. first says that the search begins with it.
func (r *runner) trial(ctx context.Context, p point, attempt int, first bool) (Trial, error) {
	began := r.in.Now()
	if err := r.prelude(ctx, p, first); err != nil {
		return Trial{}, err
	}
	var before []providers.Counters
	var err error
	if !r.model {
		if before, err = r.bed.count(ctx); err != nil {
			return Trial{}, err
		}
	}
	m := measured{point: p, attempt: attempt, tolerance: r.set.tolerance, signed: r.out.Signed, directions: r.set.directions(), generator: r.out.Generator,
		routes: r.routes, names: r.bed.names}
	watch := r.observe(ctx)
	r.step("%s", p.words())
	req := p.request(r.set.traffic, r.set.drain)
	if p.ask.Disturb {
		req.Disturb = func(context.Context) error { return nil } // a model is disturbed by itself
		if r.reset != nil {
			req.Disturb = r.reset.disturb
		}
	}
	m.started = r.in.Now()
	m.result, err = r.gen.Trial(ctx, req)
	m.watched = watch(ctx)
	r.tried = true
	if err != nil {
		return Trial{}, fmt.Errorf("trial with %d-byte frames: %w", p.size, err)
	}
	if err := r.account(ctx, &m, before); err != nil {
		return Trial{}, err
	}
	t := m.trial()
	t.Took = r.in.Now().Sub(began).Seconds()
	return t, nil
}

// prelude is what comes before the measured part of a trial. For a model nothing has to pass.
func (r *runner) prelude(ctx context.Context, p point, first bool) error {
	if r.model {
		return ctx.Err()
	}
	if r.tried && r.set.rest > 0 {
		if err := r.in.Wait(ctx, r.set.rest); err != nil {
			return err
		}
	}
	if r.set.warmUp > 0 && (first || !r.set.learnOnce) {
		r.step("%d bytes, %d flows: warm-up %s", p.size, p.flows, r.set.warmUp)
		req := p.request(r.set.traffic, r.set.drain)
		req.Duration, req.Frames, req.Burst, req.Steps, req.DisturbAfter = r.set.warmUp, 0, 0, nil, 0
		if _, err := r.gen.Trial(ctx, req); err != nil {
			return fmt.Errorf("warm-up with %d-byte frames: %w", p.size, err)
		}
	}
	if r.set.settle > 0 {
		return r.in.Wait(ctx, r.set.settle)
	}
	return nil
}

// account reads the counters after a trial. What cannot be read makes the trial not count; a counter that went backwards too, unless the trial resets the device: then
// it has no ledger.
func (r *runner) account(ctx context.Context, m *measured, before []providers.Counters) error {
	if r.model {
		return ctx.Err()
	}
	after, err := r.bed.count(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		m.trouble = append(m.trouble, err.Error())
		return nil
	}
	gained, backwards := moved(r.bed.names, before, after)
	switch {
	case len(backwards) == 0:
		m.moved = gained
	case m.ask.Disturb:
		m.notes = append(m.notes, "No ledger: the reset set counters back ("+backwards[0]+").")
	default:
		m.moved = gained
		m.trouble = append(m.trouble, backwards...)
	}
	return nil
}

// words says what a trial is, on one line.
func (p point) words() string {
	s := fmt.Sprintf("%d bytes, %d flows", p.size, p.flows)
	if p.repeat > 0 {
		s += fmt.Sprintf(", repeat %d", p.repeat)
	}
	if p.ask.Phase != "" {
		s += ", " + p.ask.Phase
	}
	s += ": "
	switch {
	case p.ask.Load > 0:
		s += fmt.Sprintf("%.0f frames/s", p.ask.Load)
	case p.ask.Frames > 0:
		s += fmt.Sprintf("%d frames back to back", p.ask.Frames)
	default:
		s += "maximum"
	}
	if d := p.lasts(); d > 0 {
		s += " for " + d.Round(time.Millisecond).String()
	}
	return s
}
