package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// propose is what the engine proposes: the configuration, in prior's spelling where that means the same; prior's value, or unknown, where a computed
// attribute is not configured.
func propose(b *schema.Block, prior, desired cty.Value) cty.Value {
	if desired.IsNull() {
		return desired
	}
	out := desired.AsValueMap()
	for name, a := range b.Attributes {
		have := cty.NullVal(a.Type)
		if !prior.IsNull() {
			have = prior.GetAttr(name)
		}
		switch {
		case a.Computed && out[name].IsNull():
			out[name] = have
			if have.IsNull() {
				out[name] = cty.UnknownVal(a.Type)
			}
		case !prior.IsNull() && same(a, have, out[name]):
			out[name] = have
		}
	}
	for name, n := range b.Blocks {
		if out[name].IsNull() || n.Nesting != schema.Single && out[name].LengthInt() == 0 {
			continue
		}
		one := func(key cty.Value, v cty.Value) cty.Value {
			have := cty.NullVal(n.ImpliedType())
			if !prior.IsNull() {
				if p := prior.GetAttr(name); n.Nesting == schema.Single {
					have = p
				} else if !p.IsNull() && p.HasIndex(key).True() {
					have = p.Index(key)
				}
			}
			return propose(&n.Block, have, v)
		}
		out[name] = each(n, out[name], one)
	}
	return cty.ObjectVal(out)
}

func each(n *schema.NestedBlock, v cty.Value, f func(key, v cty.Value) cty.Value) cty.Value {
	switch n.Nesting {
	case schema.List:
		l := v.AsValueSlice()
		for i := range l {
			l[i] = f(cty.NumberIntVal(int64(i)), l[i])
		}
		return cty.ListVal(l)
	case schema.Map:
		m := v.AsValueMap()
		for k := range m {
			m[k] = f(cty.StringVal(k), m[k])
		}
		return cty.MapVal(m)
	}
	return f(cty.NilVal, v)
}

func same(a *schema.Attribute, x, y cty.Value) bool {
	if x.RawEquals(y) {
		return true
	}
	if a.Canonical == nil || !x.IsWhollyKnown() || !y.IsWhollyKnown() || x.IsNull() || y.IsNull() {
		return false
	}
	cx, errX := a.Canonical(x)
	cy, errY := a.Canonical(y)
	return errX == nil && errY == nil && cx.RawEquals(cy)
}

// broken lists where got differs from what is known of want.
func broken(b *schema.Block, want, got cty.Value) []string {
	if want.IsNull() || got.IsNull() {
		if want.IsNull() != got.IsNull() {
			return []string{fmt.Sprintf("%#v is not %#v", got, want)}
		}
		return nil
	}
	var out []string
	for name, a := range b.Attributes {
		if w, g := want.GetAttr(name), got.GetAttr(name); w.IsWhollyKnown() && !same(a, w, g) {
			out = append(out, fmt.Sprintf("%s is %#v, planned was %#v", name, g, w))
		}
	}
	for name, n := range b.Blocks {
		w, g := want.GetAttr(name), got.GetAttr(name)
		if n.Nesting == schema.Single || w.LengthInt() != g.LengthInt() {
			if n.Nesting == schema.Single {
				out = append(out, broken(&n.Block, w, g)...)
			} else {
				out = append(out, fmt.Sprintf("%d blocks %s, planned were %d", g.LengthInt(), name, w.LengthInt()))
			}
			continue
		}
		for it := w.ElementIterator(); it.Next(); {
			k, v := it.Element()
			if g.HasIndex(k).False() {
				out = append(out, fmt.Sprintf("block %s %#v is missing", name, k))
				continue
			}
			out = append(out, broken(&n.Block, v, g.Index(k))...)
		}
	}
	slices.Sort(out)
	return out
}

func nullUnknown(v cty.Value) cty.Value {
	out, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			return cty.NullVal(v.Type()), nil
		}
		return v, nil
	})
	if err != nil {
		panic(err) // the function above returns none
	}
	return out
}

// checkSchema holds what the documentation and the engine rely on.
func checkSchema(t *testing.T, r *schema.Resource) {
	if r.Type == "" || r.Description == "" || r.Example == "" {
		t.Error("type, description and example must be given")
	}
	checkBlock(t, r.Type, &r.Block)
}

func checkBlock(t *testing.T, at string, b *schema.Block) {
	for name, a := range b.Attributes {
		at := at + "." + name
		switch {
		case a.Description == "":
			t.Errorf("%s has no description", at)
		case !a.Required && !a.Optional && !a.Computed:
			t.Errorf("%s is neither required, optional nor computed", at)
		case a.Required && (a.Optional || a.Computed):
			t.Errorf("%s is required and something else", at)
		case a.Volatile && !a.Computed:
			t.Errorf("%s is volatile and not computed", at)
		case a.Default != cty.NilVal && !a.Optional:
			t.Errorf("%s has a default and is not optional", at)
		case a.Default != cty.NilVal && a.Computed:
			t.Errorf("%s has a default and is computed", at)
		}
		if a.Default == cty.NilVal {
			continue
		}
		if errs := a.Default.Type().TestConformance(a.Type); len(errs) > 0 {
			t.Errorf("the default of %s is of another type: %v", at, errs)
			continue
		}
		if a.Validate != nil {
			if err := a.Validate(a.Default); err != nil {
				t.Errorf("the default of %s is not valid: %v", at, err)
			}
		}
		if len(a.OneOf) > 0 && !slices.Contains(a.OneOf, a.Default.AsString()) {
			t.Errorf("the default of %s is not among what is allowed", at)
		}
	}
	for name, n := range b.Blocks {
		checkBlock(t, at+"."+name, &n.Block)
	}
}
