package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plumb/lang/schema"
	"plumb/stages/bench"
	"plumb/stages/plan"
)

// realBed is a testbed on this machine's own Open vSwitch. It is destroyed when the test ends, and then the machine must be as it was.
func realBed(t *testing.T, config string) *bed {
	t.Helper()
	needReal(t)
	b := &bed{t: t, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.dir, "main.plumb.hcl"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	before := b.snapshot()
	t.Cleanup(func() { b.restored(before, "at the end of the test") })
	return b
}

// plan plans and returns the plan's data.
func (b *bed) plan(args ...string) *plan.Plan {
	b.t.Helper()
	out := b.must(append([]string{"plan", "-json"}, args...)...)
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var event struct {
			Type string
			Plan *plan.Plan
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			b.t.Fatalf("not JSON: %s", lines.Text())
		}
		if event.Type == "plan" {
			return event.Plan
		}
	}
	b.t.Fatalf("no plan in:\n%s", out)
	return nil
}

// changes are the plan's changes that do something, by address.
func changes(p *plan.Plan) map[string]plan.Change {
	out := map[string]plan.Change{}
	for _, c := range p.Changes {
		if c.Action != plan.NoOp {
			out[c.Addr.String()] = c
		}
	}
	return out
}

// empty checks that there is nothing to do.
func (b *bed) empty(when string, args ...string) {
	b.t.Helper()
	if code, _, out := b.plumb(0, "", append([]string{"plan", "-detailed-exitcode"}, args...)...); code != exitOK {
		b.t.Fatalf("%s: the plan is not empty (exit status %d):\n%s", when, code, out)
	}
}

func sh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

const nullBed = `
variable "pmd" { default = "0" }
variable "flow" { default = "in_port=n0 actions=drop" }
variable "rxqs" { default = 1 }
variable "extra" { default = "--no-pci" }

host "dut" {}
resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 192 }
}
resource "ovs_switch" "dut" {
  dpdk {
    socket_mem   = [256]
    socket_limit = [256]
    pmd_cores    = var.pmd
    extra        = var.extra
  }
}
resource "ovs_bridge" "br0" {
  name     = "plumbtest0"
  datapath = "netdev"
}
resource "ovs_port" "n0" {
  bridge  = ovs_bridge.br0.name
  name    = "n0"
  type    = "dpdk"
  devargs = "net_null0"
  rxqs    = var.rxqs
}
resource "ovs_flows" "br0" {
  bridge = ovs_bridge.br0.name
  flows  = [var.flow, "priority=1 actions=drop"]
}
`

