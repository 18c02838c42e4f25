package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/state"
)

// pass is one evaluation of the whole configuration. Another one follows when a pass finds that changes take the effect of others away,
// because then values become unknown that were taken for known.
type pass struct {
	*planner
	ev    *eval.Evaluator
	nodes map[addrs.Instance]*node
	order []*node // as they were planned: what is referred to comes first
	diags hcl.Diagnostics
	deps  map[addrs.Resource][]eval.Dependency
	// By static resource: its instances, and what the state is to record as its dependencies.
	expanded map[addrs.Resource][]addrs.Instance
	recorded map[addrs.Resource][]string
	// What stands on what: see depend.go.
	stood map[addrs.Resource][]addrs.Resource
	bases map[[2]addrs.Resource]basis
}

// node is one configured instance in a pass.
type node struct {
	addr    addrs.Instance
	inst    *eval.Instance
	entry   *entry // nil: not in the state
	schema  *schema.Resource
	desired cty.Value // unmarked, with ignore_changes worked in
	planned cty.Value // unmarked
	value   cty.Value // planned as references see it: marked
	change  Change
	failed  bool   // nothing can be said about it; why has been reported
	cutBy   string // failed because this host cannot be reached
	busy    bool
}

func (n *node) changes() bool { return n.change.Action != NoOp }

// resolve is eval.Inputs.Resolve: it plans the instance when something refers to it.
func (ps *pass) resolve(a addrs.Instance) (cty.Value, hcl.Diagnostics) {
	if ps.hostConfigs == nil || ps.opt.Destroy {
		return ps.recordedValue(a), nil
	}
	return ps.plan(a).value, nil
}

// recordedValue is what is known of an instance without planning it.
func (ps *pass) recordedValue(a addrs.Instance) cty.Value {
	if e := ps.prior[a]; e != nil && !e.gone() {
		return value.Mark(e.current, e.sensitive)
	}
	if sch := ps.schemaOf(a.Resource); sch != nil {
		return cty.UnknownVal(ps.typeOf(&sch.Block))
	}
	return cty.DynamicVal
}

func (p *planner) schemaOf(r addrs.Resource) *schema.Resource {
	return p.schemas[schemaKey{r.Mode, r.Type}]
}

// plan plans one configured instance, once.
func (ps *pass) plan(a addrs.Instance) *node {
	if n := ps.nodes[a]; n != nil {
		return n // busy: it refers to itself, which eval.New has reported
	}
	n := &node{addr: a, schema: ps.schemaOf(a.Resource), entry: ps.prior[a], busy: true, value: ps.recordedValue(a)}
	ps.nodes[a] = n
	defer func() { n.busy = false; ps.order = append(ps.order, n) }()
	n.change = Change{Addr: a, Action: NoOp}
	if !ps.scope.covers(a) {
		n.failed = true // left as it is
		return n
	}
	inst, diags := ps.ev.Evaluate(a)
	ps.diags = append(ps.diags, diags...)
	if diags.HasErrors() || inst == nil || n.schema == nil {
		n.failed = true
		n.value = cty.UnknownVal(ps.unknownType(n))
		return n
	}
	n.inst, n.change.Host = inst, inst.Host
	if inst.Host != "" && ps.host(inst.Host) == nil && ps.bad(inst.Host) || n.entry != nil && n.entry.unread {
		n.failed = true
		if ps.isCut(inst.Host) {
			n.cutBy = inst.Host
		}
		return n
	}
	if n.cutBy = ps.needsCut(a); n.cutBy != "" {
		n.failed = true
		return n
	}
	desired, sensitive := value.Unmark(inst.Desired)
	n.desired = desired
	if a.Resource.Mode == addrs.Data {
		ps.planData(n, sensitive)
	} else {
		ps.planManaged(n, sensitive)
	}
	if !n.failed {
		ps.diags = append(ps.diags, ps.postconditions(n)...)
	}
	return n
}

func (ps *pass) unknownType(n *node) cty.Type {
	if n.schema == nil {
		return cty.DynamicPseudoType
	}
	return ps.typeOf(&n.schema.Block)
}

func (n *node) fail(ps *pass, diags ...*hcl.Diagnostic) {
	ps.diags = append(ps.diags, diags...)
	if hcl.Diagnostics(diags).HasErrors() {
		n.failed = true
	}
}

