package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteThenRead(t *testing.T) {
	s := lockedStore(t)
	if st, err := s.Read(); st != nil || err != nil {
		t.Fatalf("read of nothing: %v, %v", st, err)
	}
	st := New("0.2.0")
	st.Instances = []*Instance{instance(t, "b.x", `{"a":1}`), instance(t, `a.x["k"]`, `{"a":"<&>"}`)}
	written, err := s.Write(st)
	if err != nil {
		t.Fatal(err)
	}
	if st.Serial != 0 || written.Serial != 1 {
		t.Errorf("serials %d and %d, want 0 and 1", st.Serial, written.Serial)
	}
	got, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	want := *written
	want.Instances = []*Instance{written.Instances[1], written.Instances[0]}
	if d := cmp.Diff(compact(t, &want), compact(t, got)); d != "" {
		t.Error(d)
	}
	info, err := os.Stat(s.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

// compact is the state as text, to compare.
func compact(t *testing.T, s *State) string {
	t.Helper()
	data, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestBackupIsTheContentBeforeTheRun(t *testing.T) {
	s := lockedStore(t)
	st := New("0.2.0")
	for range 3 {
		var err error
		if st, err = s.Write(st); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(s.BackupPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the run that made the state has a backup of its own writes: %v", err)
	}
	if err := s.Unlock(); err != nil {
		t.Fatal(err)
	}
	lock(t, s)
	for range 2 {
		var err error
		if st, err = s.Write(st); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(s.BackupPath())
	if err != nil {
		t.Fatal(err)
	}
	old, err := Decode(data)
	if err != nil || old.Serial != 3 {
		t.Errorf("backup has serial %v, %v; want 3", old, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(s.Path()), "*"))
	if err != nil || len(left) != 3 {
		t.Errorf("files %v, want state, backup and lock", left)
	}
}

func TestWriteRefuses(t *testing.T) {
	base := New("0.2.0")
	for name, c := range map[string]struct {
		file string // content; "" for what Write made of base
		next func(*State) *State
		want string
	}{
		"other lineage":  {next: func(s *State) *State { n := New("x"); n.Serial = s.Serial; return n }, want: "another testbed"},
		"older serial":   {next: func(s *State) *State { n := *s; n.Serial--; return &n }, want: "moved on"},
		"newer serial":   {next: func(s *State) *State { n := *s; n.Serial++; return &n }, want: "moved on"},
		"damaged":        {file: `{"version":1`, next: func(s *State) *State { return s }, want: "damaged"},
		"newer format":   {file: `{"version":2,"plumb_version":"9.9.9"}`, next: func(s *State) *State { return s }, want: "newer Plumb (9.9.9)"},
		"no format":      {file: `{}`, next: func(s *State) *State { return s }, want: "no format version"},
		"an empty file":  {file: "\n", next: func(s *State) *State { return s }, want: "damaged"},
		"another format": {file: `[1]`, next: func(s *State) *State { return s }, want: "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			s := lockedStore(t)
			written, err := s.Write(base)
			if err != nil {
				t.Fatal(err)
			}
			if c.file != "" {
				if err := os.WriteFile(s.Path(), []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Read(); err == nil {
					t.Error("it can be read")
				}
			}
			before, _ := os.ReadFile(s.Path())
			if _, err := s.Write(c.next(written)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if after, _ := os.ReadFile(s.Path()); string(before) != string(after) {
				t.Errorf("the file was changed to %s", after)
			}
		})
	}
}

func TestWriteNeedsTheLock(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), DefaultPath), testEnv())
	_, err := s.Write(New("x"))
	_, err2 := s.StartJournal(Begin{Lineage: "l"})
	if err == nil || err2 == nil || s.RemoveJournal() == nil {
		t.Errorf("done without the lock: %v, %v", err, err2)
	}
}

func TestSaveThatCannotWrite(t *testing.T) {
	t.Run("the file's place is taken", func(t *testing.T) {
		s := lockedStore(t)
		// A folder cannot be replaced by a file, whoever asks: it stands for a full or broken disk.
		block := func(p string) {
			if err := os.MkdirAll(filepath.Join(p, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		block(s.Path() + ".tmp")
		_, err := s.Save(New("x"))
		var lost *LostWrite
		if !errors.As(err, &lost) || lost.Saved == "" || lost.JSON != nil || !strings.Contains(err.Error(), "cp ") {
			t.Fatalf("error %v", err)
		}
		data, err := os.ReadFile(lost.Saved)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := Decode(data); err != nil || st.Serial != 1 {
			t.Errorf("saved %v, %v", st, err)
		}
	})
	t.Run("nothing can be written", func(t *testing.T) {
		s := lockedStore(t)
		if err := os.RemoveAll(filepath.Dir(s.Path())); err != nil {
			t.Fatal(err)
		}
		_, err := s.Save(New("x"))
		var lost *LostWrite
		if !errors.As(err, &lost) || lost.Saved != "" {
			t.Fatalf("error %v", err)
		}
		if _, err := Decode(lost.JSON); err != nil {
			t.Error(err)
		}
	})
}

func TestSettle(t *testing.T) {
	s := lockedStore(t)
	start := func(b Begin) *Journal {
		t.Helper()
		j, err := s.StartJournal(b)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	j := start(Begin{Plan: "p1", Lineage: "l1"})
	a := instance(t, "a.x", `{"id":"1"}`)
	if err := errors.Join(j.Intent(Intent{Step: 1, Op: OpCreate, Instance: a}), j.Outcome(Outcome{Step: 1, Addr: a.Addr, Instance: a}, "dut"), j.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.StartJournal(Begin{Lineage: "l1"}); err == nil {
		t.Error("a journal that was not folded is overwritten")
	}
	st, report, err := s.Settle()
	if err != nil || report.Steps != 1 || st.Serial != 1 || st.Lineage != "l1" || len(st.Instances) != 1 {
		t.Fatalf("settled %+v, %+v, %v", st, report, err)
	}
	if _, err := os.Stat(s.JournalPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal is still there: %v", err)
	}
	// Killed between the write of the state and the removal of the journal: it is stale.
	j = start(Begin{Plan: "p1", Lineage: "l1"})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again, report, err := s.Settle()
	if err != nil || !report.Stale || again.Serial != 1 {
		t.Errorf("settled %+v, %+v, %v", again, report, err)
	}
	// Another testbed's journal, and one that is newer than the state.
	for _, c := range []struct {
		begin Begin
		want  error
	}{{Begin{Plan: "p", Lineage: "l2"}, ErrOtherLineage}, {Begin{Plan: "p", Lineage: "l1", Serial: 7}, ErrStateTooOld}} {
		if err := start(c.begin).Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Settle(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), "put the") {
			t.Errorf("error %v, want %v and what to do", err, c.want)
		}
		if err := os.Remove(s.JournalPath()); err != nil {
			t.Fatalf("the journal was removed: %v", err)
		}
	}
	if err := os.WriteFile(s.JournalPath(), []byte("x\n{\"end\":{}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Settle(); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("damaged journal: %v", err)
	}
}

func TestLockWaitIsCancelled(t *testing.T) {
	s := lockedStore(t)
	other := NewStore(s.Path(), testEnv())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.Lock(ctx, 0, "plan"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
