package ovs

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

// bed is a testbed on this machine's Open vSwitch, driven as the engine would.
type bed struct {
	t    *testing.T
	host *hostkit.Host
	mark providers.Mark
	last map[string]cty.Value       // by address
	undo map[string]json.RawMessage // by address
	typ  map[string]providers.Resource
	logs []string
}

const pagesFile = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

// realBed needs PLUMB_REAL, root and Open vSwitch with DPDK; it gives the machine back as it was.
func realBed(t *testing.T) *bed {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("PLUMB_REAL is not set: no test touches this machine's Open vSwitch")
	}
	if os.Getuid() != 0 {
		t.Fatal("PLUMB_REAL is set, but this is not root")
	}
	before := machine(t)
	shell(t, "", "sh", "-c", "echo 300 > "+pagesFile)
	mounted := exec.Command("mountpoint", "-q", "/dev/hugepages").Run() == nil
	if !mounted {
		shell(t, "", "mkdir", "-p", "/dev/hugepages")
		shell(t, "", "mount", "-t", "hugetlbfs", "none", "/dev/hugepages")
	}
	b := &bed{t: t, mark: providers.Mark{Testbed: "lineage-1"}, last: map[string]cty.Value{}, undo: map[string]json.RawMessage{}, typ: map[string]providers.Resource{}}
	b.newRun()
	t.Cleanup(func() {
		for _, addr := range []string{"ovs_flows", "ovs_port", "ovs_bridge", "ovs_switch"} {
			for a := range b.last {
				if strings.HasPrefix(a, addr) {
					if err := b.destroy(a); err != nil {
						t.Errorf("destroy %s: %v", a, err)
					}
				}
			}
		}
		_ = b.host.Close()
		if !mounted {
			shell(t, "", "umount", "/dev/hugepages")
		}
		shell(t, "", "sh", "-c", "echo 0 > "+pagesFile)
		if diff := cmp.Diff(before, machine(t)); diff != "" {
			t.Errorf("the machine is not as it was:\n%s", diff)
		}
	})
	return b
}

// machine is what a testbed must leave as it was.
func machine(t *testing.T) string {
	t.Helper()
	return shell(t, "", "sh", "-c", `cat `+pagesFile+`; ls -A /etc/openvswitch /var/lib/openvswitch /var/log/openvswitch /run/openvswitch /run/plumb 2>&1;
update-alternatives --query ovs-vswitchd | grep -E '^(Status|Value)'; pgrep -lx ovs-vswitchd; pgrep -lx ovsdb-server; ls /sys/class/net; true`)
}

func shell(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// newRun starts a new run of the engine: nothing is shared with the one before.
func (b *bed) newRun() {
	if b.host != nil {
		_ = b.host.Close()
	}
	b.host = hostkit.New("dut", transport.NewLocal("dut"), testFacts)
}

func testFacts(context.Context, providers.Conn) (*providers.Facts, error) {
	return &providers.Facts{Root: true, CPUs: []providers.CPU{{ID: 0, Online: true}, {ID: 1, Online: true}},
		Nodes: []providers.Node{{Hugepages: []providers.Hugepages{{Size: 2 << 20, Total: 300}}}}}, nil
}

func (b *bed) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *bed) markOf(addr string) providers.Mark {
	m := b.mark
	m.Address = addr
	return m
}

func (b *bed) read(addr string) cty.Value {
	b.t.Helper()
	prior, ok := b.last[addr]
	if !ok {
		b.t.Fatalf("%s was not applied", addr)
	}
	res, err := b.typ[addr].Read(b.ctx(), providers.ReadRequest{Host: b.host, Mark: b.markOf(addr), Prior: prior})
	if err != nil {
		b.t.Fatalf("read %s: %v", addr, err)
	}
	return res.Current
}

// plan plans a new configuration of addr; the cost is the greatest of the changed attributes' and the plan's own.
func (b *bed) plan(r providers.Resource, addr string, given attrs) (cty.Value, providers.PlanResult) {
	b.t.Helper()
	prior, res, err := b.tryPlan(r, addr, given)
	if err != nil {
		b.t.Fatalf("plan %s: %v", addr, err)
	}
	return prior, res
}

