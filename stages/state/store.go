package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"plumb/stages/internal/durable"
)

// DefaultPath of the state file, in the root module's folder.
const DefaultPath = "plumb.state.json"

// Env is what a store needs to know of the process that it runs in.
type Env struct {
	Now     func() time.Time
	User    string
	Host    string // name of this machine
	PID     int
	Version string // of Plumb
	// Crash, for tests only, is told each point at which a test may end the process. nil: nobody.
	Crash func(point string)
}

// Store keeps one state in files beside each other: the state, .backup (as it was before the run), .lock and the journal.
// Reading needs no lock; everything else does. Not safe for concurrent use.
type Store struct {
	path     string
	env      Env
	lock     *heldLock
	backedUp bool
}

var errNotLocked = errors.New("the state is not locked: a bug of Plumb")

// NewStore is a store on a path; nothing is read yet.
func NewStore(path string, env Env) *Store { return &Store{path: path, env: env} }

// Path of the state file.
func (s *Store) Path() string { return s.path }

// BackupPath is where the content from before the run is.
func (s *Store) BackupPath() string { return s.path + ".backup" }

// LockPath is the lock file's.
func (s *Store) LockPath() string { return s.path + ".lock" }

// JournalPath is plumb.state.journal for plumb.state.json.
func (s *Store) JournalPath() string {
	if base, ok := cutSuffix(s.path, ".json"); ok {
		return base + ".journal"
	}
	return s.path + ".journal"
}

// erroredPath is where a state goes that could not be written in its place.
func (s *Store) erroredPath() string {
	return filepath.Join(filepath.Dir(s.path), "errored."+filepath.Base(s.path))
}

func cutSuffix(s, suffix string) (string, bool) {
	if len(s) > len(suffix) && s[len(s)-len(suffix):] == suffix {
		return s[:len(s)-len(suffix)], true
	}
	return s, false
}

// Read reads the state file; nil when there is none. A damaged or newer file is an error that says what to do; it is left alone.
func (s *Store) Read() (*State, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	st, err := Decode(data)
	if err != nil {
		return nil, s.unreadable(err)
	}
	return st, nil
}

func (s *Store) unreadable(err error) error {
	if errors.Is(err, ErrNewerFormat) {
		return fmt.Errorf("state %s cannot be read: %w. It was left as it is; use the newer Plumb", s.path, err)
	}
	return fmt.Errorf("state %s is damaged: %w. It was left as it is. The content from before the last run is in %s: "+
		"look at it, and if it is good put it in the place of the damaged file", s.path, err, s.BackupPath())
}

