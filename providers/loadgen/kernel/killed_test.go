package kernel

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// holdEnv makes this test binary a process that only opens a port and holds it: "INTERFACE NETNS MODE".
const holdEnv = "PLUMB_TEST_HOLD_PORT"

func TestMain(m *testing.M) {
	if what := os.Getenv(holdEnv); what != "" {
		hold(what)
		return
	}
	os.Exit(m.Run())
}

func hold(what string) {
	var cfg Config
	if _, err := fmt.Sscan(what, &cfg.Interface, &cfg.Netns, &cfg.Mode); err != nil {
		panic(err)
	}
	p, err := Open(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.(*Port).Describe())
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed
}

func TestRealNothingIsLeftAfterSIGKILL(t *testing.T) {
	real(t)
	for _, mode := range []string{AFXDP, AFPacket} {
		t.Run(mode, func(t *testing.T) {
			a, b := pair(t, 1500, 1)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), holdEnv+"="+strings.Join([]string{a.name, a.netns, mode}, " "))
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			shown := run(t, a.netns, "ip", "-d", "link", "show", a.name)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if err != nil || !strings.HasPrefix(line, "AF_") {
				t.Fatalf("the process said %q (%v)", line, err)
			}
			if strings.Contains(shown, "prog/xdp") != (mode == AFXDP) || strings.Contains(shown, "promiscuity 0 ") {
				t.Errorf("while the port was open: %s", shown)
			}
			until(t, "the kernel has cleaned up", func() bool {
				out := run(t, a.netns, "ip", "-d", "link", "show", a.name)
				return !strings.Contains(out, "xdp") && strings.Contains(out, "promiscuity 0 ")
			})
			// And at once again, although the queue may be busy for a while.
			transfer(t, opened(t, a, Config{Mode: mode}), opened(t, b, Config{Mode: mode}), 100, func(int) int { return 60 })
		})
	}
}

func TestRealThreadsGoBackToTheirNamespace(t *testing.T) {
	real(t)
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := pair(t, 1500, 1)
	opened(t, a, Config{})
	if err := inNetns(a.netns, func() error {
		here, err := os.Readlink("/proc/thread-self/ns/net")
		if here == home {
			t.Error("not in the namespace")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil || len(tasks) == 0 {
		t.Fatal(tasks, err)
	}
	for _, task := range tasks {
		if ns, err := os.Readlink(task); err == nil && ns != home {
			t.Errorf("%s is %s, not %s", task, ns, home)
		}
	}
}
