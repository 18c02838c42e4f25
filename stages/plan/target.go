package plan

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"plumb/lang/addrs"
	"plumb/lang/eval"
)

// targeting is what -target leaves of a plan: the targets and all that they need; for a destroy, the targets and all that needs
// them. A nil targeting covers everything.
type targeting struct {
	named []addrs.Target
	needs map[addrs.Resource]bool // static
	users map[addrs.Instance]bool // of the state
}

func (t *targeting) covers(a addrs.Instance) bool {
	return t == nil || t.names(a) || t.needs[a.Resource.Static()] || t.users[a]
}

func (t *targeting) names(a addrs.Instance) bool {
	return slices.ContainsFunc(t.named, func(x addrs.Target) bool { return x.Contains(a) })
}

// namesResource says whether a target may name instances of a static resource.
func (t *targeting) namesResource(r addrs.Resource) bool {
	return slices.ContainsFunc(t.named, func(x addrs.Target) bool {
		if x.Resource == nil {
			return addrs.Target{Module: x.Module.Static()}.Contains(r.Instance(addrs.Key{}))
		}
		return x.Resource.Mode == r.Mode && x.Resource.Type == r.Type && x.Resource.Name == r.Name && x.Module.Static() == r.Module
	})
}

// target works out what the targets cover. A target that covers nothing is an error.
func (p *planner) target(ev *eval.Evaluator) {
	if len(p.opt.Targets) == 0 {
		return
	}
	t := &targeting{named: p.opt.Targets, needs: map[addrs.Resource]bool{}, users: map[addrs.Instance]bool{}}
	found := make([]bool, len(t.named))
	one := func(i int) *targeting { return &targeting{named: t.named[i : i+1]} }
	if ev != nil {
		for _, r := range ev.Resources() {
			for i := range t.named {
				found[i] = found[i] || one(i).namesResource(r)
			}
			if t.namesResource(r) && !p.opt.Destroy {
				p.addNeeds(ev, r, t.needs)
			}
		}
	}
	for _, e := range p.instances() {
		for i := range t.named {
			found[i] = found[i] || one(i).names(e.inst.Addr)
		}
	}
	p.addUsers(t)
	for i, ok := range found {
		if !ok {
			name := targetText(t.named[i])
			p.report(errorAt(nil, "Target covers nothing", "Neither the configuration nor the state has anything that -target=%s covers.%s", name, suggest(name, p.addresses(ev))))
		}
	}
	if !p.opt.Destroy && !slices.Contains(found, false) {
		p.report(&hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Only a part is planned", Detail: "-target leaves out everything that the targets do not need, and the outputs. " +
			"It is for repairs: run plan without it afterwards to see what is still to do."})
	}
	p.scope = t
}

// checkReplace refuses -replace for what is not there.
func (p *planner) checkReplace() {
	for _, t := range p.opt.Replace {
		if !slices.ContainsFunc(p.instances(), func(e *entry) bool { return t.Contains(e.inst.Addr) }) {
			name := targetText(t)
			p.report(errorAt(nil, "Nothing to replace", "The state has no instance that -replace=%s names.%s", name, suggest(name, p.addresses(nil))))
		}
	}
}

// addresses are what targets can name: the configuration's resources and the state's instances.
func (p *planner) addresses(ev *eval.Evaluator) []string {
	var out []string
	if ev != nil {
		for _, r := range ev.Resources() {
			out = append(out, r.String())
		}
	}
	for _, e := range p.instances() {
		out = append(out, e.inst.Addr.String())
	}
	return out
}

// addNeeds adds what a targeted resource needs: by its references, and what its host wants done before (a switch without its hugepages does not
// start). The resource itself is covered by name only, so that a target may name one instance of several.
func (p *planner) addNeeds(ev *eval.Evaluator, r addrs.Resource, needs map[addrs.Resource]bool) {
	need := func(s addrs.Resource) {
		if !needs[s] {
			needs[s] = true
			p.addNeeds(ev, s, needs)
		}
	}
	for _, d := range ev.Dependencies(r) {
		need(d.Resource.Static())
	}
	sch := p.in.Catalog.Resources[r.Type]
	if r.Mode != addrs.Managed || sch == nil || len(sch.After) == 0 {
		return
	}
	for _, o := range ev.Resources() {
		if o.Mode == addrs.Managed && o != r && slices.Contains(sch.After, o.Type) && p.staticHost(o) == p.staticHost(r) {
			need(o)
		}
	}
}

// staticHost is the name of the host that a configured resource names; where it names none, that of the only host.
func (p *planner) staticHost(r addrs.Resource) string {
	cfg := configOf(p.in.Config, r)
	if cfg == nil {
		return ""
	}
	if len(cfg.Host) > 1 {
		if step, ok := cfg.Host[1].(hcl.TraverseAttr); ok {
			return step.Name
		}
	}
	for name := range p.in.Config.Root.Hosts {
		return name // with several, leaving it out is an error that evaluation has told
	}
	return ""
}

// addUsers adds the instances that would lose what they stand on: those in the state which depend on a targeted instance that goes.
func (p *planner) addUsers(t *targeting) {
	lose := map[addrs.Resource][]addrs.Resource{} // targeted resources that go, by their static address
	add := func(e *entry) { r := e.inst.Addr.Resource; lose[r.Static()] = append(lose[r.Static()], r) }
	var rest []*entry
	for _, e := range p.instances() {
		switch {
		case !p.goes(e.inst.Addr):
		case t.names(e.inst.Addr):
			add(e)
		default:
			rest = append(rest, e)
		}
	}
	for more := true; more; {
		more = false
		rest = slices.DeleteFunc(rest, func(e *entry) bool {
			if !slices.ContainsFunc(dependencies(e), func(d addrs.Resource) bool {
				return slices.ContainsFunc(lose[d.Static()], func(r addrs.Resource) bool { return covers(d, r, e.inst.Addr.Resource.Module) })
			}) {
				return false
			}
			t.users[e.inst.Addr] = true
			add(e)
			more = true
			return true
		})
	}
}

// goes says whether an instance of the state will be destroyed, as far as that shows before anything is evaluated.
func (p *planner) goes(a addrs.Instance) bool {
	return p.opt.Destroy || configOf(p.in.Config, a.Resource) == nil
}

// dependencies are those that the state recorded, as resource addresses.
func dependencies(e *entry) []addrs.Resource {
	var out []addrs.Resource
	for _, d := range e.inst.DependsOn {
		if i, err := addrs.ParseInstance(d); err == nil {
			out = append(out, i.Resource)
		}
	}
	return out
}

// covers says whether a dependency, whose module path may be static, means resource r when it is one of an instance in module m: module
// instances that both are in must be the same.
func covers(dep, r addrs.Resource, m addrs.Module) bool {
	if dep == r {
		return true
	}
	if dep.Static() != dep || dep != r.Static() {
		return false
	}
	mine, theirs := m.Steps(), r.Module.Steps()
	for i := range min(len(mine), len(theirs)) {
		if mine[i].Name != theirs[i].Name {
			break
		}
		if mine[i].Key != theirs[i].Key {
			return false
		}
	}
	return true
}

func targetText(t addrs.Target) string {
	switch {
	case t.Resource == nil:
		return t.Module.String()
	case t.Key == nil:
		return t.Resource.String()
	}
	return t.Resource.Instance(*t.Key).String()
}
