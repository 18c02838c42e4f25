package diagfmt

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func TestNearby(t *testing.T) {
	for _, c := range []struct{ text, dir, want string }{
		{"set at /lab/main.plumb.hcl:3 already", "/lab", "set at main.plumb.hcl:3 already"},
		{"/lab/a and /lab/b", "/lab", "a and b"},
		{"in /other/lab/main.plumb.hcl", "/lab", "in /other/lab/main.plumb.hcl"},
		{"in /lab2/main.plumb.hcl", "/lab", "in /lab2/main.plumb.hcl"},
		{"in /lab", "/lab", "in /lab"},
		{"in /run/x", "/", "in /run/x"},
		{"in /run/x", "", "in /run/x"},
	} {
		if got := nearby(c.text, c.dir); got != c.want {
			t.Errorf("nearby(%q, %q) = %q, want %q", c.text, c.dir, got, c.want)
		}
	}
}

// What is missing in a block is told at the block's header.
func TestBlockHeader(t *testing.T) {
	const src = "resource \"a\" \"ü\" {\n  dpdk {\n  }\n}\n"
	f, diags := hclsyntax.ParseConfig([]byte(src), "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	outer := f.Body.(*hclsyntax.Body).Blocks[0]
	for _, c := range []struct {
		body hcl.Body
		want string
	}{{outer.Body, `resource "a" "ü"`}, {outer.Body.Blocks[0].Body, "dpdk"}} {
		got := blockHeader([]byte(src), c.body.MissingItemRange())
		if text := string(got.SliceBytes([]byte(src))); text != c.want {
			t.Errorf("header %q, want %q", text, c.want)
		}
		if n := got.End.Column - got.Start.Column; n != len([]rune(c.want)) {
			t.Errorf("%q has %d columns, want %d", c.want, n, len([]rune(c.want)))
		}
	}
	whole := hcl.Range{Filename: "x.hcl", Start: hcl.InitialPos, End: hcl.Pos{Line: 1, Column: 2, Byte: 1}}
	if got := blockHeader([]byte(src), whole); got != whole {
		t.Errorf("a range that is not empty became %v", got)
	}
}
