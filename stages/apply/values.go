package apply

import (
	"fmt"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/stages/internal/value"
	"plumb/stages/plan"
)

// schemaOf is the schema of an instance's type, managed or data; nil when there is none.
func (r *runner) schemaOf(a addrs.Instance) *schema.Resource {
	if a.Resource.Mode == addrs.Data {
		return r.sources[a.Resource.Type]
	}
	return r.schemas[a.Resource.Type]
}

// resolve says how references see an instance: as applied, else as planned, else as the state has it. It is called by the evaluator.
func (r *runner) resolve(a addrs.Instance) (cty.Value, hcl.Diagnostics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.values[a]; ok {
		return v, nil
	}
	s := r.schemaOf(a)
	if s == nil {
		return cty.DynamicVal, errorDiag("Unknown type", fmt.Sprintf("%s is of type %s, which this Plumb does not have.", a, a.Resource.Type), nil)
	}
	v, err := r.before(a, s)
	if err != nil {
		return cty.DynamicVal, errorDiag("The plan cannot be run", sentence(err), nil)
	}
	r.values[a] = v
	return v, nil
}

// before is an instance's value when no step has changed it yet. mu is held.
func (r *runner) before(a addrs.Instance, s *schema.Resource) (cty.Value, error) {
	ty := r.types[&s.Block]
	if c := r.changes[a]; c != nil && len(c.After) > 0 {
		v, err := planned(c, ty)
		return value.Mark(v, paths(c.Sensitive)), err
	}
	if i := r.draft.Current(a); i != nil {
		v, err := value.Decode(i.Attributes, ty)
		if err != nil {
			return cty.NilVal, fmt.Errorf("%s in the state: %w", a, err)
		}
		return value.Mark(v, i.Sensitive), nil
	}
	return cty.UnknownVal(ty), nil
}

// planned is the After of a change, with its unknown parts.
func planned(c *plan.Change, ty cty.Type) (cty.Value, error) {
	v, err := value.Decode(c.After, ty)
	if err != nil {
		return cty.NilVal, fmt.Errorf("%s in the plan: %w", c.Addr, err)
	}
	for _, p := range c.Unknown {
		if v, err = setUnknown(v, p); err != nil {
			return cty.NilVal, fmt.Errorf("%s in the plan: %w", c.Addr, err)
		}
	}
	return v, nil
}

// setUnknown makes the part that the path leads to unknown.
func setUnknown(v cty.Value, path []string) (cty.Value, error) {
	if len(path) == 0 {
		return cty.UnknownVal(v.Type()), nil
	}
	ty := v.Type()
	if v.IsNull() || !v.IsKnown() {
		return v, fmt.Errorf("there is no %q", path)
	}
	switch {
	case ty.IsObjectType() || ty.IsMapType():
		parts := v.AsValueMap()
		part, ok := parts[path[0]]
		if !ok {
			return v, fmt.Errorf("there is no %q", path)
		}
		part, err := setUnknown(part, path[1:])
		parts[path[0]] = part
		if ty.IsMapType() {
			return cty.MapVal(parts), err
		}
		return cty.ObjectVal(parts), err
	case ty.IsListType() || ty.IsTupleType():
		parts := v.AsValueSlice()
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(parts) {
			return v, fmt.Errorf("there is no %q", path)
		}
		parts[i], err = setUnknown(parts[i], path[1:])
		if ty.IsTupleType() {
			return cty.TupleVal(parts), err
		}
		return cty.ListVal(parts), err
	}
	return v, fmt.Errorf("there is no %q", path)
}

// dependsOnConfig says whether one of the unknown paths is a part that the configuration may give, so that it has to be evaluated
// again. What only the provider gives stays unknown until it has.
func dependsOnConfig(b *schema.Block, unknown []plan.Path) bool {
	for _, p := range unknown {
		if configPart(b, p) {
			return true
		}
	}
	return false
}

