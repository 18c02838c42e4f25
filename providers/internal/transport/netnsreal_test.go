package transport_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plumb/providers"
	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/transporttest"
)

// netns makes a network namespace that ends with the test.
func netns(t *testing.T) string {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("needs root: set PLUMB_REAL=1")
	}
	name := fmt.Sprintf("plt-ssh-%d", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v", out, err)
		}
	})
	if out, err := exec.Command("ip", "-n", name, "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return name
}

func TestRealNetns(t *testing.T) {
	ns := netns(t)
	d := startSSHD(t)
	for name, parent := range map[string]func(*testing.T) providers.Conn{
		"here":   func(*testing.T) providers.Conn { return transport.NewLocal("here") },
		"by SSH": func(t *testing.T) providers.Conn { return d.open(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) transporttest.Host {
				return transporttest.Host{Conn: transport.NewNetns("vnf", ns, parent(t)), Dir: t.TempDir(), Echo: echo(t), Real: true}
			})
			c := transport.NewNetns("vnf", ns, parent(t))
			links, err := c.ReadFiles(t.Context(), "/sys/class/net/*/address")
			if err != nil || len(links) != 1 || string(links["/sys/class/net/lo/address"]) != "00:00:00:00:00:00\n" {
				t.Errorf("links: %q, %v", links, err)
			}
			const ttl = "/proc/sys/net/ipv4/ip_default_ttl"
			before, err := os.ReadFile(ttl)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.WriteFile(t.Context(), ttl, []byte("77\n"), 0o644); err != nil {
				t.Error(err)
			}
			inside, err := c.ReadFiles(t.Context(), ttl)
			if after, _ := os.ReadFile(ttl); err != nil || string(inside[ttl]) != "77\n" || string(after) != string(before) {
				t.Errorf("the namespace has %q, this machine had %q and has %q: %v", inside[ttl], before, after, err)
			}
			dialWithin(t, c, ns)
		})
	}
	gone := transport.NewNetns("vnf", ns+"x", transport.NewLocal("here"))
	_, err := gone.Run(t.Context(), providers.Cmd{Args: []string{"true"}})
	wants(t, err, "vnf cannot be reached: there is no network namespace "+ns+"x")
}

// dialWithin reaches a server that listens in the namespace only.
func dialWithin(t *testing.T, c *transport.Netns, ns string) {
	t.Helper()
	type answer struct {
		l   net.Listener
		err error
	}
	answers := make(chan answer)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		f, err := os.Open("/run/netns/" + ns)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		var l net.Listener
		if err == nil {
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		answers <- answer{l, err}
	}()
	a := <-answers
	if a.err != nil {
		t.Fatal(a.err)
	}
	defer a.l.Close()
	go echoOn(a.l)
	addr := a.l.Addr().String()
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		t.Fatalf("%s can be reached from outside", addr)
	}
	conn, err := c.Dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "frames\n"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 7)
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "frames\n" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := c.Dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
}
