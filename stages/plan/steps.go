package plan

import (
	"cmp"
	"errors"
	"slices"

	"plumb/lang/addrs"
	"plumb/stages/graph"
)

// Reasons of edges.
const (
	reference    = "reference"
	hostOrder    = "host order"
	replaceOrder = "replace order"
	rebootOrder  = "reboot order"
)

// direction tells what makes or changes from what takes away: the first follow the dependencies of the configuration, the second, in reverse,
// those that the state recorded.
type direction uint8

const (
	up direction = iota
	down
)

// stepper builds the graph of the steps.
type stepper struct {
	*pass
	g     graph.Graph[int]
	steps []Step
	of    [2]map[addrs.Resource][]int // by direction: the steps of a resource's instances
	order [2][]addrs.Resource         // its keys, sorted
	late  map[addrs.Resource][]int    // deletes of old halves that users must have left before
	upOf  map[addrs.Instance]int
	outOf map[addrs.Instance]int // deletes of what is replaced after it, or goes for good
	joins map[joinKey]int
	above map[addrs.Resource][]need
	below map[addrs.Resource][]addrs.Resource
}

type joinKey struct {
	dir direction
	res addrs.Resource
}

// need is a resource that another one waits for.
type need struct {
	res    addrs.Resource
	reason string
}

// steps turns changes, which are sorted, into steps in an order in which they could run one by one. Edges say what must wait for what. References are
// between resources, so all instances of the one wait for all of the other; through a Join where both are several, so that there are few edges.
func (ps *pass) steps(changes []*Change) ([]Step, error) {
	s := &stepper{
		pass: ps, late: map[addrs.Resource][]int{}, upOf: map[addrs.Instance]int{}, outOf: map[addrs.Instance]int{}, joins: map[joinKey]int{},
		of:    [2]map[addrs.Resource][]int{{}, {}},
		above: map[addrs.Resource][]need{}, below: map[addrs.Resource][]addrs.Resource{},
	}
	for _, c := range changes {
		s.add(c)
	}
	for dir := range s.of {
		for r := range s.of[dir] {
			s.order[dir] = append(s.order[dir], r)
		}
		slices.SortFunc(s.order[dir], addrs.Resource.Compare)
	}
	s.follow()
	s.unwind()
	s.makeRoom(changes)
	s.release(changes)
	s.vacate(changes)
	s.hostOrder()
	s.losses(changes)
	if diags := s.reboots(changes); diags.HasErrors() {
		ps.report(diags...)
		return nil, nil
	}
	return s.result()
}

// add makes the steps of one change.
func (s *stepper) add(c *Change) {
	r := c.Addr.Resource
	step := func(a Action, dir direction) int {
		id := s.step(Step{Addr: c.Addr, Host: c.Host, Action: a})
		s.of[dir][r] = append(s.of[dir][r], id)
		if dir == up {
			s.upOf[c.Addr] = id
		}
		return id
	}
	switch c.Action {
	case Create, Update, Reapply, Read:
		step(c.Action, up)
	case Forget:
		s.deposed(s.step(Step{Addr: c.Addr, Host: c.Host, Action: Forget}), c)
	case Delete:
		id := step(Delete, down)
		s.deposed(id, c)
		if c.Deposed {
			s.late[r] = append(s.late[r], id)
		} else {
			s.outOf[c.Addr] = id
		}
	case Replace:
		if c.CreateBeforeDestroy {
			create, old := step(Create, up), step(Delete, down)
			s.steps[old].Deposed = true
			s.late[r] = append(s.late[r], old)
			s.g.Connect(old, create, replaceOrder)
			return
		}
		old, create := step(Delete, down), step(Create, up)
		s.outOf[c.Addr] = old
		s.g.Connect(create, old, replaceOrder)
	}
}

func (s *stepper) step(st Step) int {
	id := len(s.steps)
	s.steps = append(s.steps, st)
	s.g.Add(id)
	return id
}

func (s *stepper) deposed(id int, c *Change) {
	s.steps[id].Deposed, s.steps[id].DeposedAt = c.Deposed, c.DeposedAt
}

// wait makes every one of some steps wait for all steps of a resource.
func (s *stepper) wait(from []int, dir direction, r addrs.Resource, reason string) {
	to := s.of[dir][r]
	if len(from) > 1 && len(to) > 1 {
		to = []int{s.join(dir, r)}
	}
	for _, f := range from {
		for _, t := range to {
			if f != t {
				s.g.Connect(f, t, reason)
			}
		}
	}
}

// join is the step that waits for all steps of a resource.
func (s *stepper) join(dir direction, r addrs.Resource) int {
	k := joinKey{dir, r}
	id, ok := s.joins[k]
	if !ok {
		id = s.step(Step{Addr: r.Instance(addrs.Key{}), Action: Join})
		for _, t := range s.of[dir][r] {
			s.g.Connect(id, t, reference)
		}
		s.joins[k] = id
	}
	return id
}

