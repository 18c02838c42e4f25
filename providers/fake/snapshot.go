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
		r.printf("=== %s\n", section)
		if len(args) == 0 {
			return
		}
		inner := &run{args: args}
		programs()[args[0]](h, inner)
		r.stdout.Write(inner.stdout.Bytes())
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
	tell("address")
	r.printf("%s", jsonLine(h.addresses()))
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
