package eval

import (
	"plumb/lang/addrs"
)

// Resources returns every resource and data source of the configuration, static, dependencies before what needs them and
// otherwise by address.
func (e *Evaluator) Resources() []addrs.Resource {
	var out []addrs.Resource
	for _, n := range e.order {
		if n.resource != nil {
			out = append(out, n.resource.Addr)
		}
	}
	return out
}

// Dependencies returns the resources that r needs directly: those that its block refers to, itself or through locals, variables,
// module calls, outputs and its host, and those of depends_on, its own and of the modules it is in. Addresses are static: an
// instance needs all instances of them in module instances that it shares. Each resource is named once, with the first reference
// that leads to it; Range is the place in r's block (or in the module call) where that way begins.
func (e *Evaluator) Dependencies(r addrs.Resource) []Dependency {
	m := e.staticModule(r.Module.Static())
	if m == nil {
		return nil
	}
	n := e.nodes[nodeID{module: m, kind: nodeResource, name: r.Local()}]
	if n == nil {
		return nil
	}
	var out []Dependency
	seen := map[*node]bool{n: true}
	var walk func(from *node, first *edge)
	walk = func(from *node, first *edge) {
		for _, ed := range from.edges {
			if seen[ed.to] {
				continue
			}
			seen[ed.to] = true
			start := ed
			if first != nil {
				start = *first
				if ed.reason == dependsOn {
					start = ed // a module's depends_on
				}
			}
			if ed.to.resource != nil {
				out = append(out, Dependency{Resource: ed.to.resource.Addr, Reason: start.reason, Range: start.rng})
				continue
			}
			walk(ed.to, &start)
		}
	}
	walk(n, nil)
	return out
}
