package transport_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/transporttest"
)

func TestLocal(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Host {
		return transporttest.Host{Conn: transport.NewLocal("here"), Dir: t.TempDir(), Echo: echo(t), Real: true}
	})
}

// shortDir keeps socket paths below 108 bytes.
func shortDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "plumb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestWriteFileThroughLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/real", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := transport.NewLocal("here").WriteFile(t.Context(), dir+"/link", []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(dir + "/real")
	fi, err := os.Lstat(dir + "/link")
	if err != nil || string(b) != "new" || fi.Mode()&os.ModeSymlink == 0 {
		t.Fatalf("%q, %v, %v", b, fi, err)
	}
	if fi, _ := os.Stat(dir + "/real"); fi.Mode().Perm() != 0o640 {
		t.Fatal(fi.Mode())
	}
}

func TestKernelFilesAreWrittenOnce(t *testing.T) {
	// /proc/self/comm takes a write and has no room for a temporary file beside it.
	l := transport.NewLocal("here")
	if err := l.WriteFile(t.Context(), "/proc/self/comm", []byte("plumbtest"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := l.ReadFiles(t.Context(), "/proc/self/comm")
	if err != nil || string(got["/proc/self/comm"]) != "plumbtest\n" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestQuote(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{""}, "''"},
		{[]string{"ovs-vsctl", "--no-wait", "init"}, "ovs-vsctl --no-wait init"},
		{[]string{"it's", "a b"}, `'it'\''s' 'a b'`},
		{[]string{"~", "A=b", "#"}, `'~' 'A=b' '#'`},
	} {
		if got := transport.Quote(c.args...); got != c.want {
			t.Errorf("%q: %s", c.args, got)
		}
	}
}

// FuzzQuote asks the real shell.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "'", "a b", "$(id)", "\n", "\\", "-n", "~", "\xff", "!", "a'b\"c`d"} {
		f.Add(s, "x"+s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) {
			return
		}
		out, err := exec.Command("sh", "-c", transport.Quote("printf", `%s\001%s`, a, b)).Output()
		if err != nil || string(out) != a+"\x01"+b {
			t.Fatalf("%q %q came out as %q, %v", a, b, out, err)
		}
	})
}

func TestRunWithoutTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := transport.NewLocal("here").Dial(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}
