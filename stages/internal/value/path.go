package value

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// PathOf renders a path as documents keep it: attribute names, map keys and decimal indices. It ends before an element of
// a set, which has no name.
func PathOf(p cty.Path) []string {
	out := make([]string, 0, len(p))
	for _, s := range p {
		switch s := s.(type) {
		case cty.GetAttrStep:
			out = append(out, s.Name)
		case cty.IndexStep:
			key, _ := s.Key.Unmark()
			switch {
			case !key.IsKnown() || key.IsNull():
				return out
			case key.Type() == cty.String:
				out = append(out, key.AsString())
			case key.Type() == cty.Number:
				out = append(out, key.AsBigFloat().Text('f', -1))
			default:
				return out
			}
		}
	}
	return out
}

// ToCty is the path in a value of the type. Below a part of dynamic type the path ends: what lies there is not known
// from the type. A step that the type does not have is an error.
func ToCty(path []string, ty cty.Type) (cty.Path, error) {
	out := make(cty.Path, 0, len(path))
	for _, s := range path {
		switch {
		case ty.IsObjectType() && ty.HasAttribute(s):
			out, ty = append(out, cty.GetAttrStep{Name: s}), ty.AttributeType(s)
		case ty.IsMapType():
			out, ty = append(out, cty.IndexStep{Key: cty.StringVal(s)}), ty.ElementType()
		case ty.IsListType() || ty.IsTupleType():
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || ty.IsTupleType() && i >= ty.Length() {
				return nil, fmt.Errorf("path %q: %q is not an index", path, s)
			}
			out = append(out, cty.IndexStep{Key: cty.NumberIntVal(int64(i))})
			if ty.IsTupleType() {
				ty = ty.TupleElementType(i)
			} else {
				ty = ty.ElementType()
			}
		case ty == cty.DynamicPseudoType:
			return out, nil
		default:
			return nil, fmt.Errorf("path %q: there is no %q", path, s)
		}
	}
	return out, nil
}

// At is the part of a value that the path leads to: false when there is none, or something on the way is null or unknown.
// Marks on the way are ignored.
func At(v cty.Value, path []string) (cty.Value, bool) {
	for _, s := range path {
		v, _ = v.Unmark()
		if v == cty.NilVal || !v.IsKnown() || v.IsNull() {
			return cty.NilVal, false
		}
		ty := v.Type()
		switch {
		case ty.IsObjectType() && ty.HasAttribute(s):
			v = v.GetAttr(s)
		case ty.IsMapType() && v.HasIndex(cty.StringVal(s)).True():
			v = v.Index(cty.StringVal(s))
		case ty.IsListType() || ty.IsTupleType():
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || i >= v.LengthInt() {
				return cty.NilVal, false
			}
			v = v.Index(cty.NumberIntVal(int64(i)))
		default:
			return cty.NilVal, false
		}
	}
	return v, true
}

// HasPrefix says whether path is prefix or lies below it.
func HasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

func clonePath(p []string) []string {
	return append(make([]string, 0, len(p)), p...)
}

// sortPaths sorts and removes what stands twice.
func sortPaths(p [][]string) [][]string {
	slices.SortFunc(p, slices.Compare)
	return slices.CompactFunc(p, func(a, b []string) bool { return slices.Equal(a, b) })
}