func (b *bed) tryPlan(r providers.Resource, addr string, given attrs) (prior cty.Value, res providers.PlanResult, err error) {
	b.t.Helper()
	block := &r.Schema().Block
	prior = cty.NullVal(block.ImpliedType())
	b.typ[addr] = r
	if _, ok := b.last[addr]; ok {
		prior = b.read(addr)
	}
	want := desired(block, given)
	res, err = r.(providers.Planner).Plan(b.ctx(), providers.PlanRequest{Host: b.host, Mark: b.markOf(addr), Prior: prior, Desired: want, Proposed: proposed(block, prior, want)})
	return prior, res, err
}

// try plans and applies, and checks the answer as the engine does.
func (b *bed) try(r providers.Resource, addr string, given attrs) (cty.Value, error) {
	b.t.Helper()
	prior, res, err := b.tryPlan(r, addr, given)
	if err != nil {
		return cty.NilVal, err
	}
	for _, p := range res.Problems {
		if !p.Warning {
			return cty.NilVal, errors.New(p.Summary + ": " + p.Detail)
		}
	}
	req := providers.ApplyRequest{Host: b.host, Mark: b.markOf(addr), Prior: prior, Planned: res.Planned, Undo: b.undo[addr], Log: func(l string) { b.logs = append(b.logs, l) }}
	if p, ok := r.(providers.Preparer); ok {
		undo, err := p.Prepare(b.ctx(), req)
		if err != nil {
			return cty.NilVal, err
		}
		b.undo[addr], req.Undo = undo, undo
		b.last[addr] = cty.UnknownAsNull(res.Planned)
	}
	out, err := r.Apply(b.ctx(), req)
	if err != nil {
		return out.New, err
	}
	if !out.New.IsWhollyKnown() {
		b.t.Errorf("%s: something is unknown after apply: %#v", addr, out.New)
	}
	for name, v := range res.Planned.AsValueMap() {
		if v.IsWhollyKnown() && !out.New.GetAttr(name).RawEquals(v) {
			b.t.Errorf("%s: %s was planned as %#v and became %#v", addr, name, v, out.New.GetAttr(name))
		}
	}
	b.last[addr] = out.New
	return out.New, nil
}

// apply is try that must work, and be seen to have by a new run.
func (b *bed) apply(r providers.Resource, addr string, given attrs) cty.Value {
	b.t.Helper()
	got, err := b.try(r, addr, given)
	if err != nil {
		b.t.Fatalf("apply %s: %v", addr, err)
	}
	b.newRun()
	b.same(addr)
	return got
}

// same checks that Read sees what was applied.
func (b *bed) same(addr string) {
	b.t.Helper()
	want, have := b.last[addr], b.read(addr)
	if have.IsNull() {
		b.t.Errorf("%s is gone", addr)
		return
	}
	for name, v := range want.AsValueMap() {
		if a := b.typ[addr].Schema().Block.Attributes[name]; a != nil && a.Volatile {
			continue
		}
		if !have.GetAttr(name).RawEquals(v) {
			b.t.Errorf("%s: %s is %#v and reads as %#v", addr, name, v, have.GetAttr(name))
		}
	}
}

func (b *bed) destroy(addr string) error {
	r := b.typ[addr]
	prior := b.last[addr]
	_, err := r.Apply(b.ctx(), providers.ApplyRequest{Host: b.host, Mark: b.markOf(addr), Prior: prior, Planned: cty.NullVal(prior.Type()), Undo: b.undo[addr],
		Log: func(string) {}})
	if err == nil {
		delete(b.last, addr)
		delete(b.undo, addr)
	}
	return err
}

// cost is that of the changed attributes by the schema.
func (b *bed) cost(r providers.Resource, addr string, given attrs) (schema.Cost, providers.PlanResult) {
	b.t.Helper()
	prior, res := b.plan(r, addr, given)
	worst := res.Cost
	var walk func(blk *schema.Block, a, c cty.Value)
	walk = func(blk *schema.Block, a, c cty.Value) {
		if a.IsNull() || c.IsNull() {
			return
		}
		for name, at := range blk.Attributes {
			if !at.Volatile && !a.GetAttr(name).RawEquals(c.GetAttr(name)) && at.Cost > worst {
				worst = at.Cost
			}
		}
		for name, n := range blk.Blocks {
			if n.Nesting == schema.Single {
				walk(&n.Block, a.GetAttr(name), c.GetAttr(name))
			}
		}
	}
	walk(&r.Schema().Block, prior, res.Planned)
	return worst, res
}

