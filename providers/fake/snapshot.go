package fake

import (
	"maps"
	"slices"
	"strings"
)

// snapshotScripts is the script that package host takes fingerprints with.
func snapshotScripts() map[string]program { return map[string]program{"plumb-snapshot": snapshot} }

func snapshot(h *host, r *run) int {
	tell := func(section string, args ...string) {
		if section != "" {
			r.printf("=== %s\n", section)
		}
		if len(args) > 0 {
			inner := &run{args: args}
			programs()[args[0]](h, inner)
			r.stdout.Write(inner.stdout.Bytes())
		}
	}
	tell("units")
	r.printf("%s", h.units(r.args[1:]))
	paths := []string{"/run/netns", "/run/plumb", "/run/dpdk", "/run/openvswitch", "/etc/openvswitch/conf.db", "/var/lib/openvswitch/conf.db", "/etc/alternatives/ovs-vswitchd", "/etc/systemd/system"}
	for line := range strings.Lines(h.get("/proc/mounts")) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "hugetlbfs" {
			paths = append(paths, f[1])
		}
	}
	tell("found", slices.Concat([]string{"find"}, paths, []string{"-printf", `%y\t%p\t%l\n`})...)
	tell("address", "ip", "-d", "-j", "address", "show")
	tell("route", "ip", "-j", "route", "show", "table", "all")
	tell("", "ip", "-j", "-6", "route", "show", "table", "all")
	tell("neighbour", "ip", "-j", "neighbour", "show", "nud", "permanent")
	tell("driver")
	links := h.state.Network.Spaces[""].Links
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if c := h.state.NICs[links[name].PCI]; c == nil {
			continue
		}
		for flag, kind := range map[string]string{"-g": "ring", "-l": "channels", "-a": "pause", "-c": "coalescing", "-k": "offloads"} {
			r.printf("interface: %s %s\n", name, kind)
			tell("", "ethtool", flag, name)
		}
	}
	tell("packages")
	for _, n := range slices.Sorted(maps.Keys(h.state.Settings.Packages)) {
		r.printf("%s:amd64 %s installed\n", n, h.state.Settings.Packages[n].Version)
	}
	tell("end")
	return 0
}

// units is what `systemctl show` says of those that there are.
func (h *host) units(names []string) string {
	if !h.booted() {
		return ""
	}
	inner := &run{args: append([]string{"systemctl", "show", "--"}, names...)}
	systemctl(h, inner)
	return inner.stdout.String()
}
