package ovs

import (
	"context"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// desired is a configuration as the engine hands it over: what is not given is null or its default.
func desired(b *schema.Block, given map[string]cty.Value) cty.Value {
	attrs := map[string]cty.Value{}
	for name, a := range b.Attributes {
		attrs[name] = cty.NullVal(a.Type)
		if a.Default != cty.NilVal {
			attrs[name] = a.Default
		}
		if v, ok := given[name]; ok {
			attrs[name] = v
		}
	}
	for name, n := range b.Blocks {
		typ := n.ImpliedType()
		if n.Nesting == schema.List {
			attrs[name] = cty.ListValEmpty(typ)
		} else {
			attrs[name] = cty.NullVal(typ)
		}
		if v, ok := given[name]; ok {
			attrs[name] = v
		}
	}
	return cty.ObjectVal(attrs)
}

// proposed is what the engine would plan: computed attributes keep what they have and are unknown at first.
func proposed(b *schema.Block, prior, want cty.Value) cty.Value {
	attrs := want.AsValueMap()
	for name, a := range b.Attributes {
		if !a.Computed || !attrs[name].IsNull() {
			continue
		}
		attrs[name] = cty.UnknownVal(a.Type)
		if !prior.IsNull() && !a.Volatile {
			attrs[name] = prior.GetAttr(name)
		}
	}
	return cty.ObjectVal(attrs)
}

func str(s string) cty.Value    { return cty.StringVal(s) }
func num(n int64) cty.Value     { return cty.NumberIntVal(n) }
func nums(n ...int64) cty.Value { return intList(n) }

func strs(s ...string) cty.Value { return textList(s) }

type attrs = map[string]cty.Value

// problemsOf plans without a host.
func problemsOf(t *testing.T, p interface {
	providers.Resource
	providers.Planner
}, given attrs) []providers.Problem {
	t.Helper()
	b := &p.Schema().Block
	null := cty.NullVal(b.ImpliedType())
	want := desired(b, given)
	res, err := p.Plan(context.Background(), providers.PlanRequest{Prior: null, Desired: want, Proposed: proposed(b, null, want)})
	if err != nil {
		t.Fatal(err)
	}
	return res.Problems
}
