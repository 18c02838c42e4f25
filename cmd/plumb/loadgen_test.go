package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"plumb/providers/loadgen/hand"
)

// veth makes a veth pair, each end in a network namespace of its own, and returns both as arguments of -port, without the kind.
func veth(t *testing.T) (a, b string) {
	t.Helper()
	name := fmt.Sprintf("plumb-hand-%d", os.Getpid())
	for _, side := range []string{"a", "b"} {
		sh(t, "ip", "netns", "add", name+side)
		t.Cleanup(func() { sh(t, "ip", "netns", "del", name+side) })
	}
	sh(t, "ip", "link", "add", "lg0", "netns", name+"a", "type", "veth", "peer", "name", "lg1", "netns", name+"b")
	sh(t, "ip", "-n", name+"a", "link", "set", "lg0", "up")
	sh(t, "ip", "-n", name+"b", "link", "set", "lg1", "up")
	return "lg0@" + name + "a", "lg1@" + name + "b"
}

// TestRealLoadgenByHand: what was sent comes back, on each kind of kernel port.
func TestRealLoadgenByHand(t *testing.T) {
	needReal(t)
	a, b := veth(t)
	for _, kind := range []string{"af_packet", "af_xdp", "kernel"} {
		t.Run(kind, func(t *testing.T) {
			e := testEnv(t, t.TempDir(), "")
			var out, errs bytes.Buffer
			e.stdout, e.stderr = &out, &errs
			code := run(e, []string{"plumb", "loadgen", "-port", kind + ":" + a, "-port", kind + ":" + b, "-rate", "2k", "-duration", "1s", "-bidirectional", "-flows", "10", "-json"})
			if code != exitOK {
				t.Fatalf("exit status %d\n%s%s", code, out.String(), errs.String())
			}
			var rep hand.Report
			if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if len(rep.Directions) != 2 {
				t.Fatalf("%+v", rep)
			}
			for _, d := range rep.Directions {
				// A machine that stands still for long makes the tester late, which it says.
				if d.Sent+rep.Behind < 2000 || d.Sent == 0 || d.Received != d.Sent || d.Lost > d.Unsent || d.Duplicated > 0 {
					t.Errorf("%+v", d)
				}
			}
			if len(rep.Health) > 0 || rep.Interrupted {
				t.Errorf("%+v", rep)
			}
		})
	}
}

// TestRealLoadgenInterrupted: an interrupt ends the stream, frames on their way are waited for, and what was counted is printed.
func TestRealLoadgenInterrupted(t *testing.T) {
	needReal(t)
	a, b := veth(t)
	e := testEnv(t, t.TempDir(), "")
	soft, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	e.signal = func(io.Writer) (context.Context, context.Context, func()) { return soft, t.Context(), func() {} }
	// The live line comes once a second: with the first, frames have come.
	live := &trigger{on: []byte("received"), do: interrupt}
	e.stdout, e.tty = live, true
	code := run(e, []string{"plumb", "loadgen", "-port", "af_packet:" + a, "-port", "af_packet:" + b, "-rate", "1k", "-duration", "1h", "-drain", "1h"})
	out := live.String()
	if code != exitInterrupted || !strings.Contains(out, "interrupted") {
		t.Fatalf("exit status %d\n%s", code, out)
	}
	counts := map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 3 && f[len(f)-2] == "frames" {
			counts[strings.Join(f[:len(f)-2], " ")] = f[len(f)-1]
		}
	}
	if counts["sent"] == "" || counts["sent"] == "0" || counts["sent"] != counts["received"] || counts["lost"] != "0" {
		t.Errorf("%v\n%s", counts, out)
	}
}

// trigger keeps what is written, and does something once certain bytes were.
type trigger struct {
	on []byte
	do func()

	mu  sync.Mutex
	all bytes.Buffer
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Contains(p, w.on) {
		w.do()
	}
	return w.all.Write(p)
}

func (w *trigger) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// TestLoadgenLiveLine is about what a terminal gets.
func TestLoadgenLiveLine(t *testing.T) {
	var out bytes.Buffer
	at := time.Unix(0, 0)
	l := &liveLine{w: &out, now: func() time.Time { at = at.Add(2 * time.Second); return at }}
	l.show(hand.Totals{})
	l.show(hand.Totals{Sent: 2000, Received: 1000})
	l.end()
	if want := "\r\x1b[K   1 s   sent 1,000 frames/s   received 500 frames/s\r\x1b[K"; out.String() != want {
		t.Errorf("%q; want %q", out.String(), want)
	}
}

// TestLoadgenWorker: the hidden worker ends by itself when its client has gone.
func TestLoadgenWorker(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "plumb-hand-*") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "socket")
	done := make(chan int, 1)
	e := testEnv(t, dir, "")
	go func() { done <- run(e, []string{"plumb", "loadgen", "-worker", socket}) }()
	var conn net.Conn
	for end := time.Now().Add(30 * time.Second); conn == nil; conn, err = net.Dial("unix", socket) {
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || line != `{"hello":{"version":1}}`+"\n" {
		t.Errorf("%q, %v", line, err)
	}
	conn.Close()
	select {
	case code := <-done:
		if code != exitOK {
			t.Errorf("exit status %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Error("the worker lives on without its client")
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is there: %v", err)
	}
}
