package format

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func TestSource(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{
			"alignment and indentation",
			"resource \"ovs_port\" \"p0\" {\nhost=host.dut\n   bridge =   ovs_bridge.br0.name # its bridge\n\n   options={n_rxq=2,mtu=1500}\n}\n",
			"resource \"ovs_port\" \"p0\" {\n  host   = host.dut\n  bridge = ovs_bridge.br0.name # its bridge\n\n  options = { n_rxq = 2, mtu = 1500 }\n}\n",
		},
		{"formatted already", "host \"dut\" {}\n", "host \"dut\" {}\n"},
		{"empty", "", ""},
		{"comment only", "# nothing\n", "# nothing\n"},
		{"heredoc stays", "locals {\n a = <<-EOT\n      text\n    EOT\n}\n", "locals {\n  a = <<-EOT\n      text\n    EOT\n}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, diags := Source([]byte(tt.in), "main.plumb.hcl")
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, _ := Source(got, "main.plumb.hcl")
			if !bytes.Equal(again, got) {
				t.Errorf("formatting twice gives %q", again)
			}
		})
	}
}

func TestLeftAlone(t *testing.T) {
	json := []byte(`{"host":   {"dut": {}}}`)
	if got, diags := Source(json, "main.plumb.json"); diags.HasErrors() || !bytes.Equal(got, json) {
		t.Errorf("JSON became %q, %v", got, diags)
	}
	broken := []byte("host \"dut\" {\n   a=1\n")
	got, diags := Source(broken, "main.plumb.hcl")
	if !diags.HasErrors() || !bytes.Equal(got, broken) {
		t.Errorf("a file with a syntax error became %q, %v", got, diags)
	}
	if !strings.HasPrefix(diags.Error(), "main.plumb.hcl:") {
		t.Errorf("the error does not name the file: %v", diags)
	}
}

// Formatting keeps every token but blanks, and a second time changes nothing.
func FuzzSource(f *testing.F) {
	for _, s := range []string{"a=1\n", "resource \"a\" \"b\" {\nx={a=1,b=[1,\n2]}\n}\n", "a = <<EOT\n ${ b }\nEOT\n", "a = \"${b}\" // c\n", "a = [\n1, # x\n]\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		out, diags := Source(src, "x.plumb.hcl")
		if diags.HasErrors() {
			if !bytes.Equal(out, src) {
				t.Errorf("%q has errors and was changed to %q", src, out)
			}
			return
		}
		if before, after := tokens(src), tokens(out); !cmp.Equal(before, after) {
			t.Errorf("%q became %q: %s", src, out, cmp.Diff(before, after))
		}
		if again, diags := Source(out, "x.plumb.hcl"); diags.HasErrors() || !bytes.Equal(again, out) {
			t.Errorf("%q became %q, and then %q, %v", src, out, again, diags)
		}
	})
}

func tokens(src []byte) []string {
	all, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
	var out []string
	for _, t := range all {
		if t.Type != hclsyntax.TokenComment {
			out = append(out, string(t.Bytes))
			continue
		}
		out = append(out, strings.TrimRight(string(t.Bytes), " \t\r\n"))
	}
	return out
}
