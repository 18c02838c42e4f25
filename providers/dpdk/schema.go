package dpdk

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/schema"
	"plumb/providers/internal/marked"
)

// forwardModes of testpmd (doc/guides/testpmd_app_ug/run_app.rst) that work without a configuration of their own.
func forwardModes() []string {
	return []string{"io", "mac", "macswap", "flowgen", "rxonly", "txonly", "csum", "icmpecho", "5tswap"}
}

func testpmdSchema() *schema.Resource {
	return &schema.Resource{
		Type: "dpdk_testpmd",
		Description: "A dpdk-testpmd process that forwards between its ports: the network function of a testbed. It outlives Plumb. A port that DPDK could not start is " +
			"an error, also when testpmd itself would go on without it.",
		Example: `resource "dpdk_testpmd" "vnf" {
  cores = "0,1"
  port {
    vhost_user = "/run/plumb/vhost/vnf0"
  }
}`,
		After: []string{"host_hugepages", "ovs_switch", "ovs_bridge", "ovs_port", "nic_driver", "nic_sriov"},
		LostOn: []schema.Loss{
			{Type: "nic_driver", Cost: schema.PortReset, Release: true, Why: "a NIC cannot be bound to another driver while a process has it"},
			{Type: "nic_sriov", Cost: schema.PortReset, Release: true, Why: "a virtual function cannot be given another driver while a process has it"},
		},
		Block: schema.Block{
			Attributes: testpmdAttributes(),
			Blocks: map[string]*schema.NestedBlock{
				"port": {Nesting: schema.List, MinItems: 1, MaxItems: 32, Block: portBlock()},
			},
		},
	}
}

func testpmdAttributes() map[string]*schema.Attribute {
	opt := func(t cty.Type, def cty.Value, what string) *schema.Attribute {
		return &schema.Attribute{Type: t, Optional: true, Default: def, Cost: schema.ServiceRestart, Description: what}
	}
	num := func(least, most int64, what string) *schema.Attribute {
		a := opt(cty.Number, cty.NilVal, what)
		a.Validate = schema.Whole(least, most)
		return a
	}
	a := coreAttributes(opt)
	a["forward_mode"] = opt(cty.String, cty.StringVal("io"), "What happens to frames: io (unchanged), mac and macswap (new MAC addresses), rxonly, txonly, flowgen, csum, icmpecho, 5tswap.")
	a["forward_mode"].OneOf = forwardModes()
	a["rxq"] = num(1, 1024, "Receive queues of every port. Unset: as many as the port with most queues has.")
	a["txq"] = num(1, 1024, "Transmit queues of every port. Unset: as many as the port with most queues has.")
	a["rxd"] = num(1, 32768, "Descriptors of a receive queue. Unset: the driver's choice; for virtio-user its queue_size.")
	a["txd"] = num(1, 32768, "Descriptors of a transmit queue. Unset: the driver's choice; for virtio-user its queue_size.")
	a["port_topology"] = opt(cty.String, cty.StringVal("paired"), "Where frames of a port go out: paired (0 and 1, 2 and 3), chained (the next), loop (the same). A single port is always a loop.")
	a["port_topology"].OneOf = []string{"paired", "chained", "loop"}
	a["no_pci"] = opt(cty.Bool, cty.NilVal, "Keep DPDK from looking at PCI devices. Unset: true unless a port has pci.")
	a["single_file_segments"] = opt(cty.Bool, cty.True, "Back all hugepages of a node by one file. vhost-user carries 8 memory regions: without this each 2 MB page may be one, and ports fail with \"Too many memory regions\".")
	a["in_memory"] = opt(cty.Bool, cty.True, "Create no files in hugetlbfs. Nothing is left there then, even after SIGKILL.")
	a["file_prefix"] = &schema.Attribute{Type: cty.String, Optional: true, Computed: true, Cost: schema.ServiceRestart, Validate: harmless,
		Description: "Name of DPDK's runtime folder below /run/dpdk; unique on the host. Unset: made of the address."}
	a["extra_eal"] = opt(cty.List(cty.String), cty.NilVal, "More EAL arguments, one word each: [\"--log-level\", \"lib.eal:debug\"].")
	a["extra_args"] = opt(cty.List(cty.String), cty.NilVal, "More arguments of testpmd itself, one word each: [\"--rss-udp\"].")
	a["allow_cross_numa"] = &schema.Attribute{Type: cty.Bool, Optional: true, Default: cty.False, Description: "Accept that CPUs of another NUMA node than a NIC's forward for it."}
	a["command"] = &schema.Attribute{Type: cty.List(cty.String), Computed: true, Volatile: true, Cost: schema.ServiceRestart, Description: "The command line that runs."}
	return a
}

