package diagfmt

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const source = `# A testbed.
resource "ovs_port" "p0" {
	name   = var.name
  rxqs   = var.rxqs + var.secret + each.value.n
  ofport = ovs_bridge.br0.ports["ü"].number
  options = {
    a = 1
    b = var.sizes
  }
}

locals {
  long = var.long
}
`

// at is the range of the nth occurrence (from 0) of text in source.
func at(t *testing.T, text string) *hcl.Range {
	t.Helper()
	i := strings.Index(source, text)
	if i < 0 {
		t.Fatalf("%q is not in the source", text)
	}
	pos := func(n int) hcl.Pos {
		line := 1 + strings.Count(source[:n], "\n")
		begin := strings.LastIndexByte(source[:n], '\n') + 1
		return hcl.Pos{Line: line, Column: 1 + len([]rune(source[begin:n])), Byte: n}
	}
	return &hcl.Range{Filename: "/lab/main.plumb.hcl", Start: pos(i), End: pos(i + len(text))}
}

type address string

func (a address) DiagnosticAddress() string { return string(a) }

func TestGolden(t *testing.T) {
	file, diags := hclsyntax.ParseConfig([]byte(source), "/lab/main.plumb.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	attrs := file.Body.(*hclsyntax.Body).Blocks[0].Body.Attributes
	long := file.Body.(*hclsyntax.Body).Blocks[1].Body.Attributes["long"].Expr
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{
		"var": cty.ObjectVal(map[string]cty.Value{
			"name":   cty.UnknownVal(cty.String),
			"rxqs":   cty.NumberIntVal(3),
			"secret": cty.StringVal("hunter2").Mark("sensitive"),
			"sizes":  cty.ListVal([]cty.Value{cty.NumberIntVal(64), cty.NumberIntVal(1518)}),
			"long":   cty.StringVal(strings.Repeat("é\n", 50)),
		}),
		"each": cty.ObjectVal(map[string]cty.Value{"value": cty.ObjectVal(map[string]cty.Value{"m": cty.StringVal("x")})}),
		"ovs_bridge": cty.ObjectVal(map[string]cty.Value{"br0": cty.ObjectVal(map[string]cty.Value{
			"ports": cty.MapVal(map[string]cty.Value{"ü": cty.ObjectVal(map[string]cty.Value{"number": cty.DynamicVal})}),
		})}),
	}}
	detail := "The number of receive queues must be a number, and this sentence is long enough to be wrapped at the width that is set for it.\n\n" +
		"Run this to see what the port has now, it stays on one line however long it is:\n  ovs-appctl dpif-netdev/pmd-rxq-show --and --many --more --arguments --than --fit --into --the --width\nDone."
	for name, d := range map[string]*hcl.Diagnostic{
		"values": {
			Severity: hcl.DiagError, Summary: "Invalid operand", Detail: detail, Subject: at(t, "var.rxqs + var.secret + each.value.n"),
			Expression: attrs["rxqs"].Expr, EvalContext: ctx, Extra: address(`ovs_port.p0["a"]`),
		},
		"tab":       {Severity: hcl.DiagWarning, Summary: "Odd name", Detail: "It is odd.", Subject: at(t, "var.name"), Expression: attrs["name"].Expr, EvalContext: ctx},
		"index":     {Severity: hcl.DiagError, Summary: "Bad port", Subject: at(t, `["ü"]`), Expression: attrs["ofport"].Expr, EvalContext: ctx},
		"lines":     {Severity: hcl.DiagError, Summary: "Bad options", Detail: "No.", Subject: at(t, "{\n    a = 1\n    b = var.sizes\n  }"), Expression: attrs["options"].Expr, EvalContext: ctx},
		"context":   {Severity: hcl.DiagError, Summary: "Bad option", Detail: "No.", Subject: at(t, "a = 1"), Context: at(t, "{\n    a = 1\n    b = var.sizes\n  }")},
		"long":      {Severity: hcl.DiagError, Summary: "Too long", Subject: at(t, "var.long"), Expression: long, EvalContext: ctx},
		"nosource":  {Severity: hcl.DiagError, Summary: "Elsewhere", Detail: "Text.", Subject: &hcl.Range{Filename: "/other/far/away/x.plumb.hcl", Start: hcl.Pos{Line: 7, Column: 1}, End: hcl.Pos{Line: 7, Column: 2}}},
		"norange":   {Severity: hcl.DiagError, Summary: "No hosts", Detail: "There are none.\n"},
		"empty":     {Severity: hcl.DiagError, Summary: "Nothing here", Detail: "Empty range.", Subject: &hcl.Range{Filename: "/lab/main.plumb.hcl", Start: at(t, "locals").Start, End: at(t, "locals").Start}},
		"end":       {Severity: hcl.DiagError, Summary: "End of file", Subject: &hcl.Range{Filename: "/lab/main.plumb.hcl", Start: hcl.Pos{Line: 15, Column: 1, Byte: len(source)}, End: hcl.Pos{Line: 15, Column: 1, Byte: len(source)}}},
		"many":      {Severity: hcl.DiagError, Summary: "Whole file", Subject: &hcl.Range{Filename: "/lab/main.plumb.hcl", Start: hcl.InitialPos, End: hcl.Pos{Line: 15, Column: 1, Byte: len(source)}}},
		"wrongfile": {Severity: hcl.DiagError, Summary: "Range past the end", Subject: &hcl.Range{Filename: "/lab/main.plumb.hcl", Start: hcl.Pos{Line: 99, Column: 1, Byte: 9999}, End: hcl.Pos{Line: 99, Column: 2, Byte: 10000}}},
	} {
		t.Run(name, func(t *testing.T) {
			sources := map[string][]byte{"/lab/main.plumb.hcl": []byte(source)}
			js, err := json.MarshalIndent(All(hcl.Diagnostics{d}, sources, "/lab"), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			plain := Text(hcl.Diagnostics{d}, sources, "/lab", Style{Width: 70})
			color := Text(hcl.Diagnostics{d}, sources, "/lab", Style{Width: 70, Color: true})
			got := plain + "--- colour\n" + strings.ReplaceAll(color, "\x1b", "^") + "--- json\n" + string(js) + "\n"
			if strings.Contains(got, "hunter2") {
				t.Error("a sensitive value is shown")
			}
			golden(t, filepath.Join("testdata", name+".txt"), got)
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestStatement(t *testing.T) {
	number := cty.NumberIntVal(1)
	for _, tt := range []struct {
		v    cty.Value
		want string
	}{
		{cty.StringVal("a\"b"), `is "a\"b"`},
		{cty.StringVal(strings.Repeat("x", 80)), `is "` + strings.Repeat("x", 59) + `..." (80 bytes)`},
		{cty.True, "is true"},
		{cty.MustParseNumberVal("1.50"), "is 1.5"},
		{cty.NullVal(cty.String), "is null"},
		{cty.UnknownVal(cty.Number), "is a number, known only after apply"},
		{cty.DynamicVal, "will be known only after apply"},
		{cty.EmptyTupleVal, "is []"},
		{cty.EmptyObjectVal, "is {}"},
		{cty.MapVal(map[string]cty.Value{"a": number}), `is { "a" = 1 }`},
		{cty.ListVal([]cty.Value{cty.UnknownVal(cty.Number), number}), "is a list of number with 2 elements"},
		{cty.ObjectVal(map[string]cty.Value{"a": number.Mark("sensitive")}), "is an object with 1 attribute"},
		{cty.TupleVal([]cty.Value{cty.StringVal(strings.Repeat("x", 80))}), "is a tuple with 1 element"},
		{number.Mark("sensitive"), "has a sensitive value"},
		{cty.SetVal([]cty.Value{cty.UnknownVal(cty.String), cty.StringVal("a")}), "is a set of string"},
	} {
		if got := statement(tt.v); got != tt.want {
			t.Errorf("%#v %s, want %s", tt.v, got, tt.want)
		}
	}
}

// Whatever the source and the range, rendering does not panic and marks something inside the code.
func FuzzNew(f *testing.F) {
	f.Add([]byte(source), 3, 40, 44)
	f.Add([]byte("a\r\nb\xff = 1\r\n"), 2, 3, 5)
	f.Add([]byte(""), 1, 0, 0)
	f.Fuzz(func(t *testing.T, src []byte, line, start, end int) {
		d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "s", Subject: &hcl.Range{
			Filename: "x.plumb.hcl", Start: hcl.Pos{Line: line, Column: 1, Byte: start}, End: hcl.Pos{Line: line, Column: 2, Byte: end},
		}}
		out := New(d, map[string][]byte{"x.plumb.hcl": src}, "")
		if s := out.Snippet; s != nil && (s.Start < 0 || s.End < s.Start || s.End > len(s.Code)) {
			t.Errorf("marks %d to %d of %q", s.Start, s.End, s.Code)
		}
		out.Text(Style{Color: true, Width: 1})
		out.Text(Style{Width: 20})
	})
}
