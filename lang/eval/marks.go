package eval

import (
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// MarkSensitive marks the attributes of v that the schema calls sensitive. v is of the block's implied type; null and unknown
// objects and null attributes stay as they are, marks that are there stay.
func MarkSensitive(v cty.Value, b *schema.Block) cty.Value {
	if !hasSensitive(b) {
		return v
	}
	return rewrite(v, b, func(v cty.Value, a *schema.Attribute) cty.Value {
		if a.Sensitive && !v.IsNull() {
			return v.Mark(Sensitive)
		}
		return v
	})
}

func (e *Evaluator) mark(v cty.Value, info *blockInfo) cty.Value {
	if !info.sensitive {
		return v
	}
	return MarkSensitive(v, info.block)
}

func hasSensitive(b *schema.Block) bool {
	return b.Any(func(a *schema.Attribute) bool { return a.Sensitive })
}

// unknownComputed makes the computed attributes that the configuration left null unknown: what is known of an object before
// anybody has made it.
func unknownComputed(v cty.Value, b *schema.Block) cty.Value {
	return rewrite(v, b, func(v cty.Value, a *schema.Attribute) cty.Value {
		if a.Computed && v.IsNull() {
			return cty.UnknownVal(a.Type)
		}
		return v
	})
}

// rewrite replaces every attribute of an object of b's implied type, also in nested blocks. Unknown and null objects stay.
func rewrite(v cty.Value, b *schema.Block, attr func(cty.Value, *schema.Attribute) cty.Value) cty.Value {
	v, marks := v.Unmark()
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() {
		return v.WithMarks(marks)
	}
	vals := v.AsValueMap()
	for name, a := range b.Attributes {
		if av, ok := vals[name]; ok {
			vals[name] = attr(av, a)
		}
	}
	for name, n := range b.Blocks {
		nv, ok := vals[name]
		if !ok {
			continue
		}
		vals[name] = eachObject(nv, n.Nesting, func(v cty.Value, _ cty.PathStep) cty.Value { return rewrite(v, &n.Block, attr) })
	}
	return cty.ObjectVal(vals).WithMarks(marks)
}

// eachObject replaces the objects in the value of a nested block.
func eachObject(v cty.Value, nesting schema.Nesting, object func(cty.Value, cty.PathStep) cty.Value) cty.Value {
	if nesting == schema.Single {
		return object(v, nil)
	}
	v, marks := v.Unmark()
	if v.IsNull() || !v.IsKnown() || v.LengthInt() == 0 {
		return v.WithMarks(marks)
	}
	if nesting == schema.Map {
		vals := v.AsValueMap()
		for k, ev := range vals {
			vals[k] = object(ev, cty.IndexStep{Key: cty.StringVal(k)})
		}
		if !cty.CanMapVal(vals) {
			return cty.ObjectVal(vals).WithMarks(marks)
		}
		return cty.MapVal(vals).WithMarks(marks)
	}
	vals := v.AsValueSlice()
	for i, ev := range vals {
		vals[i] = object(ev, cty.IndexStep{Key: cty.NumberIntVal(int64(i))})
	}
	if !cty.CanListVal(vals) { // attributes of any type came out different
		return cty.TupleVal(vals).WithMarks(marks)
	}
	return cty.ListVal(vals).WithMarks(marks)
}

// isSensitive says whether v or anything in it is marked.
func isSensitive(v cty.Value) bool { return v.ContainsMarked() }
