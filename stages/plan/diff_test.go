package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

func diffBlockSchema() *schema.Block {
	return &schema.Block{
		Attributes: attrs{
			"s":        {Type: cty.String, Optional: true, Cost: schema.PortReset},
			"mac":      {Type: cty.String, Optional: true, Canonical: lowercase, Cost: schema.Replace},
			"m":        {Type: cty.Map(cty.String), Optional: true, Cost: schema.ServiceRestart},
			"l":        {Type: cty.List(cty.String), Optional: true},
			"computed": {Type: cty.String, Optional: true, Computed: true, Cost: schema.Replace},
		},
		Blocks: map[string]*schema.NestedBlock{
			"single": {Nesting: schema.Single, Block: schema.Block{Attributes: attrs{"a": {Type: cty.String, Optional: true, Cost: schema.GuestRestart}, "b": {Type: cty.String, Optional: true}}}},
			"map":    {Nesting: schema.Map, Block: schema.Block{Attributes: attrs{"a": {Type: cty.String, Optional: true, Cost: schema.PortReset}}}},
		},
	}
}

func diffObject(set map[string]cty.Value) cty.Value {
	b := diffBlockSchema()
	m := map[string]cty.Value{}
	for name, ty := range b.ImpliedType().AttributeTypes() {
		m[name] = cty.NullVal(ty)
	}
	m["map"] = cty.MapValEmpty(b.Blocks["map"].ImpliedType())
	for k, v := range set {
		m[k] = v
	}
	return cty.ObjectVal(m)
}

func TestDiff(t *testing.T) {
	str := cty.StringVal
	strs := func(kv ...string) cty.Value {
		m := map[string]cty.Value{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = str(kv[i+1])
		}
		return cty.MapVal(m)
	}
	single := func(a, b cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{"a": a, "b": b}) }
	null := cty.NullVal(cty.String)
	labelled := func(kv ...string) cty.Value {
		m := map[string]cty.Value{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = cty.ObjectVal(map[string]cty.Value{"a": str(kv[i+1])})
		}
		return cty.MapVal(m)
	}
	type vals = map[string]cty.Value
	for _, tc := range []struct {
		name                   string
		before, after, desired vals
		want                   []AttrChange
	}{
		{name: "nothing", before: vals{"s": str("x")}, after: vals{"s": str("x")}},
		{name: "attribute", before: vals{"s": str("x")}, after: vals{"s": str("y")}, want: []AttrChange{{Path{"s"}, schema.PortReset}}},
		{name: "another spelling", before: vals{"mac": str("AA")}, after: vals{"mac": str("aa")}},
		{name: "unknown", before: vals{"mac": str("AA")}, after: vals{"mac": cty.UnknownVal(cty.String)}, want: []AttrChange{{Path{"mac"}, schema.Replace}}},
		{name: "map by key", before: vals{"m": strs("a", "1", "b", "1", "c", "1")}, after: vals{"m": strs("a", "1", "b", "2", "d", "1")},
			want: []AttrChange{{Path{"m", "b"}, schema.ServiceRestart}, {Path{"m", "c"}, schema.ServiceRestart}, {Path{"m", "d"}, schema.ServiceRestart}}},
		{name: "map from null", after: vals{"m": strs("a", "1")}, want: []AttrChange{{Path{"m"}, schema.ServiceRestart}}},
		{name: "list as one", before: vals{"l": cty.ListVal([]cty.Value{str("a")})}, after: vals{"l": cty.ListVal([]cty.Value{str("a"), str("b")})}, want: []AttrChange{{Path{"l"}, schema.Live}}},
		{name: "computed and open", before: vals{"computed": str("x")}, after: vals{"computed": cty.UnknownVal(cty.String)}, want: []AttrChange{{Path{"computed"}, schema.Live}}},
		{name: "computed and configured", before: vals{"computed": str("x")}, after: vals{"computed": str("y")}, desired: vals{"computed": str("y")}, want: []AttrChange{{Path{"computed"}, schema.Replace}}},
		{name: "block comes", after: vals{"single": single(str("x"), null)}, want: []AttrChange{{Path{"single"}, schema.GuestRestart}}},
		{name: "block with only a live argument goes", before: vals{"single": single(null, str("x"))}, want: []AttrChange{{Path{"single"}, schema.Live}}},
		{name: "inside a block", before: vals{"single": single(str("x"), null)}, after: vals{"single": single(str("y"), null)}, want: []AttrChange{{Path{"single", "a"}, schema.GuestRestart}}},
		{name: "labelled blocks", before: vals{"map": labelled("x", "1", "y", "1")}, after: vals{"map": labelled("x", "2", "z", "1")},
			want: []AttrChange{{Path{"map", "x", "a"}, schema.PortReset}, {Path{"map", "y"}, schema.PortReset}, {Path{"map", "z"}, schema.PortReset}}},
		{name: "unknown blocks", before: vals{"map": labelled("x", "1")}, after: vals{"map": cty.UnknownVal(cty.Map(diffBlockSchema().Blocks["map"].ImpliedType()))}, want: []AttrChange{{Path{"map"}, schema.PortReset}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := diff(diffBlockSchema(), diffObject(tc.before), diffObject(tc.after), diffObject(tc.desired))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Fatal(d)
			}
		})
	}
	object := diffObject(nil)
	if got := diff(diffBlockSchema(), cty.NullVal(object.Type()), object, object); got != nil {
		t.Error(got)
	}
}

func TestPathText(t *testing.T) {
	for want, p := range map[string]Path{`a`: {"a"}, `a.b[0].c`: {"a", "b", "0", "c"}, `extra["dpdk-init"]`: {"extra", "dpdk-init"}} {
		if got := pathText(p); got != want {
			t.Errorf("%v: %s, want %s", p, got, want)
		}
	}
}

func TestRanges(t *testing.T) {
	for want, n := range map[string][]int{"": nil, "3": {3}, "0-2,5,7-8": {7, 0, 1, 8, 2, 5, 5}} {
		if got := ranges(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}
