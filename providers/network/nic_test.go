package network

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
)

// lived is a bed with an interface that has something to lose.
var lived = append(routed[:len(routed):len(routed)], "ip -n plt-net-a link set dev r0 mtu 1450", "ip -n plt-net-a address add 198.51.100.77/25 broadcast 198.51.100.127 dev r0",
	"ip -n plt-net-a route add 203.0.113.0/24 via 198.51.100.2", "ip -n plt-net-a route add 2001:db8:9::/48 via 2001:db8::2 metric 7", "ip -n plt-net-a route add 192.0.2.0/24 dev r0 table 7",
	"ip -n plt-net-a neighbour add 198.51.100.8 lladdr 02:00:00:00:00:08 dev r0 nud permanent", "ip -n plt-net-a neighbour add 198.51.100.9 lladdr 02:00:00:00:00:09 dev r0 nud permanent",
	"ip netns exec plt-net-a ethtool -K r0 gso off")

func neighbours(pairs ...string) cty.Value {
	m := attrs{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = str(pairs[i+1])
	}
	return cty.MapVal(m)
}

func nicCase() conformance.Case {
	config := attrs{"interface": str("r0"), "namespace": str("plt-net-a"), "mtu": num(1400), "promiscuous": cty.True, "all_multicast": cty.True, "mac": str("02:00:00:00:0B:01"),
		"addresses": strs("203.0.113.9/28", "2001:db8::1/64"), "neighbours": neighbours("203.0.113.10", "02:00:00:00:00:10", "198.51.100.9", "02:00:00:00:00:99"),
		"offloads": cty.MapVal(attrs{"tx": cty.False, "gso": cty.True})}
	update := attrs{"interface": str("r0"), "namespace": str("plt-net-a"), "up": cty.False, "channels_rx": num(2), "channels_tx": num(2), "addresses": strs("2001:db8::5/64"), "offloads": cty.MapVal(attrs{"tso": cty.False})}
	return conformance.Case{
		Type: nicType{}, Config: config, Update: update, Snapshot: drivers(end{"plt-net-a", "r0"}),
		Drift: map[string]func(*testing.T, providers.Host){
			"mtu":             drift("ip -n plt-net-a link set dev r0 mtu 1500"),
			"not promiscuous": drift("ip -n plt-net-a link set dev r0 promisc off"),
			"offload":         drift("ip netns exec plt-net-a ethtool -K r0 tx on"),
			"neighbour":       drift("ip -n plt-net-a neighbour del 203.0.113.10 dev r0"),
			"address":         drift("ip -n plt-net-a address add 192.0.2.7/32 dev r0"),
		},
	}
}

// downCase takes an interface down, with all that goes with it.
func downCase() conformance.Case {
	config := attrs{"interface": str("r0"), "namespace": str("plt-net-a"), "up": cty.False}
	return conformance.Case{Type: nicType{}, Config: config, Update: with(config, attrs{"up": cty.True})}
}

func TestNICOnFakeHost(t *testing.T)     { suite(t, fakePlace(lived...), nicCase()) }
func TestNICDownOnFakeHost(t *testing.T) { suite(t, fakePlace(lived...), downCase()) }
func TestRealNIC(t *testing.T)           { suite(t, realPlace(t, lived...), nicCase()) }
func TestRealNICDown(t *testing.T)       { suite(t, realPlace(t, lived...), downCase()) }

// A NIC with rings, channels, flow control and interrupts that wait, found by its PCI address.
func TestNICOfADriverOnFakeHost(t *testing.T) {
	p := fakePlaceWith(func(c *fake.Conn) error {
		return c.AddNIC(fake.NIC{PCI: "0000:01:00.0", ID: "8086:10C9", Driver: "igb", Interface: "ens1", MAC: "52:54:00:00:01:00", Group: 1})
	})
	suite(t, p, nicOfADriver("01:00.0"))
}

func nicOfADriver(pci string) conformance.Case {
	config := attrs{"pci": str(pci), "up": cty.True, "mtu": num(9000), "ring_rx": num(1024), "ring_tx": num(512), "channels_combined": num(4), "pause_autoneg": cty.False, "pause_rx": cty.False, "pause_tx": cty.False,
		"coalesce_adaptive_rx": cty.False, "coalesce_rx_usecs": num(0), "offloads": cty.MapVal(attrs{"gro": cty.False, "rxvlan": cty.False}),
		"addresses": strs("198.51.100.1/24", "2001:db8::1/64"), "neighbours": neighbours("198.51.100.2", "02:00:00:00:00:02")} // on one that had none: that is to be remembered too
	update := attrs{"pci": str(pci), "ring_rx": num(2048), "promiscuous": cty.True, "pause_tx": cty.False, "offloads": cty.MapVal(attrs{"rx": cty.False})}
	return conformance.Case{Type: nicType{}, Config: config, Update: update, Snapshot: drivers(end{"", "ens1"}), Drift: map[string]func(*testing.T, providers.Host){
		"ring": drift("ethtool -G ens1 rx 256"), "flow control": drift("ethtool -A ens1 rx on"),
	}}
}
