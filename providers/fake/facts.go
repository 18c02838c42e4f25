package fake

import (
	"encoding/json"
	"os"
)

// factsScripts is the script that package host gathers facts with: what the tools say that it calls.
func factsScripts() map[string]program {
	return map[string]program{"plumb-facts": facts}
}

func facts(h *host, r *run) int {
	section := func(name, text string) { r.printf("=== %s\n%s", name, text) }
	section("address", jsonLine(h.addresses()))
	section("route", jsonLine(h.state.Network.Spaces[""].showRoutes("main", 32))+jsonLine(h.state.Network.Spaces[""].showRoutes("main", 128)))
	section("units", "")
	section("firmware", "")
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

func jsonLine(v any) string {
	b, _ := json.Marshal(v) // of plain data
	return string(b) + "\n"
}
