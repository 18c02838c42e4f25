package network

import (
	"slices"

	"plumb/providers"
)

// managed says why an interface must not be taken down: it, or a bridge or bond that it belongs to, has the address that our connection comes in by, or the default route. "" for others.
func (s *session) managed(w *world, e end) string {
	if e.space != "" {
		return ""
	}
	here := w.spaces[""]
	own := ""
	if m, ok := s.host.Conn().(providers.Managed); ok {
		own = m.ManagementAddress()
	}
	for name, hops := e.name, 0; name != "" && hops < 8; hops++ {
		l := here.links[name]
		if l == nil {
			return ""
		}
		switch {
		case own != "" && slices.ContainsFunc(l.Addresses, func(a address) bool { return a.Local == own }):
			return "has the address that Plumb's own connection comes in by, " + own
		case slices.ContainsFunc(here.routes, func(r route) bool { return r.Dst == "default" && r.Table == mainTable && r.leadsTo(name) }):
			return "has the default route"
		}
		name = l.Master
	}
	return ""
}

// leadsTo says whether a route uses an interface.
func (r route) leadsTo(name string) bool {
	if r.Dev == name {
		return true
	}
	return slices.ContainsFunc(r.Nexthops, func(h nexthop) bool { return h.Dev == name })
}
