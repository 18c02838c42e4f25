package plan

import (
	"plumb/lang/addrs"
	"plumb/lang/schema"
)

// loss says what takes an instance's effect away. release: the change cannot be made while the instance is there.
type loss struct {
	by, why string
	release bool
}

// findLosses adds the instances whose effect is taken away by a change of this pass. False: there are no more than were known.
func (ps *pass) findLosses() bool {
	byHost := map[string][]*node{} // changed instances
	for _, n := range ps.order {
		if !n.failed && n.inst != nil && n.inst.Host != "" && disturbance(&n.change) >= 0 {
			byHost[n.inst.Host] = append(byHost[n.inst.Host], n)
		}
	}
	found := false
	for _, n := range ps.order {
		if n.failed || n.inst == nil || len(n.schema.LostOn) == 0 || n.entry == nil || n.entry.gone() {
			continue
		}
		if _, known := ps.lost[n.addr]; known {
			continue
		}
		if l, ok := ps.lostBy(n, byHost[n.inst.Host]); ok {
			ps.lost[n.addr] = l
			found = true
		}
	}
	return found
}

func (ps *pass) lostBy(n *node, changed []*node) (loss, bool) {
	for _, l := range n.schema.LostOn {
		for _, by := range changed {
			if by == n || by.addr.Resource.Mode != addrs.Managed || by.addr.Resource.Type != l.Type || disturbance(&by.change) < int(l.Cost) {
				continue
			}
			if !l.Release {
				return loss{by: by.addr.String(), why: l.Why}, true
			}
			// What is made anew is not there to be in the way: its users are made after it anyway.
			if by.change.Action == Update && ps.dependsOn(n.addr.Resource, by.addr.Resource) {
				return loss{by: by.addr.String(), why: l.Why, release: true}, true
			}
		}
	}
	return loss{}, false
}

// dependsOn says whether a resource depends on another, directly or through others.
func (ps *pass) dependsOn(r, on addrs.Resource) bool {
	on = on.Static()
	seen := map[addrs.Resource]bool{}
	var reaches func(addrs.Resource) bool
	reaches = func(r addrs.Resource) bool {
		for _, d := range ps.dependencies(r) {
			if d.Resource.Static() == on {
				return true
			}
			if !seen[d.Resource.Static()] {
				seen[d.Resource.Static()] = true
				if reaches(d.Resource) {
					return true
				}
			}
		}
		return false
	}
	return reaches(r)
}

// disturbance is the cost of a change for those who stand on it, -1 for none. What is made anew, also by applying it again, disturbs most. What is
// finished after a killed apply may have to do any of it again.
func disturbance(c *Change) int {
	switch c.Action {
	case Create, Replace, Reapply:
		return int(schema.Replace)
	case Update:
		if c.LostBy != "" {
			return int(schema.Replace)
		}
		if c.Reason == WasInDoubt {
			return int(schema.HostReboot)
		}
		return int(c.Cost)
	}
	return -1
}
