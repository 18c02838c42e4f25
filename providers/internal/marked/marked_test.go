package marked

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/providers"
	"plumb/providers/internal/transport"
)

func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, address := range []string{"generator.loadgen.tg", `generator.loadgen.tg["a"]`, `generator.loadgen.tg["b"]`, "module.x.generator.loadgen.tg", strings.Repeat("x", 300), ""} {
		n := Name(address)
		if len(n) > 29 || n != Tidy(n) {
			t.Errorf("%s: %q", address, n)
		}
		if other, twice := seen[n]; twice {
			t.Errorf("%s and %s are both %s", address, other, n)
		}
		seen[n] = address
	}
	if got := Group("../bed 1*", "loadgen"); got != "/run/plumb/.._bed_1_/loadgen" {
		t.Error(got)
	}
}

func TestCarries(t *testing.T) {
	environ := []byte("HOME=/\x00PLUMB_TESTBED=one\x00PLUMB_ADDRESS=a.b\x00")
	for _, c := range []struct {
		mark providers.Mark
		want bool
	}{
		{providers.Mark{Testbed: "one", Address: "a.b"}, true},
		{providers.Mark{Testbed: "one"}, true}, // any of the testbed
		{providers.Mark{Testbed: "one", Address: "a"}, false},
		{providers.Mark{Testbed: "on"}, false},
		{providers.Mark{}, false},
	} {
		if got := carries(environ, c.mark); got != c.want {
			t.Errorf("%+v: %t", c.mark, got)
		}
	}
}

func TestEnded(t *testing.T) {
	for stat, want := range map[string]bool{"": true, "1 (sh) S 0": false, "1 (a) Z b) R 0": false, "1 (sh) Z 0": true, "1 (sh) X 0": true, "1 (sh)": true} {
		if got := ended(stat); got != want {
			t.Errorf("%q: %t", stat, got)
		}
	}
}

// A process is ended and its folder goes, for its own mark only; a second time there is nothing to do.
func TestRemove(t *testing.T) {
	p := Process{Conn: transport.NewLocal("dut"), Mark: providers.Mark{Testbed: "marked-test", Address: "a.b"}, Dir: filepath.Join(t.TempDir(), "p")}
	err := p.Conn.Start(t.Context(), providers.Process{Dir: p.Dir, Args: []string{"sleep", "1000"}, Env: Environment(p.Mark)})
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := p.Find(t.Context()); pid == 0 || err != nil {
		t.Fatal(pid, err)
	}
	other := p
	other.Mark.Address = "a.c"
	if err := other.End(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if pid, err := p.Find(t.Context()); pid == 0 || err != nil {
		t.Errorf("another mark ended it: %d, %v", pid, err)
	}
	for range 2 {
		if err := p.Remove(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if pid, err := p.Find(t.Context()); pid != 0 || err != nil {
		t.Error(pid, err)
	}
	if _, err := os.Stat(p.Dir); !os.IsNotExist(err) {
		t.Error(err)
	}
	for _, dir := range []string{"", "/", "a"} {
		p.Dir = dir
		if err := p.Remove(t.Context(), 0); err == nil {
			t.Errorf("%q was removed", dir)
		}
	}
}

func TestPoll(t *testing.T) {
	asked := 0
	if err := Poll(t.Context(), 0, func() (bool, error) { asked++; return false, nil }); !errors.Is(err, ErrLimit) || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := Poll(ctx, time.Hour, func() (bool, error) { cancel(); return false, nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := Poll(t.Context(), time.Hour, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}
