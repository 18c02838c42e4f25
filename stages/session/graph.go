package session

import (
	"github.com/hashicorp/hcl/v2"

	"plumb/lang/addrs"
	"plumb/lang/eval"
	"plumb/stages/graph"
)

// Graph is the graph of the configuration: an edge from a resource to each that it needs, with the reason.
func (s *Session) Graph() (*graph.Graph[string], hcl.Diagnostics) {
	ev, diags := eval.New(s.inputs())
	if diags.HasErrors() {
		return nil, diags
	}
	g := &graph.Graph[string]{}
	all := ev.Resources()
	for _, r := range all {
		g.Add(r.String())
	}
	for _, r := range all {
		for _, d := range ev.Dependencies(r) {
			g.Connect(r.String(), d.Resource.Static().String(), d.Reason)
		}
	}
	for _, r := range all {
		s.hostOrder(g, r, all)
	}
	return g, diags
}

// hostOrder adds the order by type that holds on one host, where no path leads the other way.
func (s *Session) hostOrder(g *graph.Graph[string], r addrs.Resource, all []addrs.Resource) {
	if r.Mode != addrs.Managed || s.Catalog.Resources[r.Type] == nil {
		return
	}
	for _, first := range s.Catalog.Resources[r.Type].After {
		for _, o := range all {
			if o.Mode == addrs.Managed && o.Type == first && !g.Reaches(o.String(), r.String()) && !g.Reaches(r.String(), o.String()) {
				g.Connect(r.String(), o.String(), "host order")
			}
		}
	}
}