func (ps *pass) planManaged(n *node, sensitive [][]string) {
	b := &n.schema.Block
	null := cty.NullVal(ps.typeOf(b))
	prior, doubt := null, false
	if n.entry != nil && !n.entry.gone() {
		prior, doubt = n.entry.current, n.entry.inst.Status != state.Ready
	}
	n.desired = ignoreChanges(n.inst.Config.Lifecycle, n.desired, prior)

	planned, changed, extra, ok := ps.propose(n, prior, doubt)
	if !ok {
		return
	}
	c := &n.change
	c.Changed, c.Effects = changed, extra.Effects
	c.Cost = max(costOf(changed), extra.Cost)
	if len(changed) == 0 && !doubt {
		c.Cost = schema.Live
	}
	c.Reboot = c.Cost == schema.HostReboot
	lost, isLost := ps.lost[n.addr]
	switch {
	case prior.IsNull():
		c.Action, c.Changed, c.Cost = Create, nil, extra.Cost
		c.Reboot = extra.Cost == schema.HostReboot
		if n.entry != nil && n.entry.inst.Status != state.Ready {
			c.Reason = WasInDoubt
		}
	case ps.replaces(n, c):
		c.Action, c.Cost, c.Effects = Replace, schema.Replace, nil
		if planned, _, extra, ok = ps.propose(n, null, false); !ok {
			return
		}
		c.Effects = extra.Effects
		c.Reboot = extra.Cost == schema.HostReboot || ps.removal(n.entry).Cost == schema.HostReboot
		c.Changed = diff(b, prior, planned, n.desired)
	case doubt:
		c.Action, c.Reason = Update, WasInDoubt
	case isLost && ps.onlyVolatile(n, prior, changed):
		c.Action, c.Reason = Reapply, LostBy
	case len(changed) > 0:
		c.Action = Update
	}
	if isLost && (c.Action == Update || c.Action == Reapply || c.Reason == LostBy) {
		c.LostBy, c.LostWhy = lost.by, lost.why
	}
	lc := n.inst.Config.Lifecycle
	c.PreventDestroy = lc.PreventDestroy
	if c.Action == Replace && lc.PreventDestroy {
		n.fail(ps, preventDestroy(n.addr, n.inst.Config.Lifecycle.Range.Ptr(), "has to be replaced: "+reasonText(c)))
		return
	}
	n.planned = planned
	sensitive = value.Union(sensitive, value.SchemaSensitive(b, planned))
	sensitive = value.Union(sensitive, value.Echoes(planned, sensitive, planned))
	n.value = value.Mark(planned, sensitive)
	if n.entry != nil {
		sensitive = value.Union(sensitive, n.entry.sensitive)
	}
	if err := ps.encode(c, b, prior, planned, sensitive); err != nil {
		n.fail(ps, errorAt(n.inst.Config.Range.Ptr(), "Value cannot be kept", "%s: %s.", n.addr, err))
	}
}

// onlyVolatile says that nothing changes but what any change of the instance changes.
func (ps *pass) onlyVolatile(n *node, prior cty.Value, changed []AttrChange) bool {
	b := &n.schema.Block
	anyway := diff(b, prior, unsettle(b, n.desired, prior), n.desired)
	return !slices.ContainsFunc(changed, func(a AttrChange) bool {
		return !slices.ContainsFunc(anyway, func(v AttrChange) bool { return slices.Equal(a.Path, v.Path) })
	})
}

