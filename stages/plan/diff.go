package plan

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/stages/internal/value"
)

// diff lists the paths at which two objects differ, sorted, each with the cost of that change. Values are unmarked; either may be
// null, and then nothing is listed: a create or delete changes no attribute. What is unknown in after differs from everything. desired is the configuration: a
// computed attribute that it leaves open costs nothing, because its change follows from others. NilVal: no attribute is open.
func diff(b *schema.Block, before, after, desired cty.Value) []AttrChange {
	if before.IsNull() || after.IsNull() {
		return nil
	}
	var out []AttrChange
	diffBlock(b, before, after, desired, nil, &out)
	slices.SortFunc(out, func(a, b AttrChange) int { return slices.Compare(a.Path, b.Path) })
	return out
}

// costOf is the greatest cost in a list of changes.
func costOf(changes []AttrChange) schema.Cost {
	var c schema.Cost
	for _, a := range changes {
		c = max(c, a.Cost)
	}
	return c
}

func diffBlock(b *schema.Block, before, after, desired cty.Value, path Path, out *[]AttrChange) {
	if !after.IsKnown() {
		*out = append(*out, AttrChange{path, setCost(b, after)})
		return
	}
	for name, a := range b.Attributes {
		old, now := before.GetAttr(name), after.GetAttr(name)
		if old.RawEquals(now) && old.IsWhollyKnown() || value.Same(a, old, now) {
			continue
		}
		cost := a.Cost
		if a.Computed && isOpen(desired, name) {
			cost = schema.Live
		}
		diffAttribute(old, now, below(path, name), cost, out)
	}
	for name, n := range b.Blocks {
		want := cty.NilVal
		if desired != cty.NilVal && desired.IsKnown() && !desired.IsNull() {
			want = desired.GetAttr(name)
		}
		diffBlocks(n, before.GetAttr(name), after.GetAttr(name), want, below(path, name), out)
	}
}

func isOpen(desired cty.Value, name string) bool {
	return desired != cty.NilVal && desired.IsKnown() && !desired.IsNull() && desired.GetAttr(name).IsNull()
}

// diffAttribute lists a map by its keys, everything else as one.
func diffAttribute(old, now cty.Value, path Path, cost schema.Cost, out *[]AttrChange) {
	if !old.Type().IsMapType() || old.IsNull() || now.IsNull() || !now.IsKnown() {
		*out = append(*out, AttrChange{path, cost})
		return
	}
	before, after := old.AsValueMap(), now.AsValueMap()
	for key, v := range before {
		if w, ok := after[key]; !ok || !v.RawEquals(w) {
			*out = append(*out, AttrChange{below(path, key), cost})
		}
	}
	for key := range after {
		if _, ok := before[key]; !ok {
			*out = append(*out, AttrChange{below(path, key), cost})
		}
	}
}

func diffBlocks(n *schema.NestedBlock, before, after, desired cty.Value, path Path, out *[]AttrChange) {
	if !after.IsKnown() {
		*out = append(*out, AttrChange{path, blocksCost(n, after)})
		return
	}
	if n.Nesting == schema.Single {
		diffPair(n, before, after, desired, path, out)
		return
	}
	keys := map[string]bool{}
	for _, v := range []cty.Value{before, after} {
		if v.IsNull() {
			continue
		}
		for key := range v.Elements() {
			keys[value.KeyText(key)] = true
		}
	}
	ty := after.Type().ElementType()
	for key := range keys {
		b, a, d := element(before, key, ty), element(after, key, ty), cty.NilVal
		if desired != cty.NilVal {
			d = element(desired, key, ty)
		}
		diffPair(n, b, a, d, below(path, key), out)
	}
}

// diffPair compares one block with one block. One that comes or goes costs what its most costly argument costs.
func diffPair(n *schema.NestedBlock, before, after, desired cty.Value, path Path, out *[]AttrChange) {
	switch {
	case before.IsNull() && after.IsNull():
	case before.IsNull():
		*out = append(*out, AttrChange{path, setCost(&n.Block, after)})
	case after.IsNull():
		*out = append(*out, AttrChange{path, setCost(&n.Block, before)})
	default:
		diffBlock(&n.Block, before, after, desired, path, out)
	}
}

// setCost is the greatest cost among the arguments that a block sets; an unknown block may set them all.
func setCost(b *schema.Block, v cty.Value) schema.Cost {
	var c schema.Cost
	if v.IsNull() {
		return c
	}
	for name, a := range b.Attributes {
		if (a.Optional || a.Required) && (!v.IsKnown() || !v.GetAttr(name).IsNull()) {
			c = max(c, a.Cost)
		}
	}
	for name, n := range b.Blocks {
		inner := cty.DynamicVal
		if v.IsKnown() {
			inner = v.GetAttr(name)
		}
		c = max(c, blocksCost(n, inner))
	}
	return c
}

// blocksCost is setCost of all blocks of one type.
func blocksCost(n *schema.NestedBlock, v cty.Value) schema.Cost {
	if n.Nesting == schema.Single || !v.IsKnown() || v.IsNull() {
		return setCost(&n.Block, v)
	}
	var c schema.Cost
	for _, e := range v.Elements() {
		c = max(c, setCost(&n.Block, e))
	}
	return c
}

func element(v cty.Value, key string, ty cty.Type) cty.Value {
	if e, ok := value.At(v, []string{key}); ok {
		return e
	}
	return cty.NullVal(ty)
}

func below(p Path, name string) Path {
	return append(append(make(Path, 0, len(p)+1), p...), name)
}
