package config

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// dump prints every field of the model that is set, expressions as they stand in the source.
func dump(c *Config, diags hcl.Diagnostics) string {
	d := &dumper{src: c.Sources}
	d.b.WriteString(printDiags(diags))
	d.module(c.Root)
	return d.b.String()
}

type dumper struct {
	b   strings.Builder
	src map[string][]byte
}

func (d *dumper) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *dumper) expr(name string, e hcl.Expression) {
	if e != nil {
		r := e.Range()
		d.line("    %s: %s", name, strings.ReplaceAll(string(r.SliceBytes(d.src[r.Filename])), "\n", " "))
	}
}

func (d *dumper) flag(name string, set bool) {
	if set {
		d.line("    %s", name)
	}
}

func (d *dumper) refs(name string, ts []hcl.Traversal) {
	for _, t := range ts {
		if t == nil {
			continue
		}
		r := t.SourceRange()
		d.line("    %s: %s at %s", name, traversalText(t), r)
	}
}

func traversalText(t hcl.Traversal) string {
	var parts []string
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			parts = append(parts, "root "+s.Name)
		case hcl.TraverseAttr:
			parts = append(parts, "attr "+s.Name)
		case hcl.TraverseIndex:
			parts = append(parts, fmt.Sprintf("index %#v", s.Key))
		default:
			parts = append(parts, fmt.Sprintf("%T", s))
		}
	}
	return strings.Join(parts, ", ")
}

func (d *dumper) rules(name string, rules []*CheckRule) {
	for _, r := range rules {
		d.line("    %s at %s", name, r.Range)
		d.expr("  condition", r.Condition)
		d.expr("  error_message", r.ErrorMessage)
	}
}

// body prints the names that are left in a body. JSON bodies cannot be listed without a schema.
func (d *dumper) body(name string, b hcl.Body) {
	if b == nil {
		return
	}
	body, ok := b.(*hclsyntax.Body)
	if !ok {
		attrs, _ := b.JustAttributes()
		d.line("    %s: %s", name, strings.Join(sortedKeys(attrs), " "))
		return
	}
	probe := &hcl.BodySchema{}
	for attr := range body.Attributes {
		probe.Attributes = append(probe.Attributes, hcl.AttributeSchema{Name: attr})
	}
	seen := map[string]bool{}
	for _, block := range body.Blocks {
		if !seen[block.Type] {
			seen[block.Type] = true
			h := hcl.BlockHeaderSchema{Type: block.Type}
			for i := range block.Labels {
				h.LabelNames = append(h.LabelNames, fmt.Sprint(i))
			}
			probe.Blocks = append(probe.Blocks, h)
		}
	}
	content, _, _ := b.PartialContent(probe) // hides what has been taken out
	left := sortedKeys(content.Attributes)
	for _, block := range content.Blocks {
		left = append(left, block.Type+" {}")
	}
	d.line("    %s: %s", name, strings.Join(left, " "))
}

func (d *dumper) module(m *Module) {
	d.line("module %q in %s", m.Addr, m.Dir)
	for _, c := range m.Settings.RequiredVersion {
		d.line("  required_version %q at %s", c.Text, c.Range)
	}
	for _, k := range sortedKeys(m.Settings.RequiredProviders) {
		c := m.Settings.RequiredProviders[k]
		d.line("  required_provider %s %q at %s", k, c.Text, c.Range)
	}
	if b := m.Settings.Backend; b != nil {
		d.line("  backend %q at %s", b.Type, b.Range)
		d.body("body", b.Body)
	}
	for _, k := range sortedKeys(m.Variables) {
		v := m.Variables[k]
		d.line("  variable %q at %s: %s", v.Name, v.Range, typeexpr.TypeString(v.Type.WithoutOptionalAttributesDeep()))
		d.flag("has optional() defaults", v.Optional != nil)
		d.flag("sensitive", v.Sensitive)
		d.flag("not nullable", !v.Nullable)
		if v.Description != "" {
			d.line("    description: %s", v.Description)
		}
		if v.Default != cty.NilVal {
			d.line("    default: %#v", v.Default)
		}
		d.rules("validation", v.Validations)
	}
	for _, k := range sortedKeys(m.Locals) {
		d.line("  local %q at %s", m.Locals[k].Name, m.Locals[k].Range)
		d.expr("value", m.Locals[k].Expr)
	}
	for _, k := range sortedKeys(m.Outputs) {
		o := m.Outputs[k]
		d.line("  output %q at %s", o.Name, o.Range)
		d.expr("value", o.Expr)
		d.flag("sensitive", o.Sensitive)
		if o.Description != "" {
			d.line("    description: %s", o.Description)
		}
		d.refs("depends_on", o.DependsOn)
		d.rules("precondition", o.Preconditions)
	}
	for _, k := range sortedKeys(m.Hosts) {
		d.line("  host %q at %s", m.Hosts[k].Name, m.Hosts[k].Range)
		d.body("body", m.Hosts[k].Body)
	}
	for _, k := range sortedKeys(m.Resources) {
		d.resource(k, m.Resources[k])
	}
	for _, k := range sortedKeys(m.Generators) {
		g := m.Generators[k]
		d.line("  %s %s at %s", k, g.Addr, g.Range)
		d.refs("host", []hcl.Traversal{g.Host})
		d.body("body", g.Body)
	}
	for _, k := range sortedKeys(m.Benchmarks) {
		x := m.Benchmarks[k]
		d.line("  %s %s at %s", k, x.Addr, x.Range)
		d.refs("generator", []hcl.Traversal{x.Generator})
		d.refs("path", x.Path)
		if x.PathRange.Filename != "" {
			d.line("    path range: %s", x.PathRange)
		}
		d.refs("depends_on", x.DependsOn)
		d.rules("require", x.Requires)
		d.body("body", x.Body)
	}
	for _, k := range sortedKeys(m.Calls) {
		c := m.Calls[k]
		d.line("  module %q from %q at %s", c.Name, c.Source, c.Range)
		d.expr("count", c.Count)
		d.expr("for_each", c.ForEach)
		d.refs("depends_on", c.DependsOn)
		d.body("inputs", c.Inputs)
	}
	for _, k := range sortedKeys(m.Calls) {
		d.module(m.Calls[k].Module)
	}
}

func (d *dumper) resource(key string, r *Resource) {
	d.line("  %s %s at %s", key, r.Addr, r.Range)
	d.refs("host", []hcl.Traversal{r.Host})
	d.expr("count", r.Count)
	d.expr("for_each", r.ForEach)
	d.refs("depends_on", r.DependsOn)
	l := r.Lifecycle
	if l.Range.Filename != "" {
		d.line("    lifecycle at %s", l.Range)
	}
	d.flag("create_before_destroy", l.CreateBeforeDestroy)
	d.flag("prevent_destroy", l.PreventDestroy)
	d.flag("ignore_changes: all", l.IgnoreAll)
	d.refs("ignore_changes", l.IgnoreChanges)
	for _, e := range l.ReplaceTriggeredBy {
		d.expr("replace_triggered_by", e)
	}
	d.rules("precondition", l.Preconditions)
	d.rules("postcondition", l.Postconditions)
	d.body("body", r.Body)
}
