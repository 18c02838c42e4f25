// Package transport carries commands, files and connections to hosts. It is the only package that starts processes.
//
// Start reading at Local, the machine that Plumb runs on.
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
	"strings"
	"syscall"
	"time"

	"plumb/providers"
)

// DefaultTimeout of a command.
const DefaultTimeout = 60 * time.Second

// Local is this machine. The zero value is ready. Closing it does nothing.
type Local struct{}

var _ providers.Conn = Local{}

const localName = "this machine"

// Run runs a command in a process group of its own, which is killed when ctx ends or the time is over.
func (Local) Run(ctx context.Context, c providers.Cmd) (providers.Result, error) {
	if len(c.Args) == 0 {
		return providers.Result{}, errors.New("run: no command")
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(limited, c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin = bytes.NewReader(c.Stdin)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A daemon that the command left behind may hold our pipes open: its output is not waited for.
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	res := providers.Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return res, fmt.Errorf("%s: %w", c.Args[0], ctx.Err())
	case limited.Err() != nil:
		return res, fmt.Errorf("%s did not end within %s", c.Args[0], timeout)
	case errors.As(err, &exit):
		res.Exit = exit.ExitCode()
		if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			res.Exit = 128 + int(st.Signal())
		}
		return res, &providers.ExitError{Host: localName, Args: c.Args, Result: res}
	}
	return res, fmt.Errorf("run %s: %w", c.Args[0], err)
}

// ReadFiles reads what the patterns name.
func (Local) ReadFiles(ctx context.Context, patterns ...string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, p := range patterns {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		paths := []string{p}
		if strings.ContainsAny(p, `*?[\`) {
			var err error
			if paths, err = filepath.Glob(p); err != nil {
				return nil, fmt.Errorf("read %s: %w", p, err)
			}
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			switch {
			case err == nil:
				out[path] = data
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ESRCH):
				// A process may end between the glob and the read.
			case errors.Is(err, syscall.EISDIR) && path != p:
			case errors.Is(err, syscall.EINVAL) && strings.HasPrefix(path, "/sys/"):
				// Such as the speed of a link that is down: there is nothing to read.
			default:
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
		}
	}
	return out, nil
}

// WriteFile replaces a file, or writes into one of the kernel's.
func (Local) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if kernelFile(path) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		_, err = f.Write(data)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	}
	if err := replaceFile(path, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func kernelFile(path string) bool {
	p := filepath.Clean(path)
	return strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/")
}

func replaceFile(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Dial connects to a unix or tcp socket of this machine.
func (Local) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// Close does nothing.
func (Local) Close() error { return nil }