// propose is the plan of an instance against prior, and how it differs: by the schema, then by the provider where it has a word in it. false:
// it failed, and why has been reported.
func (ps *pass) propose(n *node, prior cty.Value, doubt bool) (cty.Value, []AttrChange, providers.PlanResult, bool) {
	b := &n.schema.Block
	planned := propose(b, prior, n.desired, doubt)
	changed := diff(b, prior, planned, n.desired)
	_, lost := ps.lost[n.addr]
	if !prior.IsNull() && (doubt || lost || len(changed) > 0) && hasVolatile(b) {
		planned = unsettle(b, n.desired, planned)
		changed = diff(b, prior, planned, n.desired)
	}
	planner, ok := ps.resources[n.addr.Resource.Type].(providers.Planner)
	host := ps.host(n.inst.Host)
	if !ok || n.inst.Host != "" && host == nil { // a host whose address is not known yet: by the schema alone
		return planned, changed, providers.PlanResult{}, true
	}
	at := ps.argument(n)
	r, err := planner.Plan(ps.ctx, providers.PlanRequest{
		Host: host, Mark: ps.mark(n.addr), Prior: prior, Desired: n.desired, Proposed: planned,
	})
	if errors.Is(err, providers.ErrUnreachable) {
		ps.hostError(n.inst.Host, err)
		n.failed, n.cutBy = true, n.inst.Host
		return planned, nil, r, false
	}
	if err != nil {
		n.fail(ps, providerError(at(nil), "plan", n.addr, err))
		return planned, nil, r, false
	}
	n.fail(ps, ps.problems(n.addr.String(), r.Problems, at)...)
	if n.failed {
		return planned, nil, r, false
	}
	if broken := value.CheckPlanned(b, n.desired, r.Planned); len(broken) > 0 {
		n.fail(ps, bugs(at(nil), n.addr, broken)...)
		return planned, nil, r, false
	}
	return r.Planned, diff(b, prior, r.Planned, n.desired), r, true
}

// argument finds the place of a path in the block of an instance.
func (ps *pass) argument(n *node) func(cty.Path) *hcl.Range {
	return func(path cty.Path) *hcl.Range {
		if len(path) == 0 {
			return n.inst.Config.Range.Ptr()
		}
		return eval.AttributeRange(n.inst.Config.Body, &n.schema.Block, path)
	}
}

// replaces says whether an instance that exists has to be made anew, and sets the reason.
func (ps *pass) replaces(n *node, c *Change) bool {
	switch {
	case slices.ContainsFunc(ps.opt.Replace, func(t addrs.Target) bool { return t.Contains(n.addr) }):
		c.Reason = Requested
	case c.Cost == schema.Replace:
		c.Reason = CannotUpdate
	case ps.triggered(n):
		c.Reason = Triggered
	case ps.lost[n.addr].release:
		c.Reason = LostBy
	default:
		return false
	}
	return true
}

func reasonText(c *Change) string {
	switch c.Reason {
	case Requested:
		return "-replace names it"
	case Triggered:
		return "replace_triggered_by says so"
	case LostBy:
		return "it has to make room for a change"
	}
	for _, a := range c.Changed {
		if a.Cost == schema.Replace {
			return pathText(a.Path) + " cannot be changed in place"
		}
	}
	return "the change cannot be made in place"
}

func preventDestroy(a addrs.Instance, at *hcl.Range, why string) *hcl.Diagnostic {
	return errorAt(at, "Instance cannot be destroyed", "%s %s. Its lifecycle has prevent_destroy = true: take that out, or leave the instance as it is.", a, why)
}

// encode writes the values of a change. Both are unmarked; null becomes nothing. What is unknown or sensitive inside an attribute of dynamic
// type makes the whole attribute so: JSON wraps such values with their type, and a view that followed the path into the wrapper would miss
// the secret.
func (p *planner) encode(c *Change, b *schema.Block, before, after cty.Value, sensitive [][]string) error {
	ty := p.typeOf(b)
	if !before.IsNull() {
		e, err := value.Encode(before, ty)
		if err != nil {
			return fmt.Errorf("before: %w", err)
		}
		c.Before = e.JSON
	}
	switch {
	case after.IsNull():
	case before.RawEquals(after):
		c.After = c.Before
	default:
		e, err := value.Encode(after, ty)
		if err != nil {
			return fmt.Errorf("after: %w", err)
		}
		c.After, c.Unknown = e.JSON, wholeDynamic(e.Unknown, ty)
	}
	c.Sensitive = wholeDynamic(sensitive, ty)
	return nil
}

// wholeDynamic cuts paths off where they enter a value of dynamic type.
func wholeDynamic(in [][]string, ty cty.Type) []Path {
	var out []Path
	for _, p := range in {
		if cp, err := value.ToCty(p, ty); err == nil {
			p = value.PathOf(cp)
		}
		out = append(out, p)
	}
	return slices.CompactFunc(out, func(a, b Path) bool { return slices.Equal(a, b) })
}
