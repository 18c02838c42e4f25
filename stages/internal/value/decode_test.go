package value

import (
	"encoding/json"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// FuzzDecode holds the reading in one go against ctyjson: what it reads, ctyjson reads as the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`null`, `{}`, `{"s":"x","n":1.50,"b":true,"l":["a",null],"set":["b","a","b"],"m":{"k":"v"},"t":[1,"x"],"o":{"s":null}}`,
		`{"d":{"value":"x","type":"string"}}`, `{"d":{"type":["object",{"a":"number"}],"value":{"a":1}}}`, `{"d":{"value":null,"type":"dynamic"}}`,
		`{"d":{"value":[],"type":["list","string"]}}`, `{"d":{"value":1,"type":"string"}}`, `{"d":"x"}`, `{"d":{"value":1}}`, `{"dl":[{"value":1,"type":"number"},{"value":"x","type":"string"}]}`,
		`{"s":1}`, `{"n":"1"}`, `{"b":"true"}`, `{"x":1}`, `{"t":[1]}`, `{"n":1e400}`, `{"n":1e999999999}`, `{"s":"\ud800"}`, `{"s":"e\u0301"}`, `[1`, `{"m":{"e\u0301":"1","\u00e9":"2"}}`, `{"s":"a"} x`,
	} {
		f.Add([]byte(s))
	}
	ty := cty.Object(map[string]cty.Type{
		"s": cty.String, "n": cty.Number, "b": cty.Bool, "l": cty.List(cty.String), "set": cty.Set(cty.String), "m": cty.Map(cty.String), "d": cty.DynamicPseudoType,
		"t": cty.Tuple([]cty.Type{cty.Number, cty.String}), "o": cty.Object(map[string]cty.Type{"s": cty.String}), "dl": cty.List(cty.DynamicPseudoType),
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := decodeFast(json.RawMessage(raw), ty)
		if !ok {
			return
		}
		want, err := ctyjson.Unmarshal(raw, ty)
		if err != nil {
			t.Fatalf("%s: ctyjson: %v; read as %#v", raw, err, got)
		}
		if !got.RawEquals(want) || !got.Type().Equals(want.Type()) {
			t.Fatalf("%s:\n%#v\n%#v", raw, got, want)
		}
	})
}

func TestDecodeFastReadsWhatEncodeWrites(t *testing.T) {
	ty := cty.Object(map[string]cty.Type{"d": cty.DynamicPseudoType, "l": cty.List(cty.Object(map[string]cty.Type{"n": cty.Number, "b": cty.Bool}))})
	v := cty.ObjectVal(map[string]cty.Value{
		"d": cty.ObjectVal(map[string]cty.Value{"a": cty.NumberIntVal(1), "t": cty.TupleVal([]cty.Value{s("x"), cty.True})}),
		"l": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"n": cty.NumberFloatVal(0.5), "b": cty.NullVal(cty.Bool)})}),
	})
	e, err := Encode(v, ty)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := decodeFast(e.JSON, ty); !ok || !got.RawEquals(v) {
		t.Errorf("%s was read as %#v", e.JSON, got)
	}
}
