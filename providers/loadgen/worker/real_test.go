package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"plumb/providers"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/marked"
	"plumb/providers/internal/transport"
	"plumb/providers/loadgen/engine"
)

// victimEnv makes this binary a client that is to be killed: its value is the program, the mark's testbed, and two ports.
const victimEnv = "PLUMB_TEST_VICTIM"

func TestMain(m *testing.M) {
	if v := os.Getenv(victimEnv); v != "" {
		victim(strings.Split(v, "|"))
	}
	os.Exit(m.Run())
}

// victim starts a trial of an hour, says so, and waits to be killed.
func victim(args []string) {
	p := remotePlace(func() ([]byte, error) { return os.ReadFile(args[0]) }, args[1])
	c, err := Start(context.Background(), p, onPorts(args[2:]))
	if err == nil {
		fmt.Println("started")
		_, err = c.Run(context.Background(), hourOf(1000), nil, 0)
	}
	fmt.Println(err)
	os.Exit(1)
}

// realProgram builds the real plumb once, as `make build` does.
var realProgram = sync.OnceValues(func() ([]byte, error) { return build("plumb/cmd/plumb", "CGO_ENABLED=0") })

// notHere is a connection to this machine that does not say so.
type notHere struct{ providers.Conn }

func remotePlace(program func() ([]byte, error), testbed string) Place {
	return Place{Host: hostkit.New("tg", notHere{transport.NewLocal("tg")}, nil), Mark: providers.Mark{Testbed: testbed, Address: "generator.loadgen.tg"}, Program: program}
}

func onPorts(specs []string) Open {
	cpus := engine.Config{CPUs: []int{0}, Idle: 50 * time.Microsecond}
	o := Open{Engine: cpus}
	for _, s := range specs {
		p, err := ParsePort(s)
		if err != nil {
			panic(err)
		}
		o.Ports = append(o.Ports, p)
	}
	return o
}

func hourOf(load float64) engine.Request {
	udp := providers.Traffic{FrameSize: 64, Headers: "udp", Flows: 10}
	return engine.Request{Streams: []engine.Stream{{From: 0, To: 1, Traffic: udp}}, Load: load, Duration: time.Hour, Drain: 2 * time.Second}
}

// veth makes a veth pair, each end in a network namespace of its own, and returns both as ParsePort reads them.
func veth(t *testing.T) []string {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("needs root: set PLUMB_REAL=1")
	}
	sh := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	name := fmt.Sprintf("plumb-worker-%d", os.Getpid())
	for _, side := range []string{"a", "b"} {
		sh("netns", "add", name+side)
		t.Cleanup(func() { sh("netns", "del", name+side) })
	}
	sh("link", "add", "lg0", "netns", name+"a", "type", "veth", "peer", "name", "lg1", "netns", name+"b")
	sh("-n", name+"a", "link", "set", "lg0", "up")
	sh("-n", name+"b", "link", "set", "lg1", "up")
	return []string{"af_packet:lg0@" + name + "a", "af_packet:lg1@" + name + "b"}
}

func realPlace(t *testing.T) Place {
	t.Helper()
	if _, err := realProgram(); err != nil {
		t.Fatal(err)
	}
	p := remotePlace(realProgram, fmt.Sprintf("worker-test-%d", os.Getpid()))
	p.Log = func(s string) { t.Log(s) }
	if providers.ThisMachine(p.Host.Conn()) {
		t.Fatal("the test would not go the way to another machine")
	}
	return p
}

// nothingLeft checks that neither process nor folder is there.
func nothingLeft(t *testing.T, p Place) {
	t.Helper()
	if dirs, _ := filepath.Glob(marked.Group(p.Mark.Testbed, kind)); len(dirs) > 0 {
		t.Errorf("left behind: %v", dirs)
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, e := range environs {
		if b, _ := os.ReadFile(e); strings.Contains(string(b), "PLUMB_TESTBED="+p.Mark.Testbed+"\x00") {
			t.Errorf("left behind: %s", e)
		}
	}
}

// TestRealWorker measures with the real plumb, copied and started as on another machine.
func TestRealWorker(t *testing.T) {
	ports := veth(t)
	p := realPlace(t)
	c, err := Start(t.Context(), p, onPorts(ports))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if r := c.Ready(); len(r.Ports) != 2 || !strings.Contains(r.Ports[0].Kind, "AF_PACKET") || r.Ports[0].MaxFrame < 1514 {
		t.Errorf("%+v", r)
	}
	for range 2 {
		r := hourOf(2000)
		r.Duration = time.Second
		disturbed := 0
		res, err := c.Run(t.Context(), r, func(context.Context) error { disturbed++; return nil }, 200*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		d := res.Directions[0]
		if d.Sent == 0 || d.Received != d.Sent || d.Sent+d.Unsent+res.Behind != 2000 || disturbed != 1 || d.Latency == nil {
			t.Errorf("disturbed %d times, %+v", disturbed, res)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, p)
}

func TestRealWorkerWithoutPort(t *testing.T) {
	ports := veth(t)
	p := realPlace(t)
	_, err := Start(t.Context(), p, onPorts([]string{ports[0], "af_packet:plumb-none"}))
	if err == nil || !strings.Contains(err.Error(), "generator on host tg: open port af_packet:plumb-none: ") {
		t.Error(err)
	}
	nothingLeft(t, p)
}

// TestRealWorkerOfKilledClient: a Plumb that is killed by SIGKILL in the middle of a trial leaves no process on the other host, and the next one removes the rest.
func TestRealWorkerOfKilledClient(t *testing.T) {
	ports := veth(t)
	p := realPlace(t)
	content, err := realProgram()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "plumb")
	if err := os.WriteFile(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client := exec.Command(self)
	client.Env = append(os.Environ(), victimEnv+"="+strings.Join(append([]string{program, p.Mark.Testbed}, ports...), "|"))
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if said != "started\n" {
		rest, _ := io.ReadAll(out)
		t.Fatalf("%s%s%v", said, rest, err)
	}
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait()
	proc := marked.Process{Conn: p.Host.Conn(), Mark: p.Mark, Dir: filepath.Join(marked.Group(p.Mark.Testbed, kind), marked.Name(p.Mark.Address))}
	if err := marked.Poll(t.Context(), 60*time.Second, func() (bool, error) {
		pid, err := proc.Find(t.Context())
		return pid == 0, err
	}); err != nil {
		t.Errorf("the worker did not end: %v", err)
	}
	if err := Sweep(t.Context(), p.Host, p.Mark.Testbed); err != nil {
		t.Error(err)
	}
	nothingLeft(t, p)
}
