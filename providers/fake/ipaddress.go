package fake

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

func (c *ipCall) address(verb string, w []string) error {
	if verb == "show" {
		return c.link("show", w)
	}
	o := options(w, "address", "nodad", "noprefixroute")
	name := o["dev"]
	p, err := prefix(o["address"])
	if err != nil {
		return wrongWord("any valid prefix is expected rather than \"%s\".", o["address"])
	}
	l := c.space.Links[name]
	if l == nil {
		return noDevice(name)
	}
	at := slices.IndexFunc(l.Addresses, func(a netAddress) bool { return a.Prefix == p })
	switch verb {
	case "add", "replace":
		switch {
		case at >= 0 && verb == "add":
			return kernelSays("Error: %s: Address already assigned.", map[bool]string{true: "ipv4", false: "ipv6"}[p.Addr().Is4()])
		case at >= 0:
			l.Addresses[at].NoDAD = o["nodad"] != ""
		default:
			l.Addresses = append(l.Addresses, netAddress{Prefix: p, NoDAD: o["nodad"] != ""})
		}
	case "del", "delete":
		if at < 0 {
			return kernelSays("Error: %s: Address not found.", map[bool]string{true: "ipv4", false: "ipv6"}[p.Addr().Is4()])
		}
		l.Addresses = slices.Delete(l.Addresses, at, at+1)
		// Routes by a gateway that is no longer on the link go with the address; so do those from it.
		c.space.Routes = slices.DeleteFunc(c.space.Routes, func(r netRoute) bool {
			return r.Dev == name && (r.Src == p.Addr() || r.Via.IsValid() && r.Via.Is4() && p.Contains(r.Via) && !c.space.onLink(r.Via, name))
		})
	default:
		return wrongWord("the fake host does not know address %s", verb)
	}
	return nil
}

// prefix reads an address or destination; without a length it is a host's.
func prefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// onLink says whether a gateway is on the network of a link that is up; name "": of any.
func (s *space) onLink(via netip.Addr, name string) bool { return s.linkTo(via, name) != "" }

func (s *space) linkTo(via netip.Addr, name string) string {
	for n, l := range s.Links {
		if name != "" && n != name || !l.Up {
			continue
		}
		for _, a := range l.Addresses {
			if a.Prefix.Contains(via) && !via.IsLoopback() {
				return n
			}
		}
	}
	return ""
}

func (c *ipCall) route(verb string, w []string) error {
	if verb == "show" {
		o := options(w, "")
		family, table := c.family, cmp.Or(o["table"], "main")
		if family == 0 && table != "all" {
			family = 32
		}
		routes := c.space.showRoutes(table, family)
		if dev := o["dev"]; dev != "" {
			routes = slices.DeleteFunc(routes, func(r map[string]any) bool { return r["dev"] != dev })
		}
		c.print(routes)
		return nil
	}
	typ := "unicast"
	if len(w) > 0 && slices.Contains([]string{"unicast", "unreachable", "blackhole", "prohibit"}, w[0]) {
		typ, w = w[0], w[1:]
	}
	o := options(w, "dst", "onlink")
	r := netRoute{Type: typ, Dev: o["dev"], Table: cmp.Or(o["table"], "main"), Protocol: cmp.Or(o["proto"], o["protocol"], "boot"), Scope: "global"}
	if name, ok := map[string]string{"253": "default", "254": "main", "255": "local"}[r.Table]; ok {
		r.Table = name
	}
	if name, ok := map[string]string{"2": "kernel", "3": "boot", "4": "static", "16": "dhcp"}[r.Protocol]; ok {
		r.Protocol = name
	}
	var err error
	if v := o["via"]; v != "" {
		if r.Via, err = netip.ParseAddr(v); err != nil {
			return wrongWord("inet prefix is expected rather than \"%s\".", v)
		}
	}
	switch dst := o["dst"]; {
	case dst != "default":
		if r.Dst, err = prefix(dst); err != nil {
			return wrongWord("any valid prefix is expected rather than \"%s\".", dst)
		}
	case c.family == 128 || r.Via.Is6():
		r.Dst = netip.MustParsePrefix("::/0")
	default:
		r.Dst = netip.MustParsePrefix("0.0.0.0/0")
	}
	if v := o["src"]; v != "" {
		if r.Src, err = netip.ParseAddr(v); err != nil {
			return wrongWord("any valid address is expected rather than \"%s\".", v)
		}
	}
	r.Metric, _ = strconv.Atoi(o["metric"])
	r.MTU, _ = strconv.Atoi(o["mtu"])
	return c.routeChange(verb, r)
}

