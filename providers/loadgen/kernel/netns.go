package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// inNetns runs f with the calling thread in a network namespace: sockets and links that f makes are in it and stay in it. f must not start
// goroutines that rely on it.
func inNetns(netns string, f func() error) error {
	if netns == "" {
		return f()
	}
	path := netns
	if !strings.Contains(netns, "/") {
		path = filepath.Join("/run/netns", netns)
	}
	target, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no network namespace %s (ip netns list): %w", path, err)
	} else if err != nil {
		return err
	}
	defer target.Close()

	// A goroutine of its own, waited for here: when its thread cannot go back to the namespace it came from, it ends locked, and the runtime
	// ends the thread with it instead of lending it to others.
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		back, err := enter(target)
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer back.Close()
		err = f()
		if unix.Setns(int(back.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// enter moves the thread and returns the namespace that it was in.
func enter(target *os.File) (back *os.File, err error) {
	if back, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return nil, err
	}
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		back.Close()
		switch {
		case errors.Is(err, unix.EINVAL):
			return nil, fmt.Errorf("%s is not a network namespace: %w", target.Name(), err)
		case errors.Is(err, unix.EPERM):
			return nil, fmt.Errorf("enter network namespace %s: %w (needs root, or CAP_SYS_ADMIN)", target.Name(), err)
		}
		return nil, fmt.Errorf("enter network namespace %s: %w", target.Name(), err)
	}
	return back, nil
}
