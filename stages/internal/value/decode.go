package value

import (
	"bytes"
	"encoding/json"

	"github.com/zclconf/go-cty/cty"
)

// decodeFast reads a document in one go. ctyjson starts a new reader for each part of each object, which is most of the time that a large state takes
// to read. false: it is not what Encode writes, and ctyjson has to read it, or to say what is wrong with it.
func decodeFast(raw json.RawMessage, ty cty.Type) (cty.Value, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if dec.Decode(&tree) != nil {
		return cty.NilVal, false
	}
	return fromTree(tree, ty)
}

// fromTree turns a part of a document into a value of the type.
func fromTree(tree any, ty cty.Type) (cty.Value, bool) {
	if tree == nil {
		return cty.NullVal(ty), true
	}
	switch t := tree.(type) {
	case string:
		return cty.StringVal(t), ty == cty.String
	case bool:
		return cty.BoolVal(t), ty == cty.Bool
	case json.Number:
		if ty != cty.Number {
			return cty.NilVal, false
		}
		v, err := cty.ParseNumberVal(string(t))
		return v, err == nil
	case []any:
		return fromArray(t, ty)
	case map[string]any:
		return fromObject(t, ty)
	}
	return cty.NilVal, false
}

func fromArray(in []any, ty cty.Type) (cty.Value, bool) {
	if !ty.IsTupleType() && !ty.IsListType() && !ty.IsSetType() || ty.IsTupleType() && len(in) != ty.Length() {
		return cty.NilVal, false
	}
	out := make([]cty.Value, len(in))
	for i, e := range in {
		var of cty.Type
		if ty.IsTupleType() {
			of = ty.TupleElementType(i)
		} else {
			of = ty.ElementType()
		}
		var ok bool
		if out[i], ok = fromTree(e, of); !ok {
			return cty.NilVal, false
		}
	}
	switch {
	case ty.IsTupleType():
		return cty.TupleVal(out), true
	case ty.IsListType() && len(out) == 0:
		return cty.ListValEmpty(ty.ElementType()), true
	case ty.IsListType() && cty.CanListVal(out):
		return cty.ListVal(out), true
	case ty.IsSetType() && len(out) == 0:
		return cty.SetValEmpty(ty.ElementType()), true
	case ty.IsSetType() && cty.CanSetVal(out):
		return cty.SetVal(out), true
	}
	return cty.NilVal, false
}

func fromObject(in map[string]any, ty cty.Type) (cty.Value, bool) {
	switch {
	case ty == cty.DynamicPseudoType:
		of, ok := typeFromTree(in["type"])
		v, there := in["value"]
		if !ok || !there || len(in) != 2 {
			return cty.NilVal, false
		}
		return fromTree(v, of)
	case ty.IsMapType():
		out := make(map[string]cty.Value, len(in))
		for name, e := range in {
			var ok bool
			if out[name], ok = fromTree(e, ty.ElementType()); !ok {
				return cty.NilVal, false
			}
		}
		switch {
		case len(out) == 0:
			return cty.MapValEmpty(ty.ElementType()), true
		case cty.CanMapVal(out):
			return cty.MapVal(out), true
		}
	case ty.IsObjectType():
		attrs := ty.AttributeTypes()
		out := make(map[string]cty.Value, len(attrs))
		for name, of := range attrs {
			var ok bool
			if out[name], ok = fromTree(in[name], of); !ok {
				return cty.NilVal, false
			}
		}
		for name := range in {
			if _, ok := attrs[name]; !ok {
				return cty.NilVal, false
			}
		}
		return cty.ObjectVal(out), true
	}
	return cty.NilVal, false
}

// typeFromTree reads the type that stands beside a value of dynamic type.
func typeFromTree(tree any) (cty.Type, bool) {
	switch tree {
	case nil:
		return cty.NilType, false
	case "string":
		return cty.String, true
	case "number":
		return cty.Number, true
	case "bool":
		return cty.Bool, true
	}
	var ty cty.Type
	raw, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(raw, &ty)
	}
	return ty, err == nil
}
