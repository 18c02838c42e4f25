package plumb

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Case{
		Type:   NewData(),
		Config: map[string]cty.Value{"input": cty.ListVal([]cty.Value{cty.StringVal("a")}), "triggers_replace": cty.NumberIntVal(1)},
		Update: map[string]cty.Value{"input": cty.StringVal("b"), "triggers_replace": cty.NumberIntVal(1)},
	})
}

func TestPlanKnowsAsMuchAsInput(t *testing.T) {
	obj := func(in cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"input": in, "output": cty.DynamicVal, "triggers_replace": cty.NullVal(cty.DynamicPseudoType)})
	}
	for name, in := range map[string]cty.Value{
		"unknown":      cty.UnknownVal(cty.String),
		"part unknown": cty.ObjectVal(map[string]cty.Value{"a": cty.UnknownVal(cty.Number), "b": cty.True}),
		"null":         cty.NullVal(cty.String),
		"known":        cty.StringVal("x"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewData().Plan(t.Context(), providers.PlanRequest{Proposed: obj(in)})
			if err != nil || !got.Planned.GetAttr("output").RawEquals(in) {
				t.Fatalf("output is %#v, %v; want %#v", got.Planned.GetAttr("output"), err, in)
			}
		})
	}
}
