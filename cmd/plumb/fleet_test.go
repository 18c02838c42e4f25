package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plumb/providers"
	"plumb/providers/builtin"
	"plumb/providers/fake"
)

// fleet is a testbed of many machines, each a fake host behind an SSH server of its own, reached as any other.
type fleet struct {
	t       testing.TB
	dir     string
	servers map[string]*fake.SSHServer
}

// perHost is what every host has: ten instances.
const perHost = `
resource "host_hugepages" "%[1]s" {
  host  = host.%[1]s
  size  = "2M"
  pages = { "0" = 64 }
}
resource "host_sysctl" "%[1]s" {
  for_each = { "vm.swappiness" = "1", "net.core.rmem_max" = "4194304", "net.core.wmem_max" = "4194304", "kernel.numa_balancing" = "0" }
  host     = host.%[1]s
  key      = each.key
  value    = each.value
}
resource "ovs_switch" "%[1]s" {
  host = host.%[1]s
}
resource "ovs_bridge" "%[1]s" {
  host     = host.%[1]s
  name     = "br0"
  datapath = "netdev"
}
resource "ovs_port" "%[1]s" {
  count  = 2
  host   = host.%[1]s
  bridge = ovs_bridge.%[1]s.name
  name   = "p${count.index}"
  type   = "internal"
  ofport = count.index + 1
}
resource "ovs_flows" "%[1]s" {
  host       = host.%[1]s
  bridge     = ovs_bridge.%[1]s.name
  flows      = ["in_port=1 actions=output:2", "in_port=2 actions=output:1"]
  depends_on = [ovs_port.%[1]s]
}
`

const instancesPerHost = 10

// newFleet starts the machines. options may change what kind of server one has.
func newFleet(t testing.TB, n int, options func(name string) fake.SSHOptions) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), servers: map[string]*fake.SSHServer{}}
	var config strings.Builder
	for i := range n {
		name := fmt.Sprintf("h%02d", i)
		keys := t.TempDir()
		machine, err := fake.Open(filepath.Join(keys, "machine"))
		if err != nil {
			t.Fatal(err)
		}
		var o fake.SSHOptions
		if options != nil {
			o = options(name)
		}
		s, err := fake.ServeSSH(keys, machine, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		f.servers[name] = s
		fmt.Fprintf(&config, "host %q {\n%s}\n"+perHost, name, s.Block())
	}
	if err := os.WriteFile(filepath.Join(f.dir, "main.plumb.hcl"), []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// plumb runs a plumb in this process.
func (f *fleet) plumb(args ...string) (int, string) {
	f.t.Helper()
	var out bytes.Buffer
	e := &env{
		stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }, environ: func() []string { return nil },
		now: time.Now, dir: f.dir, width: 100, pid: os.Getpid(), signal: interrupts, set: func() providers.Set { return *builtin.Set() },
	}
	code := run(e, append([]string{"plumb"}, args...))
	return code, out.String()
}

// reads are the round trips of a plan, by host.
func (f *fleet) reads() map[string]providers.Reads {
	f.t.Helper()
	_, out := f.plumb("plan", "-json")
	for line := range strings.Lines(out) {
		var event struct {
			Type string
			Plan struct{ Reads map[string]providers.Reads }
		}
		if err := json.Unmarshal([]byte(line), &event); err == nil && event.Type == "plan" {
			return event.Plan.Reads
		}
	}
	f.t.Fatalf("no plan in:\n%s", out)
	return nil
}

// TestTwoHosts: one connection to each host and run, and a plan without changes costs few round trips one after another, however many instances there are. Five of them really wait
// for one another (the pid file or the database's socket, two questions to it, the flows, what planning asks once more); which of the others have ended by then is chance, and counts.
func TestTwoHosts(t *testing.T) {
	f := newFleet(t, 2, nil)
	logins := func() (n int) {
		for _, s := range f.servers {
			n += s.Connections()
		}
		return n
	}
	for _, args := range [][]string{{"apply", "-auto-approve"}, {"plan", "-detailed-exitcode"}} {
		before := logins()
		if code, out := f.plumb(args...); code != exitOK {
			t.Fatalf("plumb %q: exit status %d\n%s", args, code, out)
		}
		if n := logins() - before; n != len(f.servers) {
			t.Errorf("plumb %q made %d connections to %d hosts", args, n, len(f.servers))
		}
	}
	for name, r := range f.reads() {
		t.Logf("%s: %+v", name, r)
		if r.Connections != 1 || r.Rounds < 1 || r.Rounds > 8 {
			t.Errorf("%s: reading it took %d connections and a chain of %d round trips, want 1 and at most 8", name, r.Connections, r.Rounds)
		}
	}
	if code, out := f.plumb("destroy", "-auto-approve"); code != exitOK {
		t.Fatalf("destroy: exit status %d\n%s", code, out)
	}
}

// TestFleet: of fifty hosts one cannot be reached, one is slow, and one drops its connection in the middle of the apply and is gone. The others converge, and the end names
// the two that did not.
func TestFleet(t *testing.T) {
	const unreachable, slow, dropped = "h07", "h11", "h23"
	var f *fleet
	var requests atomic.Int64
	f = newFleet(t, 50, func(name string) fake.SSHOptions {
		switch name {
		case slow:
			return fake.SSHOptions{Before: func(string) { <-time.After(20 * time.Millisecond) }}
		case dropped:
			return fake.SSHOptions{Before: func(string) {
				if requests.Add(1) == 60 { // the plan has read it by then
					go f.servers[dropped].Close()
				}
			}}
		}
		return fake.SSHOptions{}
	})
	f.servers[unreachable].Close()
	started := time.Now()
	code, out := f.plumb("apply", "-auto-approve")
	t.Logf("apply of %d instances on 50 hosts took %s", 50*instancesPerHost, time.Since(started).Round(time.Millisecond))
	if code != exitError {
		t.Fatalf("exit status %d\n%s", code, out)
	}
	table := out[strings.LastIndex(out, "Not complete:"):]
	for _, want := range []string{"host." + unreachable + " cannot be reached", "host." + dropped} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	for name := range f.servers {
		part := section(table, "host."+name)
		done := strings.Count(part, "  done")
		if bad := name == unreachable || name == dropped; !bad && done != instancesPerHost || bad && done == instancesPerHost {
			t.Errorf("host.%s: %d of %d instances are done:\n%s", name, done, instancesPerHost, part)
		}
	}
	started = time.Now()
	code, out = f.plumb("plan", "-concise")
	t.Logf("the plan after it took %s", time.Since(started).Round(time.Millisecond))
	if code != exitError || !strings.Contains(out, "No changes") {
		t.Errorf("the others are not as the configuration says: exit status %d\n%s", code, out)
	}
}

// section is the part of a failure table that is a host's.
func section(table, host string) string {
	_, rest, _ := strings.Cut(table, "  "+host+"\n")
	var out strings.Builder
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "    ") {
			break
		}
		out.WriteString(line)
	}
	return out.String()
}
