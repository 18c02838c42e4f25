package ovs

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var update = flag.Bool("update", false, "write the golden files")

func TestParsePorts(t *testing.T) {
	ports := parsePorts(readFile(t, "dump-ports.txt"))
	if len(ports) != 5 {
		t.Errorf("%d ports", len(ports))
	}
	got := ports["2"].counters()
	want := providers.Counters{Rx: 8689728, Tx: 16727616, Drops: map[string]uint64{
		"ovs_tx_failure_drops": 0, "ovs_tx_mtu_exceeded_drops": 0, "ovs_tx_qos_drops": 0, "ovs_rx_qos_drops": 0, "ovs_tx_invalid_hwol_drops": 0,
		"rx_dropped": 0, "tx_dropped": 0, "rx_errors": 0, "tx_errors": 0, "rx_missed_errors": 0, "rx_mbuf_allocation_errors": 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c := ports["3"].counters(); c.Rx != 0 || c.Tx != 0 { // all of them are ?
		t.Errorf("disconnected vhost port: %+v", c)
	}
	c := portStats{"tx drop": 10, "ovs_tx_failure_drops": 7, "ovs_tx_qos_drops": 1}.counters()
	if c.Drops["tx_dropped"] != 2 || c.Drops["ovs_tx_failure_drops"] != 7 {
		t.Errorf("the named drops are counted twice: %v", c.Drops)
	}
}

func TestPickLog(t *testing.T) {
	got := pickLog(readFile(t, "eal-failure.log"), 5)
	if len(got) == 0 || len(got) > 5 {
		t.Fatalf("%d lines", len(got))
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{"EAL: Invalid 'command line' arguments", "Unable to initialize DPDK"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    option
		v    cty.Value
		text string
	}{
		{option{form: boolForm}, cty.True, "true"},
		{option{form: intForm}, num(1 << 40), "1099511627776"},
		{option{form: listForm}, nums(1024, 0), "1024,0"},
		{option{form: cpuForm}, str("1-3,15"), "0x800e"},
		{option{form: coreMap}, cty.MapVal(attrs{"10": num(3), "2": num(15)}), "2:15,10:3"},
		{option{form: stringList}, strs("tc", "dpdk"), "tc,dpdk"},
		{option{form: textForm}, str("--no-pci"), "--no-pci"},
	} {
		if err := c.o.validate(c.v); err != nil {
			t.Error(err)
		}
		if got := c.o.encode(c.v); got != c.text {
			t.Errorf("%#v is written as %q, want %q", c.v, got, c.text)
		}
		if got := c.o.decode(c.text, cty.NullVal(c.o.ctyType())); !got.RawEquals(c.v) {
			t.Errorf("%q reads as %#v, want %#v", c.text, got, c.v)
		}
	}
	keep := str("15,1-3")
	if got := (option{form: cpuForm}).decode("800E", keep); !got.RawEquals(keep) {
		t.Errorf("the spelling is lost: %#v", got)
	}
	for _, bad := range []struct {
		o option
		v cty.Value
	}{
		{option{form: intForm, min: 1, max: 5}, num(6)}, {option{form: intForm}, cty.NumberFloatVal(1.5)}, {option{form: cpuForm}, str("1-")},
		{option{form: listForm, max: 5}, nums(1, 9)}, {option{form: coreMap}, cty.MapVal(attrs{"x": num(1)})},
	} {
		if bad.o.validate(bad.v) == nil {
			t.Errorf("%#v passed", bad.v)
		}
	}
	if got := (option{form: boolForm}).decode("maybe", cty.True); !got.IsNull() {
		t.Errorf("a value that the type cannot hold reads as %#v", got)
	}
}

func TestConfigChange(t *testing.T) {
	old := "5"
	set, remove := configChange(map[string]string{"a": "1", "b": "2", "c": "3", "foreign": "x"}, map[string]string{"a": "1", "b": "2", "c": "3"},
		map[string]string{"a": "9"}, map[string]*string{"b": &old, "c": nil})
	if diff := cmp.Diff(map[string]string{"a": "9", "b": "5"}, set); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"c"}, remove); diff != "" {
		t.Error(diff)
	}
	if !restarts(map[string]string{"dpdk-extra": ""}, nil) || restarts(map[string]string{"pmd-cpu-mask": "", "max-idle": ""}, nil) || !restarts(nil, []string{"unheard-of"}) {
		t.Error("which keys need a restart")
	}
}

func TestVersions(t *testing.T) {
	if o, d := parseVersion("ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.11\n"); o != "3.1.0" || d != "22.11.11" {
		t.Errorf("%q %q", o, d)
	}
	for _, c := range []struct {
		have, want string
		older      bool
	}{{"3.1.0", "3.2", true}, {"3.10.0", "3.2", false}, {"2.17.9", "3.0", true}, {"4.0.0", "3.2", false}, {"3.2.0", "3.2", false}, {"unknown", "3.2", false}} {
		if olderThan(c.have, c.want) != c.older {
			t.Errorf("%s older than %s: want %v", c.have, c.want, c.older)
		}
	}
	a := parseAlternatives("Name: ovs-vswitchd\nLink: /usr/sbin/ovs-vswitchd\nStatus: auto\nBest: /a\nValue: /a\n\nAlternative: /usr/lib/x-dpdk/d\nPriority: 50\n\nAlternative: /a\nPriority: 100\n")
	if diff := cmp.Diff(alternative{Auto: true, Value: "/a", DPDK: "/usr/lib/x-dpdk/d"}, a); diff != "" {
		t.Error(diff)
	}
	d := desired(&switchSchema().Block, attrs{"dpdk": dpdkBlock(attrs{"pmd_sleep_max": str("50")})})
	if got := tooOld(d, "3.1.0", "dut"); len(got) != 1 || !strings.Contains(got[0].Detail, "pmd_sleep_max exists from Open vSwitch 3.2") {
		t.Errorf("%v", got)
	}
}

func TestPortProblems(t *testing.T) {
	base := func(typ string, more attrs) attrs {
		a := attrs{"bridge": str("br0"), "name": str("p0"), "type": str(typ)}
		for k, v := range more {
			a[k] = v
		}
		return a
	}
	for _, c := range []struct {
		name  string
		given attrs
		want  string // part of the detail; "": no problem
	}{
		{"dpdk", base("dpdk", attrs{"devargs": str("net_null0"), "rxqs": num(2)}), ""},
		{"no devargs", base("dpdk", nil), "needs devargs"},
		{"no peer", base("patch", nil), "needs peer"},
		{"no remote", base("vxlan", nil), "needs remote_ip"},
		{"bad remote", base("vxlan", attrs{"remote_ip": str("1.2.3")}), "neither an IP address"},
		{"rxqs of vhost", base(clientType, attrs{"rxqs": num(2)}), "rxqs is an option of interfaces of type dpdk, afxdp"},
		{"deprecated", base(serverType, nil), "allow_deprecated = true"},
		{"deprecated, allowed", base(serverType, attrs{"allow_deprecated": cty.True}), ""},
		{"path of internal", base("internal", attrs{"vhost_server_path": str("/x")}), "for type dpdkvhostuserclient"},
		{"relative path", base(clientType, attrs{"vhost_server_path": str("x")}), "absolute path"},
		{"mac of dpdk", base("dpdk", attrs{"devargs": str("x"), "mac": str("00:00:00:00:00:01")}), "internal ports only"},
		{"free map", base("dpdk", attrs{"devargs": str("x"), "options": cty.MapVal(attrs{"n_rxq": str("2")})}), "argument rxqs"},
		{"unpolled", base("dpdk", attrs{"devargs": str("x"), "rxqs": num(2), "affinity": cty.MapVal(attrs{"0": num(1)})}), "Queue 1 is not in affinity"},
		{"no such queue", base("dpdk", attrs{"devargs": str("x"), "affinity": cty.MapVal(attrs{"0": num(1), "4": num(2)})}), "affinity pins queue 4"},
	} {
		got := problemsOf(t, portType{}, c.given)
		all := ""
		for _, p := range got {
			all += p.Detail + "\n"
		}
		if c.want == "" && len(got) > 0 || !strings.Contains(all, c.want) {
			t.Errorf("%s: %q, want %q", c.name, all, c.want)
		}
	}
}

func TestSwitchProblems(t *testing.T) {
	for want, given := range map[string]attrs{
		"socket_mem alone":   {"dpdk": dpdkBlock(attrs{"alloc_mem": num(512)})},
		"--socket-mem":       {"dpdk": dpdkBlock(attrs{"extra": str("--socket-mem=5")})},
		"argument max_idle":  {"other_config": cty.MapVal(attrs{"max-idle": str("1")})},
		"argument pmd_cores": {"other_config": cty.MapVal(attrs{"pmd-cpu-mask": str("1")})},
		"hw_offload = true":  {"n_offload_threads": num(2)},
		`"group"`:            {"dpdk": dpdkBlock(attrs{"pmd_rxq_isolate": cty.False})},
		"MTU or MTU:NODE":    {"dpdk": dpdkBlock(attrs{"shared_mempool_config": strs("big")})},
	} {
		got := problemsOf(t, switchType{}, given)
		if !slices.ContainsFunc(got, func(p providers.Problem) bool { return strings.Contains(p.Detail, want) }) {
			t.Errorf("%q is not among %v", want, got)
		}
	}
	if got := problemsOf(t, switchType{}, attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("1")})}); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

