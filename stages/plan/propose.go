package plan

import (
	"github.com/zclconf/go-cty/cty"
	"strconv"

	"plumb/lang/schema"
	"plumb/stages/internal/value"
)

// propose is the plan of an object before its provider has a word: what the configuration says; prior's spelling where that means the
// same; prior's value, or unknown, where a computed attribute is not configured. All values are unmarked and of b's implied type. prior is null
// for a create. Unknown parts of desired stay unknown. recheck makes computed attributes that prior has as null unknown: a killed apply may
// not have recorded them.
func propose(b *schema.Block, prior, desired cty.Value, recheck bool) cty.Value {
	if !desired.IsKnown() || desired.IsNull() {
		return desired
	}
	out := make(map[string]cty.Value, len(b.Attributes)+len(b.Blocks))
	as := !prior.IsNull() && prior.IsKnown() // as prior is, in every part
	for name, a := range b.Attributes {
		want, have := desired.GetAttr(name), part(prior, name, a.Type)
		switch {
		case a.Computed && want.IsNull():
			out[name] = have
			if prior.IsNull() || recheck && have.IsNull() {
				out[name], as = cty.UnknownVal(a.Type), false
			}
		case !prior.IsNull() && value.Same(a, have, want):
			out[name] = have
		default:
			out[name], as = want, false
		}
	}
	for name, n := range b.Blocks {
		want := desired.GetAttr(name)
		have := part(prior, name, want.Type())
		out[name] = proposeBlocks(n, have, want, recheck)
		as = as && have.RawEquals(out[name])
	}
	if as {
		return prior
	}
	return cty.ObjectVal(out)
}

func proposeBlocks(n *schema.NestedBlock, prior, desired cty.Value, recheck bool) cty.Value {
	if n.Nesting == schema.Single {
		return propose(&n.Block, prior, desired, recheck)
	}
	if !desired.IsKnown() || desired.IsNull() || desired.LengthInt() == 0 {
		return desired
	}
	ty := desired.Type().ElementType()
	return eachBlock(n, desired, func(key string, want cty.Value) cty.Value {
		have, ok := value.At(prior, []string{key})
		if !ok {
			have = cty.NullVal(ty)
		}
		return propose(&n.Block, have, want, recheck)
	})
}

// eachBlock replaces the objects of a list or map of blocks, which is not empty.
func eachBlock(n *schema.NestedBlock, v cty.Value, one func(key string, v cty.Value) cty.Value) cty.Value {
	if n.Nesting == schema.Map {
		m := v.AsValueMap()
		for key, e := range m {
			m[key] = one(key, e)
		}
		return cty.MapVal(m)
	}
	l := v.AsValueSlice()
	for i, e := range l {
		l[i] = one(strconv.Itoa(i), e)
	}
	return cty.ListVal(l)
}

// part is an attribute of an object that may be null.
func part(v cty.Value, name string, ty cty.Type) cty.Value {
	if v.IsNull() || !v.IsKnown() {
		return cty.NullVal(ty)
	}
	return v.GetAttr(name)
}

// unsettle makes the volatile attributes that are not configured unknown: the object is about to change.
func unsettle(b *schema.Block, desired, planned cty.Value) cty.Value {
	if !hasVolatile(b) || planned.IsNull() || !planned.IsKnown() || desired.IsNull() || !desired.IsKnown() {
		return planned
	}
	out := planned.AsValueMap()
	for name, a := range b.Attributes {
		if a.Computed && a.Volatile && desired.GetAttr(name).IsNull() {
			out[name] = cty.UnknownVal(a.Type)
		}
	}
	for name, n := range b.Blocks {
		if n.Nesting == schema.Single {
			out[name] = unsettle(&n.Block, desired.GetAttr(name), out[name])
			continue
		}
		out[name] = unsettleEach(n, desired.GetAttr(name), out[name])
	}
	return cty.ObjectVal(out)
}

func unsettleEach(n *schema.NestedBlock, desired, planned cty.Value) cty.Value {
	if !planned.IsKnown() || planned.IsNull() || planned.LengthInt() == 0 {
		return planned
	}
	return eachBlock(n, planned, func(key string, v cty.Value) cty.Value {
		if want, ok := value.At(desired, []string{key}); ok {
			return unsettle(&n.Block, want, v)
		}
		return v
	})
}

func hasVolatile(b *schema.Block) bool {
	return b.Any(func(a *schema.Attribute) bool { return a.Volatile })
}

// keepSpelling is current with the spelling of recorded wherever the two mean the same.
func keepSpelling(b *schema.Block, recorded, current cty.Value) cty.Value {
	if recorded.IsNull() || current.IsNull() || !current.IsKnown() {
		return current
	}
	out := current.AsValueMap()
	for name, a := range b.Attributes {
		if a.Canonical == nil {
			continue
		}
		if old := recorded.GetAttr(name); value.Same(a, old, out[name]) {
			out[name] = old
		}
	}
	return cty.ObjectVal(out)
}
