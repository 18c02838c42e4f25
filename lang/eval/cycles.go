package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// visit is how far the depth-first walk is with a node.
type visit uint8

const (
	unvisited visit = iota
	open            // on the way from the start to here
	done
)

// sorter orders the static graph, dependencies first, and finds its cycles.
type sorter struct {
	order []*node
	way   []step // from the start to the node being visited
	diags hcl.Diagnostics
}

// step is a node of the way with the edge by which the walk left it.
type step struct {
	node *node
	by   edge
}

// sortNodes returns the nodes with dependencies first (alphabetically where there is a choice), one error for each cycle that the
// walk closes, and fills in node.world.
func sortNodes(nodes map[nodeID]*node) ([]*node, hcl.Diagnostics) {
	all := make([]*node, 0, len(nodes))
	names := make(map[*node]string, len(nodes))
	for _, n := range nodes {
		all = append(all, n)
		names[n] = n.String()
	}
	slices.SortFunc(all, func(a, b *node) int { return strings.Compare(names[a], names[b]) })
	s := &sorter{order: make([]*node, 0, len(all))}
	for _, n := range all {
		if n.visit == unvisited {
			s.walk(n)
		}
	}
	return s.order, s.diags
}

func (s *sorter) walk(n *node) {
	n.visit = open
	s.way = append(s.way, step{node: n})
	at := len(s.way) - 1
	for _, e := range n.edges {
		s.way[at].by = e
		switch e.to.visit {
		case unvisited:
			s.walk(e.to)
		case open:
			s.cycle(e.to)
		}
		n.world = n.world || e.to.world
	}
	s.way = s.way[:at]
	n.visit = done
	s.order = append(s.order, n)
}

// cycle reports the part of the way from the node first on, to which the last edge leads back.
func (s *sorter) cycle(first *node) {
	start := slices.IndexFunc(s.way, func(st step) bool { return st.node == first })
	way := s.way[start:]
	if len(way) == 1 {
		s.diags = append(s.diags, errorAt(way[0].by.rng, "Self reference", "%s refers to itself here, so it could never be evaluated.", first))
		return
	}
	var b strings.Builder
	b.WriteString("These objects need one another in a circle, so that none can be evaluated first:")
	for i, st := range way {
		next := way[(i+1)%len(way)].node
		fmt.Fprintf(&b, "\n  - %s needs %s (%s, %s)", st.node, next, st.by.rng, st.by.reason)
	}
	b.WriteString("\nRemove one of these references.")
	s.diags = append(s.diags, errorAt(way[0].by.rng, "Reference cycle", "%s", b.String()))
}
