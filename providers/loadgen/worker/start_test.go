package worker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plumb/providers"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/marked"
	"plumb/providers/internal/transport"
	"plumb/providers/loadgen/engine"
)

// fakeProgram builds testdata/fakeworker once.
var fakeProgram = sync.OnceValues(func() ([]byte, error) { return build("./testdata/fakeworker", "CGO_ENABLED=0") })

func build(pkg string, env ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "plumb-worker-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Env = append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.New(string(text))
	}
	return os.ReadFile(out)
}

// elsewhere is this machine as if it were another, with a folder of its own for workers.
func elsewhere(t *testing.T, conn providers.Conn) Place {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "plumb-worker-*") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if conn == nil {
		conn = transport.NewLocal("tg")
	}
	return Place{
		Host: hostkit.New("tg", conn, nil), Mark: providers.Mark{Testbed: "worker-test-" + filepath.Base(dir), Address: "generator.loadgen.tg"},
		Program: fakeProgram, Log: func(s string) { t.Log(s) }, Group: filepath.Join(dir, "g"),
	}
}

// left is what a place holds.
func left(t *testing.T, p Place) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(p.Group, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != p.Group {
			out = append(out, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// pid is that of the one worker of a place.
func pid(t *testing.T, p Place) int {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(p.Group, "*", "pid"))
	if len(names) != 1 {
		t.Fatalf("pid files: %v", names)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func process(p Place) marked.Process {
	return marked.Process{Conn: p.Host.Conn(), Mark: p.Mark, Dir: filepath.Join(p.Group, marked.Name(p.Mark.Address))}
}

// gone waits until the worker of a place has ended by itself.
func gone(t *testing.T, p Place) {
	t.Helper()
	if err := marked.Poll(t.Context(), 30*time.Second, func() (bool, error) {
		pid, err := process(p).Find(t.Context())
		return pid == 0, err
	}); err != nil {
		t.Fatalf("the worker did not end: %v", err)
	}
}

func TestStart(t *testing.T) {
	p := elsewhere(t, nil)
	c, err := Start(t.Context(), p, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	id := pid(t, p)
	if st, err := os.Stat(filepath.Join(process(p).Dir)); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", st, err)
	}
	if res, err := c.Run(t.Context(), engine.Request{Streams: oneStream.Streams, Frames: 7}, nil, 0); err != nil || res.Directions[0].Received != 7 {
		t.Errorf("%+v, %v", res, err)
	}
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if l := left(t, p); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
	if err := syscall.Kill(id, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", id, err)
	}
}

func TestStartFails(t *testing.T) {
	dynamic := func() ([]byte, error) { return os.ReadFile("/bin/sh") }
	otherMachine := func() ([]byte, error) {
		b, err := fakeProgram()
		b = append([]byte(nil), b...)
		if err == nil {
			b[18], b[19] = 0xf3, 0 // e_machine: RISC-V
		}
		return b, err
	}
	on := func(name string) Open { return Open{Ports: []PortSpec{{Kind: AFPacket, Interface: name}}} }
	for _, c := range []struct {
		name    string
		open    Open
		program func() ([]byte, error)
		why     string
	}{
		{"a port cannot be opened", on("missing"), fakeProgram, "generator on host tg: there is no interface missing"},
		{"the worker crashes", on("panic"), fakeProgram, "panic: as asked"},
		{"it is not static", twoPorts, dynamic, "not a static program"},
		{"it is not a program", twoPorts, func() ([]byte, error) { return []byte("#!/bin/sh\n"), nil }, "not a Linux program"},
		{"another kind of machine", twoPorts, otherMachine, "this plumb was built for riscv64"},
		{"it cannot be read", twoPorts, func() ([]byte, error) { return nil, fs.ErrNotExist }, "read the program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := elsewhere(t, nil)
			p.Program = c.program
			if _, err := Start(t.Context(), p, c.open); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v; want an error with %q", err, c.why)
			}
			if l := left(t, p); len(l) > 0 {
				t.Errorf("left behind: %v", l)
			}
		})
	}
}

// damaging is a connection that loses a bit of every program.
type damaging struct{ providers.Conn }

func (d damaging) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	data = append([]byte(nil), data...)
	data[len(data)-1] ^= 1
	return d.Conn.WriteFile(ctx, path, data, mode)
}

func (d damaging) Start(context.Context, providers.Process) error {
	return errors.New("a damaged program was started")
}

func TestDamagedCopyIsNotStarted(t *testing.T) {
	p := elsewhere(t, damaging{transport.NewLocal("tg")})
	if _, err := Start(t.Context(), p, twoPorts); err == nil || !strings.Contains(err.Error(), "the copy of the generator is damaged") {
		t.Error(err)
	}
	if l := left(t, p); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
}

// TestWorkerEndsWithItsClient: a Plumb that is killed in the middle of a trial leaves a folder, but no process; and Sweep removes the folder.
func TestWorkerEndsWithItsClient(t *testing.T) {
	p := elsewhere(t, nil)
	c, err := Start(t.Context(), p, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	running := make(chan error, 1)
	go func() { _, err := c.Run(context.Background(), oneStream, nil, 0); running <- err }()
	c.link.conn.Close() // what the kernel does for a process that is killed
	gone(t, p)
	if err := within(t, running); err == nil {
		t.Error("a trial ended well without a worker")
	}
	if l := left(t, p); len(l) == 0 {
		t.Error("nothing is left to sweep")
	}
	if err := sweep(t.Context(), p.Host, p.Group, p.Mark.Testbed); err != nil {
		t.Fatal(err)
	}
	if l := left(t, p); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
}

// TestSweep ends live workers with the testbed's mark, and no others.
func TestSweep(t *testing.T) {
	p := elsewhere(t, nil)
	if err := sweep(t.Context(), p.Host, p.Group, p.Mark.Testbed); err != nil {
		t.Fatalf("with nothing there: %v", err)
	}
	c, err := Start(t.Context(), p, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	// A pid that is somebody else's by now: a process without the mark in a folder of the group.
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	stale := filepath.Join(p.Group, "stale")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"pid": strconv.Itoa(other.Process.Pid), "exit": "0"} {
		if err := os.WriteFile(filepath.Join(stale, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A folder whose worker was never started.
	if err := os.MkdirAll(filepath.Join(p.Group, "early"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Group, "early", stamp), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sweep(t.Context(), p.Host, p.Group, p.Mark.Testbed); err != nil {
		t.Fatal(err)
	}
	if l := left(t, p); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
	if id, err := process(p).Find(t.Context()); id != 0 || err != nil {
		t.Errorf("the worker lives: %d, %v", id, err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process: %v", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("closing what was swept: %v", err)
	}
}

// A worker that another testbed's Plumb started in the same folder would not be ended.
func TestSweepLeavesOtherTestbeds(t *testing.T) {
	p := elsewhere(t, nil)
	c, err := Start(t.Context(), p, twoPorts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	id := pid(t, p)
	// The folder goes, as it does not belong to a live process of that testbed, but nobody ends the process.
	other := process(p)
	other.Mark.Testbed = "another"
	if found, err := other.Find(t.Context()); found != 0 || err != nil {
		t.Errorf("%d, %v", found, err)
	}
	if err := other.End(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(id, 0); err != nil {
		t.Errorf("it was ended: %v", err)
	}
}

func TestSocketPathTooLong(t *testing.T) {
	p := elsewhere(t, nil)
	p.Group = "/" + strings.Repeat("x", 100)
	if _, err := Start(t.Context(), p, twoPorts); err == nil || !strings.Contains(err.Error(), "at most 107 bytes") {
		t.Error(err)
	}
}