func TestFlowProblems(t *testing.T) {
	flow := func(more attrs) attrs {
		more["bridge"] = str("br0")
		return more
	}
	gen := func(over attrs) cty.Value {
		return cty.ListVal([]cty.Value{desired(&flowsType{}.Schema().Block.Blocks["generate"].Block, over)})
	}
	for want, given := range map[string]attrs{
		"would overwrite":  flow(attrs{"flows": strs("in_port=1,actions=2", "in_port=0x1 actions=3")}),
		"gives one to all": flow(attrs{"cookie": str("5"), "flows": strs("cookie=1,actions=2")}),
		"no base address":  flow(attrs{"generate": gen(attrs{"count": num(2), "actions": str("drop")})}),
		"there are only 1": flow(attrs{"generate": gen(attrs{"count": num(2), "src": str("255.255.255.255"), "actions": str("drop")})}),
		"no port is given": flow(attrs{"generate": gen(attrs{"count": num(2), "src": str("1.1.1.1"), "actions": str("output:")})}),
	} {
		got := problemsOf(t, flowsType{}, given)
		if !slices.ContainsFunc(got, func(p providers.Problem) bool { return strings.Contains(p.Detail, want) }) {
			t.Errorf("%q is not among %v", want, got)
		}
	}
}

func TestClaims(t *testing.T) {
	c, err := switchType{}.Claims(t.Context(), nil, desired(&switchSchema().Block, attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("1,15"), "lcores": str("2"), "socket_mem": nums(512, 3), "hugepage_size": str("2M")})}))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cores) != 2 || !c.Cores[0].Polling || c.Cores[1].Polling || len(c.Hugepages) != 2 || c.Hugepages[0].Pages != 256 || c.Hugepages[1].Pages != 2 || c.Hugepages[1].Node != 1 {
		t.Errorf("%+v", c)
	}
	c, err = switchType{}.Claims(t.Context(), nil, desired(&switchSchema().Block, attrs{"dpdk": dpdkBlock(attrs{"socket_mem": nums(512)})}))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Hugepages) != 1 || c.Hugepages[0].Size != 0 || c.Hugepages[0].Bytes != 512<<20 {
		t.Errorf("%+v is not 512 MB of any size", c.Hugepages)
	}
	c, err = portType{}.Claims(t.Context(), nil, desired(&portType{}.Schema().Block, attrs{"bridge": str("br0"), "name": str("v0"), "type": str(clientType), "ofport": num(3), "vhost_server_path": str("/s")}))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Sockets) != 1 || c.Sockets[0].Socket != "/s" || c.Sockets[0].Server || !c.Sockets[0].Switch {
		t.Errorf("%+v", c.Sockets)
	}
	c, err = flowsType{}.Claims(t.Context(), nil, desired(&flowsType{}.Schema().Block, attrs{"bridge": str("br0"), "flows": strs("in_port=v0,actions=output:7")}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range c.Needs {
		names = append(names, n.Name)
	}
	if diff := cmp.Diff([]string{"7", "v0"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestMapChange(t *testing.T) {
	got, err := json.Marshal(mapChange("other_config", map[string]string{"a": "1"}, []string{"b"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `[["other_config","delete",["set",["a","b"]]],["other_config","insert",["map",[["a","1"]]]]]`
	if string(got) != want {
		t.Errorf("%s", got)
	}
}
