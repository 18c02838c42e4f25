package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// The arguments below are read while loading, before there are variables: they must be written out.

func (l *loader) static(attr *hcl.Attribute, want cty.Type) (cty.Value, bool) {
	if attr == nil {
		return cty.NilVal, false
	}
	v, diags := attr.Expr.Value(nil)
	if !diags.HasErrors() && v.IsWhollyKnown() && !v.IsNull() {
		if v, err := convert.Convert(v, want); err == nil {
			return v, true
		}
	}
	what := "a string"
	if want == cty.Bool {
		what = "true or false"
	}
	l.errorf(attr.Expr.Range(), "Invalid argument", "%s must be %s, written out: it is read before variables and references have values.", attr.Name, what)
	return cty.NilVal, false
}

func (l *loader) staticString(attr *hcl.Attribute) (string, bool) {
	v, ok := l.static(attr, cty.String)
	if !ok {
		return "", false
	}
	return v.AsString(), true
}

func (l *loader) staticBool(attr *hcl.Attribute) (value, ok bool) {
	v, ok := l.static(attr, cty.Bool)
	return ok && v.True(), ok
}

var ruleSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
	{Name: "condition", Required: true}, {Name: "error_message", Required: true},
}}

// checkRule decodes validation, precondition, postcondition and require blocks; nil when an argument is missing.
func (l *loader) checkRule(b *hcl.Block) *CheckRule {
	content := l.content(b.Body, ruleSchema)
	condition, message := content.Attributes["condition"], content.Attributes["error_message"]
	if condition == nil || message == nil {
		return nil
	}
	return &CheckRule{Condition: condition.Expr, ErrorMessage: message.Expr, Range: b.DefRange}
}

func appendRule(rules []*CheckRule, r *CheckRule) []*CheckRule {
	if r == nil {
		return rules
	}
	return append(rules, r)
}
