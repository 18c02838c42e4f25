package attr

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestNullAndUnknownAreTheDefault(t *testing.T) {
	set := cty.ObjectVal(map[string]cty.Value{"s": cty.StringVal("x"), "n": cty.NumberIntVal(7), "b": cty.False})
	null := cty.ObjectVal(map[string]cty.Value{"s": cty.NullVal(cty.String), "n": cty.NullVal(cty.Number), "b": cty.NullVal(cty.Bool)})
	unknown := cty.ObjectVal(map[string]cty.Value{"s": cty.UnknownVal(cty.String), "n": cty.UnknownVal(cty.Number), "b": cty.UnknownVal(cty.Bool)})
	if Text(set, "s") != "x" || Number(set, "n", 3) != 7 || Truth(set, "b", true) {
		t.Error("what is set is not read")
	}
	for name, v := range map[string]cty.Value{"null": null, "unknown": unknown} {
		if Text(v, "s") != "" || Number(v, "n", 3) != 3 || !Truth(v, "b", true) || Truth(v, "b", false) {
			t.Errorf("%s is not the default", name)
		}
	}
}
