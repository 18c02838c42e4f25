package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

const oneData = `resource "plumb_data" "a" {
  input = 1
}
`

// TestEvents holds the stream of -json to one JSON object a line, each with its type, from the plan to the summary.
func TestEvents(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "main.plumb.hcl"), oneData)
	var out bytes.Buffer
	e := testEnv(t, dir, filepath.Join(dir, ".host"))
	e.stdout = &out
	if code := run(e, []string{"plumb", "apply", "-json", "-auto-approve"}); code != exitOK {
		t.Fatalf("exit status %d:\n%s", code, out.String())
	}
	seen := map[string]bool{}
	for sc := bufio.NewScanner(&out); sc.Scan(); {
		var event struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(sc.Bytes(), &event); err != nil {
			t.Errorf("line %q: %v", sc.Text(), err)
		}
		seen[event.Type] = true
	}
	for _, typ := range []string{"plan", "apply_summary"} {
		if !seen[typ] {
			t.Errorf("no event of type %q; there are %v", typ, seen)
		}
	}
}

// TestSchemaJSON holds every attribute and block to a description, since the reference is made from it.
func TestSchemaJSON(t *testing.T) {
	var out bytes.Buffer
	e := testEnv(t, t.TempDir(), t.TempDir())
	e.stdout = &out
	if code := run(e, []string{"plumb", "providers", "schema", "-json"}); code != exitOK {
		t.Fatalf("exit status %d", code)
	}
	var doc any
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	attributes := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		for name, member := range m {
			at := path + "/" + name
			if attrs, ok := member.(map[string]any); ok && name == "attributes" {
				for attr, a := range attrs {
					attributes++
					if text, _ := a.(map[string]any)["description"].(string); strings.TrimSpace(text) == "" {
						t.Errorf("%s/%s has no description", at, attr)
					}
				}
			}
			walk(at, member)
		}
	}
	walk("", doc)
	if attributes < 100 {
		t.Errorf("only %d attributes", attributes)
	}
}

// TestLocked lets one apply wait for its answer, and holds that nobody else gets the state meanwhile.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "main.plumb.hcl"), oneData)
	answer, say := io.Pipe()
	asked, printed := io.Pipe()
	first := testEnv(t, dir, filepath.Join(dir, ".host"))
	first.stdin, first.stdout = answer, printed
	done := make(chan int, 1)
	go func() {
		done <- run(first, []string{"plumb", "apply"})
		printed.Close()
	}()
	lines := bufio.NewReader(asked)
	for text := ""; !strings.Contains(text, "Only 'yes'"); {
		b, err := lines.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	go io.Copy(io.Discard, lines)

	var out bytes.Buffer
	second := testEnv(t, dir, filepath.Join(dir, ".host"))
	second.stderr = &out
	if code := run(second, []string{"plumb", "plan"}); code != exitError {
		t.Errorf("plan of a locked state: exit status %d", code)
	}
	for _, want := range []string{"The state cannot be used", "apply", "-lock-timeout"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the error does not say %q:\n%s", want, out.String())
		}
	}
	// what only reads needs no lock
	if code := run(testEnv(t, dir, filepath.Join(dir, ".host")), []string{"plumb", "state", "list"}); code != exitOK {
		t.Errorf("state list of a locked state: exit status %d", code)
	}
	if _, err := io.Copy(say, iotest.OneByteReader(strings.NewReader("yes\n"))); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != exitOK {
		t.Errorf("the first apply: exit status %d", code)
	}
	if code := run(testEnv(t, dir, filepath.Join(dir, ".host")), []string{"plumb", "plan", "-detailed-exitcode"}); code != exitOK {
		t.Errorf("plan afterwards: exit status %d", code)
	}
}
