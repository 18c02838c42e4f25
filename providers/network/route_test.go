package network

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

// routed is a bed with links that have addresses.
var routed = append(bed, "ip -n plt-net-a link add dev r0 type veth peer name r1", "ip -n plt-net-a address add 198.51.100.1/24 dev r0", "ip -n plt-net-a address add 2001:db8::1/64 dev r0 nodad",
	"ip -n plt-net-a link set dev r0 up", "ip -n plt-net-a link set dev r1 up")

func routeCase() conformance.Case {
	config := attrs{"namespace": str("plt-net-a"), "destination": str("203.0.113.0/24"), "via": str("198.51.100.2"), "metric": num(7), "mtu": num(1400)}
	return conformance.Case{
		Type: routeType{}, Config: config, Update: with(config, attrs{"via": str("198.51.100.3"), "device": str("r0"), "src": str("198.51.100.1"), "mtu": cty.NullVal(cty.Number)}),
		Drift: map[string]func(*testing.T, providers.Host){
			"removed":       drift("ip -n plt-net-a route del 203.0.113.0/24 metric 7"),
			"changed":       drift("ip -n plt-net-a route replace 203.0.113.0/24 via 198.51.100.9 metric 7 proto 80"),
			"link was down": drift("ip -n plt-net-a link set dev r0 down", "ip -n plt-net-a link set dev r0 up", "ip -n plt-net-a address add 2001:db8::1/64 dev r0 nodad"),
		},
		Foreign: func(t *testing.T, h providers.Host) func() {
			conn := h.Conn()
			shell(t, conn, "ip -n plt-net-a route add 203.0.113.0/24 via 198.51.100.77 metric 7")
			return func() { shell(t, conn, "ip -n plt-net-a route del 203.0.113.0/24 metric 7") }
		},
	}
}

func route6Case() conformance.Case {
	config := attrs{"namespace": str("plt-net-a"), "destination": str("default"), "via": str("2001:DB8::2"), "table": num(100)}
	return conformance.Case{Type: routeType{}, Config: config, Update: with(config, attrs{"via": str("2001:db8::3"), "device": str("r0"), "mtu": num(1300)})}
}

// routeThereCase has the same route there before, which has to stay.
func routeThereCase() conformance.Case {
	config := attrs{"namespace": str("plt-net-a"), "destination": str("203.0.113.0/24"), "via": str("198.51.100.2")}
	return conformance.Case{Type: routeType{}, Config: config, Update: with(config, attrs{"via": str("198.51.100.3")})}
}

var withRoute = append(routed[:len(routed):len(routed)], "ip -n plt-net-a route add 203.0.113.0/24 via 198.51.100.2")

func TestRouteOnFakeHost(t *testing.T)        { suite(t, fakePlace(routed...), routeCase()) }
func TestRoute6OnFakeHost(t *testing.T)       { suite(t, fakePlace(routed...), route6Case()) }
func TestRouteIsThereOnFakeHost(t *testing.T) { suite(t, fakePlace(withRoute...), routeThereCase()) }

func TestRealRoute(t *testing.T)        { suite(t, realPlace(t, routed...), routeCase()) }
func TestRealRoute6(t *testing.T)       { suite(t, realPlace(t, routed...), route6Case()) }
func TestRealRouteIsThere(t *testing.T) { suite(t, realPlace(t, withRoute...), routeThereCase()) }
