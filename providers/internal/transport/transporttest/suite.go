// Package transporttest is the suite that every providers.Conn passes, the fake one too.
package transporttest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"plumb/providers"
)

// Host is what the suite runs on.
type Host struct {
	Conn providers.Conn
	Dir  string // an empty folder on the host
	// Echo is the address of a unix socket where a server sends back what it gets.
	Echo string
	// Real says that commands are real ones. A fake host has cat, printenv, sleep, kill, true, false, mkdir, and its processes have no
	// console.
	Real bool
	// Keep is another connection to the host, for what is done after Conn was closed. nil: Conn can be used then too.
	Keep providers.Conn
}

// Limit is how long the suite waits for what must happen.
const Limit = time.Minute

// Run runs the suite. open is called for every test.
func Run(t *testing.T, open func(t *testing.T) Host) {
	for _, c := range []struct {
		name string
		real bool
		test func(*testing.T, Host)
	}{
		{"RunGivesOutputAndInput", false, runOutput},
		{"RunPassesEnvironment", false, runEnvironment},
		{"RunTellsExitStatus", false, runExit},
		{"RunTellsUnknownCommand", false, runUnknown},
		{"RunEndsWithContext", false, runContext},
		{"RunEndsWithTimeout", false, runTimeout},
		{"RunKillsTheGroup", true, runGroup},
		{"RunTakesAnyArgument", true, runArguments},
		{"ReadFiles", false, readFiles},
		{"ReadFilesTellsWhatItCannot", false, readUnreadable},
		{"WriteFileReplaces", false, writeReplaces},
		{"WriteFileNeedsItsFolder", false, writeNoFolder},
		{"StartSupervises", false, startSupervises},
		{"StartRefusesALiveFolder", false, startTwice},
		{"StartAgain", false, startAgain},
		{"StartWritesTheLogAndReadsTheConsole", true, startConsole},
		{"StartDetaches", true, startDetaches},
		{"StartTellsUnknownCommand", true, startUnknown},
		{"Dial", false, dial},
		{"DialDeadline", false, dialDeadline},
		{"DialNobody", false, dialNobody},
		{"CancelledContext", false, cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			if c.real && !h.Real {
				return // what only a real shell can do is no part of a fake
			}
			c.test(t, h)
		})
	}
}

func (h Host) run(t *testing.T, args ...string) string {
	t.Helper()
	res, err := h.Conn.Run(t.Context(), providers.Cmd{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Stdout)
}

func (h Host) read(t *testing.T, name string) (string, bool) {
	t.Helper()
	m, err := h.Conn.ReadFiles(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	b, ok := m[name]
	return string(b), ok
}

// await reads a file until it holds what is wanted.
func (h Host) await(t *testing.T, name string, ok func(string) bool) string {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(Limit)
	for {
		s, exists := h.read(t, name)
		if exists && ok(s) {
			return s
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s is %q (there: %v) after %s", name, s, exists, Limit)
		}
	}
}

func runOutput(t *testing.T, h Host) {
	in := strings.Repeat("frames and \x00 bytes\n", 10000)
	res, err := h.Conn.Run(t.Context(), providers.Cmd{Args: []string{"cat"}, Stdin: []byte(in)})
	if err != nil || string(res.Stdout) != in || len(res.Stderr) > 0 || res.Exit != 0 {
		t.Fatalf("%d bytes, stderr %q, exit %d, %v", len(res.Stdout), res.Stderr, res.Exit, err)
	}
	if got := h.run(t, "cat"); got != "" {
		t.Fatalf("without input: %q", got)
	}
}

func runEnvironment(t *testing.T, h Host) {
	v := "a b'c\"$d"
	res, err := h.Conn.Run(t.Context(), providers.Cmd{Args: []string{"printenv", "PLUMB_X"}, Env: []string{"PLUMB_X=" + v}})
	if err != nil || string(res.Stdout) != v+"\n" {
		t.Fatalf("%q, %v", res.Stdout, err)
	}
}

func runExit(t *testing.T, h Host) {
	res, err := h.Conn.Run(t.Context(), providers.Cmd{Args: []string{"cat", h.Dir + "/none"}})
	var exit *providers.ExitError
	if !errors.As(err, &exit) || exit.Exit != 1 || res.Exit != 1 || exit.Args[0] != "cat" || exit.Host == "" {
		t.Fatalf("%#v, %v", res, err)
	}
	if !strings.Contains(string(res.Stderr), "No such file") || !strings.Contains(err.Error(), "No such file") {
		t.Fatalf("stderr %q, error %v", res.Stderr, err)
	}
}

func runUnknown(t *testing.T, h Host) {
	_, err := h.Conn.Run(t.Context(), providers.Cmd{Args: []string{"plumb-no-such-command"}})
	var exit *providers.ExitError
	if !errors.As(err, &exit) || exit.Exit != 127 {
		t.Fatal(err)
	}
	if _, err := h.Conn.Run(t.Context(), providers.Cmd{}); err == nil {
		t.Fatal("no command at all was run")
	}
}

func runContext(t *testing.T, h Host) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := h.Conn.Run(ctx, providers.Cmd{Args: []string{"sleep", "1000"}})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func runTimeout(t *testing.T, h Host) {
	_, err := h.Conn.Run(t.Context(), providers.Cmd{Args: []string{"sleep", "1000"}, Timeout: 50 * time.Millisecond})
	var exit *providers.ExitError
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &exit) {
		t.Fatal(err)
	}
}

func runGroup(t *testing.T, h Host) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	script := `sleep 1000 & echo $! >"$1/child.new"; mv "$1/child.new" "$1/child"; wait`
	go func() {
		_, err := h.Conn.Run(ctx, providers.Cmd{Args: []string{"sh", "-c", script, "sh", h.Dir}})
		done <- err
	}()
	pid := strings.TrimSpace(h.await(t, h.Dir+"/child", func(string) bool { return true }))
	cancel()
	<-done
	h.gone(t, pid)
}