// ReadJournal reads the journal; nil when there is none or it says nothing.
func (s *Store) ReadJournal() (*Log, error) {
	data, err := os.ReadFile(s.JournalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	log, err := DecodeJournal(data)
	switch {
	case errors.Is(err, ErrNewerFormat):
		return nil, fmt.Errorf("journal %s cannot be read: %w. It was left as it is; use the newer Plumb", s.JournalPath(), err)
	case err != nil:
		return nil, fmt.Errorf("journal %s is damaged: %w. It says what a run that was cut off has done; the lines before are readable JSON. "+
			"To go on with the state alone, move it away and compare the hosts with `plumb plan`: what the run made and the state does not know "+
			"has to be removed by hand", s.JournalPath(), err)
	}
	return log, nil
}

// Recover reads the state together with the journal of a run that was cut off, and changes nothing. The state is nil when there is
// neither.
func (s *Store) Recover() (*State, FoldReport, error) {
	st, err := s.Read()
	if err != nil {
		return nil, FoldReport{}, err
	}
	log, err := s.ReadJournal()
	if err != nil {
		return nil, FoldReport{}, err
	}
	folded, report, err := Fold(st, log)
	switch {
	case errors.Is(err, ErrOtherLineage):
		return nil, report, fmt.Errorf("%w. The files %s and %s were not written by runs of one testbed: put the state back that the journal belongs to, "+
			"or move the journal to where its state is", err, s.JournalPath(), s.path)
	case errors.Is(err, ErrStateTooOld):
		return nil, report, fmt.Errorf("%w. An older state was put in place of %s: put the newer one back (%s may be it), then run the command again",
			err, s.path, s.BackupPath())
	}
	return folded, report, err
}

// Settle is Recover for those who hold the lock: what a cut-off run has done is written into the state, durably, and the journal is
// removed. It may be killed at any point and called again.
func (s *Store) Settle() (*State, FoldReport, error) {
	if !s.locked() {
		return nil, FoldReport{}, errNotLocked
	}
	st, report, err := s.Recover()
	if err != nil {
		return nil, report, err
	}
	if report.Plan != "" && !report.Stale {
		if st, err = s.Write(st); err != nil {
			return nil, report, err
		}
	}
	return st, report, s.RemoveJournal()
}

// Write replaces the state file and returns the state as written, with the next serial. It refuses when the file is of another lineage,
// has a serial other than that of st, or cannot be read. The first Write of a store keeps the old content as backup.
func (s *Store) Write(st *State) (*State, error) {
	if !s.locked() {
		return nil, errNotLocked
	}
	old, err := s.checkFile(st)
	if err != nil {
		return nil, err
	}
	next := clone(st)
	next.Version, next.PlumbVersion, next.Serial = FormatVersion, s.env.Version, st.Serial+1
	data, err := Encode(next)
	if err != nil {
		return nil, err
	}
	if old != nil && !s.backedUp {
		if err := replaceFile(s.BackupPath(), old, s.env.Crash); err != nil {
			return nil, fmt.Errorf("keep a backup of the state: %w", err)
		}
	}
	s.backedUp = true
	s.point("before the state is written")
	if err := replaceFile(s.path, data, s.env.Crash); err != nil {
		return nil, fmt.Errorf("write state: %w", err)
	}
	s.point("after the state is written")
	return next, nil
}

// checkFile compares the file with the state that shall follow it and returns its content; nil when there is none.
func (s *Store) checkFile(st *State) ([]byte, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		if st.Serial > 0 {
			return nil, fmt.Errorf("write state: %s with serial %d was removed during the run", s.path, st.Serial)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("write state: look at what is there: %w", err)
	}
	if err := checkFormat(data); err != nil {
		return nil, s.unreadable(err)
	}
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, s.unreadable(err)
	}
	switch {
	case h.Lineage != st.Lineage:
		return nil, fmt.Errorf("write state: %s %w: its lineage is %s, not %s", s.path, ErrOtherLineage, h.Lineage, st.Lineage)
	case h.Serial != st.Serial:
		return nil, fmt.Errorf("write state: %s has moved on: its serial is %d, not %d", s.path, h.Serial, st.Serial)
	}
	return data, nil
}

// RemoveJournal removes the journal durably; none is fine.
func (s *Store) RemoveJournal() error {
	if !s.locked() {
		return errNotLocked
	}
	s.point("before the journal is removed")
	if err := os.Remove(s.JournalPath()); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	s.point("after the journal is removed")
	if err := durable.SyncDir(filepath.Dir(s.JournalPath())); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	return nil
}

func (s *Store) point(name string) {
	if s.env.Crash != nil {
		s.env.Crash(name)
	}
}

// LostWrite says that a state could not be written in its place, and where it is instead.
type LostWrite struct {
	Err     error
	Saved   string // file that has it; "" when that could not be written either
	JSON    []byte // the state, for the terminal, when Saved is ""
	Path    string // where it belongs
	Journal string
}

func (e *LostWrite) Error() string {
	s := fmt.Sprintf("%v. ", e.Err)
	if e.Saved != "" {
		s += fmt.Sprintf("The state is in %s instead. When the cause is mended, put it in its place: cp %s %s.", e.Saved, e.Saved, e.Path)
	} else {
		s += fmt.Sprintf("It could not be written elsewhere either. When the cause is mended, put the JSON that follows into %s.", e.Path)
	}
	return s + fmt.Sprintf(" As long as the journal %s is there the next command finds by itself what was done.", e.Journal)
}

func (e *LostWrite) Unwrap() error { return e.Err }

// Save is Write, but a state that cannot be written is not lost: the error is a *LostWrite that says where it is.
func (s *Store) Save(st *State) (*State, error) {
	next, err := s.Write(st)
	if err == nil {
		return next, nil
	}
	lost := &LostWrite{Err: err, Path: s.path, Journal: s.JournalPath()}
	rescue := clone(st)
	rescue.Serial++
	data, encErr := Encode(rescue)
	if encErr != nil {
		return nil, errors.Join(err, encErr)
	}
	if err := replaceFile(s.erroredPath(), data, s.env.Crash); err != nil {
		lost.JSON = data
	} else {
		lost.Saved = s.erroredPath()
	}
	return nil, lost
}
