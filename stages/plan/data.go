package plan

import (
	"errors"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/providers"
	"plumb/stages/internal/value"
)

// planData reads a data source now, unless its configuration is not known yet or something it depends on is about to change:
// then apply reads it. Read now it is a no-op whose After is what was read.
func (ps *pass) planData(n *node, sensitive [][]string) {
	src := ps.sources[n.addr.Resource.Type]
	b, c := &n.schema.Block, &n.change
	host := ps.host(n.inst.Host)
	switch {
	case !n.desired.IsWhollyKnown() || n.inst.Host != "" && host == nil:
		c.Action, c.Reason = Read, UnknownConfig
	case ps.pending(n.addr):
		c.Action, c.Reason = Read, PendingDependency
	}
	at := n.inst.Config.Range.Ptr()
	if c.Action == Read {
		n.planned = propose(b, cty.NullVal(ps.typeOf(b)), n.desired, false)
	} else {
		v, err := src.Read(ps.ctx, host, n.desired)
		if errors.Is(err, providers.ErrUnreachable) {
			ps.hostError(n.inst.Host, err)
			n.failed, n.cutBy = true, n.inst.Host
			return
		}
		if err != nil {
			n.fail(ps, providerError(at, "read", n.addr, err))
			return
		}
		if broken := value.CheckKnown(b, v); len(broken) > 0 {
			n.fail(ps, bugs(at, n.addr, broken)...)
			return
		}
		n.planned = v
	}
	sensitive = value.Union(sensitive, value.SchemaSensitive(b, n.planned))
	n.value = value.Mark(n.planned, sensitive)
	if err := ps.encode(c, b, cty.NullVal(ps.typeOf(b)), n.planned, sensitive); err != nil {
		n.fail(ps, errorAt(at, "Value cannot be kept", "%s: %s.", n.addr, err))
	}
}

// pending says whether anything that the instance depends on directly will change.
func (ps *pass) pending(a addrs.Instance) bool {
	for _, d := range ps.dependencies(a.Resource) {
		if slices.ContainsFunc(ps.expand(d.Resource), func(i addrs.Instance) bool {
			return covers(d.Resource, i.Resource, a.Resource.Module) && ps.plan(i).changes()
		}) {
			return true
		}
	}
	return false
}
