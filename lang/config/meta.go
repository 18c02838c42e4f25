package config

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
)

// repetition decodes count and for_each, of which a block may have one.
func (l *loader) repetition(content *hcl.BodyContent) (count, forEach hcl.Expression) {
	c, f := content.Attributes["count"], content.Attributes["for_each"]
	if c != nil && f != nil {
		l.errorf(f.NameRange, "Count with for_each", "A block can have count or for_each, not both: count numbers its instances, for_each names them. Count is set at %s.", place(c.NameRange))
		return c.Expr, nil
	}
	if c != nil {
		return c.Expr, nil
	}
	if f != nil {
		return nil, f.Expr
	}
	return nil, nil
}

// dependsOn decodes a list of static references.
func (l *loader) dependsOn(attr *hcl.Attribute) []hcl.Traversal {
	if attr == nil {
		return nil
	}
	return l.references(attr, "a resource, data source or module", "depends_on = [ovs_bridge.br0, module.tuning]", func(t hcl.Traversal) bool {
		switch t.RootName() {
		case "var", "local", "each", "count", "path", "self", "plumb", "host", "generator", "benchmark":
			return false
		case "data":
			return len(t) >= 3
		}
		return len(t) >= 2
	})
}

// references decodes a list whose elements are static references that fit.
func (l *loader) references(attr *hcl.Attribute, what, example string, fits func(hcl.Traversal) bool) []hcl.Traversal {
	elems, diags := hcl.ExprList(attr.Expr)
	if diags.HasErrors() {
		l.errorf(attr.Expr.Range(), "Invalid "+attr.Name, "%s must be a list of references, written out, for example %s.", attr.Name, example)
		return nil
	}
	var out []hcl.Traversal
	for _, e := range elems {
		t, diags := hcl.AbsTraversalForExpr(e)
		if diags.HasErrors() || !fits(t) {
			l.errorf(e.Range(), "Invalid "+attr.Name, "Each element of %s must be a reference to %s, without quotes or computed parts, for example %s.", attr.Name, what, example)
			continue
		}
		out = append(out, t)
	}
	return out
}

// reference decodes one static reference of exactly the given number of steps below root: host.NAME has one.
func (l *loader) reference(attr *hcl.Attribute, root string, steps int, form string) hcl.Traversal {
	if attr == nil {
		return nil
	}
	t, diags := hcl.AbsTraversalForExpr(attr.Expr)
	ok := !diags.HasErrors() && t.RootName() == root && len(t) == steps+1
	if ok {
		for _, s := range t[1:] {
			_, isAttr := s.(hcl.TraverseAttr)
			ok = ok && isAttr
		}
	}
	if !ok {
		l.errorf(attr.Expr.Range(), "Invalid "+attr.Name, "%s must be %s, written out: it has to be known before anything is evaluated, so it cannot be computed.", attr.Name, form)
		return nil
	}
	return t
}

var lifecycleSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{
		{Name: "create_before_destroy"}, {Name: "prevent_destroy"}, {Name: "ignore_changes"}, {Name: "replace_triggered_by"},
	},
	Blocks: []hcl.BlockHeaderSchema{{Type: "precondition"}, {Type: "postcondition"}},
}

// lifecycle decodes the lifecycle blocks of a resource, or of a data source, which has conditions only.
func (l *loader) lifecycle(blocks hcl.Blocks, data bool) Lifecycle {
	var out Lifecycle
	for i, b := range blocks {
		if i > 0 {
			l.errorf(b.DefRange, "Duplicate lifecycle block", "A block can have one lifecycle block; the first stands at %s.", place(blocks[0].DefRange))
			continue
		}
		out.Range = b.DefRange
		content := l.content(b.Body, lifecycleSchema)
		if data {
			for _, name := range sortedKeys(content.Attributes) {
				l.errorf(content.Attributes[name].NameRange, "Invalid lifecycle argument", "%s is of no use to a data source, which is never made, changed or destroyed. Its lifecycle block can have precondition and postcondition blocks.", name)
			}
		} else {
			out.CreateBeforeDestroy, _ = l.staticBool(content.Attributes["create_before_destroy"])
			out.PreventDestroy, _ = l.staticBool(content.Attributes["prevent_destroy"])
			l.ignoreChanges(&out, content.Attributes["ignore_changes"])
			out.ReplaceTriggeredBy = l.replaceTriggers(content.Attributes["replace_triggered_by"])
		}
		for _, c := range content.Blocks {
			if c.Type == "precondition" {
				out.Preconditions = appendRule(out.Preconditions, l.checkRule(c))
			} else {
				out.Postconditions = appendRule(out.Postconditions, l.checkRule(c))
			}
		}
	}
	return out
}

