package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/providers"
)

// A host is rebooted at most once in a run, for all changes that need it: after what is taken away, before what is made. What does not survive a reboot and stays is
// applied again after it.

// HostAddr is the address that a reboot step has: host.NAME.
func HostAddr(name string) addrs.Instance {
	return addrs.Resource{Type: "host", Name: name}.Instance(addrs.Key{})
}

// removal is what deleting an instance of the state would cost. It is asked for once.
func (p *planner) removal(e *entry) providers.RemovalResult {
	remover, ok := e.typ.(providers.Remover)
	if !ok || e.gone() || e.unread || e.inst.Host == "" {
		return providers.RemovalResult{}
	}
	p.mu.Lock()
	r, known := p.removals[e]
	p.mu.Unlock()
	if known {
		return r
	}
	if host := p.host(e.inst.Host); host != nil {
		var err error
		r, err = remover.Removal(p.ctx, providers.RemovalRequest{Host: host, Mark: p.mark(e.inst.Addr), Prior: e.current, Undo: e.inst.Undo})
		if err != nil {
			p.report(providerError(p.rangeOf(e.inst.Addr), "tell what it costs to destroy", e.inst.Addr, err))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removals[e] = r
	return r
}

// mayReboot says whether a host may be rebooted, and if not, why.
func (p *planner) mayReboot(name string) (bool, string) {
	cfg, ok := p.hostConfigs[name]
	switch {
	case !ok || p.in.Set.RebootAllowed == nil || p.in.Set.Reboot == nil:
		return false, fmt.Sprintf("nothing says how host.%s is rebooted", name)
	case !cfg.IsWhollyKnown():
		return false, fmt.Sprintf("what host.%s is is not known yet", name)
	}
	return p.in.Set.RebootAllowed(cfg)
}

// behind lists a host and those that are reached through it, which a reboot cuts off, too, or takes along.
func (p *planner) behind(name string) []string {
	out := []string{name}
	for i := 0; i < len(out); i++ {
		for _, other := range slices.Sorted(maps.Keys(p.hostConfigs)) {
			if !slices.Contains(out, other) && p.in.Set.HostSchema != nil && refersTo(p.in.Set.HostSchema, p.hostConfigs[other], out[i]) {
				out = append(out, other)
			}
		}
	}
	return out
}

// refersTo says whether a host block names another host.
func refersTo(b *schema.Block, v cty.Value, name string) bool {
	if !v.IsKnown() || v.IsNull() {
		return false
	}
	for attr, a := range b.Attributes {
		if e := v.GetAttr(attr); a.Reference != "" && e.IsKnown() && !e.IsNull() && e.AsString() == name {
			return true
		}
	}
	for block, n := range b.Blocks {
		if n.Nesting == schema.Single && refersTo(&n.Block, v.GetAttr(block), name) {
			return true
		}
	}
	return false
}

// rebooted are the hosts that a pass's changes need rebooted, with one of the changes.
func (ps *pass) rebooted() map[string]addrs.Instance {
	out := map[string]addrs.Instance{}
	note := func(host string, a addrs.Instance) {
		if old, ok := out[host]; !ok || a.Compare(old) < 0 {
			out[host] = a
		}
	}
	for _, n := range ps.order {
		if !n.failed && n.change.Reboot {
			note(n.change.Host, n.addr)
		}
	}
	for _, e := range ps.planner.instances() {
		if ps.nodes[e.inst.Addr] == nil && ps.scope.covers(e.inst.Addr) && ps.removal(e).Cost == schema.HostReboot {
			if ok, _ := ps.mayReboot(e.inst.Host); ok {
				note(e.inst.Host, e.inst.Addr)
			}
		}
	}
	return out
}

// findRebootLosses adds the instances that a reboot takes away. False: there are no more than were known.
func (ps *pass) findRebootLosses() bool {
	found := false
	for host := range ps.rebooted() {
		behind := ps.behind(host)
		for _, n := range ps.order {
			if _, known := ps.lost[n.addr]; known || n.failed || n.inst == nil || n.entry == nil || n.entry.gone() || n.schema.Survives || n.change.Reboot || !slices.Contains(behind, n.inst.Host) {
				continue
			}
			ps.lost[n.addr] = loss{by: HostAddr(host).String(), why: "a reboot of " + HostAddr(host).String() + " takes it away"}
			found = true
		}
	}
	return found
}

// checkReboots refuses reboots that are not allowed. What only a destroy would need one for is put back where it is kept, and takes effect with the next boot.
func (ps *pass) checkReboots(changes []*Change) {
	for _, c := range changes {
		if !c.Reboot {
			continue
		}
		ok, why := ps.mayReboot(c.Host)
		if ok {
			continue
		}
		if c.Action == Delete {
			c.Reboot, c.Cost = false, schema.Live
			ps.report(warningAt(ps.rangeOf(c.Addr), c.Addr.String(), "Takes effect with the next boot", "What %s has set is taken back where the host keeps it, and the running system of host.%s keeps it until it is booted again: %s.", c.Addr, c.Host, why))
			continue
		}
		at := ps.rangeOf(c.Addr)
		if n := ps.nodes[c.Addr]; n != nil && n.inst != nil {
			at = n.inst.Config.Range.Ptr()
		}
		ps.report(errorAt(at, "A reboot is needed", "%s takes effect only when host.%s is rebooted, and %s.", c.Addr, c.Host, why))
	}
}

// reboots adds the reboot of each host whose changes need one.
func (s *stepper) reboots(changes []*Change) hcl.Diagnostics {
	needs := map[string][]int{}
	for _, c := range changes {
		if !c.Reboot {
			continue
		}
		if id, ok := s.upOf[c.Addr]; ok {
			needs[c.Host] = append(needs[c.Host], id)
			continue
		}
		for _, id := range s.of[down][c.Addr.Resource] {
			if s.steps[id].Addr == c.Addr {
				needs[c.Host] = append(needs[c.Host], id)
			}
		}
	}
	var diags hcl.Diagnostics
	for _, host := range slices.Sorted(maps.Keys(needs)) {
		before := s.g.Reach(needs[host]...)
		for _, id := range needs[host] {
			before[id] = true
		}
		id := s.step(Step{Addr: HostAddr(host), Host: host, Action: Reboot})
		for _, n := range needs[host] {
			s.g.Connect(id, n, rebootOrder)
		}
		behind := s.behind(host)
		on := func(st int) bool { return slices.Contains(behind, s.steps[st].Host) && s.steps[st].Action != Reboot }
		isDown := map[int]bool{}
		for _, list := range s.of[down] {
			for _, st := range list {
				isDown[st] = true
			}
		}
		for st := range s.steps {
			if !on(st) || !isDown[st] || before[st] {
				continue
			}
			// One that has to wait for what is made cannot come before.
			waits := slices.ContainsFunc(slices.Collect(maps.Keys(s.g.Reach(st))), func(x int) bool { return !isDown[x] && !before[x] && s.steps[x].Action != Join })
			if !waits {
				s.g.Connect(id, st, rebootOrder)
			}
		}
		for st := range s.steps {
			if !on(st) || isDown[st] || s.steps[st].Action == Join {
				continue
			}
			switch {
			case !before[st]:
				if !s.g.Reaches(id, st) {
					s.g.Connect(st, id, rebootOrder)
				}
			case !slices.Contains(needs[host], st) && !s.survives(st):
				diags = append(diags, errorAt(s.rangeOf(s.steps[st].Addr), "Lost by the reboot that it is needed for", "%s has to be there before host.%s is rebooted, because %s depends on it, and the reboot takes it away. Take that dependency out, or apply in two parts with -target.",
					s.steps[st].Addr, host, s.steps[needs[host][0]].Addr))
			}
		}
	}
	return diags
}

// survives says whether what a step makes outlives a reboot.
func (s *stepper) survives(id int) bool {
	sch := s.schemaOf(s.steps[id].Addr.Resource)
	return sch == nil || sch.Survives || sch.Hostless || s.steps[id].Addr.Resource.Mode == addrs.Data
}

// Reboots lists the hosts that the plan reboots, each with the changes that need it.
func (p *Plan) Reboots() map[string][]string {
	out := map[string][]string{}
	for _, s := range p.Steps {
		if s.Action != Reboot {
			continue
		}
		for i := range p.Changes {
			if c := &p.Changes[i]; c.Reboot && c.Host == s.Host {
				out[s.Host] = append(out[s.Host], c.Addr.String())
			}
		}
		slices.SortFunc(out[s.Host], strings.Compare)
	}
	return out
}
