package vhostsock

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"plumb/providers/internal/transport"
)

func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	path := func(n string) string { return filepath.Join(dir, n) }
	live, err := net.ListenUnix("unix", &net.UnixAddr{Name: path("live"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path("dead"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if err := os.WriteFile(path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conn := transport.NewLocal("here")
	for range 2 {
		if err := RemoveStale(t.Context(), conn, path("live"), path("dead"), path("file"), path("nothing"), "relative"); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"live": true, "dead": false, "file": true} {
		if _, err := os.Lstat(path(name)); (err == nil) != want {
			t.Errorf("%s is there: %t; want %t", name, err == nil, want)
		}
	}
}
