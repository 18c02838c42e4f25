package plan

import (
	"strings"

	"plumb/lang/addrs"
	"plumb/lang/schema"
)

// loss says what takes an instance's effect away. release: the change cannot be made while the instance is there.
type loss struct {
	by, why string
	release bool
}

// findLosses adds the instances whose effect is taken away by a change of this pass, and those that have to make room for one. False: there are no more than were known.
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
		known, isKnown := ps.lost[n.addr]
		if known.release {
			continue
		}
		if l, ok := ps.lostBy(n, byHost[n.inst.Host]); ok && (!isKnown || l.release) {
			ps.lost[n.addr] = l
			found = true
		}
	}
	return found
}

// lostBy looks for a change that takes n's effect away. One that n has to make room for comes before the others.
func (ps *pass) lostBy(n *node, changed []*node) (l loss, ok bool) {
	for _, on := range n.schema.LostOn {
		for _, by := range changed {
			switch {
			case by == n || by.addr.Resource.Mode != addrs.Managed || by.addr.Resource.Type != on.Type:
			case on.Release && ps.inTheWay(n, by, on):
				return loss{by: by.addr.String(), why: on.Why, release: true}, true
			case !on.Release && !ok && disturbance(&by.change) >= int(on.Cost):
				l, ok = loss{by: by.addr.String(), why: on.Why}, true
			}
		}
	}
	return l, ok
}

// inTheWay says whether an instance has to be gone before another one is changed. One that was there before the other was made does not sit on it, unless it is only now to depend on it.
func (ps *pass) inTheWay(n, by *node, on schema.Loss) bool {
	if pressure(&by.change) < int(on.Cost) {
		return false
	}
	b := ps.standsOn(n.addr.Resource, by.addr.Resource)
	if by.change.Action == Create {
		return b.now && !b.before
	}
	return b.now || b.before
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

// pressure is the disturbance of a change for those who may have to make room for it first. Nobody sits on what is applied again because a reboot took it away.
func pressure(c *Change) int {
	if !lostByReboot(c) {
		return disturbance(c)
	}
	switch {
	case c.Action == Update && c.Reason != WasInDoubt:
		return int(c.Cost)
	case c.Action == Reapply:
		return -1
	}
	return disturbance(c)
}

// lostByReboot says that it is the reboot of a host that takes a change's instance away.
func lostByReboot(c *Change) bool { return strings.HasPrefix(c.LostBy, hostPrefix) }
