package ovs

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// known says that the attribute is set and known as a whole.
func known(obj cty.Value, attr string) bool {
	v := obj.GetAttr(attr)
	return !v.IsNull() && v.IsWhollyKnown()
}

// number is a known number attribute.
func number(obj cty.Value, attr string) (int64, bool) {
	if !known(obj, attr) {
		return 0, false
	}
	n, _ := obj.GetAttr(attr).AsBigFloat().Int64()
	return n, true
}

func list(obj cty.Value, attr string) []cty.Value {
	if !known(obj, attr) {
		return nil
	}
	return obj.GetAttr(attr).AsValueSlice()
}

func texts(obj cty.Value, attr string) []string {
	var out []string
	for _, v := range list(obj, attr) {
		if !v.IsNull() {
			out = append(out, v.AsString())
		}
	}
	return out
}

func ints(obj cty.Value, attr string) []int64 {
	var out []int64
	for _, v := range list(obj, attr) {
		if !v.IsNull() {
			n, _ := v.AsBigFloat().Int64()
			out = append(out, n)
		}
	}
	return out
}

func textList(in []string) cty.Value {
	if len(in) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	out := make([]cty.Value, len(in))
	for i, s := range in {
		out[i] = cty.StringVal(s)
	}
	return cty.ListVal(out)
}

func intList(in []int64) cty.Value {
	if len(in) == 0 {
		return cty.ListValEmpty(cty.Number)
	}
	out := make([]cty.Value, len(in))
	for i, n := range in {
		out[i] = cty.NumberIntVal(n)
	}
	return cty.ListVal(out)
}

// keepOrder returns prior when it names the same set as have, so that the order in the configuration stays.
func keepOrder(prior cty.Value, have []string) cty.Value {
	if !prior.IsNull() && prior.IsWhollyKnown() {
		var p []string
		for _, v := range prior.AsValueSlice() {
			p = append(p, v.AsString())
		}
		slices.Sort(p)
		if slices.Equal(p, have) {
			return prior
		}
	}
	return textList(have)
}

// attrsOf is the object as a map that can be changed.
func attrsOf(obj cty.Value) map[string]cty.Value {
	m := obj.AsValueMap()
	if m == nil {
		m = map[string]cty.Value{}
	}
	return m
}

func at(names ...string) cty.Path {
	var p cty.Path
	for _, n := range names {
		p = append(p, cty.GetAttrStep{Name: n})
	}
	return p
}

// overlaps says which keys of a free map have an attribute of their own: two places for one setting.
func overlaps(obj cty.Value, attr string, opts []option, path cty.Path) []providers.Problem {
	var out []providers.Problem
	free := stringMap(obj.GetAttr(attr))
	for _, o := range opts {
		if _, ok := free[o.key]; ok {
			out = append(out, providers.Problem{
				Path: append(path.Copy(), cty.GetAttrStep{Name: attr}, cty.IndexStep{Key: cty.StringVal(o.key)}), Summary: "Key has an argument of its own",
				Detail: fmt.Sprintf("%s sets %q, which is the argument %s: with both, one would undo the other. Remove it from %s and set %s.",
					attr, o.key, o.attr, attr, o.attr),
			})
		}
	}
	return out
}

// foreign is the error of an object that is there without our mark: it says whose, and what to do.
func foreign(kind, name, host string, who providers.Mark) error {
	whose := "it carries no mark of Plumb"
	if who.Testbed != "" {
		whose = fmt.Sprintf("it belongs to the testbed %s (%s)", who.Testbed, who.Address)
	}
	return fmt.Errorf("the %s %s on %s %w: %s, so it is neither changed nor taken over. Choose another name, or remove it there by hand (ovs-vsctl %s %s)",
		kind, name, host, providers.ErrForeign, whose, map[string]string{"bridge": "del-br", "port": "del-port"}[kind], name)
}
