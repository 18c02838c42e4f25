package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"plumb/lang/schema"
)

// AttributeRange is where the value at path is written in a block's body: the expression of the argument, or of the element of a
// written out list or map. What is not written (a default, a computed value) is the header of the block that could hold it. The
// path is one of the block's implied type, as providers give it; it may be nil.
func AttributeRange(body hcl.Body, b *schema.Block, path cty.Path) *hcl.Range {
	inner, expr := locate(body, b, path)
	r := inner.MissingItemRange()
	if expr != nil {
		r = expr.Range()
	}
	return &r
}

// attributeExpr is the expression at path, or nil.
func attributeExpr(body hcl.Body, b *schema.Block, path cty.Path) hcl.Expression {
	_, expr := locate(body, b, path)
	return expr
}

// locate follows path as far as it is written: to the innermost block, and to an expression in it or nil.
func locate(body hcl.Body, b *schema.Block, path cty.Path) (hcl.Body, hcl.Expression) {
	if len(path) == 0 {
		return body, nil
	}
	step, ok := path[0].(cty.GetAttrStep)
	if !ok {
		return body, nil
	}
	if b.Attributes[step.Name] != nil {
		content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: step.Name}}})
		if content == nil || content.Attributes[step.Name] == nil {
			return body, nil
		}
		return body, element(content.Attributes[step.Name].Expr, path[1:])
	}
	n := b.Blocks[step.Name]
	if n == nil {
		return body, nil
	}
	header := hcl.BlockHeaderSchema{Type: step.Name}
	if n.Nesting == schema.Map {
		header.LabelNames = []string{"name"}
	}
	content, _, _ := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{header, {Type: "dynamic", LabelNames: []string{"type"}}}})
	if content == nil {
		return body, nil
	}
	rest := path[1:]
	var index cty.Value
	if n.Nesting != schema.Single && len(rest) > 0 {
		if ix, ok := rest[0].(cty.IndexStep); ok {
			index, rest = ix.Key, rest[1:]
		}
	}
	at := 0
	for _, blk := range content.Blocks {
		if blk.Type != step.Name {
			continue
		}
		if matches(blk, n.Nesting, at, index) {
			return locate(blk.Body, &n.Block, rest)
		}
		at++
	}
	for _, blk := range content.Blocks {
		if blk.Type == "dynamic" && blk.Labels[0] == step.Name {
			return blk.Body, nil
		}
	}
	return body, nil
}

func matches(blk *hcl.Block, nesting schema.Nesting, at int, index cty.Value) bool {
	if nesting == schema.Single || index == cty.NilVal || !index.IsKnown() || index.IsNull() || index.IsMarked() {
		return true
	}
	if nesting == schema.Map {
		return index.Type() == cty.String && blk.Labels[0] == index.AsString()
	}
	if index.Type() != cty.Number {
		return true
	}
	i, _ := index.AsBigFloat().Int64()
	return int64(at) == i
}

// element is the part of a written out list or map that the path leads to; expr itself where it is computed.
func element(expr hcl.Expression, path cty.Path) hcl.Expression {
	if len(path) == 0 {
		return expr
	}
	var key cty.Value
	switch s := path[0].(type) {
	case cty.GetAttrStep:
		key = cty.StringVal(s.Name)
	case cty.IndexStep:
		key = s.Key
	}
	if key == cty.NilVal || !key.IsKnown() || key.IsNull() || key.IsMarked() {
		return expr
	}
	if key.Type() == cty.Number {
		elems, diags := hcl.ExprList(expr)
		i, _ := key.AsBigFloat().Int64()
		if diags.HasErrors() || i < 0 || i >= int64(len(elems)) {
			return expr
		}
		return element(elems[i], path[1:])
	}
	pairs, diags := hcl.ExprMap(expr)
	if diags.HasErrors() || key.Type() != cty.String {
		return expr
	}
	for _, p := range pairs {
		k, diags := p.Key.Value(nil)
		if diags.HasErrors() || !k.IsKnown() || k.IsNull() || !k.Type().IsPrimitiveType() {
			continue
		}
		if k, err := convert.Convert(k, cty.String); err == nil && k.AsString() == key.AsString() { // { 1 = x } has the key "1"
			return element(p.Value, path[1:])
		}
	}
	return expr
}
