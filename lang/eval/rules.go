package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"plumb/lang/config"
)

// outcome of a check rule.
type outcome uint8

const (
	holds   outcome = iota
	unsure          // the condition is not known yet: to be checked again when it is
	broken          // the condition is false
	invalid         // the condition cannot be evaluated; diagnostics say why
)

// rule evaluates one condition, and its message when it is false.
func (s scope) rule(r *config.CheckRule) (outcome, string, *hcl.EvalContext, hcl.Diagnostics) {
	v, ctx, diags := s.evalRefs(r.Condition, s.e.refsOf(r.Condition))
	if diags.HasErrors() {
		return invalid, "", ctx, diags
	}
	v, _ = v.UnmarkDeep()
	if v.IsNull() {
		return invalid, "", ctx, append(diags, conditionError(r, ctx, "The condition is null. It must be true or false."))
	}
	v, err := convert.Convert(v, cty.Bool)
	if err != nil {
		return invalid, "", ctx, append(diags, conditionError(r, ctx, "The condition must be true or false: "+conversionError(err)+"."))
	}
	switch {
	case !v.IsKnown():
		return unsure, "", ctx, diags
	case v.True():
		return holds, "", ctx, diags
	}
	text, more := s.message(r)
	return broken, text, ctx, append(diags, more...)
}

func conditionError(r *config.CheckRule, ctx *hcl.EvalContext, detail string) *hcl.Diagnostic {
	d := errorAt(r.Condition.Range(), "Invalid condition", "%s", detail)
	d.Expression, d.EvalContext = r.Condition, ctx
	return d
}

// message evaluates the error message of a rule that does not hold.
func (s scope) message(r *config.CheckRule) (string, hcl.Diagnostics) {
	v, _, diags := s.evalRefs(r.ErrorMessage, s.e.refsOf(r.ErrorMessage))
	if diags.HasErrors() {
		return "The condition is not met, and its error_message cannot be evaluated.", diags
	}
	if isSensitive(v) {
		return "The condition is not met. Its error_message refers to a sensitive value and is not shown.", diags
	}
	v, err := convert.Convert(v, cty.String)
	if err != nil || v.IsNull() {
		return "The condition is not met.", append(diags, errorAt(r.ErrorMessage.Range(), "Invalid error message", "error_message must be a string."))
	}
	if !v.IsKnown() {
		return "The condition is not met. Its error_message refers to values that are not known yet.", diags
	}
	return v.AsString(), diags
}

// rules reports the rules that do not hold. Conditions that are not known yet are left for a later evaluation.
func (s scope) rules(rules []*config.CheckRule, summary string) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, r := range rules {
		result, text, ctx, more := s.rule(r)
		diags = append(diags, more...)
		if result == broken {
			d := errorAt(r.Condition.Range(), summary, "%s", text)
			d.Expression, d.EvalContext = r.Condition, ctx
			diags = append(diags, d)
		}
	}
	return diags
}

// refsOf is what an expression of a check rule refers to, as New found it.
func (e *Evaluator) refsOf(expr hcl.Expression) []ref {
	if refs, ok := e.ruleRefs[expr]; ok {
		return refs
	}
	return parseRefs(expr.Variables())
}
