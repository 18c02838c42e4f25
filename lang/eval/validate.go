package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
)

// Output is the value of a root output. Value is not marked at the top when Sensitive; parts of it may be.
type Output struct {
	Value     cty.Value
	Sensitive bool
}

// Outputs evaluates the outputs of the root module, and with them what nothing else may have asked for: every variable of every
// module instance, for its validation rules. Values may be unknown in parts.
func (e *Evaluator) Outputs() (map[string]Output, hcl.Diagnostics) {
	diags := e.eachModule(func(mod *moduleInst) hcl.Diagnostics {
		var diags hcl.Diagnostics
		for _, name := range sortedKeys(mod.cfg.Variables) {
			_, more := e.variable(mod, name)
			diags = append(diags, more...)
		}
		return diags
	})
	out := map[string]Output{}
	for _, name := range sortedKeys(e.in.Config.Root.Outputs) {
		v, more := e.output(e.rootInst, name)
		diags = append(diags, more...)
		v, _ = v.Unmark()
		out[name] = Output{Value: v, Sensitive: e.in.Config.Root.Outputs[name].Sensitive}
	}
	return out, Dedup(diags)
}

// Validate evaluates everything there is. It is meant for an Evaluator without Resolve, where computed attributes are unknown.
func (e *Evaluator) Validate() hcl.Diagnostics {
	_, diags := e.Outputs()
	_, more := e.Hosts()
	diags = append(diags, more...)
	diags = append(diags, e.eachModule(e.validateModule)...)
	for _, n := range e.order {
		if n.resource != nil {
			diags = append(diags, e.validateResource(n.module.Addr, n.name)...)
		}
	}
	_, more = e.Generators()
	diags = append(diags, more...)
	benchmarks, more := e.Benchmarks()
	diags = append(diags, more...)
	for _, b := range benchmarks {
		mod, _ := e.moduleInstance(b.Addr.Module)
		if mod == nil {
			continue
		}
		s := e.scopeOf(mod)
		s.self = cty.DynamicVal
		for _, rule := range b.Requires {
			_, _, _, more := s.rule(rule)
			diags = append(diags, more...)
		}
	}
	return sorted(Dedup(diags))
}

func (e *Evaluator) validateModule(mod *moduleInst) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, name := range sortedKeys(mod.cfg.Locals) {
		_, more := e.local(mod, name)
		diags = append(diags, more...)
	}
	for _, name := range sortedKeys(mod.cfg.Outputs) {
		_, more := e.output(mod, name)
		diags = append(diags, more...)
	}
	return diags
}

func (e *Evaluator) validateResource(module addrs.Module, name string) hcl.Diagnostics {
	mods, diags := e.moduleInstances(module)
	for _, mod := range mods {
		r := mod.cfg.Resources[name]
		sch := e.schemaOf(r.Addr)
		exp, more := e.expansion(mod, r)
		diags = append(diags, more...)
		if more.HasErrors() {
			continue
		}
		for _, k := range exp.keys {
			inst, more := e.evaluate(mod, r, exp, k)
			diags = append(diags, more...)
			if len(r.Lifecycle.ReplaceTriggeredBy) > 0 && !exp.unknown {
				_, more := e.ReplaceTriggers(inst.Addr)
				diags = append(diags, more...)
			}
			if len(r.Lifecycle.Postconditions) > 0 {
				s := e.scopeOf(mod)
				s.rep = exp.repetition(k)
				s.self = e.mark(unknownComputed(inst.Desired, &sch.Block), e.block(&sch.Block))
				diags = append(diags, s.rules(r.Lifecycle.Postconditions, fmt.Sprintf("Postcondition of %s is not met", shown(inst.Addr)))...)
			}
		}
	}
	return diags
}
