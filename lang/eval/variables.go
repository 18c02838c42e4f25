package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"plumb/lang/config"
	"plumb/lang/diagfmt"
)

// variable is the value of a variable in a module instance: given or default, completed with the defaults of optional()
// attributes, converted, validated, and marked when it is sensitive.
func (e *Evaluator) variable(mod *moduleInst, name string) (cty.Value, hcl.Diagnostics) {
	v := mod.cfg.Variables[name]
	if v == nil {
		return cty.DynamicVal, nil
	}
	id := named{mod, name}
	val, diags := e.variables.get(id, func() (cty.Value, hcl.Diagnostics) {
		given, at, diags := e.given(mod, v)
		if diags.HasErrors() {
			return unknownOf(v), diags
		}
		val, more := convertVariable(v, given, at)
		return val, append(diags, more...)
	})
	if diags.HasErrors() || len(v.Validations) == 0 {
		return val, diags
	}
	_, more := e.validated.get(id, func() (struct{}, hcl.Diagnostics) { return struct{}{}, e.validate(mod, v, val) })
	if more.HasErrors() {
		return unknownOf(v), append(diags[:len(diags):len(diags)], more...)
	}
	return val, append(diags[:len(diags):len(diags)], more...)
}

func unknownOf(v *config.Variable) cty.Value {
	return cty.UnknownVal(v.Type.WithoutOptionalAttributesDeep())
}

// given is what the caller of the module gave, NilVal for nothing, with the place to blame.
func (e *Evaluator) given(mod *moduleInst, v *config.Variable) (cty.Value, hcl.Range, hcl.Diagnostics) {
	if mod.parent == nil {
		if val, ok := e.in.Variables[v.Name]; ok {
			return val, v.Range, nil
		}
		return cty.NilVal, v.Range, nil
	}
	attr := e.callInputs[mod.call][v.Name]
	if attr == nil {
		return cty.NilVal, mod.call.Range, nil
	}
	exp, diags := e.callExpansion(mod.parent, mod.call)
	if diags.HasErrors() {
		return cty.NilVal, attr.Range, diags
	}
	s := e.scopeOf(mod.parent)
	s.rep = exp.repetition(mod.key)
	val, more := s.eval(attr.Expr)
	return val, attr.Expr.Range(), append(diags, more...)
}

func convertVariable(v *config.Variable, val cty.Value, at hcl.Range) (cty.Value, hcl.Diagnostics) {
	if val == cty.NilVal || val.IsNull() && !v.Nullable && v.Default != cty.NilVal {
		val = v.Default
	}
	if val == cty.NilVal {
		return unknownOf(v), nil // New reported it, unless unknown variables are welcome
	}
	if d, ok := v.Optional.(*typeexpr.Defaults); ok && d != nil && !val.IsNull() {
		val = d.Apply(val)
	}
	val, err := convert.Convert(val, v.Type)
	if err != nil {
		return unknownOf(v), hcl.Diagnostics{errorAt(at, "Invalid value for variable", "The value given for variable %q, which is declared at %s, does not fit its type %s: %s.",
			v.Name, place(v.Range), typeexpr.TypeString(v.Type.WithoutOptionalAttributesDeep()), conversionError(err))}
	}
	if val.IsNull() && !v.Nullable {
		return unknownOf(v), hcl.Diagnostics{errorAt(at, "Invalid value for variable", "The value given for variable %q is null, and its declaration at %s has nullable = false.", v.Name, place(v.Range))}
	}
	if v.Sensitive {
		val = val.Mark(Sensitive)
	}
	return val, nil
}

func place(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }

// validate runs the validation rules. They see the variable that they belong to before anybody else does.
func (e *Evaluator) validate(mod *moduleInst, v *config.Variable, val cty.Value) hcl.Diagnostics {
	s := e.scopeOf(mod)
	s.own = map[string]cty.Value{v.Name: val}
	var diags hcl.Diagnostics
	for _, r := range v.Validations {
		result, text, ctx, more := s.rule(r)
		diags = append(diags, more...)
		if result != broken {
			continue
		}
		at := r.Condition.Range()
		if mod.parent != nil {
			if attr := e.callInputs[mod.call][v.Name]; attr != nil {
				at = attr.Expr.Range()
				text += "\n\nThis is the validation rule at " + place(r.Range) + "."
			}
		}
		d := errorAt(at, fmt.Sprintf("Invalid value for variable %q", v.Name), "%s", text)
		d.Expression, d.EvalContext = r.Condition, ctx
		diags = append(diags, d)
	}
	return diags
}

// rootVariables reports values that are missing or that nothing was declared for.
func (e *Evaluator) rootVariables() hcl.Diagnostics {
	var diags hcl.Diagnostics
	vars := e.in.Config.Root.Variables
	for _, name := range sortedKeys(vars) {
		v := vars[name]
		if _, ok := e.in.Variables[name]; !ok && v.Default == cty.NilVal && !e.in.UnknownVariables {
			detail := fmt.Sprintf("Variable %q has no default and no value was given for it.", name)
			if v.Description != "" {
				detail += " It is: " + v.Description
			}
			diags = append(diags, errorAt(v.Range, "No value for required variable", "%s\nGive it with -var '%s=VALUE', in a file *.auto.plumbvars.hcl or one named with -var-file, or in the environment as PLUMB_VAR_%s.", detail, name, name))
		}
	}
	for _, name := range sortedKeys(e.in.Variables) {
		if vars[name] == nil {
			d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Value for undeclared variable"}
			d.Detail = fmt.Sprintf("A value was given for variable %q, but the root module declares no such variable.%s", name, diagfmt.DidYouMean(name, sortedKeys(vars)))
			diags = append(diags, d)
		}
	}
	return diags
}

// earlyVariables evaluates all variables whose values do not hang on resources or facts, so that New tells their errors whether or
// not anything uses them.
func (e *Evaluator) earlyVariables() hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, n := range e.order {
		if n.kind != nodeVariable || n.world {
			continue
		}
		mods, more := e.moduleInstances(n.module.Addr)
		diags = append(diags, more...)
		for _, mod := range mods {
			_, more := e.variable(mod, n.name)
			diags = append(diags, more...)
		}
	}
	return diags
}
