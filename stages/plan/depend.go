package plan

import (
	"slices"

	"plumb/lang/addrs"
)

// What stands on what: by the configuration, and by what the state recorded when an instance was made. Both count where something may be in the way of a change: what has been taken out of the
// configuration still holds on.

// configured lists the resources, in their module instances, that a dependency of something in module m means.
func (ps *pass) configured(dep addrs.Resource, m addrs.Module) []addrs.Resource {
	var out []addrs.Resource
	for _, i := range ps.expand(dep) {
		if (len(out) == 0 || out[len(out)-1] != i.Resource) && covers(dep, i.Resource, m) {
			out = append(out, i.Resource)
		}
	}
	return out
}

// stands lists the resources of the state that u's instances depended on directly.
func (ps *pass) stands(u addrs.Resource) []addrs.Resource {
	if out, ok := ps.stood[u]; ok {
		return out
	}
	var deps, out []addrs.Resource
	for _, e := range ps.old[u.Static()] {
		if e.inst.Addr.Resource == u {
			for _, d := range dependencies(e) {
				if !slices.Contains(deps, d) {
					deps = append(deps, d)
				}
			}
		}
	}
	for _, d := range deps {
		for _, e := range ps.old[d.Static()] {
			r := e.inst.Addr.Resource
			if covers(d, r, u.Module) && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	ps.stood[u] = out
	return out
}

// basis says in which way something stands on something else.
type basis struct{ now, before bool }

// standsOn says whether a resource depends on another, directly or through others: now by the configuration, before by what the state recorded.
func (ps *pass) standsOn(r, on addrs.Resource) basis {
	k := [2]addrs.Resource{r, on}
	b, ok := ps.bases[k]
	if !ok {
		b = basis{
			now: leads(r, on, func(r addrs.Resource) []addrs.Resource {
				var out []addrs.Resource
				for _, d := range ps.dependencies(r) {
					out = append(out, ps.configured(d.Resource, r.Module)...)
				}
				return out
			}),
			before: leads(r, on, ps.stands),
		}
		ps.bases[k] = b
	}
	return b
}

// leads says whether a way leads from one resource to another.
func leads(from, to addrs.Resource, next func(addrs.Resource) []addrs.Resource) bool {
	seen := map[addrs.Resource]bool{}
	var visit func(addrs.Resource) bool
	visit = func(r addrs.Resource) bool {
		if seen[r] {
			return false
		}
		seen[r] = true
		return slices.ContainsFunc(next(r), func(n addrs.Resource) bool { return n == to || visit(n) })
	}
	return visit(from)
}