// TestRealCosts changes one thing after another: the plan names its cost, apply does just that, flows are there afterwards, and the next plan is
// empty.
func TestRealCosts(t *testing.T) {
	b := realBed(t, nullBed)
	b.must("apply", "-auto-approve", "-skip-bench")
	b.empty("after the first apply")
	daemon := func() string { return strings.TrimSpace(sh(t, "cat", "/var/run/openvswitch/ovs-vswitchd.pid")) }
	flows := func() int {
		return strings.Count(sh(t, "ovs-ofctl", "--no-stats", "dump-flows", "plumbtest0"), "actions=")
	}
	pid, vars := daemon(), []string{}
	for _, c := range []struct {
		set, addr string
		cost      schema.Cost
		again     []string // applied again, since their effect is lost
	}{
		{"pmd=1", "ovs_switch.dut", schema.PortReset, nil},
		{"flow=in_port=n0,priority=7 actions=drop", "ovs_flows.br0", schema.Live, nil},
		{"rxqs=2", "ovs_port.n0", schema.PortReset, nil},
		{"extra=--no-pci --log-level=lib.eal:5", "ovs_switch.dut", schema.ServiceRestart, []string{"ovs_flows.br0"}},
	} {
		vars = append(vars, "-var", c.set)
		p := b.plan(vars...)
		got := changes(p)
		want := append([]string{c.addr}, c.again...)
		for addr, ch := range got {
			switch {
			case !slices.Contains(want, addr):
				t.Errorf("%s: %s is planned too: %s", c.set, addr, ch.Action)
			case addr == c.addr && (ch.Cost != c.cost || ch.Action != plan.Update):
				t.Errorf("%s: %s costs %s (%s), want %s", c.set, addr, ch.Cost, ch.Action, c.cost)
			case addr != c.addr && (ch.Action != plan.Reapply || ch.LostBy != c.addr):
				t.Errorf("%s: %s is %s because of %q", c.set, addr, ch.Action, ch.LostBy)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d changes, want %v", c.set, len(got), want)
		}
		if c.cost > schema.Live {
			if code, _, out := b.plumb(0, "", append([]string{"plan", "-max-cost=live"}, vars...)...); code != exitError {
				t.Errorf("%s: -max-cost=live lets it pass:\n%s", c.set, out)
			}
		}
		b.must(append([]string{"apply", "-auto-approve", "-skip-bench"}, vars...)...)
		b.empty("after "+c.set, vars...)
		if n := flows(); n != 2 {
			t.Errorf("%s: %d flows, want 2", c.set, n)
		}
		if restarted := daemon() != pid; restarted != (c.cost == schema.ServiceRestart) {
			t.Errorf("%s: ovs-vswitchd restarted: %t", c.set, restarted)
		}
		pid = daemon()
	}
}

// TestRealDrift undoes things by hand: the plan shows each, apply mends it.
func TestRealDrift(t *testing.T) {
	src, err := os.ReadFile("../../examples/quickstart/main.plumb.hcl")
	if err != nil {
		t.Fatal(err)
	}
	b := realBed(t, string(src))
	b.must("apply", "-auto-approve", "-skip-bench")
	p := b.plan()
	if n := len(changes(p)); n != 0 {
		t.Fatalf("%d changes after apply", n)
	}
	t.Logf("reading the world costs %+v", p.Reads["dut"])

	pids, err := filepath.Glob("/run/plumb/*/dpdk_testpmd.vnf/pid")
	if err != nil || len(pids) != 1 {
		t.Fatalf("testpmd's pid files: %v, %v", pids, err)
	}
	for _, c := range []struct {
		addr string
		undo []string
	}{
		{`ovs_port.p["v1"]`, []string{"ovs-vsctl", "del-port", "v1"}},
		{"ovs_flows.br0", []string{"ovs-ofctl", "del-flows", "br0", "in_port=v0"}},
		{"dpdk_testpmd.vnf", []string{"kill", "-KILL", strings.TrimSpace(sh(t, "cat", pids[0]))}},
		{"host_hugepages.dut", []string{"sh", "-c", "echo 500 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"}},
	} {
		sh(t, c.undo...)
		p := b.plan()
		if _, ok := changes(p)[c.addr]; !ok {
			t.Errorf("%v: no change of %s is planned", c.undo, c.addr)
		}
		if !slices.ContainsFunc(p.Drift, func(d plan.Change) bool { return d.Addr.String() == c.addr }) {
			t.Errorf("%v: %s is not shown as drift", c.undo, c.addr)
		}
		b.must("apply", "-auto-approve", "-skip-bench")
		b.empty("after mending " + c.addr)
	}
}

// TestRealForeign meets a bridge of the same name that is not ours, and a port on our bridge that is not ours.
func TestRealForeign(t *testing.T) {
	b := realBed(t, nullBed)
	b.must("apply", "-auto-approve", "-skip-bench", "-target=ovs_switch.dut")
	sh(t, "ovs-vsctl", "add-br", "plumbtest0", "--", "set", "bridge", "plumbtest0", "datapath_type=netdev")
	uuid := sh(t, "ovs-vsctl", "get", "bridge", "plumbtest0", "_uuid")
	for _, args := range [][]string{{"plan"}, {"apply", "-auto-approve", "-skip-bench"}} {
		code, _, out := b.plumb(0, "", args...)
		if code != exitError || !strings.Contains(out, "plumbtest0") {
			t.Errorf("%v with a foreign bridge: exit status %d:\n%s", args, code, out)
		}
	}
	if now := sh(t, "ovs-vsctl", "get", "bridge", "plumbtest0", "_uuid"); now != uuid {
		t.Error("the foreign bridge was touched")
	}
	sh(t, "ovs-vsctl", "del-br", "plumbtest0")

	b.must("apply", "-auto-approve", "-skip-bench")
	sh(t, "ovs-vsctl", "add-port", "plumbtest0", "foreign0", "--", "set", "interface", "foreign0", "type=internal")
	b.empty("with a foreign port on our bridge")
	b.must("apply", "-auto-approve", "-skip-bench")
	if !strings.Contains(sh(t, "ovs-vsctl", "list-ports", "plumbtest0"), "foreign0") {
		t.Error("apply took the foreign port away")
	}
	code, _, out := b.plumb(0, "", "destroy", "-auto-approve")
	if code == exitOK || !strings.Contains(out, "foreign0") {
		t.Errorf("destroy with a foreign port on our bridge: exit status %d:\n%s", code, out)
	}
	if !strings.Contains(sh(t, "ovs-vsctl", "list-ports", "plumbtest0"), "foreign0") {
		t.Error("destroy took the foreign port away")
	}
	sh(t, "ovs-vsctl", "del-port", "plumbtest0", "foreign0")
}

// TestRealQuickstart measures the quickstart: rates that are not zero, a ledger that adds up, reports in the results folder.
func TestRealQuickstart(t *testing.T) {
	src, err := os.ReadFile("../../examples/quickstart/main.plumb.hcl")
	if err != nil {
		t.Fatal(err)
	}
	b := realBed(t, string(src))
	b.must("apply", "-auto-approve", "-bench", "p2p", "-bench", "pvp", "-bench", "p2p_ndr")
	runs, err := bench.List(filepath.Join(b.dir, "results"))
	if err != nil || len(runs) != 1 || runs[0].Problem != "" {
		t.Fatalf("runs: %+v, %v", runs, err)
	}
	run, err := bench.Load(runs[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range run.Benchmarks {
		if len(r.Summary) != 2 || r.Error != "" {
			t.Errorf("%s: %d summaries, error %q", r.Addr, len(r.Summary), r.Error)
		}
		found := map[string]int{} // figures by name
		for _, f := range r.Figures {
			found[f.Name]++
			t.Logf("%s at %d bytes: %s %g %s, none: %q, unfinished %t, %d trials", r.Addr, f.FrameSize, f.Name, f.Median, f.Unit, f.Nones, f.Unfinished, f.Trials)
		}
		if r.Method == "ndr_pdr" && (found["NDR"] != 2 || found["PDR"] != 2) {
			t.Errorf("%s found %v", r.Addr, found)
		}
		for _, s := range r.Summary {
			if len(r.Figures) > 0 {
				continue // its trials are at many loads
			}
			if s.RxMedian <= 0 || s.TxMedian <= 0 {
				t.Errorf("%s at %d bytes: sent %f, received %f frames/s", r.Addr, s.FrameSize, s.TxMedian, s.RxMedian)
			}
		}
		for _, trial := range r.Trials {
			if trial.Verdict == bench.Invalid {
				continue
			}
			lost := int64(0)
			for _, h := range trial.Ledger {
				lost += h.Lost
			}
			if due := int64(trial.Ledger[0].In); due != int64(trial.Received)+lost || trial.Ledger[0].Out != trial.Sent {
				t.Errorf("%s at %d bytes: %d due, sent %d, received %d, and the ledger says that %d were lost", r.Addr, trial.FrameSize, due, trial.Sent, trial.Received, lost)
			}
			if len(trial.Observations) == 0 {
				t.Errorf("%s at %d bytes: nothing was observed", r.Addr, trial.FrameSize)
			}
		}
	}
	for _, name := range []string{"report.html", "report.md", "report.csv", "report.json"} {
		if st, err := os.Stat(filepath.Join(runs[0].Dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if out := b.must("report"); !strings.Contains(out, "benchmark.pvp") {
		t.Errorf("report prints:\n%s", out)
	}
}

// TestRealBenchKilled kills a plumb that measures: what its generator leaves is ended and removed by the next bench, apply or destroy. loadgen, in the process that
// was killed, leaves sockets; testpmd leaves processes.
func TestRealBenchKilled(t *testing.T) {
	src, err := os.ReadFile("../../examples/quickstart/main.plumb.hcl")
	if err != nil {
		t.Fatal(err)
	}
	testpmd := regexp.MustCompile(`(?s)generator "loadgen" "tester" \{.*?\n\}`).ReplaceAllString(string(src), `generator "testpmd" "tester" {
  host        = host.dut
  cores       = "${var.pmd_core},${var.tester_core}"
  main_core   = var.pmd_core
  share_cores = true
  memory      = [128]
  ports       = [ovs_port.p["t0"].vhost_server_path, ovs_port.p["t1"].vhost_server_path]
}`)
	testpmd = strings.NewReplacer("generator.loadgen", "generator.testpmd", `"0" = 384`, `"0" = 512`).Replace(testpmd)
	for _, c := range []struct {
		config, leaves string
		many           int
		next           [][]string
	}{
		{string(src), "/run/plumb/*/loadgen-sockets/*/sockets", 1, [][]string{{"bench", "-var", "frame_sizes=[64]", "p2p"}, {"destroy", "-auto-approve"}}},
		{testpmd, "/run/plumb/*/generator/*/pid", 2, [][]string{{"apply", "-auto-approve", "-skip-bench"}, {"destroy", "-auto-approve"}}},
	} {
		b := realBed(t, c.config)
		b.must("apply", "-auto-approve", "-skip-bench")
		for _, next := range c.next {
			b.killWhen("warm-up", "bench", "-var", "frame_sizes=[64]", "p2p")
			if left, err := filepath.Glob(c.leaves); err != nil || len(left) != c.many {
				t.Fatalf("left are %q, %v; want %d", left, err, c.many)
			}
			b.must(next...)
			if left, err := filepath.Glob(c.leaves); err != nil || len(left) != 0 {
				t.Errorf("after %v these are left: %q, %v", next, left, err)
			}
		}
	}
}

// killWhen runs a plumb and kills it when its output says something.
func (b *bed) killWhen(says string, args ...string) {
	b.t.Helper()
	job, err := json.Marshal(victim{Dir: b.dir, Host: b.host, Args: args})
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+string(job))
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	lines, said := bufio.NewScanner(out), false
	for !said && lines.Scan() {
		said = strings.Contains(lines.Text(), says)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if !said {
		b.t.Fatalf("plumb %v ended without saying %q", args, says)
	}
}
