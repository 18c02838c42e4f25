package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestExamples takes every example (but those of mistakes) through a whole round on the fake host: validate, apply, an empty plan, destroy, and
// the host is as it was. The modules that they use are tried with them.
func TestExamples(t *testing.T) {
	all, err := filepath.Glob("../../examples/*/main.plumb.hcl")
	if err != nil || len(all) < 2 {
		t.Fatalf("examples: %v, %v", all, err)
	}
	for _, file := range all {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, dir := range []string{"modules", filepath.Join("examples", name)} {
				if err := os.CopyFS(filepath.Join(root, dir), os.DirFS(filepath.Join("../..", dir))); err != nil {
					t.Fatal(err)
				}
			}
			dir, host := filepath.Join(root, "examples", name), filepath.Join(root, "host")
			plumb := func(args ...string) string {
				t.Helper()
				var out bytes.Buffer
				e := testEnv(t, dir, host)
				e.stdout, e.stderr = &out, &out
				if code := run(e, append([]string{"plumb"}, args...)); code != exitOK {
					t.Fatalf("plumb %v: exit status %d\n%s", args, code, out.String())
				}
				return out.String()
			}
			plumb("validate")
			plumb("fmt", "-check")
			before := plumb("snapshot")
			plumb("apply", "-auto-approve", "-skip-bench")
			plumb("plan", "-detailed-exitcode")
			if name == "methods" { // on a model: it needs no testbed and takes no time
				plumb("bench")
			}
			plumb("destroy", "-auto-approve")
			if after := plumb("snapshot"); after != before {
				t.Errorf("the host is not as it was:\n%s\nwas:\n%s", after, before)
			}
		})
	}
}
