package state

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"plumb/lang/addrs"
)

func testEnv() Env {
	at := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	return Env{Now: func() time.Time { return at }, User: "root", Host: "dut", PID: os.Getpid(), Version: "0.2.0"}
}

// lockedStore is a store in a fresh folder, locked until the test ends.
func lockedStore(t testing.TB) *Store {
	t.Helper()
	s := NewStore(filepath.Join(t.TempDir(), DefaultPath), testEnv())
	lock(t, s)
	return s
}

func lock(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Lock(t.Context(), 0, "test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Unlock() })
}

func addr(t testing.TB, s string) addrs.Instance {
	t.Helper()
	a, err := addrs.ParseInstance(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func instance(t testing.TB, a, attrs string) *Instance {
	return &Instance{Addr: addr(t, a), Host: "dut", Attributes: json.RawMessage(attrs), Undo: json.RawMessage(`{"was":1}`), DependsOn: []string{"x.y"}}
}

func with(i *Instance, change func(*Instance)) *Instance {
	c := *i
	change(&c)
	return &c
}
