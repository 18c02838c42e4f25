package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
)

// named addresses an object in a module instance.
type named struct {
	mod  *moduleInst
	name string
}

func (e *Evaluator) root() scope { return scope{e: e, mod: e.rootInst} }

func (e *Evaluator) scopeOf(mod *moduleInst) scope { return scope{e: e, mod: mod} }

// local is the value of a local.
func (e *Evaluator) local(mod *moduleInst, name string) (cty.Value, hcl.Diagnostics) {
	return e.locals.get(named{mod, name}, func() (cty.Value, hcl.Diagnostics) {
		l := mod.cfg.Locals[name]
		if l == nil {
			return cty.DynamicVal, nil
		}
		return e.scopeOf(mod).eval(l.Expr)
	})
}

// output is the value of an output, marked when the output is declared sensitive.
func (e *Evaluator) output(mod *moduleInst, name string) (cty.Value, hcl.Diagnostics) {
	return e.outputs.get(named{mod, name}, func() (cty.Value, hcl.Diagnostics) {
		o := mod.cfg.Outputs[name]
		if o == nil {
			return cty.DynamicVal, nil
		}
		s := e.scopeOf(mod)
		diags := s.rules(o.Preconditions, "Module output precondition failed")
		if diags.HasErrors() {
			return cty.DynamicVal, diags
		}
		v, more := s.eval(o.Expr)
		diags = append(diags, more...)
		switch {
		case more.HasErrors():
		case o.Sensitive:
			v = v.Mark(Sensitive)
		case mod.parent == nil && isSensitive(v):
			diags = append(diags, errorAt(o.Expr.Range(), "Output refers to sensitive values",
				"Output %q holds a sensitive value, which every view of the outputs would show. Say that this is meant by sensitive = true in the output, or take the sensitive part out of the value.", name))
		}
		return v, diags
	})
}

// moduleValue is the value of module.NAME: an object of the wanted outputs (nil: all), or a tuple or object of those.
func (e *Evaluator) moduleValue(mod *moduleInst, name string, want map[string]bool) (cty.Value, hcl.Diagnostics) {
	c := mod.cfg.Calls[name]
	if c == nil {
		return cty.DynamicVal, nil
	}
	exp, diags := e.callExpansion(mod, c)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	v, more := exp.collect(func(k addrs.Key) (cty.Value, hcl.Diagnostics) {
		var diags hcl.Diagnostics
		child := e.child(mod, c, k)
		attrs := map[string]cty.Value{}
		for out := range c.Module.Outputs {
			if want == nil || want[out] {
				v, more := e.output(child, out)
				attrs[out], diags = v, append(diags, more...)
			}
		}
		return cty.ObjectVal(attrs), diags
	})
	return v, append(diags, more...)
}

// resource is the value of a reference to all instances of a resource: the object of the only one, a tuple for count, an object for
// for_each. It is asked for once for each module instance and kept.
func (e *Evaluator) resource(mod *moduleInst, name string) (cty.Value, hcl.Diagnostics) {
	return e.resources.get(named{mod, name}, func() (cty.Value, hcl.Diagnostics) {
		r := mod.cfg.Resources[name]
		if r == nil {
			return cty.DynamicVal, nil
		}
		sch := e.schemaOf(r.Addr)
		exp, diags := e.expansion(mod, r)
		if diags.HasErrors() || sch == nil {
			return cty.DynamicVal, diags
		}
		info := e.block(&sch.Block)
		addr := addressIn(mod, r)
		v, more := exp.collect(func(k addrs.Key) (cty.Value, hcl.Diagnostics) {
			if e.in.Resolve != nil {
				v, diags := e.in.Resolve(addr.Instance(k))
				if v == cty.NilVal {
					v = cty.DynamicVal
				}
				return e.mark(v, info), diags
			}
			inst, diags := e.evaluate(mod, r, exp, k)
			if diags.HasErrors() {
				return cty.DynamicVal, diags
			}
			return e.mark(unknownComputed(inst.Desired, &sch.Block), info), diags
		})
		return v, append(diags, more...)
	})
}

func addressIn(mod *moduleInst, r *config.Resource) addrs.Resource {
	addr := r.Addr
	addr.Module = mod.addr
	return addr
}