func dpdkBlock(given attrs) cty.Value {
	given["extra"] = withDefault(given["extra"], str("--no-pci"))
	given["socket_mem"] = withDefault(given["socket_mem"], nums(256))
	return desired(&switchSchema().Block.Blocks["dpdk"].Block, given)
}

func withDefault(v, d cty.Value) cty.Value {
	if v == cty.NilVal {
		return d
	}
	return v
}

func daemonPID(t *testing.T) string {
	t.Helper()
	out, err := os.ReadFile(daemonPid)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestRealLife walks a whole testbed through each class of change, drift and destroy.
func TestRealLife(t *testing.T) {
	b := realBed(t)
	sw, br, pt, fl := switchType{}, bridgeType{}, portType{}, flowsType{}
	swCfg := func(over attrs) attrs { return attrs{"dpdk": dpdkBlock(over), "max_idle": num(30000)} }
	got := b.apply(sw, "ovs_switch.s", swCfg(attrs{"pmd_cores": str("1")}))
	if !got.GetAttr("dpdk_initialized").True() || attr.Text(got, "ovs_version") == "" {
		t.Fatalf("the switch says %#v", got)
	}
	b.apply(br, "ovs_bridge.b", attrs{"name": str("br0"), "datapath": str("netdev"), "mac_aging_time": num(60)})
	null := attrs{"bridge": str("br0"), "name": str("n0"), "type": str("dpdk"), "devargs": str("net_null0"), "ofport": num(1), "rxqs": num(1)}
	b.apply(pt, "ovs_port.n0", null)
	b.apply(pt, "ovs_port.n1", attrs{"bridge": str("br0"), "name": str("n1"), "type": str("dpdk"), "devargs": str("net_null1")})
	vhost := b.apply(pt, "ovs_port.v0", attrs{"bridge": str("br0"), "name": str("v0"), "type": str(clientType), "ofport": num(3), "tag": num(7), "tx_retries_max": num(4)})
	if attr.Text(vhost, "vhost_server_path") != vhostDir+"/v0" {
		t.Errorf("socket %#v", vhost.GetAttr("vhost_server_path"))
	}
	b.apply(pt, "ovs_port.i0", attrs{"bridge": str("br0"), "name": str("i0"), "type": str("internal"), "mtu": num(1400),
		"egress_policer": cty.ObjectVal(attrs{"cir": num(1000000), "cbs": num(2048)}), "ingress_policing_rate": num(5000)})
	flows := attrs{"bridge": str("br0"), "flows": strs("in_port=n0,actions=output:n1", "table=0,priority=5,dl_vlan=9,dl_type=0x800,nw_proto=17,udp_dst=53 actions=strip_vlan,2")}
	b.apply(fl, "ovs_flows.f", flows)

	t.Run("counters", func(t *testing.T) {
		addrsOf := []providers.Subject{{Value: b.last["ovs_port.n0"]}, {Value: b.last["ovs_port.v0"]}}
		first, err := pt.Count(b.ctx(), b.host, addrsOf)
		if err != nil {
			t.Fatal(err)
		}
		finish, err := sw.Observe(b.ctx(), b.host, nil)
		if err != nil {
			t.Fatal(err)
		}
		moved := false
		for range 200 { // the null device receives without end
			next, err := pt.Count(b.ctx(), b.host, addrsOf)
			if err != nil {
				t.Fatal(err)
			}
			if moved = next[0].Rx > first[0].Rx; moved {
				break
			}
		}
		if !moved {
			t.Error("the receive counter of the null device stands still")
		}
		seen, err := finish(b.ctx())
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]bool{}
		for _, o := range seen {
			kinds[o.Kind] = true
		}
		for _, k := range []string{"pmd", "rxq", "port"} {
			if !kinds[k] {
				t.Errorf("nothing of kind %s was observed: %v", k, seen)
			}
		}
	})
	t.Run("live and port reset", func(t *testing.T) {
		pid := daemonPID(t)
		cfg := swCfg(attrs{"pmd_cores": str("0-1")})
		cfg["max_idle"] = num(20000)
		if c, _ := b.cost(sw, "ovs_switch.s", cfg); c != schema.PortReset {
			t.Errorf("the cost of pmd_cores is %v", c)
		}
		b.apply(sw, "ovs_switch.s", cfg)
		null["rxqs"] = num(2)
		if c, _ := b.cost(pt, "ovs_port.n0", null); c != schema.PortReset {
			t.Errorf("the cost of rxqs is %v", c)
		}
		b.apply(pt, "ovs_port.n0", null)
		if got := daemonPID(t); got != pid {
			t.Errorf("ovs-vswitchd was restarted: pid %s, then %s", pid, got)
		}
		if q := strings.Trim(strings.TrimSpace(shell(t, "", "ovs-vsctl", "get", "Interface", "n0", "options:n_rxq")), `"`); q != "2" {
			t.Errorf("n_rxq is %s", q)
		}
		b.same("ovs_flows.f")
	})
	t.Run("restart", func(t *testing.T) {
		pid := daemonPID(t)
		cfg := swCfg(attrs{"pmd_cores": str("0-1"), "extra": str("--no-pci --single-file-segments")})
		cost, res := b.cost(sw, "ovs_switch.s", cfg)
		if cost != schema.ServiceRestart || len(res.Effects) != 1 || res.Effects[0] != "restarts ovs-vswitchd on dut" {
			t.Errorf("cost %v, effects %q", cost, res.Effects)
		}
		b.apply(sw, "ovs_switch.s", cfg)
		if daemonPID(t) == pid {
			t.Error("ovs-vswitchd was not restarted")
		}
		if got := b.read("ovs_flows.f"); got.RawEquals(b.last["ovs_flows.f"]) {
			t.Error("the flows survived by themselves, which they should not")
		}
		b.apply(fl, "ovs_flows.f", flows) // what the engine does by LostOn
	})
	t.Run("bad restart shows EAL's lines", func(t *testing.T) {
		cfg := swCfg(attrs{"pmd_cores": str("1"), "extra": str("--no-pci --bogus")})
		_, err := b.try(sw, "ovs_switch.s", cfg)
		if err == nil || !strings.Contains(err.Error(), "EAL: ") || !strings.Contains(err.Error(), "Unable to initialize DPDK") {
			t.Errorf("error: %v", err)
		}
		b.newRun()
		b.apply(sw, "ovs_switch.s", swCfg(attrs{"pmd_cores": str("1")}))
		b.apply(fl, "ovs_flows.f", flows)
	})
	t.Run("errors of interfaces", func(t *testing.T) {
		_, err := b.try(pt, "ovs_port.bad", attrs{"bridge": str("br0"), "name": str("bad"), "type": str("dpdk"), "devargs": str("0000:ff:00.0")})
		if err == nil || !strings.Contains(err.Error(), "Error attaching device '0000:ff:00.0'") || !strings.Contains(err.Error(), "netdev_dpdk") {
			t.Errorf("error: %v", err)
		}
		_, err = b.try(pt, "ovs_port.n2", attrs{"bridge": str("br0"), "name": str("n2"), "type": str("dpdk"), "devargs": str("net_null2"), "mtu": num(65535)})
		if err == nil || !strings.Contains(err.Error(), "65535") {
			t.Errorf("error: %v", err)
		}
		out := shell(t, "", "ovs-vsctl", "list-ports", "br0")
		if strings.Contains(out, "bad") || strings.Contains(out, "n2") {
			t.Errorf("ports that failed stayed: %s", out)
		}
		b.newRun()
	})
	t.Run("drift", func(t *testing.T) {
		shell(t, "", "ovs-ofctl", "add-flow", "br0", "in_port=9,actions=drop")
		shell(t, "", "ovs-ofctl", "--strict", "del-flows", "br0", "priority=5,udp,dl_vlan=9,tp_dst=53")
		b.newRun()
		if v := b.read("ovs_flows.f"); v.IsNull() || len(texts(v, "flows")) != 2 || !strings.Contains(texts(v, "flows")[1], "in_port=9") {
			t.Errorf("flows read as %#v", v)
		}
		shell(t, "", "ovs-vsctl", "del-port", "br0", "n1")
		shell(t, "", "ovs-vsctl", "set", "Interface", "i0", "mtu_request=1300")
		shell(t, "", "ovs-vsctl", "set", "Open_vSwitch", ".", "other_config:max-idle=1000")
		b.newRun()
		if !b.read("ovs_port.n1").IsNull() {
			t.Error("the port that was removed is there")
		}
		if n, _ := number(b.read("ovs_port.i0"), "mtu"); n != 1300 {
			t.Errorf("MTU reads as %d", n)
		}
		if n, _ := number(b.read("ovs_switch.s"), "max_idle"); n != 1000 {
			t.Errorf("max_idle reads as %d", n)
		}
		delete(b.last, "ovs_port.n1")
		b.apply(pt, "ovs_port.n1", attrs{"bridge": str("br0"), "name": str("n1"), "type": str("dpdk"), "devargs": str("net_null1")})
		b.apply(pt, "ovs_port.i0", attrs{"bridge": str("br0"), "name": str("i0"), "type": str("internal"), "mtu": num(1400)})
		b.apply(fl, "ovs_flows.f", flows)
		b.apply(sw, "ovs_switch.s", swCfg(attrs{"pmd_cores": str("1")}))
	})
	t.Run("one read of the world", func(t *testing.T) {
		b.newRun()
		for addr := range b.last {
			b.same(addr)
		}
		r := b.host.Reads()
		if r.OVSDB != 1 || r.Commands != 1 {
			t.Errorf("reading %d objects took %+v", len(b.last), r)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		shell(t, "", "ovs-vsctl", "add-br", "theirs", "--", "set", "Bridge", "theirs", "datapath_type=netdev", "--", "add-port", "br0", "guest", "--", "set", "Interface", "guest", "type=internal")
		defer shell(t, "", "ovs-vsctl", "del-br", "theirs")
		b.newRun()
		if _, err := b.try(br, "ovs_bridge.x", attrs{"name": str("theirs"), "datapath": str("netdev")}); err == nil || !strings.Contains(err.Error(), "not ours") || !errors.Is(err, providers.ErrForeign) {
			t.Errorf("foreign bridge: %v", err)
		}
		if _, err := b.try(pt, "ovs_port.x", attrs{"bridge": str("br0"), "name": str("guest"), "type": str("internal")}); err == nil || !strings.Contains(err.Error(), "not ours") || !errors.Is(err, providers.ErrForeign) {
			t.Errorf("foreign port: %v", err)
		}
		if _, err := b.try(fl, "ovs_flows.x", attrs{"bridge": str("theirs"), "flows": strs("actions=drop")}); err == nil || !strings.Contains(err.Error(), "not ours") {
			t.Errorf("all flows of a foreign bridge: %v", err)
		}
		b.apply(fl, "ovs_flows.c", attrs{"bridge": str("theirs"), "cookie": str("0x77"), "flows": strs("in_port=LOCAL actions=drop")})
		b.apply(fl, "ovs_flows.c", attrs{"bridge": str("theirs"), "cookie": str("0x77"), "flows": strs("table=3,ip,nw_dst=10.0.0.1 actions=drop")})
		if err := b.destroy("ovs_flows.c"); err != nil {
			t.Error(err)
		}
		if out := shell(t, "", "ovs-ofctl", "--no-stats", "dump-flows", "theirs"); strings.TrimSpace(out) != "priority=0 actions=NORMAL" {
			t.Errorf("flows of the foreign bridge: %q", out)
		}
		err := b.destroy("ovs_bridge.b")
		if !errors.Is(err, providers.ErrForeign) || !strings.Contains(err.Error(), "guest") {
			t.Errorf("destroying a bridge with a foreign port: %v", err)
		}
		err = b.destroy("ovs_switch.s")
		if !errors.Is(err, providers.ErrForeign) {
			t.Errorf("destroying a switch with a foreign bridge: %v", err)
		}
		shell(t, "", "ovs-vsctl", "del-port", "br0", "guest")
		b.newRun()
	})
	t.Run("flows of OpenFlow 1.0 alone", func(t *testing.T) {
		b.apply(fl, "ovs_flows.f", attrs{"bridge": str("br0"), "flows": strs("arp,actions=strip_vlan,n1", "in_port=1 actions=2")})
	})
	t.Run("generated flows", func(t *testing.T) {
		gen := desired(&flowsType{}.Schema().Block.Blocks["generate"].Block, attrs{"count": num(20000), "src": str("10.0.0.1"), "in_port": str("n0"), "actions": str("output:n1")})
		cfg := attrs{"bridge": str("br0"), "generate": cty.ListVal([]cty.Value{gen}), "flows": strs("priority=1,actions=drop")}
		got := b.apply(fl, "ovs_flows.f", cfg)
		if n, _ := number(got, "flow_count"); n != 20001 {
			t.Errorf("%d flows", n)
		}
		shell(t, "", "ovs-ofctl", "--strict", "del-flows", "br0", "ip,in_port=n0,nw_src=10.0.0.9")
		b.newRun()
		if n, _ := number(b.read("ovs_flows.f"), "flow_count"); n != 20000 {
			t.Errorf("after one was removed: %d flows", n)
		}
	})
	t.Run("killed before the restart", func(t *testing.T) {
		pid := daemonPID(t)
		shell(t, "", "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:"+keyRestart+"=true")
		b.newRun()
		if attr.Truth(b.read("ovs_switch.s"), "running", false) {
			t.Error("a restart that is still due is not seen")
		}
		b.apply(sw, "ovs_switch.s", swCfg(attrs{"pmd_cores": str("1")}))
		if daemonPID(t) == pid {
			t.Error("the restart was not made up for")
		}
	})
}

// TestRealRestore starts from an Open vSwitch that runs with settings of its own and must come back to them.
func TestRealRestore(t *testing.T) {
	b := realBed(t)
	s, err := sessionOf(b.ctx(), b.host)
	if err != nil {
		t.Fatal(err)
	}
	made := []string{runDir}
	defer func() {
		b.newRun()
		s, err := sessionOf(b.ctx(), b.host)
		if err != nil {
			t.Fatal(err)
		}
		for _, stop := range []func(context.Context) error{func(c context.Context) error { return s.stopDaemon(c, true) }, s.stopServer, s.removeDatabase} {
			if err := stop(b.ctx()); err != nil {
				t.Error(err)
			}
		}
		if err := s.removeMade(b.ctx(), append(made, daemonLog, logDir+"/ovsdb-server.log")); err != nil {
			t.Error(err)
		}
	}()
	if err := errors.Join(s.startServer(b.ctx()), s.startDaemon(b.ctx())); err != nil {
		t.Fatal(err)
	}
	shell(t, "", "ovs-vsctl", "set", "Open_vSwitch", ".", "other_config:max-idle=7777", "other_config:mine=1")
	config := func() string {
		return shell(t, "", "ovs-vsctl", "get", "Open_vSwitch", ".", "other_config", "external_ids", "dpdk_initialized")
	}
	before := config()
	b.apply(switchType{}, "ovs_switch.s", attrs{"dpdk": dpdkBlock(attrs{}), "max_idle": num(30000), "vlan_limit": num(2), "other_config": cty.MapVal(attrs{"mine": str("2")})})
	b.apply(switchType{}, "ovs_switch.s", attrs{"dpdk": dpdkBlock(attrs{"smc_enable": cty.True}), "vlan_limit": num(2)}) // gives max_idle and mine back
	if got := config(); !strings.Contains(got, `max-idle="7777"`) || !strings.Contains(got, `mine="1"`) {
		t.Errorf("settings that are not managed any more: %s", got)
	}
	if err := b.destroy("ovs_switch.s"); err != nil {
		t.Fatal(err)
	}
	if got := config(); got != before {
		t.Errorf("settings are\n%s\nand were\n%s", got, before)
	}
	if pid, err := strconv.Atoi(daemonPID(t)); err != nil || pid == 0 {
		t.Errorf("ovs-vswitchd does not run any more: %v", err)
	}
	exe, err := filepath.EvalSymlinks("/proc/" + daemonPID(t) + "/exe")
	if err != nil || strings.Contains(exe, "dpdk") {
		t.Errorf("the build is %s (%v)", exe, err)
	}
}