func (l *loader) ignoreChanges(out *Lifecycle, attr *hcl.Attribute) {
	if attr == nil {
		return
	}
	if hcl.ExprAsKeyword(attr.Expr) == "all" {
		out.IgnoreAll = true
		return
	}
	elems, diags := hcl.ExprList(attr.Expr)
	if diags.HasErrors() {
		l.errorf(attr.Expr.Range(), "Invalid ignore_changes", "ignore_changes must be the word all, or a list of this resource's arguments, for example ignore_changes = [mtu, options].")
		return
	}
	for _, e := range elems {
		t, diags := hcl.RelTraversalForExpr(e)
		if diags.HasErrors() {
			l.errorf(e.Range(), "Invalid ignore_changes", "Each element of ignore_changes must name an argument of this resource, without quotes, for example ignore_changes = [mtu, options].")
			continue
		}
		if t[0].(hcl.TraverseAttr).Name == "all" && len(t) == 1 {
			l.errorf(e.Range(), "Invalid ignore_changes", "To ignore changes of every argument write ignore_changes = all, without brackets.")
			continue
		}
		out.IgnoreChanges = append(out.IgnoreChanges, t)
	}
}

// replaceTriggers decodes expressions that refer to a managed resource, one of its instances or attributes. Keys may use count.index and each.key.
func (l *loader) replaceTriggers(attr *hcl.Attribute) []hcl.Expression {
	if attr == nil {
		return nil
	}
	elems, diags := hcl.ExprList(attr.Expr)
	if diags.HasErrors() {
		l.errorf(attr.Expr.Range(), "Invalid replace_triggered_by", "replace_triggered_by must be a list of references to resources or their attributes, for example [ovs_switch.dut, nic_driver.p0.driver].")
		return nil
	}
	var out []hcl.Expression
	for _, e := range elems {
		expr, ok := l.unquote(e)
		if !ok {
			continue
		}
		if !refersToResource(expr) {
			l.errorf(e.Range(), "Invalid replace_triggered_by", "Each element of replace_triggered_by must be a reference to a resource of this module, one of its instances or one of its attributes, for example ovs_switch.dut. For another value keep it in a plumb_data resource and refer to that.")
			continue
		}
		out = append(out, expr)
	}
	return out
}

// unquote turns the string that JSON syntax has for a reference into the expression in it.
func (l *loader) unquote(e hcl.Expression) (hcl.Expression, bool) {
	if !hcljson.IsJSONExpression(e) {
		return e, true
	}
	v, diags := e.Value(nil)
	if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
		return e, true // what is wrong with it is for the caller to say
	}
	start := e.Range().Start
	start.Column, start.Byte = start.Column+1, start.Byte+1 // the quote
	expr, diags := hclsyntax.ParseExpression([]byte(v.AsString()), e.Range().Filename, start)
	l.diags = append(l.diags, diags...)
	return expr, !diags.HasErrors()
}

// refersToResource says whether the expression is a plain reference whose root can be a resource type.
func refersToResource(e hcl.Expression) bool {
	for {
		switch x := e.(type) {
		case *hclsyntax.RelativeTraversalExpr:
			e = x.Source
			continue
		case *hclsyntax.IndexExpr:
			e = x.Collection
			continue
		case *hclsyntax.ScopeTraversalExpr:
			switch x.Traversal.RootName() {
			case "var", "local", "each", "count", "path", "self", "plumb", "host", "generator", "benchmark", "module", "data":
				return false
			}
			return len(x.Traversal) >= 2
		}
		return false
	}
}

func header(kind string, labels ...string) string {
	out := kind
	for _, l := range labels {
		out += fmt.Sprintf(" %q", l)
	}
	return out
}