// follow orders what is made and changed by the dependencies of the configuration.
func (s *stepper) follow() {
	for _, u := range s.order[up] {
		for _, n := range s.needs(u) {
			s.after(s.of[up][u], n)
			s.afterUsers(n.res, u)
		}
		for _, d := range s.dependencies(u) {
			for _, r := range s.configured(d.Resource, u.Module) {
				s.afterUsers(r, u)
			}
		}
	}
}

// after makes steps wait for a resource, but for those that need not: they wait for what it waits for.
func (s *stepper) after(from []int, n need) {
	early, rest := s.early(from, n.res)
	if len(early) > 0 {
		for _, m := range s.needs(n.res) {
			s.after(early, m)
		}
	}
	s.wait(rest, up, n.res, n.reason)
}

// afterUsers lets the old halves of r go only when its user u stands on the new ones.
func (s *stepper) afterUsers(r, u addrs.Resource) {
	if late := s.late[r]; len(late) > 0 && r != u {
		s.wait(late, up, u, replaceOrder)
	}
}

// needs lists the resources with steps that u waits for. What changes nothing is looked through.
func (s *stepper) needs(u addrs.Resource) []need {
	if out, ok := s.above[u]; ok {
		return out
	}
	s.above[u] = nil
	var out []need
	add := func(n need) {
		if n.res != u && !slices.ContainsFunc(out, func(o need) bool { return o.res == n.res }) {
			out = append(out, n)
		}
	}
	for _, d := range s.dependencies(u) {
		for _, r := range s.configured(d.Resource, u.Module) {
			if len(s.of[up][r]) > 0 {
				add(need{r, d.Reason})
				continue
			}
			for _, n := range s.needs(r) {
				add(n)
			}
		}
	}
	s.above[u] = out
	return out
}

// unwind orders what is taken away by the dependencies that the state recorded: users go first.
func (s *stepper) unwind() {
	for _, u := range s.order[down] {
		for _, r := range s.stoodOn(u) {
			s.wait(s.of[down][r], down, u, reference)
		}
	}
}

// stoodOn lists the resources with deletes that u's instances depended on.
func (s *stepper) stoodOn(u addrs.Resource) []addrs.Resource {
	if out, ok := s.below[u]; ok {
		return out
	}
	s.below[u] = nil
	var out []addrs.Resource
	for _, r := range s.stands(u) {
		list := []addrs.Resource{r}
		if len(s.of[down][r]) == 0 {
			list = s.stoodOn(r)
		}
		for _, r := range list {
			if r != u && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	s.below[u] = out
	return out
}

// hostOrder adds the order in which a host wants things done where no reference says so; an explicit path the other way wins.
func (s *stepper) hostOrder() {
	for _, dir := range []direction{up, down} {
		for _, x := range s.order[dir] {
			sch := s.schemaOf(x)
			if sch == nil {
				continue
			}
			for _, t := range s.order[dir] {
				if t.Mode != addrs.Managed || !slices.Contains(sch.After, t.Type) || s.hostOf(dir, t) != s.hostOf(dir, x) {
					continue
				}
				first, then := t, x
				if dir == down {
					first, then = x, t
				}
				from := s.of[dir][then]
				if dir == up {
					from = s.notBeforeReboot(from, first)
				}
				if !s.anyReached(s.of[dir][first], from) {
					s.wait(from, dir, first, hostOrder)
				}
			}
		}
	}
}

// hostOf is the host of a resource's steps: host is static, so all instances have one.
func (s *stepper) hostOf(dir direction, r addrs.Resource) string {
	return s.steps[s.of[dir][r][0]].Host
}

// losses lets what is applied again wait for what takes its effect away.
func (s *stepper) losses(changes []*Change) {
	for _, c := range changes {
		if c.LostBy == "" {
			continue
		}
		by, err := addrs.ParseInstance(c.LostBy)
		if err != nil {
			continue
		}
		first, ok := s.upOf[by]
		then := s.upOf[c.Addr]
		if ok && !s.g.Reaches(first, then) && !s.g.Reaches(then, first) {
			s.g.Connect(then, first, hostOrder)
		}
	}
}

// result numbers the steps in an order in which they could run one by one.
func (s *stepper) result() ([]Step, error) {
	order, err := s.g.Order()
	if err != nil {
		return nil, s.cycle(err)
	}
	number := make([]int, len(order))
	for i, id := range order {
		number[id] = i
	}
	out := make([]Step, len(order))
	for i, id := range order {
		st := s.steps[id]
		st.ID = i
		for _, e := range s.g.After(id) {
			st.After = append(st.After, Edge{number[e.To], e.Reason})
		}
		slices.SortFunc(st.After, func(a, b Edge) int { return cmp.Compare(a.Step, b.Step) })
		out[i] = st
	}
	return out, nil
}

// cycle names the steps of a cycle.
func (s *stepper) cycle(err error) error {
	var c *graph.CycleError[int]
	if !errors.As(err, &c) {
		return err
	}
	var named graph.CycleError[string]
	for _, cycle := range c.Cycles {
		var names []string
		for _, id := range cycle {
			names = append(names, string(s.steps[id].Action)+" "+s.steps[id].Addr.String())
		}
		named.Cycles = append(named.Cycles, names)
	}
	return &named
}
