package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/stages/plan"
)

func TestFill(t *testing.T) {
	b := &schema.Block{
		Attributes: map[string]*schema.Attribute{
			"a": {Type: cty.String, Optional: true}, "b": {Type: cty.String, Optional: true, Computed: true},
			"c": {Type: cty.String, Computed: true}, "l": {Type: cty.List(cty.String), Optional: true},
		},
		Blocks: map[string]*schema.NestedBlock{
			"one":  {Nesting: schema.Single, Block: schema.Block{Attributes: map[string]*schema.Attribute{"x": {Type: cty.String, Optional: true}, "y": {Type: cty.String, Computed: true}}}},
			"many": {Nesting: schema.Map, Block: schema.Block{Attributes: map[string]*schema.Attribute{"x": {Type: cty.String, Optional: true}, "y": {Type: cty.String, Computed: true}}}},
		},
	}
	str, unk, null := cty.StringVal, cty.UnknownVal(cty.String), cty.NullVal(cty.String)
	inner := func(x, y cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{"x": x, "y": y}) }
	innerTy := inner(null, null).Type()
	object := func(a, bb, c, l, one, many cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"a": a, "b": bb, "c": c, "l": l, "one": one, "many": many})
	}
	list := func(v ...cty.Value) cty.Value { return cty.ListVal(v) }
	none := cty.MapValEmpty(innerTy)
	for name, c := range map[string]struct {
		planned, desired, want cty.Value
		config                 []plan.Path
		still                  [][]string
	}{
		"computed stays": {
			planned: object(str("1"), unk, unk, list(str("x")), cty.NullVal(innerTy), none),
			desired: object(str("1"), null, null, list(str("x")), cty.NullVal(innerTy), none),
			want:    object(str("1"), unk, unk, list(str("x")), cty.NullVal(innerTy), none),
		},
		"filled, spelling of what was known kept": {
			planned: object(str("0x1"), unk, unk, list(str("x"), unk), inner(unk, unk), cty.MapVal(map[string]cty.Value{"k": inner(str("1"), unk)})),
			desired: object(str("1"), str("2"), null, list(str("x"), str("y")), inner(str("3"), null), cty.MapVal(map[string]cty.Value{"k": inner(str("1"), null)})),
			want:    object(str("0x1"), str("2"), unk, list(str("x"), str("y")), inner(str("3"), unk), cty.MapVal(map[string]cty.Value{"k": inner(str("1"), unk)})),
		},
		"turned out null, and blocks that were unknown": {
			planned: object(unk, unk, unk, cty.UnknownVal(cty.List(cty.String)), cty.UnknownVal(innerTy), cty.UnknownVal(cty.Map(innerTy))),
			desired: object(null, null, null, cty.NullVal(cty.List(cty.String)), inner(null, null), cty.MapVal(map[string]cty.Value{"k": inner(str("1"), null)})),
			want:    object(null, unk, unk, cty.NullVal(cty.List(cty.String)), inner(null, unk), cty.MapVal(map[string]cty.Value{"k": inner(str("1"), unk)})),
		},
		"still unknown": {
			planned: object(unk, unk, unk, list(unk), cty.NullVal(innerTy), none),
			desired: object(unk, null, null, list(str("x"), unk), cty.NullVal(innerTy), none),
			want:    object(unk, unk, unk, list(str("x"), unk), cty.NullVal(innerTy), none),
			still:   [][]string{{"a"}, {"l", "1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := fill(b, c.planned, c.desired)
			if !got.RawEquals(c.want) {
				t.Errorf("got  %#v\nwant %#v", got, c.want)
			}
			if d := cmp.Diff(c.still, stillUnknown(b, got)); d != "" {
				t.Error(d)
			}
		})
	}
	for path, want := range map[string]bool{"a": true, "b": true, "c": false, "l.0": true, "one": true, "one.x": true, "one.y": false, "many.k.y": false, "many.k": true} {
		if got := dependsOnConfig(b, []plan.Path{strings.Split(path, ".")}); got != want {
			t.Errorf("%s depends on the configuration: %v, want %v", path, got, want)
		}
	}
}
