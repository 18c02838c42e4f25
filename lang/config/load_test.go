package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite what the files under testdata expect")

// running is the version of Plumb in the suite.
const running = "0.3.1-dev"

// TestSuite loads the folder "root" of every archive under testdata and compares the model and the diagnostics with
// the archive's file "want". The comment of the archive says what it is about.
func TestSuite(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d archives found, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files, want, rest := Memory{}, "", archive.Files[:0:0]
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				files[f.Name] = f.Data
				rest = append(rest, f)
			}
			c, diags := LoadFrom(files, "root", running)
			got := dump(c, diags)
			if *update {
				archive.Files = append(rest, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// What a plan carries must load to the same.
			again, diags := LoadSources(c.Sources, "root", running)
			if diff := cmp.Diff(got, dump(again, diags)); diff != "" && len(c.Sources) > 0 && !diags.HasErrors() {
				t.Errorf("from its own sources (-first +second):\n%s", diff)
			}
		})
	}
}

func TestExamplesLoad(t *testing.T) {
	c, diags := Load("../../examples/quickstart", "0.1.0")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if r := c.Root.Resources["ovs_port.p"]; r == nil || r.ForEach == nil || r.Host.RootName() != "host" || c.Root.Hosts["dut"] == nil {
		t.Errorf("ovs_port.p is %+v", r)
	}
}

func TestLoadFromFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, diags := Load(dir, running); !strings.Contains(diags.Error(), "There are no *.plumb.hcl files in "+dir) {
		t.Errorf("empty folder: %v", diags)
	}
	if _, diags := Load(filepath.Join(dir, "none"), running); !strings.Contains(diags.Error(), "There is no folder ") {
		t.Errorf("no folder: %v", diags)
	}
	write("main.plumb.hcl", `module "a" { source = "./a" }`)
	write("a/main.plumb.hcl", `output "x" { value = 1 }`)
	write("a/notes.hcl", `not a configuration {{{`)
	c, diags := Load(dir, running)
	if diags.HasErrors() || c.Root.Calls["a"].Module.Outputs["x"] == nil || len(c.Sources) != 2 {
		t.Errorf("%v, sources %d", diags, len(c.Sources))
	}
	// A folder that contains itself through a link has a new name at each level.
	if err := os.Symlink(dir, filepath.Join(dir, "a", "up")); err != nil {
		t.Fatal(err)
	}
	write("a/main.plumb.hcl", `module "b" { source = "./up" }`)
	if _, diags := Load(dir, running); !strings.Contains(diags.Error(), "Modules nested too deep") {
		t.Errorf("link to itself: %v", diags)
	}
	if _, diags := Load(dir, "latest"); diags.HasErrors() && strings.Contains(diags.Error(), "Unknown Plumb version") {
		t.Errorf("the version matters without required_version: %v", diags)
	}
}

// FuzzLoad: whatever the files say, loading does not panic, and a configuration without errors has every field that
// lang/eval relies on.
func FuzzLoad(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasPrefix(file.Name, "root/") {
				f.Add(file.Data, strings.HasSuffix(file.Name, ".json"))
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, json bool) {
		name := "root/main.plumb.hcl"
		if json {
			name = "root/main.plumb.json"
		}
		c, diags := LoadFrom(Memory{name: src}, "root", running)
		_ = fmt.Sprint(diags)
		if !diags.HasErrors() {
			_ = dump(c, diags)
		}
	})
}

func printDiags(diags hcl.Diagnostics) string {
	var b strings.Builder
	for _, d := range diags {
		severity := "error"
		if d.Severity == hcl.DiagWarning {
			severity = "warning"
		}
		at := "-"
		if d.Subject != nil {
			at = d.Subject.String()
		}
		fmt.Fprintf(&b, "%s %s: %s\n    %s\n", severity, at, d.Summary, strings.ReplaceAll(d.Detail, "\n", "\n    "))
	}
	return b.String()
}
