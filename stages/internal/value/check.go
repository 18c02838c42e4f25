package value

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// Same says whether two values of an attribute mean the same: equal, or of one canonical form. Values are unmarked; null equals only null,
// and what is unknown in any part equals nothing.
func Same(a *schema.Attribute, x, y cty.Value) bool {
	if !x.IsWhollyKnown() || !y.IsWhollyKnown() {
		return false
	}
	if x.RawEquals(y) {
		return true
	}
	if a.Canonical == nil || x.IsNull() || y.IsNull() {
		return false
	}
	cx, errX := a.Canonical(x)
	cy, errY := a.Canonical(y)
	return errX == nil && errY == nil && cx.RawEquals(cy)
}

// Broken is what a provider's answer got wrong: a bug of that provider.
type Broken struct {
	Path []string
	What string
}

func (b Broken) String() string {
	if len(b.Path) == 0 {
		return b.What
	}
	return strings.Join(b.Path, ".") + ": " + b.What
}

// CheckPlanned says how a planned object breaks the contract: it must be of the schema's type, keep every known value of the
// configuration (another spelling of the same, such as prior's, is fine) and leave null what is neither set nor computed. desired, with
// ignore_changes worked in, and planned are unmarked.
func CheckPlanned(b *schema.Block, desired, planned cty.Value) []Broken {
	if broken := checkType(b, planned); broken != nil {
		return broken
	}
	if planned.IsNull() || !planned.IsKnown() {
		return []Broken{{What: "the planned object is null or unknown"}}
	}
	var out []Broken
	checkPlanned(b, desired, planned, nil, &out)
	return out
}

func checkPlanned(b *schema.Block, desired, planned cty.Value, path []string, out *[]Broken) {
	for name, a := range b.Attributes {
		want, got := desired.GetAttr(name), planned.GetAttr(name)
		if want.IsNull() && a.Computed || !want.IsWhollyKnown() || Same(a, want, got) {
			continue
		}
		*out = append(*out, Broken{append(clonePath(path), name), fmt.Sprintf("the configuration says %s and the provider plans %s", show(a, want), show(a, got))})
	}
	for name, n := range b.Blocks {
		eachPair(n, desired.GetAttr(name), planned.GetAttr(name), append(clonePath(path), name), "the provider plans other blocks than the configuration has", out,
			func(want, got cty.Value, path []string) { checkPlanned(&n.Block, want, got, path, out) })
	}
}

// CheckApplied says how the object that Apply returned breaks the contract: it must be of the schema's type and wholly known, and every known
// planned value must have come true, in whatever spelling. Both are unmarked. A planned null wants null.
func CheckApplied(b *schema.Block, planned, applied cty.Value) []Broken {
	if broken := CheckKnown(b, applied); broken != nil {
		return broken
	}
	if planned.IsNull() || applied.IsNull() {
		if planned.IsNull() != applied.IsNull() {
			return []Broken{{What: fmt.Sprintf("the plan says %s and apply returned %s", presence(planned), presence(applied))}}
		}
		return nil
	}
	var out []Broken
	checkApplied(b, planned, applied, nil, &out)
	return out
}

// CheckKnown says how an object that was read breaks the contract: it must be of the schema's type, unmarked and wholly known. Null is fine.
func CheckKnown(b *schema.Block, v cty.Value) []Broken {
	if broken := checkType(b, v); broken != nil {
		return broken
	}
	if v.IsWhollyKnown() {
		return nil
	}
	_, at := nullUnknown(v)
	out := make([]Broken, 0, len(at))
	for _, p := range at {
		out = append(out, Broken{p, "is still unknown after apply"})
	}
	return out
}

func checkApplied(b *schema.Block, planned, applied cty.Value, path []string, out *[]Broken) {
	for name, a := range b.Attributes {
		want, got := planned.GetAttr(name), applied.GetAttr(name)
		if fits(a, want, got) {
			continue
		}
		*out = append(*out, Broken{append(clonePath(path), name), fmt.Sprintf("planned %s, but apply returned %s", show(a, want), show(a, got))})
	}
	for name, n := range b.Blocks {
		eachPair(n, planned.GetAttr(name), applied.GetAttr(name), append(clonePath(path), name), "apply returned other blocks than were planned", out,
			func(want, got cty.Value, path []string) { checkApplied(&n.Block, want, got, path, out) })
	}
}