func (c *ipCall) routeChange(verb string, r netRoute) error {
	v6 := r.Dst.Addr().Is6()
	if v6 && r.Metric == 0 && verb != "del" {
		r.Metric = 1024
	}
	if r.Dev != "" && c.space.Links[r.Dev] == nil {
		return noDevice(r.Dev)
	}
	same := func(have netRoute) bool {
		return have.Dst == r.Dst && have.Table == r.Table && (have.Metric == r.Metric || verb == "del" && r.Metric == 0)
	}
	if verb == "del" {
		at := slices.IndexFunc(c.space.Routes, func(have netRoute) bool {
			return same(have) && (r.Dev == "" || have.Dev == r.Dev) && (!r.Via.IsValid() || have.Via == r.Via) && (r.Protocol == "boot" || have.Protocol == r.Protocol)
		})
		if at < 0 {
			return kernelSays("RTNETLINK answers: No such process")
		}
		c.space.Routes = slices.Delete(c.space.Routes, at, at+1)
		return nil
	}
	switch {
	case r.Type != "unicast":
	case r.Dev != "" && !c.space.Links[r.Dev].Up:
		return kernelSays("Error: Device for nexthop is not up.")
	case r.Via.IsValid() && !c.space.onLink(r.Via, r.Dev) && v6:
		return kernelSays("RTNETLINK answers: No route to host")
	case r.Via.IsValid() && !c.space.onLink(r.Via, r.Dev):
		return kernelSays("Error: Nexthop has invalid gateway.")
	case r.Dev == "":
		r.Dev = c.space.linkTo(r.Via, "")
	case !r.Via.IsValid() && !v6:
		r.Scope = "link"
	}
	if r.Src.IsValid() && !c.space.has(r.Src) {
		return kernelSays("Error: Invalid prefsrc address.")
	}
	at := slices.IndexFunc(c.space.Routes, same)
	switch {
	case at >= 0 && verb == "add":
		return kernelSays("RTNETLINK answers: File exists")
	case at >= 0 && (verb == "replace" || verb == "change"):
		c.space.Routes[at] = r
	case verb == "add" || verb == "replace":
		c.space.Routes = append(c.space.Routes, r)
	default:
		return kernelSays("RTNETLINK answers: No such file or directory")
	}
	return nil
}

func (s *space) has(a netip.Addr) bool {
	for _, l := range s.Links {
		for _, x := range l.Addresses {
			if x.Prefix.Addr() == a {
				return true
			}
		}
	}
	return false
}

func (c *ipCall) neighbour(verb string, w []string) error {
	o := options(w, "to")
	if verb == "show" {
		c.print(c.space.showNeighbours(o["nud"] == "permanent" || slices.Contains(w, "permanent")))
		return nil
	}
	dst, err := netip.ParseAddr(o["to"])
	if err != nil {
		return wrongWord("any valid address is expected rather than \"%s\".", o["to"])
	}
	if c.space.Links[o["dev"]] == nil {
		return noDevice(o["dev"])
	}
	at := slices.IndexFunc(c.space.Neighbours, func(n netNeighbour) bool { return n.Dst == dst && n.Dev == o["dev"] })
	n := netNeighbour{Dst: dst, Dev: o["dev"], MAC: strings.ToLower(o["lladdr"]), State: strings.ToUpper(cmp.Or(o["nud"], "permanent"))}
	switch {
	case verb == "del" && at < 0:
		return kernelSays("RTNETLINK answers: No such file or directory")
	case verb == "del":
		c.space.Neighbours = slices.Delete(c.space.Neighbours, at, at+1)
	case at >= 0 && verb == "replace":
		c.space.Neighbours[at] = n
	case at >= 0:
		return kernelSays("RTNETLINK answers: File exists")
	default:
		c.space.Neighbours = append(c.space.Neighbours, n)
	}
	return nil
}

const netnsDir = "/run/netns/"

// netns is ip netns add, del, list, pids.
func (c *ipCall) netns(verb string, w []string) error {
	spaces := c.h.state.Network.Spaces
	name := ""
	if len(w) > 0 {
		name = w[0]
	}
	switch verb {
	case "list", "show":
		var out []map[string]any
		for n := range spaces {
			if n != "" {
				out = append(out, map[string]any{"name": n})
			}
		}
		slices.SortFunc(out, func(a, b map[string]any) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
		c.print(out)
		return nil
	case "add":
		if name == "" || strings.Contains(name, "/") {
			return ipError{text: fmt.Sprintf("Invalid netns name \"%s\"", name), status: 1}
		}
		if spaces[name] != nil {
			return ipError{text: fmt.Sprintf("Cannot create namespace file \"%s%s\": File exists", netnsDir, name), status: 1}
		}
		spaces[name] = newSpace(c.h.serial())
		return c.h.put(netnsDir+name, "")
	}
	if name == "" || spaces[name] == nil {
		if verb == "del" || verb == "delete" {
			return ipError{text: fmt.Sprintf("Cannot remove namespace file \"%s%s\": No such file or directory", netnsDir, name), status: 1}
		}
		return ipError{text: fmt.Sprintf("Cannot open network namespace \"%s\": No such file or directory", name), status: 1}
	}
	switch verb {
	case "exec":
		return c.exec(name, w[1:])
	case "pids":
		for _, p := range c.h.state.Procs {
			if p.Data["netns"] == name {
				c.r.printf("%d\n", p.PID)
			}
		}
		return nil
	case "del", "delete":
		s := spaces[name]
		for n, l := range s.Links {
			if l.Kind == "" { // a NIC goes back to the host
				s.setDown(n)
				l.Addresses, l.Master = nil, ""
				spaces[""].Links[n] = l
				delete(s.Links, n)
			}
		}
		for n := range s.Links {
			s.drop(c.h, n)
		}
		delete(spaces, name)
		return os.Remove(c.h.real(netnsDir+name, false))
	}
	return wrongWord("the fake host does not know netns %s", verb)
}

// exec runs a command in a namespace: ethtool, of which there is no other way, or ip.
func (c *ipCall) exec(ns string, args []string) error {
	inner := &run{args: args}
	status := 0
	switch {
	case len(args) > 0 && args[0] == "ethtool":
		status = c.h.ethtool(ns, inner)
	case len(args) > 0 && args[0] == "ip":
		inner.args = append([]string{"ip", "-n", ns}, args[1:]...)
		status = ip(c.h, inner)
	default:
		return wrongWord("the fake host does not know netns exec %v", args)
	}
	c.r.stdout.Write(inner.stdout.Bytes())
	if status != 0 {
		return ipError{text: strings.TrimSuffix(inner.stderr.String(), "\n"), status: status}
	}
	return nil
}
