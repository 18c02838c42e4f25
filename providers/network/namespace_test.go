package network

import (
	"testing"

	"plumb/providers"
	"plumb/providers/conformance"

	"github.com/zclconf/go-cty/cty"
)

func namespaceCase() conformance.Case {
	return conformance.Case{
		Type: namespaceType{}, Config: attrs{"name": str("plt-net-c")}, Update: attrs{"name": str("plt-net-c"), "loopback": cty.False},
		Drift: map[string]func(*testing.T, providers.Host){
			"removed":       drift("ip netns del plt-net-c"),
			"loopback down": drift("ip -n plt-net-c link set dev lo down"),
		},
		Foreign: func(t *testing.T, h providers.Host) func() {
			shell(t, h.Conn(), "ip netns add plt-net-c")
			conn := h.Conn()
			return func() { shell(t, conn, "ip netns del plt-net-c") }
		},
	}
}

func TestNamespaceOnFakeHost(t *testing.T) { suite(t, fakePlace(), namespaceCase()) }

func TestRealNamespace(t *testing.T) { suite(t, realPlace(t), namespaceCase()) }
