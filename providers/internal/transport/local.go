// Package transport carries commands, files and connections to hosts: the implementations of providers.Conn. It is the only package of
// Plumb that starts processes. Every implementation passes the suite in transporttest.
package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"plumb/providers"
)

// DefaultTimeout is the limit of a command that says none.
const DefaultTimeout = 60 * time.Second

// pipeLimit is how long Run waits for output after the command's own end, when a child of it still holds the pipe.
const pipeLimit = 5 * time.Second

// Local is this machine. Commands run as the user that runs Plumb, in the folder "/", with LC_ALL=C since their output is parsed. They get
// no terminal and no file of Plumb's.
type Local struct{ name string }

var _ providers.Conn = (*Local)(nil)

// NewLocal names the machine in errors.
func NewLocal(name string) *Local {
	closeInherited()
	return &Local{name}
}

// ThisMachine is true: see providers.Local.
func (l *Local) ThisMachine() bool { return true }

// closeInherited keeps files that Plumb itself inherited (a CI runner's pipes, say) from living on in processes that outlive it. Files that
// Go opens are closed on exec anyway.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // no /proc: then there is nothing that could be known
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// Run runs a command. A command that cannot be found has exit status 127, one that may not be run 126, one that a signal ended 128 and
// the signal's number, as in a shell. When the time is up or ctx ends, the whole process group is killed.
func (l *Local) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	if len(cmd.Args) == 0 {
		return providers.Result{}, errors.New("run: no command")
	}
	limit := cmd.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, cmd.Args[0], cmd.Args[1:]...)
	c.Dir = "/"
	c.Env = append(append(os.Environ(), "LC_ALL=C"), cmd.Env...)
	c.Stdin = bytes.NewReader(cmd.Stdin)
	c.Stdout, c.Stderr = &stdout, &stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = pipeLimit
	err := c.Run()

	res := providers.Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	var exit *exec.ExitError
	switch {
	case outer.Err() != nil && err != nil:
		return res, fmt.Errorf("%s on %s: %w", cmd.Args[0], l.name, outer.Err())
	case ctx.Err() != nil && err != nil:
		return res, fmt.Errorf("%s on %s: not done within %s, killed: %w", cmd.Args[0], l.name, limit, ctx.Err())
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return res, nil
	case errors.As(err, &exit):
		res.Exit = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			res.Exit = 128 + int(ws.Signal())
		}
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		res.Exit, res.Stderr = 127, []byte(cmd.Args[0]+": not found\n")
	case errors.Is(err, fs.ErrPermission):
		res.Exit, res.Stderr = 126, []byte(cmd.Args[0]+": permission denied\n")
	default:
		return res, fmt.Errorf("%s on %s: %w", cmd.Args[0], l.name, err)
	}
	return res, &providers.ExitError{Host: l.name, Args: cmd.Args, Result: res}
}

// ReadFiles reads files. What could be read is returned beside an error. A folder that a pattern matches is left out.
func (l *Local) ReadFiles(ctx context.Context, patterns ...string) (map[string][]byte, error) {
	out := map[string][]byte{}
	var errs []error
	for _, p := range patterns {
		names, glob, err := Expand(p)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return out, err
			}
			b, err := os.ReadFile(name)
			switch {
			case err == nil:
				out[name] = b
			case absent(err) || glob && errors.Is(err, syscall.EISDIR):
			default:
				errs = append(errs, fmt.Errorf("on %s: %w", l.name, err))
			}
		}
	}
	return out, errors.Join(errs...)
}

// absent also covers a process that ended between the listing of /proc and the read.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENOTDIR)
}

// Expand lists what a pattern of ReadFiles stands for; a path without wildcards stands for itself.
func Expand(pattern string) (names []string, glob bool, err error) {
	if !filepath.IsAbs(pattern) {
		return nil, false, fmt.Errorf("read %q: not an absolute path", pattern)
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		return []string{pattern}, false, nil
	}
	names, err = filepath.Glob(pattern)
	if err != nil {
		return nil, true, fmt.Errorf("read %q: %w", pattern, err)
	}
	return names, true, nil
}

// WriteFile replaces a file. Through a symbolic link it replaces what the link points to. The folder must exist. When it fails
// the old file is there, whole.
func (l *Local) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := writeFile(name, data, mode); err != nil {
		return fmt.Errorf("on %s: %w", l.name, err)
	}
	return nil
}

func writeFile(name string, data []byte, mode fs.FileMode) error {
	if !filepath.IsAbs(name) {
		return fmt.Errorf("write %q: not an absolute path", name)
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if kernel(name) {
		return writeOnce(name, data)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".plumb-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// kernel says that a file is an interface of the kernel, which takes one write as one command and has no room for temporary files.
func kernel(name string) bool {
	return strings.HasPrefix(filepath.Clean(name), "/proc/") || strings.HasPrefix(filepath.Clean(name), "/sys/")
}

func writeOnce(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Start starts a supervised process.
func (l *Local) Start(ctx context.Context, p providers.Process) error {
	cmd, err := startCommand(p)
	if err != nil {
		return err
	}
	_, err = l.Run(ctx, cmd)
	return startError(err, p)
}

// startError makes an error about the process out of one about the shell.
func startError(err error, p providers.Process) error {
	var exit *providers.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("start %s on %s: %s", p.Args[0], exit.Host, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// Dial connects to a socket.
func (l *Local) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if !slices.Contains([]string{"unix", "unixpacket", "tcp"}, network) {
		return nil, fmt.Errorf("dial %s on %s: network %q is none of unix, unixpacket and tcp", addr, l.name, network)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("on %s: %w", l.name, err)
	}
	return c, nil
}

// Close does nothing: there is no connection.
func (l *Local) Close() error { return nil }
