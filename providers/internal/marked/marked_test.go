package marked

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
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

func TestPhase(t *testing.T) {
	for stat, want := range map[string]phase{
		"":                                   gone,
		"1 (sh) X 0 1 1 0 -1 4194304 9":      gone,
		"1 (sh) Z 0 1 1 0 -1 4194316 9":      ended,
		"1 (sh)":                             gone,
		"1 (sh) S 0 1 1 0 -1 4194304 9":      running,
		"1 (a) Z b) R 0 1 1 0 -1 4194304 9":  running,
		"1 (sh) D 0 1 1 0 -1 4194564 9":      ending,
		"2 (kthreadd) S 0 0 0 0 -1 2129984 ": kernel,
	} {
		if got := phaseOf(stat); got != want {
			t.Errorf("%q: %d, want %d", stat, got, want)
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

// A process with much memory to give back listens until its very end: when End returns, it listens no more.
func TestEndedMeansClosed(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("needs perl")
	}
	for range 4 {
		dir := t.TempDir()
		sock := filepath.Join(dir, "s")
		p := Process{Conn: transport.NewLocal("dut"), Mark: providers.Mark{Testbed: "marked-test", Address: "a.b"}, Dir: filepath.Join(dir, "p")}
		const program = `use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1); my $m = "x" x 100_000_000; print "up\n"; sleep 1000`
		err := p.Conn.Start(t.Context(), providers.Process{Dir: p.Dir, Args: []string{"perl", "-e", "$|=1;" + program, sock}, Env: Environment(p.Mark)})
		if err != nil {
			t.Fatal(err)
		}
		if err := Poll(t.Context(), 30*time.Second, func() (bool, error) { text, _, err := p.Log(t.Context()); return text != "", err }); err != nil {
			t.Fatal(err)
		}
		if err := p.End(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if c, err := net.Dial("unix", sock); err == nil {
			c.Close()
			t.Fatal("it listens after its end")
		}
		if err := p.Remove(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}
