package conformance

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// world is what outlives a run of Plumb: the state of one instance.
type world struct {
	t      *testing.T
	c      Case
	typ    cty.Type
	before []string
	state  cty.Value
	undo   json.RawMessage
}

// run is one run of Plumb.
type run struct {
	world   *world
	host    providers.Host
	reapply bool
}

func begin(t *testing.T, c Case) *world {
	w := &world{t: t, c: c, typ: c.Type.Schema().Block.ImpliedType()}
	w.state = cty.NullVal(w.typ)
	w.before = w.look()
	return w
}

// end compares the world with what it was.
func (w *world) end() {
	w.t.Helper()
	if !w.state.IsNull() {
		w.t.Errorf("something is left: %#v", w.state)
	}
	w.wantSame(w.before, "destroy did not bring back what was there before")
}

func (w *world) wantSame(before []string, what string) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.look()); diff != "" {
		w.t.Errorf("%s (-before +after):\n%s", what, diff)
	}
}

func (w *world) look() []string {
	var lines []string
	if w.c.Snapshot != nil {
		w.plumb(func(r *run) { lines = w.c.Snapshot(w.t, r.host) })
	}
	return lines
}

// plumb is one run: a connection of its own.
func (w *world) plumb(f func(*run)) {
	w.t.Helper()
	r := &run{world: w}
	if w.c.Open != nil {
		r.host = w.c.Open(w.t)
		defer func() {
			if err := r.host.Close(); err != nil {
				w.t.Errorf("close host: %v", err)
			}
		}()
	}
	f(r)
}

func (r *run) mark() providers.Mark {
	return providers.Mark{Testbed: "conformance", Address: r.world.c.Type.Schema().Type + ".test"}
}

func (r *run) read() {
	w := r.world
	w.t.Helper()
	if w.state.IsNull() {
		return
	}
	res, err := w.c.Type.Read(w.t.Context(), providers.ReadRequest{Host: r.host, Mark: r.mark(), Prior: w.state})
	if err != nil {
		w.t.Fatalf("read: %v", err)
	}
	if !res.Current.IsWhollyKnown() {
		w.t.Fatalf("Read returned unknown values: %#v", res.Current)
	}
	w.conform("Read", res.Current)
	w.state = res.Current
}

// conform checks that a value is of the schema's type.
func (w *world) conform(what string, v cty.Value) {
	w.t.Helper()
	if errs := v.Type().TestConformance(w.typ); len(errs) > 0 {
		w.t.Fatalf("%s returned a value of another type: %v", what, errs)
	}
}

func (r *run) tryPlan(config map[string]cty.Value) (cty.Value, error) {
	w := r.world
	w.t.Helper()
	planned := r.proposed(config)
	p, ok := w.c.Type.(providers.Planner)
	if !ok {
		return planned, nil
	}
	res, err := p.Plan(w.t.Context(), providers.PlanRequest{Host: r.host, Mark: r.mark(), Prior: w.state, Desired: Desired(&w.c.Type.Schema().Block, config), Proposed: planned})
	if err != nil {
		return cty.NilVal, err
	}
	for _, problem := range res.Problems {
		if !problem.Warning {
			w.t.Fatalf("plan: %s: %s", problem.Summary, problem.Detail)
		}
	}
	w.conform("Plan", res.Planned)
	return res.Planned, nil
}

func (r *run) plan(config map[string]cty.Value) cty.Value {
	r.world.t.Helper()
	planned, err := r.tryPlan(config)
	if err != nil {
		r.world.t.Fatalf("plan: %v", err)
	}
	return planned
}

func (r *run) proposed(config map[string]cty.Value) cty.Value {
	b := &r.world.c.Type.Schema().Block
	return propose(b, r.world.state, Desired(b, config))
}

func (r *run) request(planned cty.Value) providers.ApplyRequest {
	return providers.ApplyRequest{Host: r.host, Mark: r.mark(), Prior: r.world.state, Planned: planned, Undo: r.world.undo, Reapply: r.reapply, Log: r.log}
}

func (r *run) log(line string) { r.world.t.Log(line) }

