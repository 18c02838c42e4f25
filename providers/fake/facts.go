package fake

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
		var flags uint
		fmt.Sscanf(read("flags"), "0x%x", &flags)
		var words []string
		for bit, word := range []string{"UP", "BROADCAST", "", "LOOPBACK", "", "", "", "", "PROMISC"} {
			if word != "" && flags&(1<<bit) != 0 {
				words = append(words, word)
			}
		}
		mtu, _ := strconv.Atoi(read("mtu"))
		infos := []map[string]any{}
		add := func(address string) {
			local, prefix, _ := strings.Cut(address, "/")
			n, _ := strconv.Atoi(prefix)
			infos = append(infos, map[string]any{"local": local, "prefixlen": n})
		}
		name := filepath.Base(d)
		if name == "eth0" {
			add("192.0.2.10/24")
		}
		if l := h.state.Links[name]; l != nil {
			for _, a := range l.Addresses {
				add(a)
			}
		}
		link := map[string]any{"ifname": name, "address": read("address"), "mtu": mtu, "flags": words, "operstate": strings.ToUpper(read("operstate")), "addr_info": infos}
		out = append(out, link)
	}
	return out
}
