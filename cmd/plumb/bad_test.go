package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// badCases is how many examples of mistakes there are at least: fewer means that some got lost.
const badCases = 150

// TestBad runs the command in the first line of each examples/bad/*/expected.txt and compares all that it prints with the rest of the
// file: so the words of the diagnostics and the places that they point at are both held. The host is the fake one, with two NUMA nodes of four cores, no
// hugepages and Open vSwitch 3.1.0 with DPDK 22.11.
func TestBad(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/bad/*/expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) < badCases {
		t.Errorf("%d cases, want at least %d", len(dirs), badCases)
	}
	for _, file := range dirs {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(want), "\n")
			line, ok := strings.CutPrefix(first, "$ plumb ")
			if !ok {
				t.Fatalf("the first line is %q; want $ plumb COMMAND", first)
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Dir(file))); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			e := testEnv(t, dir, filepath.Join(t.TempDir(), "host"))
			e.stdout, e.stderr = &out, &out
			code := run(e, append([]string{"plumb"}, strings.Fields(line)...))
			got := first + "\n" + strings.ReplaceAll(out.String(), dir, "$DIR")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if code != exitError && !strings.Contains(got, "Warning: ") {
				t.Errorf("exit status %d, want %d", code, exitError)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("other output (-want +got):\n%s", d)
			}
		})
	}
}
