// Package graph is the one static directed graph that the stages order their work with: nodes are whatever is comparable,
// an edge from a to b says that a waits for b, and why.
//
// Everything is deterministic: nodes are kept in the order in which they were added, and wherever several could come next the
// one added first does. A Graph is built first and used then; it is not safe for concurrent change.
//
// Start reading at Graph, then Scheduler (what may run now, as a pure state machine), then Walk (runs it).
package graph

import (
	"cmp"
	"slices"
)

// Graph is a directed graph. The zero Graph is empty and ready for use.
type Graph[K comparable] struct {
	keys  []K
	ids   map[K]int
	after [][]edge // by node: what it waits for
	users [][]int  // by node: who waits for it
	seen  map[[2]int]bool
}

type edge struct {
	to     int
	reason string
}

// Edge says that From waits for To.
type Edge[K comparable] struct {
	From, To K
	Reason   string
}

// Add adds a node; a node that is there already stays.
func (g *Graph[K]) Add(k K) { g.id(k) }

func (g *Graph[K]) id(k K) int {
	if i, ok := g.ids[k]; ok {
		return i
	}
	if g.ids == nil {
		g.ids, g.seen = map[K]int{}, map[[2]int]bool{}
	}
	i := len(g.keys)
	g.ids[k] = i
	g.keys = append(g.keys, k)
	g.after = append(g.after, nil)
	g.users = append(g.users, nil)
	return i
}

// Connect says that from waits for to, adding whichever is missing. Between two nodes there is one edge: the first reason stays.
func (g *Graph[K]) Connect(from, to K, reason string) {
	f, t := g.id(from), g.id(to)
	if g.seen[[2]int{f, t}] {
		return
	}
	g.seen[[2]int{f, t}] = true
	g.after[f] = append(g.after[f], edge{t, reason})
	g.users[t] = append(g.users[t], f)
}

// Has says whether the node is there.
func (g *Graph[K]) Has(k K) bool { _, ok := g.ids[k]; return ok }

// Nodes lists the nodes in the order in which they were added.
func (g *Graph[K]) Nodes() []K { return slices.Clone(g.keys) }

// After lists what a node waits for, in the order in which it was connected.
func (g *Graph[K]) After(k K) []Edge[K] {
	i, ok := g.ids[k]
	if !ok {
		return nil
	}
	out := make([]Edge[K], len(g.after[i]))
	for n, e := range g.after[i] {
		out[n] = Edge[K]{k, g.keys[e.to], e.reason}
	}
	return out
}

// Edges lists all edges, by the node that waits.
func (g *Graph[K]) Edges() []Edge[K] {
	var out []Edge[K]
	for _, k := range g.keys {
		out = append(out, g.After(k)...)
	}
	return out
}

// Reverse is the graph with every edge turned round.
func (g *Graph[K]) Reverse() *Graph[K] {
	r := &Graph[K]{}
	for _, k := range g.keys {
		r.Add(k)
	}
	for f, edges := range g.after {
		for _, e := range edges {
			r.Connect(g.keys[e.to], g.keys[f], e.reason)
		}
	}
	return r
}

// Reach is all that the given nodes wait for, directly or not, with themselves.
func (g *Graph[K]) Reach(from ...K) map[K]bool {
	out := map[K]bool{}
	g.search(from, func(k K) bool { out[k] = true; return true })
	return out
}

// Reaches says whether from waits for to, directly or not. A node reaches itself.
func (g *Graph[K]) Reaches(from, to K) bool {
	found := false
	g.search([]K{from}, func(k K) bool { found = found || k == to; return !found })
	return found
}

// search visits what from waits for until visit says no.
func (g *Graph[K]) search(from []K, visit func(K) bool) {
	seen := make([]bool, len(g.keys))
	var stack []int
	push := func(i int) {
		if !seen[i] {
			seen[i] = true
			stack = append(stack, i)
		}
	}
	for _, k := range from {
		if i, ok := g.ids[k]; ok {
			push(i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !visit(g.keys[i]) {
			return
		}
		for _, e := range g.after[i] {
			push(e.to)
		}
	}
}

// Order lists the nodes so that each comes after all that it waits for. With a cycle it fails with a *CycleError.
func (g *Graph[K]) Order() ([]K, error) {
	s, err := g.Schedule(Limits[K]{Parallelism: 1})
	if err != nil {
		return nil, err
	}
	out := make([]K, 0, len(g.keys))
	for k, ok := s.Next(); ok; k, ok = s.Next() {
		out = append(out, k)
		s.Done(k, nil)
	}
	return out, nil
}

// Cycles lists the cycles, one for each group of nodes that wait for one another: each node of it waits for the next, and the last for the
// first. The node that was added first comes first.
func (g *Graph[K]) Cycles() [][]K {
	var out [][]K
	for _, group := range g.components() {
		if len(group) == 1 && !g.seen[[2]int{group[0], group[0]}] {
			continue
		}
		out = append(out, g.cycleIn(group))
	}
	slices.SortFunc(out, func(a, b []K) int { return cmp.Compare(g.ids[a[0]], g.ids[b[0]]) })
	return out
}

// cycleIn finds the shortest cycle through the first node of a strongly connected group.
func (g *Graph[K]) cycleIn(group []int) []K {
	in := map[int]bool{}
	for _, i := range group {
		in[i] = true
	}
	start := slices.Min(group)
	from := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, e := range g.after[i] {
			if e.to == start {
				var path []K
				for ; i != start; i = from[i] {
					path = append(path, g.keys[i])
				}
				path = append(path, g.keys[start])
				slices.Reverse(path)
				return path
			}
			if _, seen := from[e.to]; in[e.to] && !seen {
				from[e.to] = i
				queue = append(queue, e.to)
			}
		}
	}
	return []K{g.keys[start]}
}

// components are the strongly connected groups of nodes (Tarjan), without recursion: a chain may be long.
func (g *Graph[K]) components() [][]int {
	n := len(g.keys)
	index, low, on := make([]int, n), make([]int, n), make([]bool, n)
	next := 1
	var stack []int
	var out [][]int
	type frame struct{ node, edge int }
	for root := range n {
		if index[root] != 0 {
			continue
		}
		work := []frame{{root, 0}}
		for len(work) > 0 {
			f := &work[len(work)-1]
			v := f.node
			if f.edge == 0 {
				index[v], low[v] = next, next
				next++
				stack, on[v] = append(stack, v), true
			}
			if f.edge < len(g.after[v]) {
				w := g.after[v][f.edge].to
				f.edge++
				if index[w] == 0 {
					work = append(work, frame{w, 0})
				} else if on[w] {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			work = work[:len(work)-1]
			if len(work) > 0 {
				parent := work[len(work)-1].node
				low[parent] = min(low[parent], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			at := len(stack) - 1
			for stack[at] != v {
				at--
			}
			group := slices.Clone(stack[at:])
			for _, w := range group {
				on[w] = false
			}
			stack = stack[:at]
			out = append(out, group)
		}
	}
	return out
}
