package plan

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"plumb/lang/addrs"
)

// rebootStep is one reboot among the steps.
type rebootStep struct {
	host   string
	behind []string // hosts, itself included
	id     int
	needs  []int        // steps that it is for
	before map[int]bool // those, and what they wait for
}

// reboots adds the reboot of each host whose changes need one. Errors are in the diagnostics; a cycle is left for result to find.
func (s *stepper) reboots(changes []*Change) hcl.Diagnostics {
	needs := map[string][]int{}
	for _, c := range changes {
		id, ok := s.upOf[c.Addr]
		if !ok {
			id, ok = s.outOf[c.Addr]
		}
		if ok && c.Reboot && !c.Deposed {
			needs[c.Host] = append(needs[c.Host], id)
		}
	}
	var all []*rebootStep
	for _, host := range slices.Sorted(maps.Keys(needs)) {
		r := &rebootStep{host: host, behind: s.behind(host), needs: needs[host], before: s.g.Reach(needs[host]...)}
		for _, id := range r.needs {
			r.before[id] = true
		}
		all = append(all, r)
	}
	var diags hcl.Diagnostics
	for _, r := range all {
		diags = append(diags, s.tooEarly(r)...)
		r.id = s.step(Step{Addr: HostAddr(r.host), Host: r.host, Action: Reboot})
		for _, n := range r.needs {
			s.g.Connect(r.id, n, rebootOrder)
		}
		s.aroundReboot(r)
	}
	// Where nothing says otherwise, what is reached through a host is rebooted while that one is there.
	for _, r := range all {
		for _, inner := range all {
			if inner != r && slices.Contains(r.behind, inner.host) && !s.g.Reaches(inner.id, r.id) {
				s.g.Connect(r.id, inner.id, rebootOrder)
			}
		}
	}
	return diags
}

// aroundReboot lets what goes from the host go before it, and what is made or changed there come after it, where nothing speaks against that.
func (s *stepper) aroundReboot(r *rebootStep) {
	isDown := map[int]bool{}
	for _, list := range s.of[down] {
		for _, st := range list {
			isDown[st] = true
		}
	}
	order, err := s.g.Order()
	if err != nil {
		return
	}
	late := map[int]bool{} // waits for what is made or changed, and not before the reboot
	for _, st := range order {
		for _, e := range s.g.After(st) {
			made := !isDown[e.To] && !r.before[e.To] && s.steps[e.To].Action != Join
			late[st] = late[st] || late[e.To] || made
		}
	}
	for st := range s.steps {
		a := s.steps[st].Action
		switch {
		case r.before[st] || a == Join || a == Reboot || a == Forget || !slices.Contains(r.behind, s.steps[st].Host):
		case isDown[st]:
			if !late[st] {
				s.g.Connect(r.id, st, rebootOrder)
			}
		case !s.g.Reaches(r.id, st):
			s.g.Connect(st, r.id, rebootOrder)
		}
	}
}

// tooEarly reports what is made before the reboot because it is needed there, and does not outlive it.
func (s *stepper) tooEarly(r *rebootStep) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, st := range slices.Sorted(maps.Keys(r.before)) {
		step := s.steps[st]
		if slices.Contains(r.needs, st) || step.Action == Delete || step.Action == Forget || step.Action == Join || step.Action == Reboot || !slices.Contains(r.behind, step.Host) || s.survives(st) {
			continue
		}
		diags = append(diags, errorAt(s.rangeOf(step.Addr), "Lost by the reboot that it is needed for", "%s has to be there before host.%s is rebooted, because %s depends on it, and the reboot takes it away. Take that dependency out, or apply in two parts with -target.",
			step.Addr, r.host, s.steps[s.needing(r, st)].Addr))
	}
	return diags
}

// needing is the first of the steps that need a reboot which waits for another step.
func (s *stepper) needing(r *rebootStep, st int) int {
	for _, n := range r.needs {
		if s.g.Reaches(n, st) {
			return n
		}
	}
	return r.needs[0]
}

// survives says whether what a step makes outlives a reboot.
func (s *stepper) survives(id int) bool {
	sch := s.schemaOf(s.steps[id].Addr.Resource)
	return sch == nil || sch.Survives || sch.Hostless || s.steps[id].Addr.Resource.Mode == addrs.Data
}

// early splits steps into those that need not wait for r and those that have to. What needs a reboot does not wait for what is only applied again because of it: that is there now, and would be
// lost. A value that is known only when that has been applied is worth waiting for, although it cannot work.
func (s *stepper) early(from []int, r addrs.Resource) (early, rest []int) {
	for _, to := range s.of[up][r] {
		if s.steps[to].Action != Reapply || !lostByReboot(s.change(to)) {
			return nil, from
		}
	}
	for _, f := range from {
		if c := s.change(f); c.Reboot && s.nodes[c.Addr].desired.IsWhollyKnown() {
			early = append(early, f)
		} else {
			rest = append(rest, f)
		}
	}
	return early, rest
}

// notBeforeReboot leaves out the steps that need a reboot, where what they would wait for does not outlive it: the order by type is no reason to make it twice.
func (s *stepper) notBeforeReboot(from []int, r addrs.Resource) []int {
	if s.survives(s.of[up][r][0]) {
		return from
	}
	var out []int
	for _, f := range from {
		if !s.change(f).Reboot {
			out = append(out, f)
		}
	}
	return out
}

// change is the change that a step upwards is of.
func (s *stepper) change(id int) *Change { return &s.nodes[s.steps[id].Addr].change }
