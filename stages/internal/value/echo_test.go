package value

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

func TestEchoes(t *testing.T) {
	str, num := cty.StringVal, cty.NumberIntVal
	v := cty.ObjectVal(map[string]cty.Value{
		"password": str("hunter2"), "short": str("ab"), "pin": num(4711), "on": cty.True, "later": cty.UnknownVal(cty.String),
		"url": str("ftp://me:hunter2@x"), "word": str("cab"), "same": str("ab"), "port": num(4711), "off": cty.True, "none": cty.NullVal(cty.String),
		"list": cty.ListVal([]cty.Value{str("x"), str("hunter2")}),
	})
	got := Echoes(v, [][]string{{"password"}, {"short"}, {"pin"}, {"on"}, {"later"}, {"gone"}}, v)
	want := [][]string{{"list", "1"}, {"password"}, {"pin"}, {"port"}, {"same"}, {"short"}, {"url"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Echoes(v, nil, v); got != nil {
		t.Errorf("without secrets: %v", got)
	}
	if got := Echoes(cty.NullVal(cty.EmptyObject), [][]string{{"x"}}, cty.NullVal(cty.EmptyObject)); got != nil {
		t.Errorf("null: %v", got)
	}
}
