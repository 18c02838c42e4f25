package network

import (
	"maps"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/internal/hostkit"
	"plumb/providers/labhost"
)

// Drivers of real NICs on the virtual host (PLUMB_LAB): igb has queue pairs, e1000e has none.

func TestLabLinkIGB(t *testing.T) {
	labSuite(t, 1, attrs{"channels_combined": num(2), "coalesce_rx_usecs": num(50)}, "igb")
}

func TestLabLinkE1000E(t *testing.T) {
	labSuite(t, 3, attrs{"coalesce_rx_usecs": num(20)}, "e1000e")
}

func labSuite(t *testing.T, nic int, more attrs, driver string) {
	pci := labhost.Find(t).NICs[nic].PCI
	conn := labhost.Shared(t)
	open := func(t *testing.T) providers.Host { return hostkit.New("dut", conn(t), facts) }
	s, err := sessionOf(t.Context(), open(t))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := w.nicEnd(cty.ObjectVal(attrs{"namespace": cty.NullVal(cty.String), "interface": cty.NullVal(cty.String), "pci": str(pci)}))
	if e.name == "" {
		t.Fatalf("no interface of %s (%s)", pci, driver)
	}
	config := attrs{"pci": str(pci), "up": cty.True, "mtu": num(2000), "promiscuous": cty.True, "ring_rx": num(512), "ring_tx": num(1024), "pause_autoneg": cty.False, "pause_rx": cty.False, "pause_tx": cty.False,
		"addresses": strs("198.51.100.1/24", "2001:db8::1/64"), "neighbours": neighbours("198.51.100.2", "02:00:00:00:00:02"), "offloads": cty.MapVal(attrs{"gro": cty.False, "tso": cty.False, "rxvlan": cty.False})}
	maps.Copy(config, more)
	conformance.Run(t, conformance.Case{
		Type: nicType{}, Open: open, Config: config, Update: attrs{"pci": str(pci), "ring_rx": num(1024), "mac": str("52:54:00:00:0a:0b"), "offloads": cty.MapVal(attrs{"rx": cty.False})},
		Snapshot: func(t *testing.T, h providers.Host) []string { return drivers(e)(t, h) },
		Drift: map[string]func(*testing.T, providers.Host){
			"ring and address": drift("ethtool -G "+e.name+" rx 256", "ip address del 198.51.100.1/24 dev "+e.name),
		},
	})
}
