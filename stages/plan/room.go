package plan

import (
	"slices"

	"plumb/lang/addrs"
)

// What has to go first, so that something can be changed or taken away: users leave what goes, and what sits on something leaves it before that is changed.

// release lets what used an instance that goes leave it first, where nothing speaks against that.
func (s *stepper) release(changes []*Change) {
	users := map[addrs.Resource][]int{} // updates only: the old half of a replace leaves anyway
	for _, c := range changes {
		if c.Action == Update || c.Action == Reapply {
			users[c.Addr.Resource] = append(users[c.Addr.Resource], s.upOf[c.Addr])
		}
	}
	for _, u := range s.order[up] {
		if len(users[u]) == 0 {
			continue
		}
		for _, r := range s.stands(u) {
			gone := s.plainDeletes(r)
			if len(gone) > 0 && !s.anyReached(s.of[up][u], gone) {
				s.wait(gone, up, u, reference)
			}
		}
	}
}

// makeRoom lets changes wait for what has to be gone before they can be made (schema.Loss.Release), and with them what such a change only follows: a port leaves a virtual function before the number
// of functions changes, and not only before the function gets its driver again.
func (s *stepper) makeRoom(changes []*Change) {
	byAddr := map[string]*Change{}
	for _, c := range changes {
		if !c.Deposed {
			byAddr[c.Addr.String()] = c
		}
	}
	type meeting struct {
		leaves addrs.Resource
		by     addrs.Instance
	}
	type pair struct{ leaves, by addrs.Resource }
	leave := map[addrs.Resource][]int{} // by what leaves
	met := map[meeting]bool{}
	waits := map[pair][]int{}
	var order []pair
	wait := func(leaves addrs.Resource, by *Change) {
		p := pair{leaves, by.Addr.Resource}
		if waits[p] == nil {
			order = append(order, p)
		}
		for _, of := range []map[addrs.Instance]int{s.outOf, s.upOf} {
			if id, ok := of[by.Addr]; ok {
				waits[p] = append(waits[p], id)
			}
		}
	}
	for _, n := range s.pass.order {
		if !s.lost[n.addr].release || n.change.Action != Replace {
			continue
		}
		r := n.addr.Resource
		leave[r] = append(leave[r], s.outOf[n.addr])
		for _, by := range s.pass.order {
			for _, on := range n.schema.LostOn {
				if by == n || by.failed || by.inst == nil || by.change.Host != n.change.Host || !on.Release || by.addr.Resource.Type != on.Type || !s.inTheWay(n, by, on) {
					continue
				}
				for c := &by.change; c != nil && !met[meeting{r, c.Addr}]; c = byAddr[c.LostBy] {
					met[meeting{r, c.Addr}] = true
					wait(r, c)
				}
			}
		}
	}
	for _, p := range order {
		s.waitFor(waits[p], leave[p.leaves], p.leaves)
	}
}

// waitFor makes every one of some steps wait for every one of others, which are of one resource.
func (s *stepper) waitFor(from, to []int, r addrs.Resource) {
	if len(from) > 1 && len(to) > 1 {
		join := s.step(Step{Addr: r.Instance(addrs.Key{}), Action: Join})
		for _, t := range to {
			s.g.Connect(join, t, replaceOrder)
		}
		to = []int{join}
	}
	for _, f := range from {
		for _, t := range to {
			s.g.Connect(f, t, replaceOrder)
		}
	}
}

// vacate lets what goes, or makes room for what replaces it, go before what it stood on is changed: a NIC is not taken from a port's hands, nor a bridge's datapath
// changed below it. Where the two wait for one another the other way round already, that stays.
func (s *stepper) vacate(changes []*Change) {
	updates := map[addrs.Resource][]int{}
	for _, c := range changes {
		if c.Action == Update || c.Action == Reapply && !lostByReboot(c) {
			updates[c.Addr.Resource] = append(updates[c.Addr.Resource], s.upOf[c.Addr])
		}
	}
	for _, u := range s.order[down] {
		seen := map[addrs.Resource]bool{}
		var visit func(addrs.Resource)
		visit = func(r addrs.Resource) {
			for _, below := range s.stands(r) {
				if seen[below] {
					continue
				}
				seen[below] = true
				if len(updates[below]) > 0 && !s.anyReached(s.of[down][u], updates[below]) {
					s.wait(updates[below], down, u, replaceOrder)
				}
				visit(below)
			}
		}
		visit(u)
	}
}

// plainDeletes are the deletes of instances of r that nothing takes the place of.
func (s *stepper) plainDeletes(r addrs.Resource) []int {
	var out []int
	for _, id := range s.of[down][r] {
		if _, replaced := s.upOf[s.steps[id].Addr]; !replaced && !s.steps[id].Deposed {
			out = append(out, id)
		}
	}
	return out
}

// anyReached says whether one of the steps waits for one of the others, directly or not.
func (s *stepper) anyReached(from, to []int) bool {
	reach := s.g.Reach(from...)
	return slices.ContainsFunc(to, func(id int) bool { return reach[id] })
}
