package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"plumb/providers"
	"plumb/providers/fake"
)

// hostEnv names the folder of the fake host, killEnv the first point at which plumb ends as if it were killed.
const (
	hostEnv = "PLUMB_TEST_HOST"
	killEnv = "PLUMB_TEST_KILL"
)

// scriptCommands are the commands of the scripts: plumb, whose hosts are fake ones in files and so survive from one command to the next, and
// onhost, which runs a command on host dut as a person would.
func scriptCommands() map[string]func() {
	return map[string]func(){
		"plumb": func() {
			ownHelp()
			os.Exit(run(scriptEnv(), os.Args))
		},
		"onhost": func() { os.Exit(onHost(os.Args[1:])) },
	}
}

// TestScripts runs testdata/script/*.txtar: a session on the command line each.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			env.Setenv(hostEnv, filepath.Join(env.WorkDir, ".host"))
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			return nil
		},
	})
}

// exits runs a command that must end with just that status: exits 2 plumb plan -detailed-exitcode.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG ...]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

func scriptEnv() *env {
	e := osEnv()
	e.tty, e.width = false, 0
	e.set = fakeSet(os.Getenv(hostEnv))
	if at := os.Getenv(killEnv); at != "" {
		e.crash = func(point string) {
			if strings.Contains(point, at) {
				os.Exit(137)
			}
		}
	}
	return e
}

// onHost runs a command on the fake host dut.
func onHost(args []string) int {
	c, err := fake.Open(filepath.Join(os.Getenv(hostEnv), "dut"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	res, err := c.Run(context.Background(), providers.Cmd{Args: args})
	os.Stdout.Write(res.Stdout)
	os.Stderr.Write(res.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
