package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// twoSockets is a machine with two nodes of four cores with two threads each: 0-3 and 8-11 on node 0, 4-7 and 12-15 on node 1; N and N+8 are one core.
func twoSockets(isolated ...int) *providers.Facts {
	f := &providers.Facts{Nodes: []providers.Node{{ID: 0}, {ID: 1}}, NICs: []providers.NIC{
		{Device: providers.Device{PCI: "0000:18:00.0"}, Node: 0}, {Device: providers.Device{PCI: "0000:af:00.0"}, Node: 1}, {Device: providers.Device{PCI: "0000:00:03.0"}, Node: -1}}}
	for id := range 16 {
		f.CPUs = append(f.CPUs, providers.CPU{ID: id, Online: true, Node: id % 8 / 4, Core: id % 8, Siblings: []int{(id + 8) % 16}, Isolated: slices.Contains(isolated, id)})
	}
	return f
}

func TestTopology(t *testing.T) {
	at := func(cty.Path) *hcl.Range { return nil }
	polls := func(addr, use string, shared bool, cores ...int) claimant {
		return claimant{addr: addr, at: at, claims: providers.Claims{Cores: []providers.CoreClaim{{Cores: cores, Use: use, Polling: true, Shared: shared}}}}
	}
	serves := func(pci string, crossing bool, cores ...int) claimant {
		return claimant{addr: "ovs_port.p0", at: at, claims: providers.Claims{Devices: []providers.DeviceClaim{{PCI: pci, Cores: cores, Use: "PMD", Crossing: crossing}}}}
	}
	isolates := claimant{addr: "host_cpu_isolation.dut", at: at, claims: providers.Claims{Isolates: []int{2, 3, 10, 11}}}
	for name, tc := range map[string]struct {
		facts *providers.Facts
		list  []claimant
		want  string
	}{
		"nothing is isolated": {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1)}, ""},
		"isolated":            {twoSockets(1, 2), []claimant{polls("ovs_switch.dut", "PMD", false, 1, 2)}, ""},
		"not isolated by the kernel": {twoSockets(2, 3, 4), []claimant{polls("ovs_switch.dut", "PMD", false, 1, 2)}, "error -: Core is not isolated\n" +
			"  ovs_switch.dut polls with core 1 of host.dut (PMD), and the kernel of host.dut isolates cores 2-4 only. The scheduler puts other work on the rest, and each pause of a poll loop is loss. " +
			"Take isolated cores, isolate it too, or accept it with share_cores = true.\n"},
		"not isolated by the configuration": {twoSockets(0, 1), []claimant{isolates, polls("dpdk_testpmd.vnf", "testpmd forwarding", false, 0, 1, 2)}, "error -: Cores are not isolated\n" +
			"  dpdk_testpmd.vnf polls with cores 0-1 of host.dut (testpmd forwarding), and host_cpu_isolation.dut isolates cores 2-3,10-11 only. The scheduler puts other work on the rest, and each pause of a poll loop is loss. " +
			"Take isolated cores, isolate them too, or accept it with share_cores = true.\n"},
		"not isolated, accepted":       {twoSockets(0), []claimant{isolates, polls("dpdk_testpmd.vnf", "testpmd forwarding", true, 0)}, ""},
		"both threads of one user":     {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1, 9)}, ""},
		"threads of different cores":   {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1), polls("dpdk_testpmd.vnf", "testpmd forwarding", false, 2)}, ""},
		"hyperthreads of two users":    {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", true, 1, 2), polls("dpdk_testpmd.vnf", "testpmd forwarding", false, 3, 10)}, "error -: Hyperthread of a polling core\n" + threads + "Both poll, so each would get about half of it, and what is measured depends on both. Give one of them a thread of another core, or set share_cores = true on both.\n"},
		"hyperthreads, both accept it": {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", true, 1, 2), polls("dpdk_testpmd.vnf", "testpmd forwarding", true, 3, 10)}, "warning -: Hyperthreads are shared\n" + threads + "Both poll, so each gets about half of it. Both say that this is accepted.\n"},
		"a core on the NIC's node":     {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1, 5), serves("0000:af:00.0", false)}, ""},
		"no core on the NIC's node": {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1, 2), serves("0000:af:00.0", false)}, "error -: NUMA nodes are crossed\n" +
			"  ovs_port.p0: NIC 0000:af:00.0 of host.dut is on NUMA node 1, and cores 1-2 that serve it (PMD) are on node 0. Every frame would cross the link between the nodes. " +
			"Take cores of node 1 (cores 4-7,12-15), or accept it with allow_cross_numa = true.\n"},
		"a queue pinned across": {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1, 5), serves("0000:18:00.0", false, 1, 5)}, "error -: NUMA nodes are crossed\n" +
			"  ovs_port.p0: NIC 0000:18:00.0 of host.dut is on NUMA node 0, and core 5 that serves it (PMD) is on node 1. Every frame would cross the link between the nodes. " +
			"Take cores of node 0 (cores 0-3,8-11), or accept it with allow_cross_numa = true.\n"},
		"crossed, accepted":              {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1), serves("0000:af:00.0", true)}, ""},
		"a NIC of which nobody knows":    {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1), serves("0000:00:03.0", false)}, ""},
		"a device that is no NIC at all": {twoSockets(), []claimant{polls("ovs_switch.dut", "PMD", false, 1), serves("net_null0", false)}, ""},
	} {
		h := &hostClaims{name: "dut", facts: tc.facts, list: tc.list}
		got := diagText(slices.Concat(h.checkIsolation(), h.checkSiblings(), h.checkNodes()))
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

const threads = "  Cores 2 (ovs_switch.dut, PMD) and 10 (dpdk_testpmd.vnf, testpmd forwarding) of host.dut are hyperthreads of one physical core. "