// fits says whether got is what want promised: the same, or anything where want is unknown.
func fits(a *schema.Attribute, want, got cty.Value) bool {
	switch {
	case !want.IsKnown() || Same(a, want, got):
		return true
	case want.IsWhollyKnown() || got.IsNull():
		return false
	case want.Type().IsSetType(): // with an unknown element: it promises only to be there
		return true
	case !got.CanIterateElements() || want.LengthInt() != got.LengthInt():
		return false
	}
	plain := &schema.Attribute{}
	for key, w := range want.Elements() {
		g, ok := At(got, []string{KeyText(key)})
		if !ok || !fits(plain, w, g) {
			return false
		}
	}
	return true
}

// eachPair visits the blocks of one type in two objects together. Where their number or labels differ it reports that. What is
// unknown on the left promises nothing.
func eachPair(n *schema.NestedBlock, want, got cty.Value, path []string, differ string, out *[]Broken, visit func(want, got cty.Value, path []string)) {
	if !want.IsKnown() {
		return
	}
	if !got.IsKnown() || want.IsNull() != got.IsNull() {
		*out = append(*out, Broken{path, differ})
		return
	}
	if want.IsNull() {
		return
	}
	if n.Nesting == schema.Single {
		visit(want, got, path)
		return
	}
	if want.LengthInt() != got.LengthInt() {
		*out = append(*out, Broken{path, differ})
		return
	}
	for key, w := range want.Elements() {
		step := KeyText(key)
		g, ok := At(got, []string{step})
		switch {
		case !ok || !w.IsKnown() || !g.IsKnown() || w.IsNull() || g.IsNull():
			if !ok {
				*out = append(*out, Broken{append(clonePath(path), step), differ})
			}
		default:
			visit(w, g, append(clonePath(path), step))
		}
	}
}

func checkType(b *schema.Block, v cty.Value) []Broken {
	if v == cty.NilVal {
		return []Broken{{What: "it returned no object at all"}}
	}
	if v.ContainsMarked() {
		return []Broken{{What: "it returned marked values"}}
	}
	if conforms(b, v.Type()) {
		return nil
	}
	var out []Broken
	for _, err := range v.Type().TestConformance(b.ImpliedType()) {
		out = append(out, Broken{What: "it returned an object of another type: " + err.Error()})
	}
	return out
}

// conforms says whether a type is surely that of the block: without making the block's own type, which each check of each instance would do again.
func conforms(b *schema.Block, ty cty.Type) bool {
	if !ty.IsObjectType() {
		return false
	}
	have := ty.AttributeTypes()
	if len(have) != len(b.Attributes)+len(b.Blocks) {
		return false
	}
	for name, a := range b.Attributes {
		t, ok := have[name]
		if !ok || !t.Equals(a.Type) && a.Type != cty.DynamicPseudoType {
			return false
		}
	}
	for name, n := range b.Blocks {
		t, ok := have[name]
		switch {
		case !ok:
			return false
		case n.Nesting == schema.List && t.IsListType(), n.Nesting == schema.Map && t.IsMapType():
			t = t.ElementType()
		case n.Nesting != schema.Single:
			return false
		}
		if !conforms(&n.Block, t) {
			return false
		}
	}
	return true
}

func presence(v cty.Value) string {
	if v.IsNull() {
		return "nothing"
	}
	return "an object"
}

// show writes a value for a message: secrets are not shown.
func show(a *schema.Attribute, v cty.Value) string {
	switch {
	case a.Sensitive:
		return "(sensitive value)"
	case !v.IsKnown():
		return "(unknown)"
	case v.IsNull():
		return "null"
	}
	e, err := Encode(v, v.Type())
	if err != nil {
		return v.GoString()
	}
	return string(e.JSON)
}
