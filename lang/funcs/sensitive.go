package funcs

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

var anyValue = function.Parameter{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true}

func sameType(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil }

func sensitiveFunc(mark any) function.Function {
	return function.New(&function.Spec{
		Description: "Marks the value as sensitive: it is used, but never shown.",
		Params:      []function.Parameter{anyValue},
		Type:        sameType,
		Impl:        func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0].Mark(mark), nil },
	})
}

func nonsensitiveFunc(mark any) function.Function {
	return function.New(&function.Spec{
		Description: "Takes the sensitive mark off the value itself, so that it is shown.",
		Params:      []function.Parameter{anyValue},
		Type:        sameType,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, marks := args[0].Unmark()
			delete(marks, mark)
			return v.WithMarks(marks), nil
		},
	})
}

func issensitiveFunc(mark any) function.Function {
	return function.New(&function.Spec{
		Description: "Says whether the value is marked as sensitive. Unknown for an unknown value without the mark, which may get it yet.",
		Params:      []function.Parameter{anyValue},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			switch {
			case args[0].HasMark(mark):
				return cty.True, nil
			case !args[0].IsKnown():
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.False, nil
		},
	})
}
