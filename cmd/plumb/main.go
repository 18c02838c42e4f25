// Command plumb brings an Open vSwitch / DPDK testbed up from HCL, measures it, and puts every host back as it was.
//
// This package parses flags and calls stages; it holds no logic of its own. One file per verb; start at app.go.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"plumb/providers"
	"plumb/providers/builtin"
)

// version is set by the linker.
var version = "0.1.0-dev"

func main() { os.Exit(realMain()) }

func realMain() (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "plumb crashed: %v\n\nThis is a bug in Plumb. State and journal are safe: the next apply or destroy goes on from them.\n\n%s", r, debug.Stack())
			code = exitError
		}
	}()
	ownHelp()
	return run(osEnv(), os.Args)
}

// osEnv is the environment of the real process. Everything that commands take from outside comes through it.
func osEnv() *env {
	wd, _ := os.Getwd()
	e := &env{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, environ: os.Environ, now: time.Now, dir: wd,
		tty: term.IsTerminal(int(os.Stdout.Fd())), ttyIn: term.IsTerminal(int(os.Stdin.Fd())),
		set:    func() providers.Set { return *builtin.Set() },
		signal: interrupts,
		pid:    os.Getpid(),
	}
	e.width = 80
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 20 {
		e.width = w
	}
	return e
}

// interrupts gives two contexts: soft ends with the first SIGINT or SIGTERM, hard with the second.
func interrupts(notice io.Writer) (soft, hard context.Context, stop func()) {
	soft, cancelSoft := context.WithCancel(context.Background())
	hard, cancelHard := context.WithCancel(context.Background())
	ch := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-ch:
			}
			if n == 0 {
				fmt.Fprintln(notice, "\nInterrupted: finishing what is running, then saving. Interrupt again to stop at once.")
				cancelSoft()
				continue
			}
			fmt.Fprintln(notice, "\nStopping now.")
			cancelHard()
		}
	}()
	return soft, hard, func() {
		signal.Stop(ch)
		close(done)
		cancelSoft()
		cancelHard()
	}
}
