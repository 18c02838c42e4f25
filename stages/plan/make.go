package plan

import (
	"cmp"
	"context"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
)

// Make reads the world and plans. It changes nothing, in the world or in its input. The result is never nil; with errors its plan is marked Errored, has no
// steps and must not be applied, but shows what was found out. A cancelled context ends it with an error. The hosts of the result stay open, also with
// errors: the caller closes them.
func Make(ctx context.Context, in Input) (*Result, hcl.Diagnostics) {
	p := newPlanner(ctx, in)
	out := &Plan{
		FormatVersion: FormatVersion, PlumbVersion: p.opt.Version, ID: p.opt.NewID(), Created: p.opt.Now().UTC(), Destroy: p.opt.Destroy,
		Prior: Prior{Absent: in.Prior == nil}, Changes: []Change{}, Steps: []Step{},
	}
	if in.Prior != nil {
		out.Prior.Lineage, out.Prior.Serial = in.Prior.Lineage, in.Prior.Serial
	}
	for _, t := range p.opt.Targets {
		out.Targets = append(out.Targets, targetText(t))
	}
	ps := p.run(out)
	out.Reads = p.hosts.Reads()
	if err := ctx.Err(); err != nil {
		p.diags = hcl.Diagnostics{errorAt(nil, "Planning was interrupted", "%s. Nothing was changed.", err)}
	}
	unreachable := p.unreachable(ps, out)
	if len(p.hosts.opened()) == 0 {
		p.diags, unreachable = append(p.diags, unreachable...), nil
	}
	diags := finishDiagnostics(p.diags)
	out.Notes = notes(diags)
	if out.Errored = diags.HasErrors(); out.Errored {
		out.Steps = []Step{}
	}
	r := &Result{Plan: out, Hosts: p.hosts, Unreachable: unreachable}
	if ps != nil {
		r.Evaluator = ps.ev
	}
	return r, diags
}

func newPlanner(ctx context.Context, in Input) *planner {
	p := &planner{
		ctx: ctx, in: in, opt: in.Options, hosts: in.Hosts, types: map[*schema.Block]cty.Type{}, badHosts: map[string]bool{}, cut: map[string]error{}, removals: map[*entry]providers.RemovalResult{},
		resources: map[string]providers.Resource{}, sources: map[string]providers.DataSource{}, generators: map[string]providers.GeneratorType{},
		schemas: map[schemaKey]*schema.Resource{}, lost: map[addrs.Instance]loss{},
	}
	if p.opt.Parallelism < 1 {
		p.opt.Parallelism = 10
	}
	if p.hosts == nil {
		p.hosts = NewHosts(in.Set.OpenHost)
	}
	for _, r := range in.Set.Resources {
		s := r.Schema()
		p.resources[s.Type], p.schemas[schemaKey{addrs.Managed, s.Type}] = r, s
	}
	for _, d := range in.Set.Data {
		s := d.Schema()
		p.sources[s.Type], p.schemas[schemaKey{addrs.Data, s.Type}] = d, s
	}
	for _, g := range in.Set.Generators {
		p.generators[g.Schema().Type] = g
	}
	return p
}

// run fills in the plan. It returns the last pass, nil where it did not come to one.
func (p *planner) run(out *Plan) *pass {
	p.loadPrior()
	static, ok := p.evaluator(func(addrs.Instance) (cty.Value, hcl.Diagnostics) { return cty.DynamicVal, nil })
	if !ok {
		return nil
	}
	if static == nil && !p.opt.Destroy {
		p.report(errorAt(nil, "No configuration", "There is no configuration to plan. To take down what the state has, run `plumb destroy`."))
		return nil
	}
	p.target(static)
	p.checkReplace()
	first := p.newPass()
	hostEval, ok := p.evaluator(first.resolve)
	if !ok {
		return nil
	}
	p.loadHosts(hostEval)
	if p.diags.HasErrors() {
		return nil
	}
	p.refresh()
	drift, err := p.drift()
	if err != nil {
		p.report(errorAt(nil, "State cannot be compared", "%s.", err))
	}
	out.Drift = drift

	ps := p.converge()
	if ps == nil {
		return nil
	}
	p.report(ps.diags...)
	changes := ps.changes()
	ps.checkReboots(changes)
	out.Changes = make([]Change, len(changes))
	for i, c := range changes {
		out.Changes[i] = *c
	}
	if len(p.opt.Targets) == 0 {
		out.Outputs = ps.outputs()
		out.Benchmarks = ps.benchmarks()
	}
	ps.check()
	p.limitCost(out.Changes, ps)
	steps, err := ps.steps(changes)
	if err != nil {
		p.report(errorAt(nil, "Steps cannot be ordered", "What has to be done waits for itself: %s. The dependencies that the state recorded and those of the configuration contradict one another; "+
			"apply the change in two parts with -target.", err))
	}
	out.Steps = steps
	return ps
}

