package state

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLockIsHeldByOne(t *testing.T) {
	s := lockedStore(t)
	env := testEnv()
	env.Now = func() time.Time { return testEnv().Now().Add(90 * time.Second) }
	other := NewStore(s.Path(), env)
	err := other.Lock(t.Context(), 0, "plan")
	var held *LockedError
	if !errors.As(err, &held) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"plumb test", "root@dut", "1m30s", "is running", held.Owner.ID, "-lock-timeout"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if err := s.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := other.Lock(t.Context(), 0, "plan"); err != nil {
		t.Fatal(err)
	}
	if err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.LockPath()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is still there: %v", err)
	}
}

func TestLockWaitsForItsOwner(t *testing.T) {
	s := lockedStore(t)
	other := NewStore(s.Path(), testEnv())
	got := make(chan error)
	go func() { got <- other.Lock(t.Context(), time.Minute, "apply") }()
	if err := s.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestManyTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), DefaultPath)
	inside := make(chan struct{}, 1)
	errs := make(chan error)
	const many = 8
	for range many {
		go func() {
			s := NewStore(path, testEnv())
			err := s.Lock(t.Context(), time.Minute, "apply")
			if err == nil {
				select {
				case inside <- struct{}{}:
					<-inside
				default:
					err = errors.New("two have the lock")
				}
				err = errors.Join(err, s.Unlock())
			}
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestLockFileOfADeadOwnerIsTakenOver(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), DefaultPath), testEnv())
	if err := os.WriteFile(s.LockPath(), []byte(`{"id":"x","pid":1,"host":"dut"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lock(t, s)
	data, err := os.ReadFile(s.LockPath())
	if err != nil {
		t.Fatal(err)
	}
	var info LockInfo
	if err := json.Unmarshal(data, &info); err != nil || info.PID != os.Getpid() || info.Operation != "test" {
		t.Errorf("lock says %s, %v", data, err)
	}
}

func TestLockedErrorSaysWhetherTheOwnerLives(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		info LockInfo
		want string
	}{
		"lives":           {LockInfo{Host: "dut", PID: os.Getpid()}, "is running"},
		"dead":            {LockInfo{Host: "dut", PID: dead.Process.Pid}, "has ended"},
		"another machine": {LockInfo{Host: "tester", PID: os.Getpid()}, "another machine"},
	} {
		s := lockedStore(t)
		if err := writeInfo(s.lock.file, c.info); err != nil {
			t.Fatal(err)
		}
		err := NewStore(s.Path(), testEnv()).Lock(t.Context(), 0, "plan")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	s := lockedStore(t)
	if err := s.lock.file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := NewStore(s.Path(), testEnv()).Lock(t.Context(), 0, "plan"); err == nil || !strings.Contains(err.Error(), "has not said") {
		t.Errorf("empty lock file: %v", err)
	}
}
