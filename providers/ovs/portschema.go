package ovs

import (
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// Interface types, and groups of them that options apply to.
const (
	dpdkType   = "dpdk"
	clientType = "dpdkvhostuserclient"
	serverType = "dpdkvhostuser"
	afxdpType  = "afxdp"
	patchType  = "patch"
)

func portTypes() []string {
	return []string{"internal", "system", dpdkType, clientType, serverType, patchType, "vxlan", "geneve", "gre", afxdpType, "tap"}
}

func tunnels() []string { return []string{"vxlan", "geneve", "gre"} }

// portOptions are keys of column options (ovs-vswitchd.conf.db(5), table Interface).
func portOptions() []option {
	const reset = schema.PortReset
	return []option{
		{attr: "devargs", key: "dpdk-devargs", cost: reset, on: []string{dpdkType}, desc: "DPDK device: PCI address 0000:01:00.0, with ,representor=vf0, or a virtual device such as net_null0."},
		{attr: "rxqs", key: "n_rxq", form: intForm, min: 1, max: 1024, cost: reset, on: []string{dpdkType, afxdpType}, desc: "Receive queues. With vhost-user the guest says how many."},
		{attr: "rxq_descriptors", key: "n_rxq_desc", form: intForm, min: 1, max: 4096, cost: reset, on: []string{dpdkType}, desc: "Descriptors of a receive queue: a power of two."},
		{attr: "txq_descriptors", key: "n_txq_desc", form: intForm, min: 1, max: 4096, cost: reset, on: []string{dpdkType}, desc: "Descriptors of a transmit queue: a power of two."},
		{attr: "rx_flow_ctrl", key: "rx-flow-ctrl", form: boolForm, on: []string{dpdkType}, desc: "Heed pause frames. Off for RFC 2544."},
		{attr: "tx_flow_ctrl", key: "tx-flow-ctrl", form: boolForm, on: []string{dpdkType}, desc: "Send pause frames. Off for RFC 2544."},
		{attr: "flow_ctrl_autoneg", key: "flow-ctrl-autoneg", form: boolForm, on: []string{dpdkType}, desc: "Negotiate flow control."},
		{attr: "lsc_interrupt", key: "dpdk-lsc-interrupt", form: boolForm, cost: reset, on: []string{dpdkType}, desc: "Learn link changes by interrupt rather than by polling."},
		{attr: "vf_mac", key: "dpdk-vf-mac", form: macForm, on: []string{dpdkType}, since: "OVS 2.15", desc: "MAC address of the function behind a representor."},
		{attr: "rx_steering", key: "rx-steering", cost: reset, oneOf: []string{"rss", "rss+lacp"}, since: "OVS 3.2", on: []string{dpdkType}, desc: "How frames are spread over receive queues."},
		{attr: "vhost_max_queue_pairs", key: "vhost-max-queue-pairs", form: intForm, min: 1, max: 128, cost: schema.Replace, since: "OVS 3.5", on: []string{clientType}, desc: "Most queue pairs of a VDUSE device; vhost-user follows the guest."},
		{attr: "tx_retries_max", key: "tx-retries-max", form: intForm, max: 32, on: []string{clientType}, desc: "How often a full guest queue is tried again; 8 in Open vSwitch. More lowers loss and raises latency."},
		{attr: "xdp_mode", key: "xdp-mode", cost: reset, oneOf: []string{"best-effort", "native-with-zerocopy", "native", "generic"}, on: []string{afxdpType}, desc: "How AF_XDP attaches."},
		{attr: "peer", key: "peer", cost: reset, on: []string{patchType}, desc: "The patch port at the other end."},
		{attr: "remote_ip", key: "remote_ip", cost: reset, on: tunnels(), desc: "IP address of the tunnel's other end, or flow."},
		{attr: "local_ip", key: "local_ip", cost: reset, on: tunnels(), desc: "IP address of this end, or flow."},
		{attr: "key", key: "key", cost: reset, on: tunnels(), desc: "Tunnel key (VNI), or flow."},
		{attr: "dst_port", key: "dst_port", form: intForm, min: 1, max: 65535, cost: reset, on: []string{"vxlan", "geneve"}, desc: "UDP port of the tunnel."},
		{attr: "csum", key: "csum", form: boolForm, cost: reset, on: tunnels(), desc: "Checksums of the outer header."},
		{attr: "df_default", key: "df_default", form: boolForm, cost: reset, on: tunnels(), desc: "Don't Fragment in the outer header."},
		{attr: "tos", key: "tos", cost: reset, on: tunnels(), desc: "TOS of the outer header: a number, or inherit."},
		{attr: "ttl", key: "ttl", cost: reset, on: tunnels(), desc: "TTL of the outer header: a number, or inherit."},
	}
}

// queueOptions are keys of column other_config.
func queueOptions() []option {
	polled := []string{dpdkType, clientType, serverType, afxdpType}
	return []option{
		{attr: "affinity", key: "pmd-rxq-affinity", form: coreMap, max: 4095, cost: schema.PortReset, on: polled, desc: "CPU that polls each receive queue: { 0 = 1, 1 = 15 }. A CPU with a pinned queue takes no other (pmd_rxq_isolate)."},
		{attr: "tx_steering", key: "tx-steering", cost: schema.PortReset, oneOf: []string{"thread", "hash"}, since: "OVS 2.17", on: polled, desc: "How frames are spread over transmit queues."},
		{attr: "emc_enable", key: "emc-enable", form: boolForm, cost: schema.PortReset, on: polled, desc: "Whether the exact-match cache is used for frames from here."},
	}
}

// policing are the integer columns of the ingress policer, in the order of port.policing.
func policing() [4]option {
	return [4]option{
		{attr: "ingress_policing_rate", key: "ingress_policing_rate", form: intForm, max: 1<<32 - 1, desc: "Most kbit/s that may come in; 0: no limit."},
		{attr: "ingress_policing_burst", key: "ingress_policing_burst", form: intForm, max: 1<<32 - 1, desc: "Burst in kbit; 0: 8000."},
		{attr: "ingress_policing_kpkts_rate", key: "ingress_policing_kpkts_rate", form: intForm, max: 1<<32 - 1, desc: "Most thousand frames a second that may come in; 0: no limit.", since: "OVS 2.16"},
		{attr: "ingress_policing_kpkts_burst", key: "ingress_policing_kpkts_burst", form: intForm, max: 1<<32 - 1, desc: "Burst in thousand frames; 0: 16.", since: "OVS 2.16"},
	}
}

func (portType) Schema() *schema.Resource {
	replace, reset := schema.Replace, schema.PortReset
	attrs := map[string]*schema.Attribute{
		"bridge":           {Type: cty.String, Required: true, Cost: replace, Description: "Name of the bridge."},
		"name":             {Type: cty.String, Required: true, Cost: replace, Validate: portName, Description: "Name of the port and its interface."},
		"type":             {Type: cty.String, Required: true, Cost: replace, OneOf: portTypes(), Description: "Type of the interface. system: a network device of the kernel."},
		"allow_deprecated": {Type: cty.Bool, Optional: true, Description: "Allow type dpdkvhostuser, whose guests must be restarted whenever ovs-vswitchd is."},
		"allow_cross_numa": {Type: cty.Bool, Optional: true, Default: cty.False, Description: "Accept that cores of another NUMA node than the NIC's poll this port of type dpdk."},
		"vhost_server_path": {Type: cty.String, Optional: true, Computed: true, Cost: replace,
			Description: "Socket that the other side listens on, and ovs-vswitchd connects to. Unset: " + vhostDir + "/NAME, in a folder that Plumb makes. Of dpdkvhostuser: the socket that ovs-vswitchd makes."},
		"mtu": {Type: cty.Number, Optional: true, Cost: reset, Validate: option{form: intForm, min: 68, max: 65535}.validate,
			Description: "Bytes of payload in a frame. Unset: left to Open vSwitch. A value that the port refuses is an error."},
		"mac": {Type: cty.String, Optional: true, Cost: reset, Canonical: schema.MAC, Description: "MAC address of an internal port."},
		"ofport": {Type: cty.Number, Optional: true, Computed: true, Cost: reset, Validate: option{form: intForm, min: 1, max: 65279}.validate,
			Description: "OpenFlow port number, 1 to 65279. Unset: Open vSwitch chooses."},
		"tag":        {Type: cty.Number, Optional: true, Validate: option{form: intForm, max: 4095}.validate, Description: "VLAN of an access port, 0 to 4095."},
		"trunks":     {Type: cty.List(cty.Number), Optional: true, Validate: option{form: listForm, max: 4095}.validate, Description: "VLANs of a trunk port. Unset: all."},
		"vlan_mode":  {Type: cty.String, Optional: true, OneOf: []string{"trunk", "access", "native-tagged", "native-untagged", "dot1q-tunnel"}, Description: "What tag and trunks mean."},
		"options":    {Type: cty.Map(cty.String), Optional: true, Cost: reset, Description: "Keys of options that have no attribute here."},
		"mac_in_use": {Type: cty.String, Computed: true, Volatile: true, Description: "MAC address of the interface."},
	}
	for _, o := range append(portOptions(), queueOptions()...) {
		attrs[o.attr] = o.attribute()
	}
	for _, name := range []string{"rxq_descriptors", "txq_descriptors"} {
		attrs[name].Validate = schema.PowerOfTwo(option{form: intForm, min: 1, max: 4096}.validate)
	}
	for _, o := range policing() {
		attrs[o.attr] = o.attribute()
	}
	return &schema.Resource{
		Type:        "ovs_port",
		Description: "A port of a bridge with its interface. An error that Open vSwitch reports of the interface is an error of the apply.",
		After:       []string{"ovs_switch", "ovs_bridge", "nic_driver", "nic_sriov", "nic_link", "net_veth", "net_tap"},
		LostOn: []schema.Loss{
			{Type: "ovs_bridge", Cost: replace, Why: "a bridge takes its ports away when it is made anew"},
			{Type: "nic_driver", Cost: reset, Release: true, Why: "a NIC cannot be bound to another driver while a port has it"},
			{Type: "nic_sriov", Cost: reset, Release: true, Why: "a virtual function cannot be given another driver while a port has it"},
		},
		Example: `resource "ovs_port" "vhost0" {
  bridge = "br0"
  name   = "vhost0"
  type   = "dpdkvhostuserclient"
  ofport = 1
}`,
		Block: schema.Block{Attributes: attrs, Blocks: map[string]*schema.NestedBlock{
			"egress_policer": {Nesting: schema.Single, Block: schema.Block{
				Description: "Drops what goes out beyond a rate (QoS type egress-policer), on ports of the userspace datapath.",
				Attributes: map[string]*schema.Attribute{
					"cir": {Type: cty.Number, Required: true, Validate: option{form: intForm, min: 1, max: 1<<62 - 1}.validate, Description: "Bytes a second, without Ethernet headers."},
					"cbs": {Type: cty.Number, Required: true, Validate: option{form: intForm, min: 1, max: 1<<62 - 1}.validate, Description: "Burst in bytes; at least one frame."},
				},
			}},
		}},
	}
}
