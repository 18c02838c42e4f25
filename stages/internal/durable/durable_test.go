package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	put := func(text string, failed error, before func()) error {
		f, err := os.CreateTemp(dir, ".file-*")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		return Replace(f, path, 0o640, failed, before)
	}
	check := func(want string) {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%q %v, want %q", got, err, want)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("%v %v: something was left over", entries, err)
		}
	}
	if err := put("one", nil, nil); err != nil {
		t.Fatal(err)
	}
	check("one")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Error(info.Mode(), err)
	}
	full := errors.New("disk full")
	if err := put("half", full, nil); !errors.Is(err, full) {
		t.Error(err)
	}
	check("one")
	if err := put("two", nil, func() {
		if got, _ := os.ReadFile(path); string(got) != "one" {
			t.Errorf("before the rename there is %q", got)
		}
	}); err != nil {
		t.Fatal(err)
	}
	check("two")
	if err := SyncDir(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there was made durable")
	}
}
