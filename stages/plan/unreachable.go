package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"plumb/lang/addrs"
)

// A host that cannot be reached does not keep the others from being planned. What is on it is left as it is, and so is what needs a value from there that
// the state does not have.

// isCut says that a host cannot be reached.
func (p *planner) isCut(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut[name] != nil
}

func (p *planner) anyCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.cut) > 0
}

// needsCut names the host because of which something that an instance depends on could not be planned, where nothing is recorded of it either; "" for none.
func (ps *pass) needsCut(a addrs.Instance) string {
	if !ps.anyCut() {
		return ""
	}
	for _, d := range ps.dependencies(a.Resource) {
		for _, i := range ps.expand(d.Resource) {
			if !covers(d.Resource, i.Resource, a.Resource.Module) {
				continue
			}
			if n := ps.plan(i); n.cutBy != "" && (n.entry == nil || n.entry.gone()) {
				return n.cutBy
			}
		}
	}
	return ""
}

// unreachable fills in Plan.Unreachable and makes a diagnostic of each host.
func (p *planner) unreachable(ps *pass, out *Plan) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, name := range slices.Sorted(maps.Keys(p.cut)) {
		u := Unreachable{Host: name, Error: p.cut[name].Error(), Left: []Instance{}}
		seen := map[addrs.Instance]bool{}
		add := func(a addrs.Instance, host string) {
			if !seen[a] {
				seen[a] = true
				u.Left = append(u.Left, Instance{a, host})
			}
		}
		for _, e := range p.instances() {
			if e.inst.Host == name && p.scope.covers(e.inst.Addr) {
				add(e.inst.Addr, name)
			}
		}
		if ps != nil {
			for _, n := range ps.order {
				if n.inst != nil && n.addr.Resource.Mode == addrs.Managed && (n.inst.Host == name || n.cutBy == name) {
					add(n.addr, n.inst.Host)
				}
			}
		}
		slices.SortFunc(u.Left, func(a, b Instance) int { return a.Addr.Compare(b.Addr) })
		out.Unreachable = append(out.Unreachable, u)
		d := errorAt(nil, "Host cannot be reached", "host.%s: %s. %s left as %s.", name, p.cut[name], plural(len(u.Left), "1 instance is", fmt.Sprint(len(u.Left), " instances are")),
			plural(len(u.Left), "it is", "they are"))
		if r, ok := p.hostRanges[name]; ok {
			d.Subject = r.Ptr()
		}
		diags = append(diags, d)
	}
	return diags
}
