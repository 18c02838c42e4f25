package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"time"

	"plumb/providers"
	"plumb/providers/builtin"
)

// The crash test runs this test binary again as a plumb that is killed with SIGKILL at the n-th of the points that journal, state and steps
// tell of. What the parent asks for is in the environment, as JSON.
const crashEnv = "PLUMB_TEST_CRASH"

// victim is one plumb to be killed.
type victim struct {
	Dir   string   // working directory
	Host  string   // folder of the fake host; "" for this machine
	Args  []string // without the program's name
	At    int      // the point, from 1; 0: none
	Trace string   // file that the name of each point is added to; "" for none
}

// run runs the victim in this process and returns its exit code.
func (v victim) run(stdout, stderr io.Writer) int {
	e := &env{
		stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, getenv: func(string) string { return "" }, environ: func() []string { return nil },
		now: time.Now, dir: v.Dir, width: 100, pid: os.Getpid(), signal: interrupts,
		set: func() providers.Set { return *builtin.Set() },
	}
	if v.Host != "" {
		e.set = fakeSet(v.Host)
	}
	n := 0
	e.crash = func(point string) {
		n++
		if v.Trace != "" {
			f, err := os.OpenFile(v.Trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			fmt.Fprintln(f, point)
			f.Close()
		}
		if n == v.At {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return run(e, append([]string{"plumb"}, v.Args...))
}

// victimMain is the process's main when a parent asked for a victim.
func victimMain() (code int, asked bool) {
	job := os.Getenv(crashEnv)
	if job == "" {
		return 0, false
	}
	var v victim
	if err := json.Unmarshal([]byte(job), &v); err != nil {
		panic(err)
	}
	return v.run(os.Stdout, os.Stderr), true
}

// bed is a testbed that plumbs are killed on.
type bed struct {
	t    *testing.T
	dir  string
	host string
}

// plumb runs a plumb in a process of its own. It says whether the process was killed.
func (b *bed) plumb(at int, trace string, args ...string) (code int, killed bool, output string) {
	b.t.Helper()
	job, err := json.Marshal(victim{Dir: b.dir, Host: b.host, Args: args, At: at, Trace: trace})
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+string(job))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return 0, st.Signal() == syscall.SIGKILL, out.String()
	}
	return cmd.ProcessState.ExitCode(), false, out.String()
}

// must runs a plumb that has to do its work.
func (b *bed) must(args ...string) string {
	b.t.Helper()
	code, killed, out := b.plumb(0, "", args...)
	if code != exitOK || killed {
		b.t.Fatalf("plumb %s: exit status %d:\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// points runs a plumb and lists the points at which it can be killed.
func (b *bed) points(args ...string) []string {
	b.t.Helper()
	trace := filepath.Join(b.t.TempDir(), "trace")
	code, _, out := b.plumb(0, trace, args...)
	if code != exitOK {
		b.t.Fatalf("plumb %s: exit status %d:\n%s", strings.Join(args, " "), code, out)
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// kill runs a plumb that is killed at a point, and says whether it was: records that wait at the same time share a write, so that a run may have
// a few points less than the one before. A run that was not killed must have done its work.
func (b *bed) kill(at int, name string, args ...string) bool {
	b.t.Helper()
	code, killed, out := b.plumb(at, "", args...)
	if !killed && code != exitOK {
		b.t.Fatalf("plumb %s, to be killed at point %d (%s), ended with %d:\n%s", strings.Join(args, " "), at, name, code, out)
	}
	return killed
}

func (b *bed) snapshot() string { return b.must("snapshot") }

// restored checks that destroy puts everything back and leaves neither lock nor journal.
func (b *bed) restored(before, when string) {
	b.t.Helper()
	b.must("destroy", "-auto-approve")
	if after := b.snapshot(); after != before {
		b.t.Fatalf("%s: after destroy the host is not as it was (-before +after):\n%s", when, cmp.Diff(before, after))
	}
	for _, left := range []string{"plumb.state.json.lock", "plumb.state.journal"} {
		if _, err := os.Stat(filepath.Join(b.dir, left)); err == nil {
			b.t.Fatalf("%s: %s is left", when, left)
		}
	}
}

// walk kills an apply and a destroy at every point that choose takes. After each killed apply the next one must converge, and the destroy
// after it restore; after each killed destroy the next one must restore. A destroy must also do without an apply in between: both says to try both
// at every point of apply, otherwise they take turns.
func (b *bed) walk(choose func(point string) bool, both bool) {
	apply, destroy := []string{"apply", "-auto-approve", "-skip-bench"}, []string{"destroy", "-auto-approve"}
	before := b.snapshot()
	b.t.Cleanup(func() { b.plumb(0, "", destroy...) })
	ups := b.points(apply...)
	downs := b.points(destroy...)
	if after := b.snapshot(); after != before {
		b.t.Fatalf("without any kill the host is not as it was (-before +after):\n%s", cmp.Diff(before, after))
	}
	walked, missed := 0, 0
	for i, name := range ups {
		if !choose(name) {
			continue
		}
		walked++
		when := fmt.Sprintf("apply killed at point %d, %s", i+1, name)
		if both || walked%2 == 0 {
			if !b.kill(i+1, name, apply...) {
				missed++
			}
			b.restored(before, when+", then destroyed")
		}
		if both || walked%2 == 1 {
			if !b.kill(i+1, name, apply...) && !both {
				missed++
			}
			b.must(apply...)
			if code, _, out := b.plumb(0, "", "plan", "-detailed-exitcode"); code != exitOK {
				b.t.Fatalf("%s: after the next apply the plan is not empty (%d):\n%s", when, code, out)
			}
			b.restored(before, when)
		}
	}
	for i, name := range downs {
		if !choose(name) {
			continue
		}
		walked++
		b.must(apply...)
		if !b.kill(i+1, name, destroy...) {
			missed++
		}
		b.restored(before, fmt.Sprintf("destroy killed at point %d, %s", i+1, name))
	}
	b.t.Logf("%d points of apply, %d of destroy; killed at %d of them", len(ups), len(downs), walked-missed)
	if walked < 10 || missed > walked/10 {
		b.t.Errorf("killed at %d points, and not at %d", walked-missed, missed)
	}
}

// quickstart is a copy of the example.
func quickstart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	src, err := os.ReadFile("../../examples/quickstart/main.plumb.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.plumb.hcl"), src, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestKilledOnFakeHost walks every point.
func TestKilledOnFakeHost(t *testing.T) {
	b := &bed{t: t, dir: quickstart(t), host: filepath.Join(t.TempDir(), "host")}
	b.walk(func(string) bool { return true }, true)
}

// TestRealKilled walks the points around what a provider does to the world; the others are walked on the fake host.
func TestRealKilled(t *testing.T) {
	needReal(t)
	b := &bed{t: t, dir: quickstart(t)}
	b.walk(regexp.MustCompile(`^(before|after) (create|update|delete) of `).MatchString, false)
}
