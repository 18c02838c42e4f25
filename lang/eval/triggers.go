package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
)

// Trigger is one element of replace_triggered_by.
type Trigger struct {
	Resource addrs.Resource // in its module instance
	Key      *addrs.Key     // nil: any instance
	Attr     cty.Path       // nil: any change
	Range    hcl.Range
}

// ReplaceTriggers evaluates replace_triggered_by of an instance. Keys may use count.index and each.*.
func (e *Evaluator) ReplaceTriggers(i addrs.Instance) ([]Trigger, hcl.Diagnostics) {
	mod, r, exp, diags := e.find(i)
	if diags.HasErrors() {
		return nil, diags
	}
	s := e.scopeOf(mod)
	s.rep = exp.repetition(i.Key)
	var out []Trigger
	for _, expr := range r.Lifecycle.ReplaceTriggeredBy {
		tr, more := s.traversal(expr)
		diags = append(diags, more...)
		if more.HasErrors() {
			continue
		}
		got, bad := parseRef(tr)
		res := mod.cfg.Resources[got.name]
		if bad != nil || got.kind != refResource || res == nil {
			continue // New has reported it
		}
		t := Trigger{Resource: addressIn(mod, res), Range: expr.Range()}
		switch {
		case got.keyed:
			k := keyOf(got.key)
			t.Key = &k
		case res.Count == nil && res.ForEach == nil:
			t.Key = &addrs.Key{}
		}
		t.Attr = pathOf(got.rest)
		out = append(out, t)
	}
	return out, Dedup(diags)
}

func pathOf(tr hcl.Traversal) cty.Path {
	var path cty.Path
	for _, step := range tr {
		switch s := step.(type) {
		case hcl.TraverseAttr:
			path = append(path, cty.GetAttrStep{Name: s.Name})
		case hcl.TraverseIndex:
			path = append(path, cty.IndexStep{Key: s.Key})
		default:
			return path // a splat: everything below
		}
	}
	return path
}

// traversal turns an expression such as a.b[count.index].c into a traversal by evaluating its indices.
func (s scope) traversal(expr hcl.Expression) (hcl.Traversal, hcl.Diagnostics) {
	switch x := expr.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return x.Traversal, nil
	case *hclsyntax.RelativeTraversalExpr:
		tr, diags := s.traversal(x.Source)
		return append(tr[:len(tr):len(tr)], x.Traversal...), diags
	case *hclsyntax.IndexExpr:
		tr, diags := s.traversal(x.Collection)
		key, more := s.eval(x.Key)
		diags = append(diags, more...)
		if more.HasErrors() {
			return tr, diags
		}
		if isSensitive(key) || !key.IsKnown() || key.IsNull() || key.Type() != cty.String && key.Type() != cty.Number {
			return tr, append(diags, errorAt(x.Key.Range(), "Invalid index", "The index in replace_triggered_by must be a known number or string that is not sensitive."))
		}
		return append(tr[:len(tr):len(tr)], hcl.TraverseIndex{Key: key, SrcRange: x.Key.Range()}), diags
	}
	return nil, hcl.Diagnostics{errorAt(expr.Range(), "Invalid replace_triggered_by", "Each element must be a reference to a resource, one of its instances or one of its attributes.")}
}
