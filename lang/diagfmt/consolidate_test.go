package diagfmt

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

func TestConsolidate(t *testing.T) {
	here, there := &hcl.Range{Filename: "a", Start: hcl.Pos{Line: 1}}, &hcl.Range{Filename: "a", Start: hcl.Pos{Line: 2}}
	warn := func(summary, detail string, at *hcl.Range) *hcl.Diagnostic {
		return &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: summary, Detail: detail, Subject: at}
	}
	bad := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "half", Detail: "x", Subject: here}
	in := hcl.Diagnostics{warn("half", "one", here), bad, warn("half", "two", here), warn("half", "three", there), warn("half", "four", here), bad, warn("other", "five", here)}
	out := Consolidate(in)
	var got []string
	for _, d := range out {
		got = append(got, strings.ReplaceAll(d.Detail, "\n", " "))
	}
	want := "one  (and 2 more like this)|x|three|x|five"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got %s\nwant %s", s, want)
	}
	if in[0].Detail != "one" {
		t.Error("the given diagnostic was changed")
	}
}