// evaluator makes one for the configuration; nil where there is none. false: the configuration is wrong, which has been reported.
func (p *planner) evaluator(resolve func(addrs.Instance) (cty.Value, hcl.Diagnostics)) (*eval.Evaluator, bool) {
	if p.in.Config == nil {
		return nil, true
	}
	ev, diags := eval.New(eval.Inputs{
		Config: p.in.Config, Catalog: p.in.Catalog, Variables: p.in.Variables, Dir: p.opt.Dir, Facts: p.facts, Resolve: resolve,
	})
	if diags.HasErrors() {
		p.report(diags...)
		return nil, false
	}
	return ev, true
}

func (p *planner) newPass() *pass {
	return &pass{planner: p, nodes: map[addrs.Instance]*node{}, deps: map[addrs.Resource][]eval.Dependency{}, expanded: map[addrs.Resource][]addrs.Instance{}, recorded: map[addrs.Resource][]string{},
		stood: map[addrs.Resource][]addrs.Resource{}, bases: map[[2]addrs.Resource]basis{}}
}

// converge evaluates until no further change is found to take the effect of others away: what is lost grows with each pass, so it ends.
func (p *planner) converge() *pass {
	for {
		ps := p.newPass()
		ev, ok := p.evaluator(ps.resolve)
		if !ok {
			return nil
		}
		if ps.ev = ev; ev != nil {
			ps.planAll()
		}
		if p.opt.Destroy {
			return ps
		}
		more := ps.findLosses()
		if ps.findRebootLosses() {
			more = true
		}
		if !more {
			return ps
		}
	}
}

// planAll plans every configured instance.
func (ps *pass) planAll() {
	if ps.opt.Destroy {
		return
	}
	for _, r := range ps.ev.Resources() {
		if ps.scope != nil && !ps.scope.needs[r] && !ps.scope.namesResource(r) {
			continue
		}
		for _, a := range ps.expand(r) {
			ps.plan(a)
		}
	}
}

// expand lists the instances of a static resource, once.
func (ps *pass) expand(r addrs.Resource) []addrs.Instance {
	r = r.Static()
	if out, ok := ps.expanded[r]; ok {
		return out
	}
	out, diags := ps.ev.Expand(r)
	ps.diags = append(ps.diags, diags...)
	ps.expanded[r] = out
	return out
}

// dependencies of a resource, static, once.
func (ps *pass) dependencies(r addrs.Resource) []eval.Dependency {
	if ps.ev == nil {
		return nil
	}
	r = r.Static()
	if out, ok := ps.deps[r]; ok {
		return out
	}
	out := ps.ev.Dependencies(r)
	ps.deps[r] = out
	return out
}

func (ps *pass) postconditions(n *node) hcl.Diagnostics {
	if n.inst == nil || len(n.inst.Config.Lifecycle.Postconditions) == 0 {
		return nil
	}
	return ps.ev.Postconditions(n.addr, n.value)
}

