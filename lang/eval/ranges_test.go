package eval

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

func TestAttributeRange(t *testing.T) {
	const src = "cores = { 1 = 10, \"2\" = 20, x = 30 }\nsizes = [64, 128]\n"
	f, diags := hclsyntax.ParseConfig([]byte(src), "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	b := &schema.Block{Attributes: map[string]*schema.Attribute{"cores": {}, "sizes": {}, "missing": {}}}
	key := func(k cty.Value) cty.PathStep { return cty.IndexStep{Key: k} }
	for _, c := range []struct {
		attr string
		step cty.PathStep
		want string
	}{
		{"cores", nil, `{ 1 = 10, "2" = 20, x = 30 }`},
		{"cores", key(cty.StringVal("1")), "10"},
		{"cores", key(cty.StringVal("2")), "20"},
		{"cores", key(cty.StringVal("x")), "30"},
		{"cores", key(cty.StringVal("y")), `{ 1 = 10, "2" = 20, x = 30 }`},
		{"sizes", key(cty.NumberIntVal(1)), "128"},
		{"sizes", key(cty.NumberIntVal(9)), "[64, 128]"},
		{"missing", nil, ""},
	} {
		path := cty.Path{cty.GetAttrStep{Name: c.attr}}
		if c.step != nil {
			path = append(path, c.step)
		}
		if got := string(AttributeRange(f.Body, b, path).SliceBytes([]byte(src))); got != c.want {
			t.Errorf("%s: %q, want %q", pathString(path), got, c.want)
		}
	}
}
