package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"plumb/providers"
	"plumb/providers/internal/transport"
	"plumb/providers/internal/transport/sshtest"
)

func wants(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, providers.ErrUnreachable) {
		t.Errorf("not an error of a host that is out of reach: %v", err)
		return
	}
	for _, w := range texts {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

// The connection is cut at twenty moments of each method, from the first byte of the handshake on. What was under way fails with an error that says so, or was done; the next
// call works; nothing is half written.
func TestSSHCutAtEachMoment(t *testing.T) {
	dir := t.TempDir()
	sock, starts := echo(t), 0
	limit := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		return ctx
	}
	methods := map[string]func(*testing.T, *transport.SSH) error{
		"Run": func(t *testing.T, c *transport.SSH) error {
			res, err := c.Run(limit(t), providers.Cmd{Args: []string{"sh", "-c", `cat; head -c 20000 /dev/zero`}, Stdin: make([]byte, 20000)})
			if err == nil && len(res.Stdout) != 40000 {
				t.Errorf("%d bytes came without an error", len(res.Stdout))
			}
			return err
		},
		"ReadFiles": func(t *testing.T, c *transport.SSH) error {
			m, err := c.ReadFiles(limit(t), dir+"/big")
			if err == nil && len(m[dir+"/big"]) != 40000 {
				t.Errorf("%d bytes came without an error", len(m[dir+"/big"]))
			}
			return err
		},
		"WriteFile": func(t *testing.T, c *transport.SSH) error {
			return c.WriteFile(limit(t), dir+"/written", []byte(strings.Repeat("n", 40000)), 0o644)
		},
		"Start": func(t *testing.T, c *transport.SSH) error {
			starts++ // what the cut left may still be at work in the folder
			return c.Start(limit(t), providers.Process{Dir: fmt.Sprintf("%s/p%d", dir, starts), Args: []string{"true", strings.Repeat("x", 20000)}})
		},
		"Dial": func(t *testing.T, c *transport.SSH) error {
			conn, err := c.Dial(limit(t), "unix", sock)
			if err != nil {
				return err
			}
			defer conn.Close()
			go func() { _, _ = conn.Write(make([]byte, 20000)) }()
			if _, err := io.ReadFull(conn, make([]byte, 20000)); err != nil {
				return fmt.Errorf("%w: the stream was cut: %w", providers.ErrUnreachable, err)
			}
			return nil
		},
	}
	if err := os.WriteFile(dir+"/big", make([]byte, 40000), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, call := range methods {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil, sshtest.Options{})
			failed := 0
			for moment := range 20 {
				if err := os.WriteFile(dir+"/written", []byte(strings.Repeat("o", 40000)), 0o644); err != nil {
					t.Fatal(err)
				}
				c := client(t, s, nil)
				if moment >= 5 { // after the login
					if err := c.Open(t.Context()); err != nil {
						t.Fatal(err)
					}
					s.CutAfter(int64((moment - 5) * 3000))
				} else {
					s.CutAfter(int64(moment * 500))
				}
				if err := call(t, c); err != nil {
					failed++
					wants(t, err)
				}
				if b, err := os.ReadFile(dir + "/written"); err != nil || len(b) != 40000 || strings.Trim(string(b), string(b[:1])) != "" {
					t.Errorf("moment %d: the file is neither the old nor the new one: %d bytes, %v", moment, len(b), err)
				}
				s.CutAfter(1 << 40)
				if err := call(t, c); err != nil {
					t.Errorf("moment %d: the next call: %v", moment, err)
				}
				_ = c.Close()
			}
			if failed == 0 {
				t.Error("no call was cut")
			}
		})
	}
}

