package funcs

import (
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

func startsWith(s, prefix string) bool { return strings.HasPrefix(s, prefix) }
func endsWith(s, suffix string) bool   { return strings.HasSuffix(s, suffix) }
func contains(s, substr string) bool   { return strings.Contains(s, substr) }

// predicate is a function of two strings that answers true or false.
func predicate(description, param string, f func(s, arg string) bool) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{{Name: "str", Type: cty.String}, {Name: param, Type: cty.String}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// stringFunc is a function from one string to another.
func stringFunc(description, param string, f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{{Name: param, Type: cty.String}},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			if err != nil {
				return cty.UnknownVal(cty.String), function.NewArgError(0, err)
			}
			return cty.StringVal(s), nil
		},
	})
}

func basenameFunc() function.Function {
	return stringFunc("Returns the last part of a path.", "path", func(s string) (string, error) { return filepath.Base(s), nil })
}

func dirnameFunc() function.Function {
	return stringFunc("Returns a path without its last part.", "path", func(s string) (string, error) { return filepath.Dir(s), nil })
}

func replaceFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Replaces every occurrence of a substring, or of a regular expression when that is written between slashes.",
		Params: []function.Parameter{
			{Name: "str", Type: cty.String}, {Name: "substr", Type: cty.String}, {Name: "replace", Type: cty.String},
		},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			str, substr, with := args[0].AsString(), args[1].AsString(), args[2].AsString()
			if len(substr) > 1 && substr[0] == '/' && substr[len(substr)-1] == '/' {
				re, err := regexp.Compile(substr[1 : len(substr)-1])
				if err != nil {
					return cty.UnknownVal(cty.String), function.NewArgError(1, err)
				}
				return cty.StringVal(re.ReplaceAllString(str, with)), nil
			}
			return cty.StringVal(strings.ReplaceAll(str, substr, with)), nil
		},
	})
}

func timeCmpFunc() function.Function {
	return function.New(&function.Spec{
		Description: "Compares two timestamps (RFC 3339): -1 when the first is earlier, 0 when they are the same moment, 1 when it is later.",
		Params:      []function.Parameter{{Name: "a", Type: cty.String}, {Name: "b", Type: cty.String}},
		Type:        function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			var at [2]time.Time
			for i := range at {
				var err error
				if at[i], err = time.Parse(time.RFC3339, args[i].AsString()); err != nil {
					return cty.UnknownVal(cty.Number), function.NewArgErrorf(i, "not a timestamp like 2026-01-31T12:00:00Z: %w", err)
				}
			}
			return cty.NumberIntVal(int64(at[0].Compare(at[1]))), nil
		},
	})
}
