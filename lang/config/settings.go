package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

var settingsSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "required_version"}},
	Blocks: []hcl.BlockHeaderSchema{
		{Type: "required_providers"},
		{Type: "backend", LabelNames: []string{"type"}},
	},
}

// decodeSettings decodes a plumb block; required_version has been dealt with by checkVersion.
func (l *loader) decodeSettings(m *Module, b *hcl.Block) {
	for _, inner := range l.content(b.Body, settingsSchema).Blocks {
		switch inner.Type {
		case "required_providers":
			l.requiredProviders(m, inner)
		case "backend":
			l.backend(m, inner)
		}
	}
}

func (l *loader) requiredProviders(m *Module, b *hcl.Block) {
	attrs, diags := b.Body.JustAttributes()
	l.diags = append(l.diags, diags...)
	for _, name := range sortedKeys(attrs) {
		attr := attrs[name]
		c, ok := l.constraint(attr.Expr, "The version of provider "+name)
		if !ok {
			continue
		}
		put(l, m.Settings.RequiredProviders, name, "the version of provider "+name, c, attr.NameRange, func(c Constraint) hcl.Range { return c.Range })
	}
}

func (l *loader) backend(m *Module, b *hcl.Block) {
	switch {
	case m.Parent != nil:
		l.errorf(b.DefRange, "Backend in a called module", "The state belongs to the whole configuration, so a backend block can only stand in the root module.")
	case m.Settings.Backend != nil:
		l.errorf(b.DefRange, "Duplicate definition", "A backend is already set at %s. There is one state, so there can be only one backend.", place(m.Settings.Backend.Range))
	default:
		m.Settings.Backend = &Backend{Type: b.Labels[0], Body: b.Body, Range: b.DefRange}
	}
}

// decodeLocals decodes a locals block.
func (l *loader) decodeLocals(m *Module, b *hcl.Block) {
	attrs, diags := b.Body.JustAttributes()
	l.diags = append(l.diags, diags...)
	for _, name := range sortedKeys(attrs) {
		attr := attrs[name]
		if !hclsyntax.ValidIdentifier(name) {
			l.errorf(attr.NameRange, "Invalid name", "%q is not a name for a local value. It must begin with a letter or underscore and have only letters, digits, underscores and dashes.", name)
			continue
		}
		put(l, m.Locals, name, "local value \""+name+"\"", &Local{Name: name, Expr: attr.Expr, Range: attr.Range}, attr.NameRange,
			func(x *Local) hcl.Range { return x.Range })
	}
}

var outputSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{
		{Name: "value", Required: true}, {Name: "description"}, {Name: "sensitive"}, {Name: "depends_on"},
	},
	Blocks: []hcl.BlockHeaderSchema{{Type: "precondition"}},
}

// decodeOutput decodes an output block.
func (l *loader) decodeOutput(m *Module, b *hcl.Block) {
	if !l.validName(b, 0, "name for an output") {
		return
	}
	o := &Output{Name: b.Labels[0], Range: b.DefRange}
	content := l.content(b.Body, outputSchema)
	if attr, ok := content.Attributes["value"]; ok {
		o.Expr = attr.Expr
	} else {
		return // reported as missing; lang/eval relies on the expression
	}
	o.Description, _ = l.staticString(content.Attributes["description"])
	o.Sensitive, _ = l.staticBool(content.Attributes["sensitive"])
	o.DependsOn = l.dependsOn(content.Attributes["depends_on"])
	for _, c := range content.Blocks {
		o.Preconditions = appendRule(o.Preconditions, l.checkRule(c))
	}
	put(l, m.Outputs, o.Name, "output \""+o.Name+"\"", o, b.DefRange, func(x *Output) hcl.Range { return x.Range })
}