func (r *run) prepare(planned cty.Value) {
	w := r.world
	w.t.Helper()
	p, ok := w.c.Type.(providers.Preparer)
	if !ok {
		return
	}
	undo, err := p.Prepare(w.t.Context(), r.request(planned))
	if err != nil {
		w.t.Fatalf("prepare: %v", err)
	}
	w.undo = undo
}

func (r *run) do(planned cty.Value) (cty.Value, error) {
	return r.doWith(r.world.t.Context(), planned)
}

func (r *run) doWith(ctx context.Context, planned cty.Value) (cty.Value, error) {
	res, err := r.world.c.Type.Apply(ctx, r.request(planned))
	return res.New, err
}

func (r *run) apply(config map[string]cty.Value) {
	w := r.world
	w.t.Helper()
	planned := r.plan(config)
	r.prepare(planned)
	got, err := r.do(planned)
	if err != nil {
		w.t.Fatalf("apply: %v", err)
	}
	w.conform("Apply", got)
	if !got.IsWhollyKnown() {
		w.t.Fatalf("Apply left something unknown: %#v", got)
	}
	if got.IsNull() {
		w.t.Fatal("Apply returned null for an object that is planned")
	}
	for _, at := range broken(&w.c.Type.Schema().Block, planned, got) {
		w.t.Errorf("Apply did not return what was planned: %s", at)
	}
	w.state = got
	r.reboot()
}

func (r *run) reboot() {
	if r.world.c.Reboot != nil {
		r.world.c.Reboot(r.world.t, r.host)
	}
}

// forget is a kill: the engine has recorded the intent and not the result. Unknown values of the plan are null in it.
func (r *run) forget(planned cty.Value) { r.world.state = nullUnknown(planned) }

func (r *run) wantEmptyPlan(config map[string]cty.Value) {
	w := r.world
	w.t.Helper()
	if w.state.IsNull() {
		w.t.Error("Read says that it is gone")
		return
	}
	planned := r.plan(config)
	for _, at := range broken(&w.c.Type.Schema().Block, planned, w.state) {
		w.t.Errorf("the plan is not empty: %s", at)
	}
	if !planned.IsWhollyKnown() {
		w.t.Errorf("the plan is not empty: it has unknown values: %#v", planned)
	}
}

func (r *run) destroy() {
	w := r.world
	w.t.Helper()
	if w.state.IsNull() {
		return // the engine drops what Read says is gone
	}
	got, err := r.do(cty.NullVal(w.typ))
	if err != nil {
		w.t.Fatalf("destroy: %v", err)
	}
	if !got.IsNull() {
		w.t.Fatalf("destroy returned %#v; want null", got)
	}
	w.state = got
	r.reboot()
}

// destroyAgain deletes what is gone already, and what the state thinks to be there still.
func (r *run) destroyAgain() {
	r.world.t.Helper()
	prior := r.world.state
	if prior.IsNull() {
		r.forget(r.proposed(r.world.c.Config))
	}
	r.destroy()
	r.world.state = cty.NullVal(r.world.typ)
}

func cancelled(t *testing.T, c Case) {
	if c.Open == nil {
		return // without a host there is nothing that could be stopped
	}
	w := begin(t, c)
	w.plumb(func(r *run) {
		planned := r.plan(c.Config)
		r.prepare(planned)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.doWith(ctx, planned); err == nil {
			t.Error("Apply with a cancelled context reported success")
		}
		r.forget(planned)
	})
	w.plumb(func(r *run) { r.read(); r.destroy() })
	w.end()
}

// Desired is a configuration as the engine hands it to a type: what is not given is null, its default, or no block.
func Desired(b *schema.Block, given map[string]cty.Value) cty.Value {
	out := make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))
	for name, a := range b.Attributes {
		out[name] = cty.NullVal(a.Type)
		if a.Default != cty.NilVal {
			out[name] = a.Default
		}
	}
	for name, n := range b.Blocks {
		typ := n.ImpliedType()
		switch n.Nesting {
		case schema.List:
			out[name] = cty.ListValEmpty(typ)
		case schema.Map:
			out[name] = cty.MapValEmpty(typ)
		default:
			out[name] = cty.NullVal(typ)
		}
	}
	for name, v := range given {
		out[name] = v
	}
	return cty.ObjectVal(out)
}
