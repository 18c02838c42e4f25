package network

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

func vethCase() conformance.Case {
	config := attrs{"name": str("v0"), "namespace": str("plt-net-a"), "peer_name": str("v1"), "peer_namespace": str("plt-net-b"), "mtu": num(2000), "mac": str("02:00:00:00:0A:01"),
		"addresses": strs("198.51.100.2/24", "198.51.100.1/24", "2001:db8::1/64"), "peer_addresses": strs("198.51.100.3/24"), "tx_queues": num(2), "rx_queues": num(2),
		"offloads": cty.MapVal(attrs{"tx": cty.False, "tso": cty.False})}
	update := with(config, attrs{"mtu": num(1400), "up": cty.False, "addresses": strs("198.51.100.1/24", "2001:db8::2/64"), "peer_addresses": cty.NullVal(cty.List(cty.String)), "peer_mac": str("02:00:00:00:0a:02"),
		"offloads": cty.MapVal(attrs{"gso": cty.False})})
	return conformance.Case{
		Type: vethType{}, Config: config, Update: update,
		Drift: map[string]func(*testing.T, providers.Host){
			"removed":           drift("ip -n plt-net-a link del dev v0"),
			"down":              drift("ip -n plt-net-b link set dev v1 down"),
			"another mtu":       drift("ip -n plt-net-b link set dev v1 mtu 1300"),
			"another mac":       drift("ip -n plt-net-a link set dev v0 address 02:00:00:00:0a:09"),
			"an address more":   drift("ip -n plt-net-b address add 203.0.113.1/32 dev v1"),
			"an address less":   drift("ip -n plt-net-a address del 2001:db8::1/64 dev v0"),
			"offload":           drift("ip netns exec plt-net-b ethtool -K v1 tx on"),
			"peer renamed":      drift("ip -n plt-net-b link set dev v1 down", "ip -n plt-net-b link set dev v1 name v9"),
			"first end moved":   drift("ip -n plt-net-a link set dev v0 netns plt-net-b"),
			"namespace is gone": drift("ip netns del plt-net-a", "ip netns add plt-net-a"),
		},
		Foreign: func(t *testing.T, h providers.Host) func() {
			conn := h.Conn()
			shell(t, conn, "ip -n plt-net-b link add dev v1 type veth peer name other")
			return func() { shell(t, conn, "ip -n plt-net-b link del dev v1") }
		},
	}
}

func TestVethOnFakeHost(t *testing.T) { suite(t, fakePlace(bed...), vethCase()) }

func TestRealVeth(t *testing.T) { suite(t, realPlace(t, bed...), vethCase()) }

func TestVethInOneNamespaceOnFakeHost(t *testing.T) {
	suite(t, fakePlace(bed...), vethHere("plt-net-a"))
}

func TestRealVethInOneNamespace(t *testing.T) { suite(t, realPlace(t, bed...), vethHere("plt-net-a")) }

// TestRealVethFromOutside has its first end in a namespace, and the other one where the connection leads to.
func TestRealVethFromOutside(t *testing.T) { suite(t, realPlace(t, bed...), vethHere("")) }

func vethHere(peer string) conformance.Case {
	config := attrs{"name": str("plt-net-v0"), "namespace": str("plt-net-a"), "peer_name": str("plt-net-v1")}
	if peer != "" {
		config["peer_namespace"] = str(peer)
	}
	return conformance.Case{Type: vethType{}, Config: config, Update: with(config, attrs{"mtu": num(9000)})}
}
