package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/builtin"
	"plumb/providers/fake"
)

// testEnv is an environment whose only host is the fake one in the folder host.
func testEnv(t *testing.T, dir, host string) *env {
	t.Helper()
	return &env{
		stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		getenv: func(string) string { return "" }, environ: func() []string { return nil },
		now: time.Now, dir: dir, pid: os.Getpid(), set: fakeSet(host), signal: interrupts,
	}
}

// fakeSet is the built-in set with the fake host in a folder instead of this machine.
func fakeSet(host string) func() providers.Set {
	return func() providers.Set {
		return *builtin.SetWith(func(_ context.Context, name string, _ cty.Value, _ providers.Hosts) (providers.Conn, error) {
			return fake.Open(filepath.Join(host, name))
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
