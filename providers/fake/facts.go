package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// factsScripts is the script that package host gathers facts with: what the tools say that it calls.
func factsScripts() map[string]program {
	return map[string]program{"plumb-facts": facts, "plumb-doctor": doctor}
}

func facts(h *host, r *run) int {
	section := func(name, text string) { r.printf("=== %s\n%s", name, text) }
	section("address", jsonLine(h.addresses()))
	section("route", jsonLine(h.state.Network.Spaces[""].showRoutes("main", 32))+jsonLine(h.state.Network.Spaces[""].showRoutes("main", 128)))
	section("connection", "\n")
	section("firmware", h.firmware())
	section("units", h.units(r.args[1:]))
	packages := ""
	if !h.settings.NoDPDK {
		packages = "dpdk 22.11.11-0+deb12u1 installed\ndpdk-dev 22.11.11-0+deb12u1 installed\n"
	}
	section("packages", packages)
	ovs := ""
	if !h.settings.NoOVS {
		ovs = "ovs-vswitchd (Open vSwitch) 3.1.0\n"
		if to, err := os.Readlink(h.real("/etc/alternatives/ovs-vswitchd", false)); err == nil && to == dpdkOVS {
			ovs += "DPDK 22.11.11\n"
		}
	}
	section("ovs", ovs)
	section("end", "")
	return 0
}

// firmware is what /sys and ethtool(8) say of the interfaces of NICs.
func (h *host) firmware() string {
	var b strings.Builder
	for _, pci := range slices.Sorted(maps.Keys(h.state.NICs)) {
		if c := h.state.NICs[pci]; c.Interface != "" && c.Bound == c.Driver {
			fmt.Fprintf(&b, "interface: %s\nspeed: -1\ndriver: %s\nfirmware-version: 1.63, 0x80000cbc\n", c.Interface, c.Driver)
		}
	}
	return b.String()
}

// doctor is what package host asks beside facts when it examines a host: where modules are, tables of the firmware, memory.
func doctor(h *host, r *run) int {
	r.printf("=== modules\n")
	for _, m := range []string{"vfio-pci", "igb_uio", "openvswitch"} {
		inner := &run{args: []string{"modinfo", "-F", "filename", "--", m}}
		modinfo(h, inner)
		r.printf("%s %s\n", m, strings.TrimSpace(inner.stdout.String()))
	}
	r.printf("=== tables\n=== memory\n=== end\n")
	return 0
}

func jsonLine(v any) string {
	b, _ := json.Marshal(v) // of plain data
	return string(b) + "\n"
}
