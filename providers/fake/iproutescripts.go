package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func networkPrograms() map[string]program { return map[string]program{"ip": ip, "ethtool": ethtool} }

// networkScripts are those of package network.
func networkScripts() map[string]program {
	return map[string]program{"plumb-net-look": netLook, "plumb-net-change": netChange, "plumb-net-ethtool": netEthtool}
}

// netLook prints all that ip knows of all namespaces.
func netLook(h *host, r *run) int {
	section := func(ns string) {
		s := h.state.Network.Spaces[ns]
		links := h.addressesOf(ns)
		for _, l := range links {
			numeric(l["addr_info"].([]map[string]any))
		}
		r.printf("%s%s%s", jsonLine(links), jsonLine(numeric(s.showRoutes("all", 0))), jsonLine(s.showNeighbours(true)))
	}
	r.printf("=== space\n")
	section("")
	for _, ns := range slices.Sorted(maps.Keys(h.state.Network.Spaces)) {
		if ns == "" {
			continue
		}
		r.printf("=== space %s\n", ns)
		section(ns)
	}
	r.printf("=== devices\n")
	for _, name := range slices.Sorted(maps.Keys(h.state.Network.Spaces[""].Links)) {
		if pci := h.state.Network.Spaces[""].Links[name].PCI; pci != "" {
			r.printf("%s /sys/devices/pci0000:00/%s\n", name, pci)
		}
	}
	r.printf("=== end\n")
	return 0
}

// numeric is ip -N: numbers for what has names in /etc/iproute2.
func numeric(objects []map[string]any) []map[string]any {
	numbers := map[string]map[string]string{
		"type":     {"unicast": "1", "local": "2", "broadcast": "3", "blackhole": "6", "unreachable": "7", "prohibit": "8"},
		"table":    {"default": "253", "main": "254", "local": "255"},
		"protocol": {"kernel": "2", "boot": "3", "static": "4", "ra": "9", "dhcp": "16"},
		"scope":    {"global": "0", "link": "253", "host": "254"},
	}
	for _, o := range objects {
		for key, names := range numbers {
			if name, ok := o[key].(string); ok && names[name] != "" {
				o[key] = names[name]
			}
		}
	}
	return objects
}

// netChange does steps of three arguments each: a tool, a namespace, a text.
func netChange(h *host, r *run) int {
	args := r.args[1:]
	for n := 1; len(args) >= 3; n++ {
		tool, ns, text := args[0], args[1], args[2]
		inner := &run{args: []string{"ip"}, stdin: []byte(text)}
		var p program
		switch tool {
		case "ip":
			p = ip
			if ns != "" {
				inner.args = append(inner.args, "-n", ns)
			}
			inner.args = append(inner.args, "-batch", "-")
		case "ethtool":
			inner.args = append([]string{"ethtool"}, strings.Fields(text)...)
			p = func(h *host, r *run) int { return h.ethtool(ns, r) }
		case "netns-add":
			p = func(h *host, r *run) int { return h.netnsAdd(r, ns, text) }
		case "netns-del":
			p = func(h *host, r *run) int { return h.netnsDel(r, ns) }
		default:
			return r.fail(2, "no such tool: %s", tool)
		}
		status := p(h, inner)
		r.stdout.Write(inner.stdout.Bytes())
		r.stderr.Write(inner.stderr.Bytes())
		if status != 0 {
			fmt.Fprintf(&r.stderr, "=== step %d\n", n)
			return status
		}
		args = args[3:]
	}
	return 0
}

// netnsAdd makes a namespace, where there is none, and marks it.
func (h *host) netnsAdd(r *run, ns, mark string) int {
	if h.state.Network.Spaces[ns] == nil {
		r.args = []string{"ip", "netns", "add", ns}
		if status := ip(h, r); status != 0 {
			return status
		}
	}
	r.args = []string{"ip", "-n", ns, "link", "set", "dev", "lo", "alias", mark}
	return ip(h, r)
}

func (h *host) netnsDel(r *run, ns string) int {
	if h.state.Network.Spaces[ns] == nil {
		return 0
	}
	r.args = []string{"ip", "netns", "del", ns}
	return ip(h, r)
}

// netEthtool prints what ethtool tells of links: arguments are pairs of a namespace and a name.
func netEthtool(h *host, r *run) int {
	for args := r.args[1:]; len(args) >= 2; args = args[2:] {
		r.printf("=== link %s %s\n", args[1], args[0])
		for _, verb := range []string{"-g", "-l", "-a", "-c", "-k"} {
			r.printf("=== %s\n", verb)
			inner := &run{args: []string{"ethtool", verb, args[1]}}
			h.ethtool(args[0], inner)
			r.stdout.Write(inner.stdout.Bytes())
			r.stdout.Write(inner.stderr.Bytes())
		}
	}
	r.printf("=== end\n")
	return 0
}
