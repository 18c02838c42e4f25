package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

var variableSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{
		{Name: "type"}, {Name: "default"}, {Name: "description"}, {Name: "sensitive"}, {Name: "nullable"},
	},
	Blocks: []hcl.BlockHeaderSchema{{Type: "validation"}},
}

// reservedInputs cannot be names of variables because a module block gives them another meaning.
var reservedInputs = map[string]bool{
	"source": true, "version": true, "providers": true, "count": true, "for_each": true, "lifecycle": true, "depends_on": true, "locals": true,
}

// decodeVariable decodes a variable block.
func (l *loader) decodeVariable(m *Module, b *hcl.Block) {
	if !l.validName(b, 0, "name for a variable") {
		return
	}
	name := b.Labels[0]
	if reservedInputs[name] {
		l.errorf(b.LabelRanges[0], "Invalid name", "%q cannot be the name of a variable, because a module block that gives it a value could not tell it from its own argument %s.", name, name)
		return
	}
	v := &Variable{Name: name, Type: cty.DynamicPseudoType, Nullable: true, Range: b.DefRange}
	content := l.content(b.Body, variableSchema)
	v.Description, _ = l.staticString(content.Attributes["description"])
	v.Sensitive, _ = l.staticBool(content.Attributes["sensitive"])
	if nullable, ok := l.staticBool(content.Attributes["nullable"]); ok {
		v.Nullable = nullable
	}
	typed := true
	if attr, ok := content.Attributes["type"]; ok {
		typed = l.variableType(v, attr)
	}
	if attr, ok := content.Attributes["default"]; ok {
		l.variableDefault(v, attr, typed)
	}
	for _, c := range content.Blocks {
		v.Validations = appendRule(v.Validations, l.checkRule(c))
	}
	put(l, m.Variables, name, "variable \""+name+"\"", v, b.DefRange, func(x *Variable) hcl.Range { return x.Range })
}

// variableType sets type and optional() defaults; false when the type is not one.
func (l *loader) variableType(v *Variable, attr *hcl.Attribute) bool {
	ty, defaults, diags := typeexpr.TypeConstraintWithDefaults(attr.Expr)
	l.diags = append(l.diags, diags...)
	if diags.HasErrors() {
		return false
	}
	v.Type = ty
	if defaults != nil { // a typed nil in v.Optional would not be nil
		v.Optional = defaults
	}
	return true
}

// variableDefault evaluates the default, completes it with the optional() defaults and converts it to the type.
func (l *loader) variableDefault(v *Variable, attr *hcl.Attribute, typed bool) {
	at := attr.Expr.Range()
	value, diags := attr.Expr.Value(nil)
	if diags.HasErrors() {
		l.errorf(at, "Invalid default value", "The default of a variable must be written out: it cannot refer to anything or call functions. Compute the value in a locals block instead.")
		v.Default = cty.UnknownVal(v.Type.WithoutOptionalAttributesDeep()) // not required: no second error about a missing value
		return
	}
	if defaults, ok := v.Optional.(*typeexpr.Defaults); ok && !value.IsNull() {
		value = defaults.Apply(value)
	}
	if typed {
		converted, err := convert.Convert(value, v.Type)
		if err != nil {
			l.errorf(at, "Invalid default value", "The default does not fit the variable's type %s: %s.", typeexpr.TypeString(v.Type.WithoutOptionalAttributesDeep()), conversionError(err))
			converted = cty.UnknownVal(v.Type.WithoutOptionalAttributesDeep())
		}
		value = converted
	}
	if value.IsNull() && !v.Nullable {
		l.errorf(at, "Invalid default value", "The default is null although nullable is false. Leave the default out to make the variable required.")
	}
	v.Default = value
}

// conversionError prints a conversion error with the path of the offending element, if it is not the whole value.
func conversionError(err error) string {
	if p, ok := err.(cty.PathError); ok && len(p.Path) > 0 {
		return pathString(p.Path) + ": " + p.Error()
	}
	return err.Error()
}
