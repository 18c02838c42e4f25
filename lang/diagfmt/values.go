package diagfmt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// values lists what the expression of a diagnostic refers to, sorted, each once. What has no value there (an undeclared
// name, which is the diagnostic itself) is left out.
func values(d *hcl.Diagnostic) []Value {
	if d.Expression == nil || d.EvalContext == nil {
		return nil
	}
	var out []Value
	for _, t := range d.Expression.Variables() {
		for len(t) > 1 { // the whole reference if it has a value, else the longest part that has
			v, diags := t.TraverseAbs(d.EvalContext)
			if diags.HasErrors() {
				t = t[:len(t)-1]
				continue
			}
			out = append(out, Value{Traversal: traversal(t), Statement: statement(v)})
			break
		}
	}
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Traversal, b.Traversal) })
	return slices.Compact(out)
}

// traversal prints a reference as it is written.
func traversal(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			b.WriteString("[" + key(s.Key) + "]")
		}
	}
	return b.String()
}

func key(k cty.Value) string {
	switch {
	case k.IsMarked() || !k.IsKnown() || k.IsNull():
		return "..."
	case k.Type() == cty.String:
		return strconv.Quote(k.AsString())
	case k.Type() == cty.Number:
		return k.AsBigFloat().Text('f', -1)
	}
	return "..."
}

// statement finishes the sentence that begins with the name of v. A marked value is not shown, nor is one with a
// marked part.
func statement(v cty.Value) string {
	bare, marks := v.Unmark()
	switch {
	case len(marks) > 0:
		return "has a sensitive value"
	case !v.IsKnown() && bare.Type() == cty.DynamicPseudoType:
		return "will be known only after apply"
	case !v.IsKnown():
		return "is a " + bare.Type().FriendlyName() + ", known only after apply"
	case v.IsNull():
		return "is null"
	}
	if !v.ContainsMarked() && v.IsWhollyKnown() {
		if s, ok := literal(v, maxLiteral); ok {
			return "is " + s
		}
	}
	return "is " + kind(v)
}

// maxLiteral is how long a value may print before only its kind is told.
const maxLiteral = 60

// literal prints a value as it is written in a configuration, unless that is longer than room.
func literal(v cty.Value, room int) (string, bool) {
	out := ""
	switch ty := v.Type(); {
	case v.IsNull():
		out = "null"
	case ty == cty.String:
		out = strconv.Quote(v.AsString())
		if len(out) > room && room == maxLiteral {
			return out[:cut(out, room)] + `..." (` + strconv.Itoa(len(v.AsString())) + " bytes)", true
		}
	case ty == cty.Number:
		out = v.AsBigFloat().Text('f', -1)
	case ty == cty.Bool:
		out = strconv.FormatBool(v.True())
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType() || ty.IsMapType() || ty.IsObjectType():
		var parts []string
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			s, ok := literal(e, room-1) // never the shortened form inside
			if !ok {
				return "", false
			}
			if ty.IsMapType() || ty.IsObjectType() {
				s = strconv.Quote(k.AsString()) + " = " + s
			}
			parts = append(parts, s)
			if len(parts) > room {
				return "", false
			}
		}
		out = "[" + strings.Join(parts, ", ") + "]"
		if ty.IsMapType() || ty.IsObjectType() {
			out = "{}"
			if len(parts) > 0 {
				out = "{ " + strings.Join(parts, ", ") + " }"
			}
		}
	default:
		return "", false
	}
	return out, len(out) <= room
}

// cut is the greatest position up to n that is not inside a character or an escape sequence.
func cut(s string, n int) int {
	for n > 0 && (s[n]&0xc0 == 0x80 || s[n-1] == '\\') {
		n--
	}
	return n
}

// kind tells the type, and for a collection how many elements it has.
func kind(v cty.Value) string {
	ty := v.Type()
	switch {
	case ty.IsObjectType():
		return "an object with " + count(len(ty.AttributeTypes()), "attribute")
	case ty.IsTupleType():
		return "a tuple with " + count(len(ty.TupleElementTypes()), "element")
	case ty.IsCollectionType():
		if n := v.Length(); n.IsKnown() {
			return fmt.Sprintf("a %s with %s", ty.FriendlyName(), count(v.LengthInt(), "element"))
		}
	}
	return "a " + ty.FriendlyName()
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
