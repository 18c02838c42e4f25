package main

import (
	"bytes"
	"os"
	"testing"

	"plumb/lang/eval"
	"plumb/lang/funcs"
	"plumb/providers/builtin"
	"plumb/stages/session"
	"plumb/stages/view"
)

// TestReferenceIsCurrent holds docs/reference.md against the schemas; `make docs` writes it.
func TestReferenceIsCurrent(t *testing.T) {
	var want bytes.Buffer
	if err := view.SchemaMarkdown(&want, session.Catalog(*builtin.Set())); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want.Bytes()) {
		t.Error("docs/reference.md is not what the schemas say: run make docs")
	}
}

// TestLanguagePageNamesFunctions holds docs/language.md against the function table.
func TestLanguagePageNamesFunctions(t *testing.T) {
	page, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range funcs.Table(".", eval.Sensitive) {
		if row := "| `" + name + "` | " + f.Description() + " |\n"; !bytes.Contains(page, []byte(row)) {
			t.Errorf("docs/language.md lacks the row %s", row)
		}
	}
}
