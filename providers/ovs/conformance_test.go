package ovs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
)

// cases are the suites of the three objects on a bridge br0 with a port keep; run runs a command on the host.
func cases(open func(*testing.T) providers.Host, run func(t *testing.T, h providers.Host, args ...string) string) map[string]conformance.Case {
	do := func(args ...string) func(*testing.T, providers.Host) {
		return func(t *testing.T, h providers.Host) { run(t, h, args...) }
	}
	// Ports and bridges with their settings, and the flows, without what changes by itself.
	snapshot := func(t *testing.T, h providers.Host) []string {
		s, err := sessionOf(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, b := range w.bridges {
			lines = append(lines, fmt.Sprint("bridge ", b.name, b.datapath, b.failMode, b.protocols, b.otherConfig, b.external, b.stp, b.rstp, b.mcastSnooping))
			for _, p := range b.ports {
				lines = append(lines, fmt.Sprint("port ", b.name, p.name, p.typ, p.external, p.options, p.otherConfig, p.tag, p.trunks, p.vlanMode, p.qosType, p.ofport, p.mtuRequest))
			}
		}
		slices.Sort(lines)
		for line := range strings.Lines(run(t, h, "ovs-ofctl", "-O", "OpenFlow14", "--no-stats", "--no-names", "dump-flows", "br0")) {
			lines = append(lines, strings.TrimSpace(line))
		}
		return lines
	}
	return map[string]conformance.Case{
		"bridge": {
			Type: bridgeType{}, Open: open, Snapshot: snapshot,
			Config: attrs{"name": str("br1"), "datapath": str("netdev"), "mac_aging_time": num(60)},
			Update: attrs{"name": str("br1"), "datapath": str("netdev"), "mac_table_size": num(9000), "fail_mode": str("standalone")},
			Drift: map[string]func(*testing.T, providers.Host){
				"removed":   do("ovs-vsctl", "--if-exists", "del-br", "br1"),
				"fail mode": do("ovs-vsctl", "set", "Bridge", "br1", "fail_mode=standalone"),
				"setting":   do("ovs-vsctl", "set", "Bridge", "br1", "other_config:mac-aging-time=70"),
			},
			Foreign: func(t *testing.T, h providers.Host) func() {
				run(t, h, "ovs-vsctl", "add-br", "br1", "--", "set", "Bridge", "br1", "datapath_type=netdev")
				return func() {
					h := open(t)
					defer h.Close()
					run(t, h, "ovs-vsctl", "del-br", "br1")
				}
			},
		},
		"port": {
			Type: portType{}, Open: open, Snapshot: snapshot,
			Config: attrs{"bridge": str("br0"), "name": str("i1"), "type": str("internal"), "ofport": num(11), "mtu": num(1400), "tag": num(5)},
			Update: attrs{"bridge": str("br0"), "name": str("i1"), "type": str("internal"), "ofport": num(12), "trunks": nums(3, 1),
				"egress_policer": cty.ObjectVal(attrs{"cir": num(1000000), "cbs": num(3000)})},
			Drift: map[string]func(*testing.T, providers.Host){
				"removed": do("ovs-vsctl", "--if-exists", "del-port", "br0", "i1"),
				"tag":     do("ovs-vsctl", "set", "Port", "i1", "tag=6"),
			},
			Foreign: func(t *testing.T, h providers.Host) func() {
				run(t, h, "ovs-vsctl", "add-port", "br0", "i1", "--", "set", "Interface", "i1", "type=internal")
				return func() {
					h := open(t)
					defer h.Close()
					run(t, h, "ovs-vsctl", "del-port", "br0", "i1")
				}
			},
		},
		"flows": {
			Type: flowsType{}, Open: open, Snapshot: snapshot,
			Config: attrs{"bridge": str("br0"), "flows": strs("in_port=keep actions=LOCAL", "table=0,priority=5,ip,nw_src=10.0.0.0/255.0.0.0 actions=1")},
			Update: attrs{"bridge": str("br0"), "flows": strs("in_port=LOCAL actions=output:keep")},
			Drift: map[string]func(*testing.T, providers.Host){
				"removed": do("ovs-ofctl", "del-flows", "br0"),
				"changed": do("ovs-ofctl", "add-flow", "br0", "in_port=1 actions=drop"),
				"added":   do("ovs-ofctl", "add-flow", "br0", "in_port=99 actions=drop"),
			},
		},
		"flows with a cookie": {
			Type: flowsType{}, Open: open, Snapshot: snapshot,
			Config: attrs{"bridge": str("br0"), "cookie": str("0x5"), "flows": strs("in_port=keep actions=LOCAL")},
			Update: attrs{"bridge": str("br0"), "cookie": str("0x5"), "flows": strs("in_port=keep actions=drop", "arp actions=LOCAL")},
			Drift: map[string]func(*testing.T, providers.Host){
				"removed": do("ovs-ofctl", "del-flows", "br0", "cookie=0x5/-1"),
			},
		},
	}
}

// conformanceMark is the suite's: the bridge that whole flow tables are set on must be of that testbed.
func conformanceMark() providers.Mark {
	return providers.Mark{Testbed: "conformance", Address: "ovs_bridge.br0"}
}

func localHost(t *testing.T) providers.Host {
	t.Helper()
	return hostkit.New("dut", transport.NewLocal("dut"), testFacts)
}

func TestRealConformance(t *testing.T) {
	run := func(t *testing.T, _ providers.Host, args ...string) string { return shell(t, "", args...) }
	t.Run("switch", func(t *testing.T) {
		realBed(t)
		conformance.Run(t, conformance.Case{
			Type: switchType{}, Open: localHost,
			Config:   attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("1")}), "max_idle": num(30000)},
			Update:   attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("0-1"), "smc_enable": cty.True})},
			Snapshot: func(t *testing.T, _ providers.Host) []string { return strings.Split(machine(t), "\n") },
		})
	})
	t.Run("objects", func(t *testing.T) {
		b := realBed(t)
		b.mark = conformanceMark()
		t.Cleanup(func() { // before realBed's, so that a suite that failed leaves nothing
			shell(t, "", "ovs-vsctl", "--if-exists", "del-br", "br1", "--", "--if-exists", "del-port", "br0", "i1")
			b.newRun()
		})
		b.apply(switchType{}, "ovs_switch.s", attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("1")})})
		b.apply(bridgeType{}, "ovs_bridge.br0", attrs{"name": str("br0"), "datapath": str("netdev")})
		b.apply(portType{}, "ovs_port.keep", attrs{"bridge": str("br0"), "name": str("keep"), "type": str("internal"), "ofport": num(1)})
		for name, c := range cases(localHost, run) {
			t.Run(name, func(t *testing.T) { conformance.Run(t, c) })
		}
	})
}
