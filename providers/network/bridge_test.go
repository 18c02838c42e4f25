package network

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

func tapCase() conformance.Case {
	config := attrs{"name": str("t0"), "namespace": str("plt-net-a"), "multi_queue": cty.True, "vnet_hdr": cty.True, "owner": str("nobody"), "group": str("0"), "mtu": num(1800), "addresses": strs("198.51.100.9/24")}
	return conformance.Case{
		Type: tapType{}, Config: config, Update: with(config, attrs{"mtu": cty.NullVal(cty.Number), "addresses": strs(), "mac": str("02:00:00:00:0a:05")}),
		Drift: map[string]func(*testing.T, providers.Host){
			"removed": drift("ip -n plt-net-a link del dev t0"),
			"down":    drift("ip -n plt-net-a link set dev t0 down"),
		},
		Foreign: func(t *testing.T, h providers.Host) func() {
			conn := h.Conn()
			shell(t, conn, "ip -n plt-net-a tuntap add dev t0 mode tap")
			return func() { shell(t, conn, "ip -n plt-net-a tuntap del dev t0 mode tap") }
		},
	}
}

func TestTapOnFakeHost(t *testing.T) { suite(t, fakePlace(bed...), tapCase()) }

func TestRealTap(t *testing.T) { suite(t, realPlace(t, bed...), tapCase()) }

// bridged is a bed with links to put on a bridge.
var bridged = append(bed, "ip -n plt-net-a link add dev p0 type veth peer name p1", "ip -n plt-net-a link add dev p2 type veth peer name p3")

func bridgeCase() conformance.Case {
	config := attrs{"name": str("br0"), "namespace": str("plt-net-a"), "ports": strs("p2", "p0"), "stp": cty.True, "ageing_time": num(10), "addresses": strs("198.51.100.9/24", "2001:db8::9/64"), "mtu": num(1400)}
	return conformance.Case{
		Type: bridgeType{}, Config: config, Update: with(config, attrs{"ports": strs("p0"), "stp": cty.NullVal(cty.Bool), "ageing_time": num(0), "mac": str("02:00:00:00:0a:06"), "up": cty.False}),
		Drift: map[string]func(*testing.T, providers.Host){
			"removed":        drift("ip -n plt-net-a link del dev br0"),
			"port taken off": drift("ip -n plt-net-a link set dev p0 nomaster"),
			"stp off":        drift("ip -n plt-net-a link set dev br0 type bridge stp_state 0"),
		},
		Foreign: func(t *testing.T, h providers.Host) func() {
			conn := h.Conn()
			shell(t, conn, "ip -n plt-net-a link add dev br0 type bridge", "ip -n plt-net-a link set dev p0 master br0")
			return func() {
				shell(t, conn, "ip -n plt-net-a link set dev p0 nomaster", "ip -n plt-net-a link del dev br0")
			}
		},
	}
}

func TestBridgeOnFakeHost(t *testing.T) { suite(t, fakePlace(bridged...), bridgeCase()) }

func TestRealBridge(t *testing.T) { suite(t, realPlace(t, bridged...), bridgeCase()) }
