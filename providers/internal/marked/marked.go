// Package marked finds, ends and removes processes that carry a testbed's mark in their environment, on any host. They were started by
// Conn.Start in a folder of their own below /run/plumb. Nothing here ever ends a process without the mark: a pid that is somebody else's by now
// stays alone.
package marked

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumb/providers"
)

// RunDir is where processes have their folders.
const RunDir = "/run/plumb"

const (
	endLimit    = 15 * time.Second // after each signal
	settleLimit = 5 * time.Second  // for the supervisor of a process to write down its end
	execLimit   = time.Second      // for a program to have taken the place of its starter
	tick        = 50 * time.Millisecond
)

// Process is one supervised process. The zero Address stands for any process of the testbed.
type Process struct {
	Conn providers.Conn
	Mark providers.Mark
	Dir  string // absolute
}

// Group is the folder of all processes of one kind in a testbed: /run/plumb/TESTBED/loadgen.
func Group(testbed, kind string) string { return path.Join(RunDir, Tidy(testbed), kind) }

// Name is a short name for an address, of at most 29 characters, that no other address has: "tg-1a2b3c4d".
func Name(address string) string {
	sum := sha256.Sum256([]byte(address))
	name := address
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	name = Tidy(name)
	return name[:min(20, len(name))] + "-" + hex.EncodeToString(sum[:4])
}

// Tidy keeps what is harmless in a file name, also to glob patterns.
func Tidy(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, s)
}

// Environment carries the mark.
func Environment(m providers.Mark) []string {
	return []string{"PLUMB_TESTBED=" + m.Testbed, "PLUMB_ADDRESS=" + m.Address}
}

func carries(environ []byte, m providers.Mark) bool {
	have := strings.Split(string(environ), "\x00")
	for i, e := range Environment(m) {
		// Until a process that Conn.Start starts becomes what it runs, its variables are values of PLUMB_ENV_0 and so on.
		if any := i == 1 && m.Address == ""; !any && !slices.ContainsFunc(have, func(h string) bool {
			return h == e || strings.HasPrefix(h, "PLUMB_ENV_") && strings.HasSuffix(h, "="+e)
		}) {
			return false
		}
	}
	return true
}

// phase is what /proc tells of where a process is in its life.
type phase int

const (
	gone    phase = iota
	ended         // it is only waiting for its parent to notice, or for its last thread
	ending        // it has lost its memory, and with it its environment
	kernel        // a thread of the kernel: it has no environment
	running       // an empty environment is then that of a process that is just becoming another program
)

// phaseOf reads /proc/PID/stat: the state is field 3, the flags of include/linux/sched.h are field 9 (proc_pid_stat(5)).
func phaseOf(stat string) phase {
	const exiting, kthread = 0x4, 0x00200000 // PF_EXITING, PF_KTHREAD
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	switch {
	case len(f) == 0 || f[0] == "X":
		return gone
	case f[0] == "Z":
		return ended
	case len(f) < 7:
		return running
	}
	switch flags, _ := strconv.ParseUint(f[6], 10, 64); { // always a number
	case flags&kthread != 0:
		return kernel
	case flags&exiting != 0:
		return ending
	}
	return running
}

// Find is the pid of the process if it lives and has the mark; 0 otherwise.
func (p Process) Find(ctx context.Context) (int, error) {
	name := path.Join(p.Dir, "pid")
	files, err := p.Conn.ReadFiles(ctx, name)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(files[name])))
	if err != nil || pid <= 0 {
		return 0, nil // no folder, or one whose process was never started
	}
	ours := false
	err = Poll(ctx, execLimit, func() (bool, error) {
		at, environ, err := p.look(ctx, pid)
		ours = at == running && carries(environ, p.Mark)
		return err != nil || at != running || len(environ) > 0, err
	})
	switch {
	case err != nil && !errors.Is(err, ErrLimit):
		return 0, err
	case !ours:
		return 0, nil
	}
	return pid, nil
}

// look reads what there is of a number.
func (p Process) look(ctx context.Context, pid int) (phase, []byte, error) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	files, err := p.Conn.ReadFiles(ctx, proc+"environ", proc+"stat")
	return phaseOf(string(files[proc+"stat"])), files[proc+"environ"], err
}

// Log is what the process has printed, and whether it has ended.
func (p Process) Log(ctx context.Context) (text string, exited bool, err error) {
	files, err := p.Conn.ReadFiles(ctx, path.Join(p.Dir, "log"), path.Join(p.Dir, "exit"))
	if err != nil {
		return "", false, err
	}
	_, exited = files[path.Join(p.Dir, "exit")]
	return string(files[path.Join(p.Dir, "log")]), exited, nil
}