// A cut does not leave the command running beside what comes next.
func TestSSHCutEndsTheCommand(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, nil, sshtest.Options{})
	c := client(t, s, nil)
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), providers.Cmd{Args: []string{"sh", "-c", `echo $$ >"$1/pid.new"; mv "$1/pid.new" "$1/pid"; sleep 1000; :`, "sh", dir}})
		done <- err
	}()
	pid := ""
	until(t, func() bool {
		b, err := os.ReadFile(dir + "/pid")
		pid = strings.TrimSpace(string(b))
		return err == nil && s.Said() >= 2 // the client can know then what to end: the second line is the process group
	})
	s.Cut()
	wants(t, <-done, "sh on dut", "the connection was cut")
	if _, err := os.Stat("/proc/" + pid); err != nil {
		t.Fatal("the server ended the command, which sshd does not:", err)
	}
	if _, err := c.Run(t.Context(), providers.Cmd{Args: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { _, err := os.Stat("/proc/" + pid); return err != nil })
	if c.Connections() != 2 || s.Connections() != 2 {
		t.Errorf("%d and %d connections", c.Connections(), s.Connections())
	}
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it has not come true within a minute")
		}
	}
}

// Everything runs side by side on one connection, and all who wait share one new one after a cut.
func TestSSHSharesOneConnection(t *testing.T) {
	s := serve(t, nil, sshtest.Options{})
	c := client(t, s, nil)
	all := func() {
		var wait sync.WaitGroup
		for range 40 {
			wait.Go(func() {
				if _, err := c.Run(t.Context(), providers.Cmd{Args: []string{"true"}}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	all()
	if s.Connections() != 1 || s.Sessions() > 10 {
		t.Errorf("%d connections, %d sessions at a time", s.Connections(), s.Sessions())
	}
	s.Cut()
	all()
	if s.Connections() != 2 {
		t.Errorf("%d connections after a cut", s.Connections())
	}
}

func TestSSHLowersItsSessions(t *testing.T) {
	s := serve(t, nil, sshtest.Options{MaxSessions: 2})
	c := client(t, s, nil)
	var wait sync.WaitGroup
	for range 30 {
		wait.Go(func() {
			if _, err := c.Run(t.Context(), providers.Cmd{Args: []string{"true"}}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if s.Sessions() > 2 {
		t.Errorf("%d sessions at a time", s.Sessions())
	}
}

// Reads that come while one is under way go together.
func TestReadFilesShareRoundTrips(t *testing.T) {
	var commands atomic.Int32
	held, release := make(chan struct{}), make(chan struct{})
	s := serve(t, nil, sshtest.Options{Before: func(request string) {
		if request == "exec" && commands.Add(1) == 1 {
			close(held)
			<-release
		}
	}})
	c := client(t, s, nil)
	var wait sync.WaitGroup
	read := func(name string) {
		if m, err := c.ReadFiles(t.Context(), name); err != nil || len(m) != 1 {
			t.Errorf("%d files, %v", len(m), err)
		}
	}
	wait.Go(func() { read("/proc/version") })
	<-held
	for range 20 {
		wait.Go(func() { read("/proc/uptime") })
	}
	until(t, func() bool { return c.Waiting() == 20 })
	close(release)
	wait.Wait()
	if n := commands.Load(); n != 2 {
		t.Errorf("%d commands", n)
	}
}

// A server that takes the connection and says nothing is an error after the time limit.
func TestSSHConnectTimeout(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, nil, sshtest.Options{Before: func(request string) {
		if request == "connect" {
			<-release
		}
	}})
	t.Cleanup(func() { close(release) }) // before the server's end
	c := client(t, s, func(c *transport.SSHConfig) { c.Timeout = 50 * time.Millisecond })
	wants(t, c.Open(t.Context()), "no SSH server has answered within 50ms")
}

// A host that answers nothing any more is given up, and whoever waits for it told.
func TestSSHKeepAlive(t *testing.T) {
	release := make(chan struct{})
	var silent atomic.Bool
	s := serve(t, nil, sshtest.Options{Before: func(request string) {
		if silent.Load() && (request == "keepalive@openssh.com" || request == "exec") {
			<-release
		}
	}})
	t.Cleanup(func() { close(release) })
	c := client(t, s, func(c *transport.SSHConfig) { c.KeepAlive = 20 * time.Millisecond })
	if err := c.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	_, err := c.Run(t.Context(), providers.Cmd{Args: []string{"true"}})
	wants(t, err, "the connection was cut")
}