// changes are those of all instances, sorted by address, current before deposed.
func (ps *pass) changes() []*Change {
	var out []*Change
	for _, n := range ps.order {
		if n.failed || ps.bad(n.change.Host) { // bad: since it was planned
			continue
		}
		c := &n.change
		c.DependsOn = ps.recordedDependencies(n.addr.Resource)
		out = append(out, c)
	}
	ps.forceCreateBeforeDestroy()
	out = append(out, ps.orphans()...)
	slices.SortFunc(out, func(a, b *Change) int {
		return cmp.Or(a.Addr.Compare(b.Addr), boolCompare(a.Deposed, b.Deposed), cmp.Compare(a.DeposedAt, b.DeposedAt))
	})
	return out
}

// recordedDependencies are the managed resources that the state records for a later destroy: those that r depends on directly or through data
// sources, which the state does not hold.
func (ps *pass) recordedDependencies(r addrs.Resource) []string {
	r = r.Static()
	if out, ok := ps.recorded[r]; ok {
		return out
	}
	var out []string
	seen := map[addrs.Resource]bool{r: true}
	var walk func(addrs.Resource)
	walk = func(r addrs.Resource) {
		for _, d := range ps.dependencies(r) {
			switch {
			case seen[d.Resource]:
				continue
			case d.Resource.Mode == addrs.Data:
				walk(d.Resource)
			default:
				out = append(out, d.Resource.String())
			}
			seen[d.Resource] = true
		}
	}
	walk(r)
	slices.Sort(out)
	ps.recorded[r] = out
	return out
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// forceCreateBeforeDestroy sets it where the configuration says so, and on all that such an instance depends on: otherwise what it
// stands on would be gone before it can go. Settings are left out: old and new are the same value of the host, so that putting the old one
// back last would undo the new one.
func (ps *pass) forceCreateBeforeDestroy() {
	if ps.ev == nil || ps.opt.Destroy {
		return
	}
	forced := map[addrs.Resource]bool{}
	var force func(r addrs.Resource)
	force = func(r addrs.Resource) {
		r = r.Static()
		if _, seen := forced[r]; seen || r.Mode == addrs.Data {
			return
		}
		sch := ps.in.Catalog.Resources[r.Type]
		forced[r] = sch == nil || !sch.Setting
		for _, d := range ps.dependencies(r) {
			force(d.Resource)
		}
	}
	for _, r := range ps.ev.Resources() {
		cfg := configOf(ps.in.Config, r)
		if cfg == nil || !cfg.Lifecycle.CreateBeforeDestroy {
			continue
		}
		if sch := ps.in.Catalog.Resources[r.Type]; sch != nil && sch.Setting {
			ps.report(errorAt(cfg.Lifecycle.Range.Ptr(), "Setting cannot be created before it is destroyed",
				"%s changes a value that the host has anyway, and destroy puts the old value back: done last, that would undo the new one. Remove create_before_destroy.", r))
			continue
		}
		force(r)
	}
	for _, n := range ps.order {
		n.change.CreateBeforeDestroy = forced[n.addr.Resource.Static()]
	}
	ps.makeRoom()
}

// makeRoom takes create_before_destroy from what has to make room for a change, and from all that stands on such: the new ones cannot be made before that change, and so the old ones would not be gone
// before it.
func (ps *pass) makeRoom() {
	var leaving []addrs.Resource
	for _, n := range ps.order {
		if n.change.Action == Replace && ps.lost[n.addr].release && !slices.Contains(leaving, n.addr.Resource) {
			leaving = append(leaving, n.addr.Resource)
		}
	}
	for _, n := range ps.order {
		c := &n.change
		if c.Action != Replace || !c.CreateBeforeDestroy {
			continue
		}
		if slices.ContainsFunc(leaving, func(r addrs.Resource) bool {
			return r == n.addr.Resource || ps.standsOn(n.addr.Resource, r) != basis{}
		}) {
			c.CreateBeforeDestroy = false
			ps.report(warningAt(ps.rangeOf(c.Addr), c.Addr.String(), "Destroyed before it is created", "%s has create_before_destroy, of its own or because of what depends on it. This time the old one has to be gone first, for a change of what it stands on cannot be made while it is there.", c.Addr))
		}
	}
}
