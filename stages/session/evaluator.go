package session

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/stages/apply"
)

// newEvaluator is what apply asks of the configuration: an evaluator whose references see what was applied.
func (s *Session) newEvaluator(resolve func(addrs.Instance) (cty.Value, hcl.Diagnostics), facts func(string) (cty.Value, hcl.Diagnostics)) (apply.Evaluator, hcl.Diagnostics) {
	in := s.inputs()
	in.Resolve, in.Facts = resolve, facts
	ev, diags := eval.New(in)
	if diags.HasErrors() {
		return nil, diags
	}
	return evaluator{ev, s.Config}, diags
}

type evaluator struct {
	ev  *eval.Evaluator
	cfg *config.Config
}

func (e evaluator) Desired(a addrs.Instance) (cty.Value, hcl.Diagnostics) {
	i, diags := e.ev.Evaluate(a)
	if i == nil {
		return cty.NilVal, diags
	}
	return i.Desired, diags
}

func (e evaluator) Meta(a addrs.Instance) (apply.Meta, hcl.Diagnostics) {
	r, err := find(e.cfg, a.Resource)
	if err != nil {
		return apply.Meta{}, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Resource is not in the configuration", Detail: err.Error()}}
	}
	deps := map[string]bool{}
	e.managed(a.Resource.Static(), deps, map[addrs.Resource]bool{})
	return apply.Meta{
		DependsOn:           slices.Sorted(maps.Keys(deps)),
		PreventDestroy:      r.Lifecycle.PreventDestroy,
		CreateBeforeDestroy: r.Lifecycle.CreateBeforeDestroy,
		Range:               r.Range,
	}, nil
}

// managed collects the managed resources that r needs, through data sources too.
func (e evaluator) managed(r addrs.Resource, into map[string]bool, seen map[addrs.Resource]bool) {
	if seen[r] {
		return
	}
	seen[r] = true
	for _, d := range e.ev.Dependencies(r) {
		if d.Resource.Mode == addrs.Managed {
			into[d.Resource.String()] = true
			continue
		}
		e.managed(d.Resource.Static(), into, seen)
	}
}

func (e evaluator) Postconditions(a addrs.Instance, self cty.Value) hcl.Diagnostics {
	return e.ev.Postconditions(a, self)
}

func (e evaluator) Host(name string) (cty.Value, bool, hcl.Diagnostics) {
	hosts, diags := e.ev.Hosts()
	h, ok := hosts[name]
	if !ok {
		return cty.NilVal, false, diags
	}
	return h.Config, true, diags
}

func (e evaluator) Hosts() []string { return slices.Sorted(maps.Keys(e.cfg.Root.Hosts)) }

func (e evaluator) Outputs() (map[string]apply.Output, hcl.Diagnostics) {
	outs, diags := e.ev.Outputs()
	m := make(map[string]apply.Output, len(outs))
	for name, o := range outs {
		m[name] = apply.Output{Value: o.Value, Sensitive: o.Sensitive}
	}
	return m, diags
}

// find is the block of a resource, by its place in the configuration.
func find(cfg *config.Config, r addrs.Resource) (*config.Resource, error) {
	m := cfg.Root
	for _, step := range r.Module.Steps() {
		call := m.Calls[step.Name]
		if call == nil || call.Module == nil {
			return nil, fmt.Errorf("there is no module %s", r.Module)
		}
		m = call.Module
	}
	if c := m.Resources[r.Local()]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("there is no %s", r)
}