// gone waits until a process has ended; a zombie that nobody reaps has.
func (h Host) gone(t *testing.T, pid string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(Limit)
	for {
		s, ok := h.read(t, "/proc/"+pid+"/stat")
		if !ok || strings.Contains(s, ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("process %s is alive: %s", pid, s)
		}
	}
}

func runArguments(t *testing.T, h Host) {
	args := []string{"", " ", "'", `"`, "$(id)", "`id`", "a\nb", "*", "~", "-n", "\\", "ü", "a;b", "#x", "!x", "A=b"}
	got := h.run(t, append([]string{"sh", "-c", `printf '%s\001' "$@"`, "sh"}, args...)...)
	if got != strings.Join(args, "\x01")+"\x01" {
		t.Fatalf("%q", got)
	}
}

func readFiles(t *testing.T, h Host) {
	for _, f := range []string{"a1", "a2", "b1"} {
		if err := h.Conn.WriteFile(t.Context(), h.Dir+"/"+f, []byte(f+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h.run(t, "mkdir", "-p", h.Dir+"/a3/deep")
	got, err := h.Conn.ReadFiles(t.Context(), h.Dir+"/a*", h.Dir+"/b1", h.Dir+"/none", h.Dir+"/none/*", h.Dir+"/b1/below")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || string(got[h.Dir+"/a2"]) != "a2\n" || string(got[h.Dir+"/b1"]) != "b1\n" {
		t.Fatalf("%q", got)
	}
	if _, err := h.Conn.ReadFiles(t.Context(), h.Dir+"/["); err == nil {
		t.Fatal("a bad pattern was taken")
	}
	if _, err := h.Conn.ReadFiles(t.Context(), "relative"); err == nil {
		t.Fatal("a relative path was taken")
	}
}

func readUnreadable(t *testing.T, h Host) {
	if err := h.Conn.WriteFile(t.Context(), h.Dir+"/x", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := h.Conn.ReadFiles(t.Context(), h.Dir+"/x", h.Dir)
	if err == nil || string(got[h.Dir+"/x"]) != "x" {
		t.Fatalf("a folder was read as a file: %q, %v", got, err)
	}
}

func writeReplaces(t *testing.T, h Host) {
	name := h.Dir + "/f"
	for _, s := range []string{"one", "two, longer", ""} {
		if err := h.Conn.WriteFile(t.Context(), name, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := h.read(t, name); !ok || got != s {
			t.Fatalf("%q, %v", got, ok)
		}
	}
	all, err := h.Conn.ReadFiles(t.Context(), h.Dir+"/*", h.Dir+"/.*")
	if err != nil || len(all) != 1 {
		t.Fatalf("left behind: %q, %v", all, err)
	}
}

func writeNoFolder(t *testing.T, h Host) {
	if err := h.Conn.WriteFile(t.Context(), h.Dir+"/none/f", nil, 0o644); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := h.Conn.WriteFile(t.Context(), "f", nil, 0o644); err == nil {
		t.Fatal("a relative path was taken")
	}
}

// start starts a process that the test ends.
func (h Host) start(t *testing.T, dir string, args ...string) (pid string) {
	t.Helper()
	err := h.Conn.Start(t.Context(), providers.Process{Dir: dir, Args: args, Env: []string{"PLUMB_MARK=a b'c", "PLUMB_TWO=2"}})
	if err != nil {
		t.Fatal(err)
	}
	s, ok := h.read(t, dir+"/pid")
	pid = strings.TrimSpace(s)
	if n, err := strconv.Atoi(pid); !ok || err != nil || n < 2 {
		t.Fatalf("pid file %q right after Start", s)
	}
	conn := h.Conn
	if h.Keep != nil {
		conn = h.Keep
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Limit)
		defer cancel()
		if m, _ := conn.ReadFiles(ctx, dir+"/exit"); len(m) > 0 {
			return
		}
		_, _ = conn.Run(ctx, providers.Cmd{Args: []string{"kill", "-KILL", pid}})
		// The supervisor writes into the folder once more, and only then may the folder be removed.
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if m, _ := conn.ReadFiles(ctx, dir+"/exit"); len(m) > 0 {
				return
			}
			<-tick.C
		}
		t.Errorf("%s: no exit status after SIGKILL", dir)
	})
	return pid
}

func startSupervises(t *testing.T, h Host) {
	dir := h.Dir + "/deep/p"
	pid := h.start(t, dir, "sleep", "1000")
	cmdline := h.await(t, "/proc/"+pid+"/cmdline", func(s string) bool { return strings.HasPrefix(s, "sleep") })
	if cmdline != "sleep\x001000\x00" {
		t.Fatalf("%q", cmdline)
	}
	env, _ := h.read(t, "/proc/"+pid+"/environ")
	if all := "\x00" + env; !strings.Contains(all, "\x00PLUMB_MARK=a b'c\x00") || !strings.Contains(all, "\x00PLUMB_TWO=2\x00") || strings.Contains(all, "PLUMB_ENV_") {
		t.Fatalf("%q", env)
	}
	// Some processes may not be looked at, by root neither in a container; the others come beside the error.
	marked, err := h.Conn.ReadFiles(t.Context(), "/proc/[0-9]*/environ")
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	if len(marked) == 0 {
		t.Fatal("no process can be looked at")
	}
	for name, e := range marked {
		if strings.Contains("\x00"+string(e), "\x00PLUMB_MARK=a b'c\x00") && name != "/proc/"+pid+"/environ" {
			t.Errorf("%s carries the mark of process %s", name, pid)
		}
	}
	if _, ok := h.read(t, dir+"/exit"); ok {
		t.Fatal("an exit status of a live process")
	}
	h.run(t, "kill", "-TERM", pid)
	if got := h.await(t, dir+"/exit", func(string) bool { return true }); got != "143\n" {
		t.Fatalf("exit %q", got)
	}
	h.gone(t, pid)
}

func startTwice(t *testing.T, h Host) {
	dir := h.Dir + "/p"
	pid := h.start(t, dir, "sleep", "1000")
	err := h.Conn.Start(t.Context(), providers.Process{Dir: dir, Args: []string{"sleep", "1"}})
	if err == nil || !strings.Contains(err.Error(), "live process, "+pid) {
		t.Fatal(err)
	}
	if s, _ := h.read(t, dir+"/pid"); strings.TrimSpace(s) != pid {
		t.Fatalf("pid is %q", s)
	}
	if err := h.Conn.Start(t.Context(), providers.Process{Dir: "relative", Args: []string{"sleep", "1"}}); err == nil {
		t.Fatal("a relative folder was taken")
	}
	if err := h.Conn.Start(t.Context(), providers.Process{Dir: h.Dir + "/q"}); err == nil {
		t.Fatal("no command at all was started")
	}
}

func startAgain(t *testing.T, h Host) {
	dir := h.Dir + "/p"
	pid := h.start(t, dir, "sleep", "1000")
	h.run(t, "kill", "-KILL", pid)
	if got := h.await(t, dir+"/exit", func(string) bool { return true }); got != "137\n" {
		t.Fatalf("exit %q", got)
	}
	if again := h.start(t, dir, "sleep", "1000"); again == pid {
		t.Fatalf("the same pid %s", pid)
	}
	if _, ok := h.read(t, dir+"/exit"); ok {
		t.Fatal("the exit status of the first process is still there")
	}
}

func startConsole(t *testing.T, h Host) {
	dir := h.Dir + "/p"
	h.start(t, dir, "sh", "-c", `echo out; echo err >&2; while read -r l; do echo "got $l"; [ "$l" = end ] && exit 7; done; echo EOF`)
	h.await(t, dir+"/log", func(s string) bool { return strings.Contains(s, "out\nerr\n") })
	for _, l := range []string{"one", "end"} { // each writer closes the FIFO again
		h.run(t, "sh", "-c", `echo "$2" >"$1/stdin"`, "sh", dir, l)
		h.await(t, dir+"/log", func(s string) bool { return strings.Contains(s, "got "+l) })
	}
	if got := h.await(t, dir+"/exit", func(string) bool { return true }); got != "7\n" {
		t.Fatalf("exit %q", got)
	}
	if log, _ := h.read(t, dir+"/log"); strings.Contains(log, "EOF") {
		t.Fatal("the console reported end of file")
	}
}

func startDetaches(t *testing.T, h Host) {
	dir := h.Dir + "/p"
	pid := h.start(t, dir, "sh", "-c", `ls /proc/$$/fd; echo "session $(cut -d ' ' -f 6 /proc/$$/stat) int $(grep SigIgn /proc/$$/status)"; exec sleep 1000`)
	log := h.await(t, dir+"/log", func(s string) bool { return strings.Contains(s, "SigIgn") })
	if !strings.HasPrefix(log, "0\n1\n2\nsession ") {
		t.Errorf("open files: %q", log)
	}
	mask, err := strconv.ParseUint(strings.TrimSpace(log[strings.LastIndexByte(log, ':')+1:]), 16, 64)
	if err != nil || mask&0b10 != 0 {
		t.Errorf("SIGINT is ignored: %q", log)
	}
	ours := strings.Fields(h.run(t, "sh", "-c", `cut -d ' ' -f 6 /proc/$$/stat`))[0]
	if strings.Contains(log, "session "+ours+" ") {
		t.Errorf("the process is in our session %s", ours)
	}
	// It outlives whoever started it: closing the connection ends nothing.
	if err := h.Conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + pid); err != nil {
		t.Fatal(err)
	}
}

func startUnknown(t *testing.T, h Host) {
	dir := h.Dir + "/p"
	if err := h.Conn.Start(t.Context(), providers.Process{Dir: dir, Args: []string{"plumb-no-such-command"}}); err != nil {
		t.Fatal(err)
	}
	if got := h.await(t, dir+"/exit", func(string) bool { return true }); got != "127\n" {
		t.Fatalf("exit %q", got)
	}
	if log, _ := h.read(t, dir+"/log"); !strings.Contains(log, "not found") {
		t.Fatalf("log %q", log)
	}
}

func (h Host) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := h.Conn.Dial(t.Context(), "unix", h.Echo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func dial(t *testing.T, h Host) {
	c := h.dial(t)
	for _, s := range []string{"one", "three"} {
		if _, err := io.WriteString(c, s); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(s))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != s {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("a closed connection was read")
	}
}

func dialDeadline(t *testing.T, h Host) {
	c := h.dial(t)
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}

func dialNobody(t *testing.T, h Host) {
	if _, err := h.Conn.Dial(t.Context(), "unix", h.Dir+"/none.sock"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := h.Conn.Dial(t.Context(), "udp", "127.0.0.1:1"); err == nil {
		t.Fatal("udp was dialled")
	}
}

func cancelled(t *testing.T, h Host) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := h.Conn
	_, runErr := c.Run(ctx, providers.Cmd{Args: []string{"cat"}})
	_, readErr := c.ReadFiles(ctx, "/proc/*/stat")
	_, dialErr := c.Dial(ctx, "unix", h.Echo)
	for i, err := range []error{runErr, readErr, dialErr,
		c.WriteFile(ctx, h.Dir+"/f", nil, 0o644),
		c.Start(ctx, providers.Process{Dir: h.Dir + "/p", Args: []string{"sleep", "1000"}})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if all, _ := c.ReadFiles(t.Context(), h.Dir+"/*"); len(all) > 0 {
		t.Errorf("left behind: %q", all)
	}
}
