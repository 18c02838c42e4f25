package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LockInfo is what the lock file says of its owner.
type LockInfo struct {
	ID        string    `json:"id"`
	Operation string    `json:"operation"` // "apply"
	Who       string    `json:"who"`       // user@host
	PID       int       `json:"pid"`
	Host      string    `json:"host"`
	Created   time.Time `json:"created"`
	Version   string    `json:"version"`
}

// LockedError says that somebody else has the lock.
type LockedError struct {
	Path  string
	Owner *LockInfo // nil: the owner has not written it yet
	Age   time.Duration
	Alive string // what is known of the owner's process
}

func (e *LockedError) Error() string {
	if e.Owner == nil {
		return fmt.Sprintf("the state is locked (%s) by a process that has not said who it is; try again", e.Path)
	}
	o := e.Owner
	return fmt.Sprintf("the state is locked by `plumb %s` of %s since %s: pid %d on %s %s (lock %s in %s). "+
		"Wait for it to end, or let this command wait with -lock-timeout=5m",
		o.Operation, o.Who, e.Age.Round(time.Second), o.PID, o.Host, e.Alive, o.ID, e.Path)
}

// errVanished says that a lock file was removed by its owner while it was being taken.
var errVanished = errors.New("the lock file was removed")

type heldLock struct {
	file *os.File
	path string
}

func (s *Store) locked() bool { return s.lock != nil }

// Lock takes the lock, trying until the timeout is over or ctx is done; a *LockedError says who has it. The lock is a flock(2) on a
// file of its own: it ends with its owner however that ends, so a file that was left behind is simply taken over.
func (s *Store) Lock(ctx context.Context, timeout time.Duration, operation string) error {
	if s.locked() {
		return errors.New("the state is locked twice: a bug of Plumb")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lock state: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, max(timeout, 0))
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := s.tryLock(operation)
		for errors.Is(err, errVanished) {
			err = s.tryLock(operation)
		}
		var held *LockedError
		if !errors.As(err, &held) {
			return err
		}
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			again.Stop()
			return err
		case <-again.C:
		}
	}
}

func (s *Store) tryLock(operation string) error {
	path := s.LockPath()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock state: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return s.heldBy(f)
		}
		return fmt.Errorf("lock state: %s: %w", path, err)
	}
	// The owner before may have removed the file between the open and the flock: then this lock is one on a file that nobody else sees.
	ours, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(ours, there) {
			f.Close()
			return errVanished
		}
	}
	if err == nil {
		err = writeInfo(f, LockInfo{
			ID: newLineage(), Operation: operation, Who: s.env.User + "@" + s.env.Host, PID: s.env.PID, Host: s.env.Host,
			Created: s.env.Now().UTC(), Version: s.env.Version,
		})
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("lock state: %w", err)
	}
	s.lock = &heldLock{file: f, path: path}
	s.backedUp = false
	return nil
}

func writeInfo(f *os.File, info LockInfo) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(data, '\n'), 0)
	return err
}

func (s *Store) heldBy(f *os.File) error {
	e := &LockedError{Path: s.LockPath()}
	data, err := io.ReadAll(f)
	var info LockInfo
	if err != nil || json.Unmarshal(data, &info) != nil {
		return e
	}
	e.Owner, e.Age = &info, s.env.Now().Sub(info.Created)
	switch {
	case info.Host != s.env.Host:
		e.Alive = "is on another machine, where this one cannot see whether it runs"
	case alive(info.PID):
		e.Alive = "is running"
	default:
		e.Alive = "has ended, but a process that inherited the lock has not"
	}
	return e
}

// alive says whether a process of this machine exists.
func alive(pid int) bool {
	err := unix.Kill(pid, 0)
	return pid > 0 && (err == nil || errors.Is(err, unix.EPERM))
}

// Unlock gives the lock back and removes its file. It takes no context: a cancelled run unlocks too. Without a lock it does nothing.
func (s *Store) Unlock() error {
	if !s.locked() {
		return nil
	}
	l := s.lock
	s.lock = nil
	// Removed while it is held: whoever opened it before finds out in tryLock.
	if err := errors.Join(os.Remove(l.path), l.file.Close()); err != nil {
		return fmt.Errorf("unlock state: %w", err)
	}
	return nil
}