// End ends the process: after grace, in which it may end by itself, by SIGTERM and then by SIGKILL. It returns when the process has gone, and has closed
// its sockets. Without a process it does nothing.
func (p Process) End(ctx context.Context, grace time.Duration) error {
	for _, step := range []struct {
		signal string
		limit  time.Duration
	}{{"", grace}, {"TERM", endLimit}, {"KILL", endLimit}} {
		pid, err := p.Find(ctx)
		if err != nil {
			return err
		}
		if pid == 0 {
			return p.closed(ctx)
		}
		if step.signal != "" {
			var exit *providers.ExitError
			// kill fails when the process has ended meanwhile: what counts is whether it is there.
			if _, err := p.Conn.Run(ctx, providers.Cmd{Args: []string{"kill", "-" + step.signal, strconv.Itoa(pid)}}); err != nil && !errors.As(err, &exit) {
				return err
			}
		}
		err = Poll(ctx, step.limit, func() (bool, error) {
			pid, err := p.Find(ctx)
			return pid == 0, err
		})
		if err == nil {
			return p.closed(ctx)
		}
		if !errors.Is(err, ErrLimit) {
			return err
		}
	}
	return fmt.Errorf("the process of %s does not end, not by SIGKILL either: its folder is %s", p.Mark.Address, p.Dir)
}

// closed waits until the kernel has taken away all that a process had. One that ends loses its environment first, by which Find knows it, and while a thread of it
// is still ending its sockets listen: what is left of them is told from what is somebody else's only afterwards. Its supervisor, or who inherits it, then learns of its end.
func (p Process) closed(ctx context.Context) error {
	pidFile, exit := path.Join(p.Dir, "pid"), path.Join(p.Dir, "exit")
	err := Poll(ctx, settleLimit, func() (bool, error) {
		files, err := p.Conn.ReadFiles(ctx, pidFile, exit)
		if err != nil || files[pidFile] == nil || files[exit] != nil {
			return true, err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(files[pidFile])))
		if err != nil {
			return true, nil // it was never started
		}
		at, _, err := p.look(ctx, pid)
		return at != ended && at != ending, err // it is gone, or the number is somebody else's by now
	})
	if errors.Is(err, ErrLimit) {
		return nil
	}
	return err
}

// Remove ends the process as End does and removes its folder, and the folders above it below RunDir when they are empty. A second Remove
// does nothing.
func (p Process) Remove(ctx context.Context, grace time.Duration) error {
	if !strings.HasPrefix(path.Clean(p.Dir), "/") || path.Clean(p.Dir) == "/" {
		return fmt.Errorf("remove the folder of a process: %q is none", p.Dir)
	}
	if err := errors.Join(p.End(ctx, grace), p.settle(ctx)); err != nil {
		return err
	}
	if _, err := p.Conn.Run(ctx, providers.Cmd{Args: []string{"rm", "-rf", "--", p.Dir}}); err != nil {
		return fmt.Errorf("remove the folder of a process: %w", err)
	}
	if !strings.HasPrefix(p.Dir, RunDir+"/") {
		return nil
	}
	for d := path.Dir(p.Dir); strings.HasPrefix(d, RunDir); d = path.Dir(d) {
		var exit *providers.ExitError
		if _, err := p.Conn.Run(ctx, providers.Cmd{Args: []string{"rmdir", "--", d}}); errors.As(err, &exit) {
			return nil // not empty: something else lives there
		} else if err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the supervisor of a process that has ended has written down how: nothing else comes into the folder then. A supervisor that was
// killed itself never does, so the wait has an end.
func (p Process) settle(ctx context.Context) error {
	pid, exit := path.Join(p.Dir, "pid"), path.Join(p.Dir, "exit")
	err := Poll(ctx, settleLimit, func() (bool, error) {
		files, err := p.Conn.ReadFiles(ctx, pid, exit)
		return files[pid] == nil || files[exit] != nil, err
	})
	if errors.Is(err, ErrLimit) {
		return nil
	}
	return err
}

// Sweep ends and removes every process in a folder of Group that an earlier Plumb left. Folders without a process go too: has names, as patterns,
// what else a folder may hold before its process was started.
func Sweep(ctx context.Context, conn providers.Conn, group, testbed string, has ...string) error {
	patterns := []string{path.Join(group, "*", "pid")}
	for _, h := range has {
		patterns = append(patterns, path.Join(group, "*", h))
	}
	files, err := conn.ReadFiles(ctx, patterns...)
	if err != nil {
		return err
	}
	dirs := map[string]bool{}
	for name := range files {
		dirs[path.Dir(name)] = true
	}
	var errs []error
	for d := range dirs {
		p := Process{Conn: conn, Mark: providers.Mark{Testbed: testbed}, Dir: d}
		if err := p.Remove(ctx, 0); err != nil {
			errs = append(errs, fmt.Errorf("sweep %s: %w", d, err))
		}
	}
	return errors.Join(errs...)
}

// ErrLimit says that a wait was not over within its limit.
var ErrLimit = errors.New("not within the time limit")

// Poll asks until done, with a limit; 0 asks once.
func Poll(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return ErrLimit
		case <-ticker.C:
		}
	}
}
