package funcs

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

func allTrueFunc() function.Function {
	return boolsFunc("Says whether every element is true; true for an empty list.", cty.True, cty.False)
}

func anyTrueFunc() function.Function {
	return boolsFunc("Says whether an element is true; false for an empty list.", cty.False, cty.True)
}

// boolsFunc answers decisive as soon as an element is that, unknown when an element is unknown, else empty. Null counts as false.
func boolsFunc(description string, empty, decisive cty.Value) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result := empty
			for _, v := range args[0].AsValueSlice() {
				if !v.IsKnown() {
					result = cty.UnknownVal(cty.Bool)
					continue
				}
				if v.IsNull() {
					v = cty.False
				}
				if v.RawEquals(decisive) {
					return decisive, nil
				}
			}
			return result, nil
		},
	})
}

func sumFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the sum of a list or set of numbers, which must not be empty.",
		Params:      []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
		Type:        function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := cty.UnknownVal(cty.Number)
			if !args[0].CanIterateElements() || args[0].LengthInt() == 0 || args[0].Type().IsMapType() || args[0].Type().IsObjectType() {
				return unknown, function.NewArgErrorf(0, "a list or set with at least one number is required")
			}
			total := cty.Zero
			for _, v := range args[0].AsValueSlice() {
				n, err := convert.Convert(v, cty.Number)
				if err != nil || n.IsNull() {
					return unknown, function.NewArgErrorf(0, "every element must be a number")
				}
				total = total.Add(n)
			}
			return total, nil
		},
	})
}

func oneFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the only element of a list, set or tuple, or null when it is empty; more than one is an error.",
		Params:      []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			switch {
			case ty.IsListType() || ty.IsSetType():
				return ty.ElementType(), nil
			case ty.IsTupleType() && len(ty.TupleElementTypes()) == 1:
				return ty.TupleElementTypes()[0], nil
			case ty.IsTupleType() && len(ty.TupleElementTypes()) == 0:
				return cty.DynamicPseudoType, nil
			}
			return cty.NilType, function.NewArgErrorf(0, "a list, set or tuple with at most one element is required")
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if !args[0].Length().IsKnown() { // a set with unknown elements
				return cty.UnknownVal(ret), nil
			}
			switch elems := args[0].AsValueSlice(); len(elems) {
			case 0:
				return cty.NullVal(ret), nil
			case 1:
				return elems[0], nil
			}
			return cty.UnknownVal(ret), function.NewArgErrorf(0, "it has more than one element")
		},
	})
}

func coalesceFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the first argument that is neither null nor an empty string.",
		VarParam:    &function.Parameter{Name: "values", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowDynamicType: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			types := make([]cty.Type, len(args))
			for i, v := range args {
				types[i] = v.Type()
			}
			ty, _ := convert.UnifyUnsafe(types)
			if ty == cty.NilType {
				return ty, errors.New("all arguments must be of the same type")
			}
			return ty, nil
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			for i, v := range args {
				v, err := convert.Convert(v, ret)
				if err != nil {
					return cty.UnknownVal(ret), function.NewArgError(i, err)
				}
				if !v.IsKnown() {
					return cty.UnknownVal(ret), nil
				}
				if v.IsNull() || v.Type() == cty.String && v.AsString() == "" {
					continue
				}
				return v, nil
			}
			return cty.UnknownVal(ret), errors.New("every argument is null or an empty string")
		},
	})
}

func lengthFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the number of elements of a collection, of attributes of an object, or of characters of a string.",
		Params:      []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType() {
				return cty.Number, nil
			}
			return cty.NilType, function.NewArgErrorf(0, "a list, set, map, tuple, object or string is required, not %s", ty.FriendlyName())
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			switch ty := args[0].Type(); {
			case ty == cty.DynamicPseudoType:
				return cty.UnknownVal(cty.Number), nil
			case ty == cty.String:
				return stdlib.Strlen(args[0])
			case ty.IsObjectType():
				return cty.NumberIntVal(int64(len(ty.AttributeTypes()))), nil
			}
			return args[0].Length(), nil
		},
	})
}

func lookupFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the element of a map or object with the given key, or the default when there is none; without a default that is an error.",
		Params: []function.Parameter{
			{Name: "map", Type: cty.DynamicPseudoType},
			{Name: "key", Type: cty.String},
		},
		VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			switch {
			case len(args) > 3:
				return cty.NilType, errors.New("lookup takes a map, a key and at most one default")
			case ty.IsMapType():
				return ty.ElementType(), nil
			case ty.IsObjectType():
				return cty.DynamicPseudoType, nil
			}
			return cty.NilType, function.NewArgErrorf(0, "a map or object is required, not %s", ty.FriendlyName())
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			m, key := args[0], args[1].AsString()
			switch {
			case m.Type().IsObjectType() && m.Type().HasAttribute(key):
				return m.GetAttr(key), nil
			case m.Type().IsMapType() && m.HasIndex(args[1]).True():
				return m.Index(args[1]), nil
			case len(args) == 3:
				v, err := convert.Convert(args[2], ret)
				if err != nil {
					return cty.UnknownVal(ret), function.NewArgErrorf(2, "the default must be of the type of the map's elements, %s", ret.FriendlyName())
				}
				return v, nil
			}
			return cty.UnknownVal(ret), function.NewArgErrorf(1, "the map has no key %q, and there is no default", key)
		},
	})
}

func indexFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Returns the position of the first element of a list that equals the value; it is an error when there is none.",
		Params:      []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}, {Name: "value", Type: cty.DynamicPseudoType}},
		Type:        function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := cty.UnknownVal(cty.Number)
			if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
				return unknown, function.NewArgErrorf(0, "a list or tuple is required, not %s", ty.FriendlyName())
			}
			for i, v := range args[0].AsValueSlice() {
				eq, err := stdlib.Equal(v, args[1])
				if err != nil {
					return unknown, err
				}
				if !eq.IsKnown() {
					return unknown, nil
				}
				if eq.True() {
					return cty.NumberIntVal(int64(i)), nil
				}
			}
			return unknown, function.NewArgErrorf(1, "no element of the list equals it")
		},
	})
}

func matchKeysFunc() function.Function {
	list := cty.List(cty.DynamicPseudoType)
	return function.New(&function.Spec{
		Description: "Returns the elements of the first list whose counterparts in the second list are in the third.",
		Params:      []function.Parameter{{Name: "values", Type: list}, {Name: "keys", Type: list}, {Name: "wanted", Type: list}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()})
			if ty == cty.NilType {
				return ty, errors.New("keys and wanted must be of the same type")
			}
			return args[0].Type(), nil
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if !args[1].IsWhollyKnown() || !args[2].IsWhollyKnown() {
				return cty.UnknownVal(ret), nil
			}
			values, keys, wanted := args[0].AsValueSlice(), args[1].AsValueSlice(), args[2].AsValueSlice()
			if len(values) != len(keys) {
				return cty.UnknownVal(ret), errors.New("values and keys must be equally long")
			}
			var out []cty.Value
			for i, k := range keys {
				for _, w := range wanted {
					eq, err := stdlib.Equal(k, w)
					if err != nil {
						return cty.UnknownVal(ret), err
					}
					if eq.True() {
						out = append(out, values[i])
						break
					}
				}
			}
			if len(out) == 0 {
				return cty.ListValEmpty(ret.ElementType()), nil
			}
			return cty.ListVal(out), nil
		},
	})
}

func transposeFunc() function.Function {
	ty := cty.Map(cty.List(cty.String))
	return function.New(&function.Spec{
		Description: "Turns a map from keys to lists of strings round: from each string to the sorted list of its keys.",
		Params:      []function.Parameter{{Name: "map", Type: ty}},
		Type:        function.StaticReturnType(ty),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(ty), nil
			}
			lists := map[string][]cty.Value{}
			for it := args[0].ElementIterator(); it.Next(); { // in order of the keys
				k, list := it.Element()
				if list.IsNull() {
					return cty.UnknownVal(ty), function.NewArgErrorf(0, "the list of %q is null", k.AsString())
				}
				for _, v := range list.AsValueSlice() {
					if v.IsNull() {
						return cty.UnknownVal(ty), function.NewArgErrorf(0, "the list of %q has a null in it", k.AsString())
					}
					s := v.AsString()
					if have := lists[s]; len(have) == 0 || !have[len(have)-1].RawEquals(k) {
						lists[s] = append(have, k)
					}
				}
			}
			if len(lists) == 0 {
				return cty.MapValEmpty(cty.List(cty.String)), nil
			}
			out := make(map[string]cty.Value, len(lists))
			for s, keys := range lists {
				out[s] = cty.ListVal(keys)
			}
			return cty.MapVal(out), nil
		},
	})
}