// coreAttributes are those that the generator has too.
func coreAttributes(opt func(cty.Type, cty.Value, string) *schema.Attribute) map[string]*schema.Attribute {
	a := map[string]*schema.Attribute{
		"cores":       {Type: cty.String, Required: true, Cost: schema.ServiceRestart, Canonical: schema.CPUs, Description: "CPUs, as a list: 0-1. One runs the console and idles; the others forward and spin."},
		"main_core":   opt(cty.Number, cty.NilVal, "The CPU of cores that runs the console. Unset: the lowest."),
		"memory":      opt(cty.List(cty.Number), cty.ListVal([]cty.Value{cty.NumberIntVal(128)}), "MB of hugepages by NUMA node: [128] takes them from node 0, [0, 256] from node 1."),
		"mbufs":       opt(cty.Number, cty.NumberIntVal(8192), "Packet buffers. Each takes 2.3 kB of memory; all descriptors of all ports must find one, and those on their way too."),
		"burst":       opt(cty.Number, cty.NumberIntVal(32), "Frames that are received and sent at once, 1 to 512."),
		"share_cores": opt(cty.Bool, cty.False, "Accept that the forwarding CPUs are shared with other threads that spin. Rates then say little: they take turns of milliseconds."),
	}
	a["main_core"].Validate = schema.Whole(0, cpuset.Max)
	a["mbufs"].Validate = schema.Whole(512, 1<<24)
	a["burst"].Validate = schema.Whole(1, 512)
	a["memory"].Validate = func(v cty.Value) error {
		for _, e := range v.AsValueSlice() {
			if !e.IsKnown() {
				continue
			}
			if e.IsNull() {
				return errors.New("the list holds a null")
			}
			if err := schema.Whole(0, 1<<24)(e); err != nil {
				return err
			}
		}
		return nil
	}
	return a
}

func portBlock() schema.Block {
	opt := func(t cty.Type, def cty.Value, what string) *schema.Attribute {
		return &schema.Attribute{Type: t, Optional: true, Default: def, Cost: schema.ServiceRestart, Description: what}
	}
	b := schema.Block{
		Description: "One port. Exactly one of vhost_user, vdev and pci says what it is. Ports are numbered in the order of the blocks.",
		Attributes: map[string]*schema.Attribute{
			"vhost_user": opt(cty.String, cty.NilVal, "Path of a vhost-user socket; the port is the virtio side of it, as a VM would be (virtio-user)."),
			"server":     opt(cty.Bool, cty.True, "Make the socket and wait for the switch to connect (ovs_port type dpdkvhostuserclient). false: connect to the switch's socket."),
			"queues":     opt(cty.Number, cty.NumberIntVal(1), "Queue pairs of the vhost-user port."),
			"queue_size": opt(cty.Number, cty.NilVal, "Descriptors of a virtqueue: a power of two; 256 in DPDK."),
			"packed":     opt(cty.Bool, cty.NilVal, "Packed virtqueues (virtio 1.1) rather than split ones."),
			"mrg_rxbuf":  opt(cty.Bool, cty.NilVal, "Mergeable receive buffers. Off lets DPDK use its vector receive function; frames must then fit one buffer."),
			"mac":        opt(cty.String, cty.NilVal, "MAC address of the vhost-user port. Unset: random at each start."),
			"peer_mac":   opt(cty.String, cty.NilVal, "Destination MAC address of what is sent in forward_mode mac and txonly. Unset: 02:00:00:00:00:NN, NN the port."),
			"vdev":       opt(cty.String, cty.NilVal, "A DPDK virtual device with its arguments: net_null0,size=64."),
			"pci":        opt(cty.String, cty.NilVal, "PCI address of a NIC that is bound to vfio-pci (or is mlx5): 0000:01:00.0."),
		},
	}
	b.Attributes["queues"].Validate = schema.Whole(1, 128)
	b.Attributes["queue_size"].Validate = virtqueueSize()
	b.Attributes["vhost_user"].Validate = socketPath
	b.Attributes["mac"].Canonical = schema.MAC
	b.Attributes["peer_mac"].Canonical = schema.AnyMAC
	b.Attributes["vdev"].Validate = func(v cty.Value) error {
		if strings.ContainsAny(v.AsString(), " \t\n") || v.AsString() == "" {
			return errors.New("it must be one word, such as net_null0,size=64")
		}
		return nil
	}
	b.Attributes["pci"].Validate = func(v cty.Value) error {
		if !regexp.MustCompile(`^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`).MatchString(v.AsString()) {
			return fmt.Errorf("%q is not a full PCI address such as 0000:01:00.0", v.AsString())
		}
		return nil
	}
	return b
}

// socketPath holds what a socket's address can be and what a vdev argument can hold.
func socketPath(v cty.Value) error {
	if err := schema.SocketPath(v); err != nil {
		return err
	}
	if p := v.AsString(); strings.ContainsAny(p, ", \t\n") {
		return fmt.Errorf("%q holds a comma or a blank, which DPDK cannot take", p)
	}
	return nil
}

// virtqueueSize is a number of descriptors (virtio 1.2, section 2.7: a power of two, at most 32768).
func virtqueueSize() func(cty.Value) error { return schema.PowerOfTwo(schema.Whole(2, 32768)) }

func harmless(v cty.Value) error {
	if s := v.AsString(); s == "" || marked.Tidy(s) != s || strings.HasPrefix(s, ".") || len(s) > 64 {
		return fmt.Errorf("%q is not made of 1 to 64 letters, digits, - and _", s)
	}
	return nil
}