func configPart(b *schema.Block, path []string) bool {
	if len(path) == 0 {
		return true
	}
	if a := b.Attributes[path[0]]; a != nil {
		return a.Required || a.Optional || !a.Computed
	}
	n := b.Blocks[path[0]]
	skip := 1
	if n != nil && n.Nesting != schema.Single {
		skip = 2 // the index or label
	}
	if n == nil || len(path) <= skip {
		return true
	}
	return configPart(&n.Block, path[skip:])
}

// fill puts what the configuration says now into the parts of a planned object that were unknown. What it leaves to the provider stays
// unknown. All values are unmarked; desired is of the implied type.
func fill(b *schema.Block, planned, desired cty.Value) cty.Value {
	if planned.IsWhollyKnown() {
		return planned
	}
	if !planned.IsKnown() {
		return propose(b, desired)
	}
	out := planned.AsValueMap()
	for name, a := range b.Attributes {
		if want := desired.GetAttr(name); !out[name].IsWhollyKnown() && !(want.IsNull() && a.Computed) {
			out[name] = want
		}
	}
	for name, n := range b.Blocks {
		out[name] = fillBlocks(n, out[name], desired.GetAttr(name))
	}
	return cty.ObjectVal(out)
}

func fillBlocks(n *schema.NestedBlock, planned, desired cty.Value) cty.Value {
	switch {
	case planned.IsWhollyKnown():
		return planned
	case n.Nesting == schema.Single && planned.IsKnown() && desired.IsKnown() && !desired.IsNull():
		return fill(&n.Block, planned, desired)
	case n.Nesting != schema.Single && planned.IsKnown() && desired.IsKnown() && planned.LengthInt() == desired.LengthInt():
		return eachBlock(n, desired, func(key, want cty.Value) cty.Value {
			if planned.HasIndex(key).False() {
				return propose(&n.Block, want)
			}
			return fill(&n.Block, planned.Index(key), want)
		})
	}
	return proposeBlocks(n, desired)
}

// propose is a wholly new object as the configuration wants it: computed attributes that it does not set are unknown.
func propose(b *schema.Block, desired cty.Value) cty.Value {
	if !desired.IsKnown() || desired.IsNull() {
		return desired
	}
	out := desired.AsValueMap()
	for name, a := range b.Attributes {
		if a.Computed && out[name].IsNull() {
			out[name] = cty.UnknownVal(a.Type)
		}
	}
	for name, n := range b.Blocks {
		out[name] = proposeBlocks(n, out[name])
	}
	return cty.ObjectVal(out)
}

func proposeBlocks(n *schema.NestedBlock, desired cty.Value) cty.Value {
	if n.Nesting == schema.Single {
		return propose(&n.Block, desired)
	}
	if !desired.IsKnown() || desired.IsNull() {
		return desired
	}
	return eachBlock(n, desired, func(_, want cty.Value) cty.Value { return propose(&n.Block, want) })
}

func eachBlock(n *schema.NestedBlock, of cty.Value, change func(key, v cty.Value) cty.Value) cty.Value {
	if of.LengthInt() == 0 {
		return of
	}
	if n.Nesting == schema.Map {
		out := map[string]cty.Value{}
		for k, v := range of.Elements() {
			out[k.AsString()] = change(k, v)
		}
		return cty.MapVal(out)
	}
	var out []cty.Value
	for k, v := range of.Elements() {
		out = append(out, change(k, v))
	}
	return cty.ListVal(out)
}

// stillUnknown lists the parts of a filled object that are unknown although the configuration has to give them.
func stillUnknown(b *schema.Block, v cty.Value) [][]string {
	var out [][]string
	for _, p := range value.Unknowns(v) {
		if !computedPart(b, p) {
			out = append(out, p)
		}
	}
	return out
}

func computedPart(b *schema.Block, path []string) bool {
	if len(path) == 0 {
		return false
	}
	if a := b.Attributes[path[0]]; a != nil {
		return a.Computed
	}
	n := b.Blocks[path[0]]
	skip := 1
	if n != nil && n.Nesting != schema.Single {
		skip = 2
	}
	return n != nil && len(path) > skip && computedPart(&n.Block, path[skip:])
}
