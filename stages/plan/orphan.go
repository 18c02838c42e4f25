package plan

import (
	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/stages/internal/value"
	"plumb/stages/state"

	"github.com/zclconf/go-cty/cty"
)

// orphans are the changes of instances in the state that are not to be any more: those that are not configured, all in a destroy, and the deposed.
func (ps *pass) orphans() []*Change {
	var out []*Change
	for _, e := range ps.planner.instances() {
		if ps.nodes[e.inst.Addr] != nil || !ps.scope.covers(e.inst.Addr) || ps.undecided(e.inst.Addr.Resource) {
			continue
		}
		out = append(out, ps.orphan(e, ps.whyGone(e.inst.Addr)))
	}
	for _, e := range ps.deposed {
		if ps.scope.covers(e.inst.Addr) {
			out = append(out, ps.orphan(e, NoReason))
		}
	}
	kept := out[:0]
	for _, c := range out {
		if c != nil {
			kept = append(kept, c)
		}
	}
	return kept
}

// undecided says that how many instances a resource has could not be told, which has been reported: then none of them is taken for gone.
func (ps *pass) undecided(r addrs.Resource) bool {
	return !ps.opt.Destroy && configOf(ps.in.Config, r) != nil && len(ps.expand(r)) == 0 && ps.diags.HasErrors()
}

// orphan is the change of one of them; nil when nothing can be said, which has been reported.
func (ps *pass) orphan(e *entry, why Reason) *Change {
	if e.unread {
		return nil
	}
	i := e.inst
	c := &Change{Addr: i.Addr, Host: i.Host, Action: Delete, Reason: why, DependsOn: i.DependsOn, Deposed: i.Deposed, DeposedAt: i.DeposedAt}
	prior := e.current
	r := ps.removal(e)
	if e.unread {
		return nil
	}
	if e.gone() {
		prior = e.recorded
		if r.Cost < schema.HostReboot {
			c.Action = Forget
		}
	} else if cfg := configOf(ps.in.Config, i.Addr.Resource); !i.Deposed && (i.PreventDestroy || cfg != nil && cfg.Lifecycle.PreventDestroy) {
		ps.report(preventDestroy(i.Addr, ps.rangeOf(i.Addr), "would be destroyed"))
		return nil
	}
	if c.Action == Delete {
		c.Cost, c.Effects, c.Reboot = r.Cost, r.Effects, r.Cost == schema.HostReboot
	}
	if i.Status != state.Ready && c.Reason == NoReason {
		c.Reason = WasInDoubt
	}
	null := cty.NullVal(ps.typeOf(&e.schema.Block))
	if err := ps.encode(c, &e.schema.Block, prior, null, value.Union(e.sensitive)); err != nil {
		ps.report(errorAt(nil, "State cannot be used", "%s: %s.", i.Addr, err))
		return nil
	}
	return c
}

// whyGone says why an instance of the state is not configured.
func (ps *pass) whyGone(a addrs.Instance) Reason {
	if ps.opt.Destroy {
		return Destroying
	}
	cfg := configOf(ps.in.Config, a.Resource)
	if cfg == nil {
		if !a.Resource.Module.IsRoot() && moduleOf(ps.in.Config, a.Resource.Module) == nil {
			return NoModule
		}
		return NotInConfig
	}
	there := false
	for _, i := range ps.expand(a.Resource) {
		there = there || i.Resource.Module == a.Resource.Module
	}
	if _, ok := a.Key.Int(); ok && cfg.Count != nil {
		return CountIndex
	}
	if _, ok := a.Key.Str(); ok && cfg.ForEach != nil && (there || a.Resource.Module.IsRoot()) {
		return EachKey
	}
	if !there && !a.Resource.Module.IsRoot() {
		return NoModule
	}
	return NotInConfig
}
