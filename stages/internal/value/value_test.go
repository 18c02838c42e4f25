package value

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
	"plumb/lang/schema"
)

func s(v string) cty.Value { return cty.StringVal(v) }

func TestEncodeDecode(t *testing.T) {
	secret := func(v cty.Value) cty.Value { return v.Mark(eval.Sensitive) }
	for name, tc := range map[string]struct {
		in        cty.Value
		ty        cty.Type
		json      string
		unknown   [][]string
		sensitive [][]string
	}{
		"plain": {in: cty.ObjectVal(map[string]cty.Value{"a": s("x")}), json: `{"a":"x"}`},
		"null":  {in: cty.NullVal(cty.Object(map[string]cty.Type{"a": cty.String})), json: `null`},
		"unknown attribute and element": {
			in: cty.ObjectVal(map[string]cty.Value{
				"a": cty.UnknownVal(cty.String),
				"l": cty.ListVal([]cty.Value{s("x"), cty.UnknownVal(cty.String)}),
				"m": cty.MapVal(map[string]cty.Value{"k.1": cty.UnknownVal(cty.Number)}),
			}),
			json: `{"a":null,"l":["x",null],"m":{"k.1":null}}`, unknown: [][]string{{"a"}, {"l", "1"}, {"m", "k.1"}},
		},
		"set with unknown": {
			in:   cty.ObjectVal(map[string]cty.Value{"s": cty.SetVal([]cty.Value{s("x"), cty.UnknownVal(cty.String)})}),
			json: `{"s":null}`, unknown: [][]string{{"s"}},
		},
		"sensitive": {
			in:   cty.ObjectVal(map[string]cty.Value{"l": cty.TupleVal([]cty.Value{s("x"), secret(s("y"))}), "a": secret(s("z"))}),
			json: `{"a":"z","l":["x","y"]}`, sensitive: [][]string{{"a"}, {"l", "1"}},
		},
		"sensitive and unknown": {
			in:   cty.ObjectVal(map[string]cty.Value{"a": secret(cty.UnknownVal(cty.String))}),
			json: `{"a":null}`, unknown: [][]string{{"a"}}, sensitive: [][]string{{"a"}},
		},
		"dynamic": {
			in: cty.ObjectVal(map[string]cty.Value{"a": s("x")}), ty: cty.Object(map[string]cty.Type{"a": cty.DynamicPseudoType}),
			json: `{"a":{"value":"x","type":"string"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ty := tc.ty
			if ty == cty.NilType {
				ty = tc.in.Type()
			}
			e, err := Encode(tc.in, ty)
			if err != nil {
				t.Fatal(err)
			}
			if string(e.JSON) != tc.json {
				t.Errorf("JSON %s, want %s", e.JSON, tc.json)
			}
			if d := cmp.Diff(tc.unknown, e.Unknown); d != "" {
				t.Error("unknown", d)
			}
			if d := cmp.Diff(tc.sensitive, e.Sensitive); d != "" {
				t.Error("sensitive", d)
			}
			back, err := Decode(e.JSON, ty)
			if err != nil {
				t.Fatal(err)
			}
			if got := Mark(Unknown(back, e.Unknown), e.Sensitive); name != "set with unknown" && !got.RawEquals(tc.in) {
				t.Errorf("came back as %#v", got)
			}
		})
	}
}

func TestDecodeNothing(t *testing.T) {
	v, err := Decode(nil, cty.EmptyObject)
	if err != nil || !v.IsNull() {
		t.Fatalf("%#v %v", v, err)
	}
	if _, err := Decode([]byte(`{`), cty.EmptyObject); err == nil {
		t.Fatal("half a document was read")
	}
}

func TestMarkWhereNothingIs(t *testing.T) {
	in := cty.ObjectVal(map[string]cty.Value{"l": cty.ListVal([]cty.Value{s("x")})})
	_, at := Unmark(Mark(in, [][]string{{"l", "3"}}))
	if d := cmp.Diff([][]string{{"l"}}, at); d != "" {
		t.Fatal(d)
	}
}

func TestPaths(t *testing.T) {
	ty := cty.Object(map[string]cty.Type{
		"l": cty.List(cty.Object(map[string]cty.Type{"m": cty.Map(cty.String)})),
		"d": cty.DynamicPseudoType,
	})
	want := []string{"l", "2", "m", "7"}
	p, err := ToCty(want, ty)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, PathOf(p)); d != "" {
		t.Fatal(d)
	}
	if p, err := ToCty([]string{"d", "x", "y"}, ty); err != nil || len(p) != 1 {
		t.Fatalf("%v %v", p, err)
	}
	for _, bad := range [][]string{{"nope"}, {"l", "x"}, {"l", "-1"}} {
		if _, err := ToCty(bad, ty); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func lower(v cty.Value) (cty.Value, error) {
	if strings.Contains(v.AsString(), "?") {
		return v, errors.New("no")
	}
	return s(strings.ToLower(v.AsString())), nil
}

func testBlock() *schema.Block {
	return &schema.Block{
		Attributes: map[string]*schema.Attribute{
			"name":   {Type: cty.String, Required: true},
			"mac":    {Type: cty.String, Optional: true, Canonical: lower},
			"id":     {Type: cty.String, Computed: true},
			"mtu":    {Type: cty.Number, Optional: true, Computed: true},
			"secret": {Type: cty.String, Optional: true, Sensitive: true},
			"list":   {Type: cty.List(cty.String), Optional: true},
		},
		Blocks: map[string]*schema.NestedBlock{
			"rule": {Nesting: schema.List, Block: schema.Block{Attributes: map[string]*schema.Attribute{"p": {Type: cty.Number, Required: true}}}},
		},
	}
}

func obj(b *schema.Block, set map[string]cty.Value) cty.Value {
	m := map[string]cty.Value{}
	for name, ty := range b.ImpliedType().AttributeTypes() {
		m[name] = cty.NullVal(ty)
		if n := b.Blocks[name]; n != nil && n.Nesting == schema.List {
			m[name] = cty.ListValEmpty(ty.ElementType())
		}
	}
	for k, v := range set {
		m[k] = v
	}
	return cty.ObjectVal(m)
}

func text(b []Broken) (out []string) {
	for _, x := range b {
		out = append(out, x.String())
	}
	return out
}

func rules(p ...int64) cty.Value {
	var l []cty.Value
	for _, n := range p {
		l = append(l, cty.ObjectVal(map[string]cty.Value{"p": cty.NumberIntVal(n)}))
	}
	return cty.ListVal(l)
}

func TestCheckPlanned(t *testing.T) {
	b := testBlock()
	for name, tc := range map[string]struct {
		desired, planned map[string]cty.Value
		want             []string
	}{
		"as configured": {
			desired: map[string]cty.Value{"name": s("a"), "mac": s("AA")},
			planned: map[string]cty.Value{"name": s("a"), "mac": s("aa"), "id": cty.UnknownVal(cty.String)},
		},
		"unknown may become known": {
			desired: map[string]cty.Value{"name": cty.UnknownVal(cty.String)},
			planned: map[string]cty.Value{"name": s("a")},
		},
		"changed": {
			desired: map[string]cty.Value{"name": s("a")},
			planned: map[string]cty.Value{"name": s("b")},
			want:    []string{`name: the configuration says "a" and the provider plans "b"`},
		},
		"made up": {
			desired: map[string]cty.Value{"name": s("a")},
			planned: map[string]cty.Value{"name": s("a"), "secret": s("x"), "mtu": cty.NumberIntVal(9)},
			want:    []string{`secret: the configuration says (sensitive value) and the provider plans (sensitive value)`},
		},
		"a block lost": {
			desired: map[string]cty.Value{"name": s("a"), "rule": rules(1, 2)},
			planned: map[string]cty.Value{"name": s("a"), "rule": rules(1)},
			want:    []string{"rule: the provider plans other blocks than the configuration has"},
		},
		"inside a block": {
			desired: map[string]cty.Value{"name": s("a"), "rule": rules(1)},
			planned: map[string]cty.Value{"name": s("a"), "rule": rules(3)},
			want:    []string{"rule.0.p: the configuration says 1 and the provider plans 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := text(CheckPlanned(b, obj(b, tc.desired), obj(b, tc.planned)))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Fatal(d)
			}
		})
	}
	if got := CheckPlanned(b, obj(b, nil), s("x")); len(got) == 0 {
		t.Error("a string passed for an object")
	}
	if got := CheckPlanned(b, obj(b, nil), cty.NilVal); len(got) == 0 {
		t.Error("nothing passed for an object")
	}
}

func TestCheckApplied(t *testing.T) {
	b := testBlock()
	u := cty.UnknownVal(cty.String)
	for name, tc := range map[string]struct {
		planned, applied map[string]cty.Value
		want             []string
	}{
		"came true": {
			planned: map[string]cty.Value{"name": s("a"), "mac": s("AA"), "id": u, "list": cty.ListVal([]cty.Value{s("x"), u})},
			applied: map[string]cty.Value{"name": s("a"), "mac": s("aa"), "id": s("1"), "list": cty.ListVal([]cty.Value{s("x"), s("y")})},
		},
		"still unknown": {
			planned: map[string]cty.Value{"name": s("a"), "id": u},
			applied: map[string]cty.Value{"name": s("a"), "id": u},
			want:    []string{"id: is still unknown after apply"},
		},
		"did not come true": {
			planned: map[string]cty.Value{"name": s("a"), "mac": s("AA?")},
			applied: map[string]cty.Value{"name": s("a"), "mac": s("aa?")},
			want:    []string{`mac: planned "AA?", but apply returned "aa?"`},
		},
		"another element": {
			planned: map[string]cty.Value{"name": s("a"), "list": cty.ListVal([]cty.Value{s("x"), u})},
			applied: map[string]cty.Value{"name": s("a"), "list": cty.ListVal([]cty.Value{s("z"), s("y")})},
			want:    []string{`list: planned ["x",null], but apply returned ["z","y"]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := text(CheckApplied(b, obj(b, tc.planned), obj(b, tc.applied)))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Fatal(d)
			}
		})
	}
	null := cty.NullVal(b.ImpliedType())
	if got := CheckApplied(b, null, null); got != nil {
		t.Error(got)
	}
	if got := text(CheckApplied(b, null, obj(b, nil))); len(got) != 1 || got[0] != "the plan says nothing and apply returned an object" {
		t.Error(got)
	}
}

func TestSchemaSensitive(t *testing.T) {
	b := testBlock()
	if got := SchemaSensitive(b, obj(b, map[string]cty.Value{"secret": s("x")})); cmp.Diff([][]string{{"secret"}}, got) != "" {
		t.Error(got)
	}
	if got := SchemaSensitive(b, cty.NullVal(b.ImpliedType())); got != nil {
		t.Error(got)
	}
}
