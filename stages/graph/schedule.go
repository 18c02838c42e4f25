package graph

import (
	"container/heap"
	"fmt"
	"strings"
)

// Limits bound how much runs at a time.
type Limits[K comparable] struct {
	Parallelism int                    // of all nodes; less than 1: 1
	Group       func(K) string         // the host of a node; nil, or "" returned: it belongs to none
	PerGroup    func(group string) int // nodes of one group at a time; nil, or less than 1 returned: no limit
}

// CycleError says that nodes wait for one another.
type CycleError[K comparable] struct{ Cycles [][]K }

func (e *CycleError[K]) Error() string {
	var lines []string
	for _, c := range e.Cycles {
		var names []string
		for _, k := range append(c, c[0]) {
			names = append(names, fmt.Sprint(k))
		}
		lines = append(lines, strings.Join(names, " -> "))
	}
	return "cycle: " + strings.Join(lines, "; ")
}

// Report is what became of the nodes of a walk. Nodes in none of its parts were done.
type Report[K comparable] struct {
	Failed     map[K]error
	Skipped    map[K]K // to the failed node that it waits for, directly or not
	NotStarted []K     // the walk was cancelled before their turn
}

// Scheduler says which nodes may run now. It is a pure state machine: the caller reports what was done and asks what is next. It is not
// safe for concurrent use.
type Scheduler[K comparable] struct {
	g       *Graph[K]
	limits  Limits[K]
	waiting []int // by node: how many it still waits for
	state   []nodeState
	cause   []int // by skipped node: the failed one
	errs    []error
	ready   intHeap
	parked  map[string]*intHeap // ready, but their group is full
	inGroup map[string]int      // running, by group
	running int
}

type nodeState uint8

const (
	idle nodeState = iota
	started
	done
	failed
	skipped
)

// Schedule starts a schedule of all nodes. With a cycle it fails with a *CycleError.
func (g *Graph[K]) Schedule(l Limits[K]) (*Scheduler[K], error) {
	if c := g.Cycles(); len(c) > 0 {
		return nil, &CycleError[K]{c}
	}
	l.Parallelism = max(l.Parallelism, 1)
	n := len(g.keys)
	s := &Scheduler[K]{g: g, limits: l, waiting: make([]int, n), state: make([]nodeState, n), cause: make([]int, n),
		errs: make([]error, n), parked: map[string]*intHeap{}, inGroup: map[string]int{}}
	for i := range n {
		if s.waiting[i] = len(g.after[i]); s.waiting[i] == 0 {
			s.ready = append(s.ready, i) // ascending: a heap already
		}
	}
	return s, nil
}

// Next gives a node that may start now, which then counts as running until Done. False: nothing may start before another Done; if
// nothing runs either, the schedule is at its end.
func (s *Scheduler[K]) Next() (k K, ok bool) {
	for s.running < s.limits.Parallelism && len(s.ready) > 0 {
		i := heap.Pop(&s.ready).(int)
		group := s.group(i)
		if limit := s.limit(group); limit > 0 && s.inGroup[group] >= limit {
			if s.parked[group] == nil {
				s.parked[group] = &intHeap{}
			}
			heap.Push(s.parked[group], i)
			continue
		}
		s.state[i] = started
		s.running++
		s.inGroup[group]++
		return s.g.keys[i], true
	}
	return k, false
}

// Running counts the nodes that were started and are not done.
func (s *Scheduler[K]) Running() int { return s.running }

// Done says that a started node ended. With an error, all that waits for it is skipped.
func (s *Scheduler[K]) Done(k K, err error) {
	i, ok := s.g.ids[k]
	if !ok || s.state[i] != started {
		panic(fmt.Sprintf("graph: Done(%v), which is not running", k))
	}
	s.running--
	group := s.group(i)
	s.inGroup[group]--
	if p := s.parked[group]; p != nil && p.Len() > 0 {
		heap.Push(&s.ready, heap.Pop(p))
	}
	if err != nil {
		s.state[i], s.errs[i] = failed, err
		s.skip(i)
		return
	}
	s.state[i] = done
	for _, u := range s.g.users[i] {
		if s.waiting[u]--; s.waiting[u] == 0 && s.state[u] == idle {
			heap.Push(&s.ready, u)
		}
	}
}

func (s *Scheduler[K]) skip(cause int) {
	stack := []int{cause}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, u := range s.g.users[i] {
			if s.state[u] == idle {
				s.state[u], s.cause[u] = skipped, cause
				stack = append(stack, u)
			}
		}
	}
}

// Report says what became of the nodes so far.
func (s *Scheduler[K]) Report() Report[K] {
	r := Report[K]{Failed: map[K]error{}, Skipped: map[K]K{}}
	for i, k := range s.g.keys {
		switch s.state[i] {
		case failed:
			r.Failed[k] = s.errs[i]
		case skipped:
			r.Skipped[k] = s.g.keys[s.cause[i]]
		case idle:
			r.NotStarted = append(r.NotStarted, k)
		}
	}
	return r
}

func (s *Scheduler[K]) group(i int) string {
	if s.limits.Group == nil {
		return ""
	}
	return s.limits.Group(s.g.keys[i])
}

func (s *Scheduler[K]) limit(group string) int {
	if group == "" || s.limits.PerGroup == nil {
		return 0
	}
	return s.limits.PerGroup(group)
}

// intHeap is a heap of node numbers: the node that was added first comes first.
type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
