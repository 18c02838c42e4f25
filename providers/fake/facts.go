package fake

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// factsScripts is the script that package host gathers facts with: what the tools say that it calls.
func factsScripts() map[string]program {
	return map[string]program{"plumb-facts": facts}
}

func facts(h *host, r *run) int {
	section := func(name, text string) { r.printf("=== %s\n%s", name, text) }
	section("address", jsonLine(h.addresses()))
	section("route", jsonLine([]map[string]any{{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0"}})+"[]\n")
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

// addresses is what `ip -j address show` says of the interfaces in /sys/class/net.
func (h *host) addresses() []map[string]any {
	out := []map[string]any{}
	dirs, _ := filepath.Glob(h.real("/sys/class/net/*", true))
	for _, d := range dirs {
		read := func(name string) string {
			b, _ := os.ReadFile(filepath.Join(d, name))
			return strings.TrimSpace(string(b))
		}
		link := map[string]any{"ifname": filepath.Base(d), "address": read("address"), "mtu": 1500, "flags": []string{"BROADCAST", "UP", "LOWER_UP"}, "operstate": "UP"}
		if filepath.Base(d) == "eth0" {
			link["addr_info"] = []map[string]any{{"family": "inet", "local": "192.0.2.10", "prefixlen": 24}}
		}
		out = append(out, link)
	}
	return out
}
