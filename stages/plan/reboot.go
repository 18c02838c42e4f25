package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/state"
)

// A host is rebooted at most once in a run, for all changes that need it: after what is taken away, before what is made. What does not survive a reboot and stays is
// applied again after it.

// HostAddr is the address that a reboot step has: host.NAME.
func HostAddr(name string) addrs.Instance {
	return addrs.Resource{Type: "host", Name: name}.Instance(addrs.Key{})
}

const hostPrefix = "host." // of the text of a HostAddr; no resource type is called that

// removal is what deleting an instance of the state would cost. It is asked for once.
//
// What is gone may have been deleted by a run that was cut off before its reboot: then it costs that reboot still.
func (p *planner) removal(e *entry) providers.RemovalResult {
	remover, ok := e.typ.(providers.Remover)
	if !ok || e.gone() && e.inst.Status == state.Ready || e.unread || e.inst.Host == "" {
		return providers.RemovalResult{}
	}
	prior := e.current
	if e.gone() {
		prior = e.recorded
	}
	p.mu.Lock()
	r, known := p.removals[e]
	p.mu.Unlock()
	if known {
		return r
	}
	if host := p.host(e.inst.Host); host != nil {
		var err error
		r, err = remover.Removal(p.ctx, providers.RemovalRequest{Host: host, Mark: p.mark(e.inst.Addr), Prior: prior, Undo: e.inst.Undo})
		switch {
		case errors.Is(err, providers.ErrUnreachable):
			e.unread = true
			p.hostError(e.inst.Host, err)
		case err != nil:
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

// Behind lists a host and those that are reached through it, directly or not, by what their blocks refer to (ssh.jump, netns.parent, container.parent). A reboot cuts them off, and takes along those that
// are on it: a guest's block does not say more than that the host is on the way to it, so all are taken for such. Values of configs are of the schema's type, maybe null or unknown in parts.
func Behind(b *schema.Block, configs map[string]cty.Value, name string) []string {
	out := []string{name}
	for i := 0; i < len(out); i++ {
		for _, other := range slices.Sorted(maps.Keys(configs)) {
			if b != nil && !slices.Contains(out, other) && refersTo(b, configs[other], out[i]) {
				out = append(out, other)
			}
		}
	}
	return out
}

func (p *planner) behind(name string) []string {
	return Behind(p.in.Set.HostSchema, p.hostConfigs, name)
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
	for _, host := range slices.Sorted(maps.Keys(ps.rebooted())) {
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
		what, at := c.Addr.String(), ps.rangeOf(c.Addr)
		if i := slices.IndexFunc(c.Changed, func(a AttrChange) bool { return a.Cost == schema.HostReboot }); i >= 0 {
			what = pathText(c.Changed[i].Path) + " of " + what
			at = ps.rangeOfPath(c, c.Changed[i].Path)
		}
		ps.report(errorAt(at, "A reboot is needed", "%s takes effect only when host.%s is rebooted, and %s.", what, c.Host, why))
	}
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
