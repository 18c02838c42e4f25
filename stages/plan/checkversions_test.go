package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/stages/internal/value"
)

func TestEachSince(t *testing.T) {
	new := func(since string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Since: since}
	}
	b := &schema.Block{Attributes: map[string]*schema.Attribute{"a": new("OVS 3.2"), "b": new("OVS 2.17"), "c": new("")},
		Blocks: map[string]*schema.NestedBlock{
			"one":  {Nesting: schema.Single, Block: schema.Block{Attributes: map[string]*schema.Attribute{"d": new("OVS 3.3")}}},
			"none": {Nesting: schema.Single, Block: schema.Block{Attributes: map[string]*schema.Attribute{"d": new("OVS 3.3")}}},
			"list": {Nesting: schema.List, Block: schema.Block{Attributes: map[string]*schema.Attribute{"e": new("DPDK 21.11")}}},
		}}
	s := cty.StringVal("x")
	inner := func(n string, v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{n: v}) }
	v := cty.ObjectVal(map[string]cty.Value{"a": s, "b": cty.NullVal(cty.String), "c": s, "one": inner("d", s), "none": cty.NullVal(cty.Object(map[string]cty.Type{"d": cty.String})),
		"list": cty.ListVal([]cty.Value{inner("e", cty.NullVal(cty.String)), inner("e", s)})})
	got := map[string]string{}
	eachSince(b, v, nil, func(p cty.Path, since string) { got[pathText(value.PathOf(p))] = since })
	if d := cmp.Diff(map[string]string{"a": "OVS 3.2", "one.d": "OVS 3.3", "list[1].e": "DPDK 21.11"}, got); d != "" {
		t.Error(d)
	}
}

func TestPlainVersion(t *testing.T) {
	for in, want := range map[string]string{"3.1.0-2+deb12u1": "3.1.0", "22.11.11": "22.11.11", "": "", "3.5.0~git2": "3.5.0"} {
		if got := plainVersion(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
