package plan

import (
	"errors"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/internal/value"
)

// claimant is an instance or generator with what it takes from its host.
type claimant struct {
	addr      string
	generator bool
	claims    providers.Claims
	at        func(cty.Path) *hcl.Range
}

// hostClaims is what is known of one host's claims.
type hostClaims struct {
	name  string
	host  providers.Host
	facts *providers.Facts
	list  []claimant // instances by address, then generators
	nodes []*node    // planned instances
	held  []providers.HugepageClaim
	// vague says that a configuration is not known yet, so that something may be provided that nobody knows of.
	vague bool
}

// check runs the checks of what instances and generators take from their hosts.
func (ps *pass) check() {
	if ps.opt.Destroy || ps.ev == nil {
		return
	}
	hosts := map[string]*hostClaims{}
	var names []string
	on := func(name string) *hostClaims {
		h := hosts[name]
		if h == nil {
			h = &hostClaims{name: name, host: ps.host(name)}
			hosts[name] = h
			names = append(names, name)
		}
		return h
	}
	for _, n := range ps.sortedNodes() {
		if !n.failed && n.inst != nil && n.inst.Host != "" && n.schema.Block.Any(func(a *schema.Attribute) bool { return a.Since != "" }) {
			h := on(n.inst.Host)
			h.nodes = append(h.nodes, n)
		}
		ps.claimInstance(n, on)
	}
	ps.claimGenerators(on)
	slices.Sort(names)
	for _, name := range names {
		h := hosts[name]
		if h.host == nil {
			continue
		}
		facts, err := h.host.Facts(ps.ctx)
		if err != nil {
			ps.hostError(name, err)
			continue
		}
		h.facts = facts
		for _, n := range h.nodes {
			ps.checkVersions(n, h)
		}
		ps.holdings(h)
		h.resolvePages()
		ps.report(h.checkCores()...)
		ps.report(h.checkIsolation()...)
		ps.report(h.checkSiblings()...)
		ps.report(h.checkNodes()...)
		ps.report(h.checkHugepages()...)
		ps.report(h.checkUnique()...)
		ps.report(h.checkNeeds()...)
		ps.report(h.checkSockets()...)
	}
	ps.checkFrames(hosts)
}

func (ps *pass) sortedNodes() []*node {
	out := slices.Clone(ps.order)
	slices.SortFunc(out, func(a, b *node) int { return a.addr.Compare(b.addr) })
	return out
}

// claimInstance adds what a planned instance claims; one that is not planned in this run claims what it has.
func (ps *pass) claimInstance(n *node, on func(string) *hostClaims) {
	claimer, ok := ps.resources[n.addr.Resource.Type].(providers.Claimer)
	if !ok || n.addr.Resource.Mode != addrs.Managed {
		return
	}
	v, host := n.planned, n.change.Host
	if n.failed {
		if n.entry == nil || n.entry.unread || n.entry.gone() {
			if n.inst != nil && n.inst.Host != "" {
				on(n.inst.Host).vague = true
			}
			return
		}
		v, host = n.entry.current, n.entry.inst.Host
	}
	if host == "" {
		return
	}
	h := on(host)
	if h.host == nil {
		return
	}
	if n.inst != nil && !n.desired.IsWhollyKnown() {
		h.vague = true
	}
	c, err := claimer.Claims(ps.ctx, h.host, v)
	if err != nil {
		h.vague = true
		ps.claimError(host, n.addr.String(), ps.rangeOf(n.addr), err)
		return
	}
	at := func(cty.Path) *hcl.Range { return ps.rangeOf(n.addr) }
	if n.inst != nil {
		at = ps.argument(n)
	}
	h.list = append(h.list, claimant{addr: n.addr.String(), claims: c, at: at})
}

func (ps *pass) claimError(host, addr string, at *hcl.Range, err error) {
	if errors.Is(err, providers.ErrUnreachable) {
		ps.hostError(host, err)
		return
	}
	if !errors.Is(err, ps.ctx.Err()) || ps.ctx.Err() == nil {
		ps.report(errorAt(at, "Cannot tell what is taken from the host", "%s: %s.", addr, err))
	}
}

func (ps *pass) claimGenerators(on func(string) *hostClaims) {
	list, diags := ps.ev.Generators()
	ps.report(diags...)
	for _, g := range list {
		typ := ps.generators[g.Addr.Type]
		if typ == nil || g.Host == "" {
			continue
		}
		h := on(g.Host)
		if h.host == nil {
			continue
		}
		v, _ := g.Config.UnmarkDeep()
		c, err := typ.Claims(ps.ctx, h.host, v)
		if err != nil {
			ps.claimError(g.Host, g.Addr.String(), g.Range.Ptr(), err)
			continue
		}
		at := func(path cty.Path) *hcl.Range { return g.Range.Ptr() }
		if m := moduleOf(ps.in.Config, g.Addr.Module); m != nil {
			if cfg := m.Generators[g.Addr.Type+"."+g.Addr.Name]; cfg != nil {
				at = func(path cty.Path) *hcl.Range {
					if len(path) == 0 {
						return g.Range.Ptr()
					}
					return eval.AttributeRange(cfg.Body, &typ.Schema().Block, path)
				}
			}
		}
		h.list = append(h.list, claimant{addr: g.Addr.String(), generator: true, claims: c, at: at})
	}
}

// holdings are the hugepages that instances of the state hold now: those are in use, but not by others.
func (ps *pass) holdings(h *hostClaims) {
	for _, e := range append(ps.planner.instances(), ps.deposed...) {
		claimer, ok := e.typ.(providers.Claimer)
		if !ok || e.inst.Host != h.name || e.gone() || e.unread {
			continue
		}
		v, _ := value.Unmark(e.current)
		c, err := claimer.Claims(ps.ctx, h.host, v)
		if err != nil {
			continue // the planned claims have reported it, or the instance goes
		}
		h.held = append(h.held, c.Hugepages...)
	}
}

// claimed is one claim with whose it is.
type claimed[C any] struct {
	by    *claimant
	claim C
}

// all lists one kind of claims over all claimants.
func all[C any](h *hostClaims, kind func(*providers.Claims) []C) []claimed[C] {
	var out []claimed[C]
	for i := range h.list {
		by := &h.list[i]
		for _, c := range kind(&by.claims) {
			out = append(out, claimed[C]{by, c})
		}
	}
	return out
}

// apart says that two claimants are never there at the same time: two generators, of which a benchmark opens one.
func apart(a, b *claimant) bool { return a != b && a.generator && b.generator }

func warningAt(at *hcl.Range, addr, summary, format string, args ...any) *hcl.Diagnostic {
	d := errorAt(at, summary, format, args...)
	d.Severity = hcl.DiagWarning
	d.Extra = note{addr: addr}
	return d
}
