package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What examinations propose for the recorded and built machines of package host is a configuration each.
func TestProposalsAreValid(t *testing.T) {
	files, err := filepath.Glob("../../providers/host/testdata/machines/*.examination")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	proposals := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		blocks := regexp.MustCompile(`(?m)^\tresource [^\n]*\n(?:\t  [^\n]*\n)*\t}\n`).FindAllString(string(text), -1)
		proposals += len(blocks)
		writeFile(t, filepath.Join(dir, "main.plumb.hcl"), "host \"dut\" {}\n\n"+strings.ReplaceAll(strings.Join(blocks, "\n"), "\t", ""))
		var out bytes.Buffer
		e := osEnv()
		e.dir, e.stdout, e.stderr, e.set, e.tty = dir, &out, &out, fakeSet(t.TempDir()), false
		if code := run(e, []string{"plumb", "validate"}); code != exitOK {
			t.Errorf("%s: exit status %d\n%s", file, code, out.String())
		}
		out.Reset()
		if code := run(e, []string{"plumb", "fmt", "-check"}); code != exitOK {
			t.Errorf("%s: not as fmt writes it\n%s", file, out.String())
		}
	}
	if proposals < 20 {
		t.Errorf("only %d proposals were found in the files", proposals)
	}
}
