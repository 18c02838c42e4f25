package plan

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/config"
	"plumb/stages/internal/value"
)

// ignoreChanges is desired with prior's value wherever lifecycle.ignore_changes says so. A create ignores nothing.
func ignoreChanges(lc config.Lifecycle, desired, prior cty.Value) cty.Value {
	if prior.IsNull() || !desired.IsKnown() {
		return desired
	}
	if lc.IgnoreAll {
		return prior
	}
	for _, tr := range lc.IgnoreChanges {
		desired = ignoreAt(desired, prior, steps(tr))
	}
	return desired
}

// steps are the names, keys and indices of a traversal.
func steps(tr hcl.Traversal) []string {
	var out []string
	for _, s := range tr {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			out = append(out, s.Name)
		case hcl.TraverseAttr:
			out = append(out, s.Name)
		case hcl.TraverseIndex:
			out = append(out, value.KeyText(s.Key))
		}
	}
	return out
}

func ignoreAt(desired, prior cty.Value, path []string) cty.Value {
	if len(path) == 0 {
		return prior
	}
	if !desired.IsKnown() || desired.IsNull() || prior.IsNull() {
		return desired
	}
	have, was := value.At(prior, path[:1])
	want, is := value.At(desired, path[:1])
	ty := desired.Type()
	switch {
	case ty.IsObjectType() && is && was:
		m := desired.AsValueMap()
		m[path[0]] = ignoreAt(want, have, path[1:])
		return cty.ObjectVal(m)
	case ty.IsMapType():
		m := desired.AsValueMap()
		if m == nil {
			m = map[string]cty.Value{}
		}
		switch {
		case is && was:
			m[path[0]] = ignoreAt(want, have, path[1:])
		case was && len(path) == 1:
			m[path[0]] = have
		case is && len(path) == 1:
			delete(m, path[0])
		}
		if len(m) == 0 {
			return cty.MapValEmpty(ty.ElementType())
		}
		return cty.MapVal(m)
	case ty.IsListType() && is && was:
		l := desired.AsValueSlice()
		for i := range l {
			if strconv.Itoa(i) == path[0] {
				l[i] = ignoreAt(want, have, path[1:])
			}
		}
		return cty.ListVal(l)
	}
	return desired
}

// pathText writes a path as HCL refers to it.
func pathText(p Path) string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case i == 0:
			b.WriteString(s)
		case strings.Trim(s, "0123456789") == "":
			b.WriteString("[" + s + "]")
		case hclName(s):
			b.WriteString("." + s)
		default:
			b.WriteString(`["` + s + `"]`)
		}
	}
	return b.String()
}

func hclName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
