package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumb/providers"
	"plumb/providers/internal/marked"
)

// stress is one running stress-ng. Whoever is started by Conn.Start lives in a session of its own, which all that it starts share, also when it
// has ended itself: the number of a session is not given to another process as long as one of its members lives. It is kept in the folder.
type stress struct{ marked.Process }

const (
	loadLimit  = 60 * time.Second // for the workers to run: the CPUs may be busy with threads that spin
	killLimit  = 15 * time.Second
	stressName = "stress-ng" // how its name and those of its workers begin
)

func (r stress) sessionFile() string { return path.Join(r.Dir, "session") }

// session is that of the process; 0 when it has ended and left no note of it.
func (r stress) session(ctx context.Context) (int, error) {
	pid, err := r.Find(ctx)
	if err != nil {
		return 0, err
	}
	stat := fmt.Sprintf("/proc/%d/stat", pid)
	files, err := r.Conn.ReadFiles(ctx, stat, r.sessionFile())
	if err != nil {
		return 0, err
	}
	if p, ok := parseStat(string(files[stat])); ok && pid != 0 {
		return p.session, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(files[r.sessionFile()])))
	if err != nil {
		return 0, nil // nothing was started, or its end came before the note
	}
	return n, nil
}

// workers lists the live processes of a session whose names begin with comm.
func (r stress) workers(ctx context.Context, session int, comm string) ([]int, error) {
	if session == 0 {
		return nil, nil
	}
	files, err := r.Conn.ReadFiles(ctx, "/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, stat := range files {
		if p, ok := parseStat(string(stat)); ok && p.session == session && strings.HasPrefix(p.comm, comm) && p.state != 'Z' && p.state != 'X' {
			out = append(out, p.tid)
		}
	}
	slices.Sort(out)
	return out, nil
}

// await waits until the workers run, and notes the session as soon as it is known: the process has its mark only once it has become stress-ng.
func (r stress) await(ctx context.Context, s loadSpec) error {
	var text string
	session, running := 0, 0
	err := marked.Poll(ctx, loadLimit, func() (bool, error) {
		var exited bool
		var err error
		if text, exited, err = r.Log(ctx); err != nil {
			return false, err
		}
		if exited {
			return false, fmt.Errorf("stress-ng ended: %s", lastLine(text))
		}
		if session == 0 {
			if session, err = r.session(ctx); err != nil || session == 0 {
				return false, err
			}
			if err := r.Conn.WriteFile(ctx, r.sessionFile(), []byte(strconv.Itoa(session)+"\n"), 0o644); err != nil {
				return false, err
			}
		}
		workers, err := r.workers(ctx, session, stressName+"-"+stressors()[s.kind])
		running = len(workers)
		return running >= s.workers, err
	})
	if errors.Is(err, marked.ErrLimit) {
		return fmt.Errorf("%d of %d workers of stress-ng run after %s: %s", running, s.workers, loadLimit, lastLine(text))
	}
	return err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// end ends the process and all its workers, and removes its folder. Without any it does nothing.
func (r stress) end(ctx context.Context) error {
	session, err := r.session(ctx)
	if err != nil {
		return err
	}
	if err := r.End(ctx, 0); err != nil {
		return err
	}
	err = marked.Poll(ctx, killLimit, func() (bool, error) { // those that have lost their parent
		pids, err := r.workers(ctx, session, stressName)
		if err != nil || len(pids) == 0 {
			return true, err
		}
		args := []string{"kill", "-KILL"}
		for _, p := range pids {
			args = append(args, strconv.Itoa(p))
		}
		var exit *providers.ExitError
		if _, err := r.Conn.Run(ctx, providers.Cmd{Args: args}); err != nil && !errors.As(err, &exit) { // one may have ended meanwhile
			return false, err
		}
		return false, nil
	})
	if errors.Is(err, marked.ErrLimit) {
		return fmt.Errorf("workers of stress-ng in session %d do not end, not by SIGKILL either", session)
	}
	if err != nil {
		return err
	}
	return r.Remove(ctx, 0)
}
