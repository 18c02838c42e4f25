package main

import (
	"bytes"
	"os"
	"testing"

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
