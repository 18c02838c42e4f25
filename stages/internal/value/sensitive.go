package value

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
	"plumb/lang/schema"
)

// Unmark takes every mark off a value and says where sensitive ones were, sorted. It may be null and unknown in parts.
func Unmark(v cty.Value) (cty.Value, [][]string) {
	if v == cty.NilVal || !v.ContainsMarked() {
		return v, nil
	}
	plain, marks := v.UnmarkDeepWithPaths()
	var at [][]string
	for _, m := range marks {
		if _, ok := m.Marks[eval.Sensitive]; ok {
			at = append(at, PathOf(m.Path))
		}
	}
	return plain, sortPaths(at)
}

// Mark puts sensitive marks on the parts that the paths lead to. A path that leads nowhere in this value marks the nearest part above
// it that is there: a secret is never shown because a list became shorter.
func Mark(v cty.Value, paths [][]string) cty.Value {
	for _, p := range paths {
		v = markAt(v, p)
	}
	return v
}

func markAt(v cty.Value, path []string) cty.Value {
	inner, marks := v.Unmark()
	if len(path) == 0 || !inner.IsKnown() || inner.IsNull() {
		return v.Mark(eval.Sensitive)
	}
	part, ok := At(inner, path[:1])
	if !ok {
		return v.Mark(eval.Sensitive)
	}
	part = markAt(part, path[1:])
	ty := inner.Type()
	switch {
	case ty.IsObjectType():
		m := inner.AsValueMap()
		m[path[0]] = part
		inner = cty.ObjectVal(m)
	case ty.IsMapType():
		m := inner.AsValueMap()
		m[path[0]] = part
		inner = cty.MapVal(m)
	default:
		elems := inner.AsValueSlice()
		elems[indexOf(path[0])] = part
		if ty.IsTupleType() {
			inner = cty.TupleVal(elems)
		} else {
			inner = cty.ListVal(elems)
		}
	}
	return inner.WithMarks(marks)
}

// indexOf reads an index that At has accepted.
func indexOf(s string) int {
	n := 0
	for _, r := range s {
		n = 10*n + int(r-'0')
	}
	return n
}

// SchemaSensitive says where in a value its schema wants secrets, whatever the configuration says. The value is unmarked and may be
// null or unknown, in which case nothing is reported.
func SchemaSensitive(b *schema.Block, v cty.Value) [][]string {
	if !hasSensitive(b) {
		return nil
	}
	var at [][]string
	schemaSensitive(b, v, nil, &at)
	return sortPaths(at)
}

func hasSensitive(b *schema.Block) bool {
	return b.Any(func(a *schema.Attribute) bool { return a.Sensitive })
}

func schemaSensitive(b *schema.Block, v cty.Value, path []string, at *[][]string) {
	if !v.IsKnown() || v.IsNull() {
		return
	}
	for name, a := range b.Attributes {
		if a.Sensitive && !v.GetAttr(name).IsNull() {
			*at = append(*at, append(clonePath(path), name))
		}
	}
	for name, n := range b.Blocks {
		part := v.GetAttr(name)
		if n.Nesting == schema.Single {
			schemaSensitive(&n.Block, part, append(clonePath(path), name), at)
			continue
		}
		if !part.IsKnown() || part.IsNull() {
			continue
		}
		for key, e := range part.Elements() {
			schemaSensitive(&n.Block, e, append(append(clonePath(path), name), KeyText(key)), at)
		}
	}
}

// KeyText is the key of an element as a path has it.
func KeyText(key cty.Value) string {
	if key.Type() == cty.String {
		return key.AsString()
	}
	return key.AsBigFloat().Text('f', -1)
}

// Union is all paths of the lists, sorted, each once.
func Union(lists ...[][]string) [][]string { return sortPaths(slices.Concat(lists...)) }
