// Package value is how the stages keep cty values in JSON documents and check what providers answer.
//
// A JSON document cannot hold unknown or sensitive values, so Encode takes them out and says where they were; Decode
// and Mark put them back. Start reading at Encoded.
package value

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Encoded is a value as a JSON document keeps it.
type Encoded struct {
	JSON      json.RawMessage // ctyjson of the type that was asked for; null where unknown
	Unknown   [][]string      // where something is unknown, sorted
	Sensitive [][]string      // where a sensitive mark was, sorted
}

// Encode writes a value, which may be null, unknown in parts and marked. A set with an unknown element counts as unknown
// as a whole. The value must conform to the type.
func Encode(v cty.Value, ty cty.Type) (Encoded, error) {
	var e Encoded
	v, e.Sensitive = Unmark(v)
	v, e.Unknown = nullUnknown(v)
	var err error
	if e.JSON, err = ctyjson.Marshal(v, ty); err != nil {
		return Encoded{}, fmt.Errorf("encode value: %w", err)
	}
	return e, nil
}

// Decode reads what Encode wrote; what was unknown is null, and nothing is marked. Nothing at all, or JSON null, is null.
func Decode(raw json.RawMessage, ty cty.Type) (cty.Value, error) {
	if len(raw) == 0 {
		return cty.NullVal(ty), nil
	}
	v, ok := decodeFast(raw, ty)
	if ok {
		return v, nil
	}
	v, err := ctyjson.Unmarshal(raw, ty)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode value: %w", err)
	}
	return v, nil
}

// Unknowns lists where an unmarked value is unknown, sorted.
func Unknowns(v cty.Value) [][]string {
	_, at := nullUnknown(v)
	return at
}

// nullUnknown replaces each unknown part of an unmarked value by null and says where.
func nullUnknown(v cty.Value) (cty.Value, [][]string) {
	if v.IsWhollyKnown() {
		return v, nil
	}
	var at [][]string
	out := transform(v, nil, func(v cty.Value, path []string) (cty.Value, bool) {
		if !v.IsKnown() || v.Type().IsSetType() && !v.IsWhollyKnown() {
			at = append(at, clonePath(path))
			return cty.NullVal(v.Type()), true
		}
		return v, v.IsNull()
	})
	return out, sortPaths(at)
}

// transform rebuilds a value from the top down. visit returns the replacement and whether to stop there. Elements of sets are
// not visited. Values are unmarked.
func transform(v cty.Value, path []string, visit func(cty.Value, []string) (cty.Value, bool)) cty.Value {
	v, stop := visit(v, path)
	if stop || !v.IsKnown() || v.IsNull() {
		return v
	}
	ty := v.Type()
	switch {
	case ty.IsObjectType():
		attrs := v.AsValueMap()
		for name, a := range attrs {
			attrs[name] = transform(a, append(path, name), visit)
		}
		return cty.ObjectVal(attrs)
	case ty.IsMapType() && v.LengthInt() > 0:
		elems := v.AsValueMap()
		for key, e := range elems {
			elems[key] = transform(e, append(path, key), visit)
		}
		return cty.MapVal(elems)
	case ty.IsListType() && v.LengthInt() > 0:
		return cty.ListVal(transformAll(v, path, visit))
	case ty.IsTupleType():
		return cty.TupleVal(transformAll(v, path, visit))
	}
	return v
}

func transformAll(v cty.Value, path []string, visit func(cty.Value, []string) (cty.Value, bool)) []cty.Value {
	elems := v.AsValueSlice()
	for i, e := range elems {
		elems[i] = transform(e, append(path, strconv.Itoa(i)), visit)
	}
	return elems
}

// Unknown makes the parts that the paths lead to unknown again: the reverse of what Encode took out. The value is unmarked. A path that leads
// nowhere makes the nearest part above it unknown.
func Unknown(v cty.Value, paths [][]string) cty.Value {
	for _, p := range paths {
		v = unknownAt(v, p)
	}
	return v
}

func unknownAt(v cty.Value, path []string) cty.Value {
	if len(path) == 0 || !v.IsKnown() || v.IsNull() {
		return cty.UnknownVal(v.Type())
	}
	if _, ok := At(v, path[:1]); !ok {
		return cty.UnknownVal(v.Type())
	}
	return transform(v, nil, func(part cty.Value, at []string) (cty.Value, bool) {
		switch {
		case len(at) == 0:
			return part, false
		case at[0] == path[0]:
			return unknownAt(part, path[1:]), true
		}
		return part, true
	})
}
