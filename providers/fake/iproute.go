package fake

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// network is what the kernel knows of links, addresses, routes, neighbours and network namespaces. It is the one table of links of the host: /sys/class/net is written from it.
type network struct {
	Spaces map[string]*space `json:"spaces"` // by name; "" is the host's own
	Serial int               `json:"serial"` // of links and namespaces made
}

// space is one network namespace.
type space struct {
	Serial     int                 `json:"serial"`
	Links      map[string]*netLink `json:"links"`
	Routes     []netRoute          `json:"routes"` // without those that the kernel keeps for addresses
	Neighbours []netNeighbour      `json:"neighbours"`
}

// netLink is an interface.
type netLink struct {
	Index     int               `json:"index"`
	Kind      string            `json:"kind"` // "veth", "bridge", "tun", "loopback"; "" for a NIC
	PCI       string            `json:"pci,omitempty"`
	MAC       string            `json:"mac"`
	MTU       int               `json:"mtu"`
	Up        bool              `json:"up"`
	Promisc   bool              `json:"promisc"`
	AllMulti  bool              `json:"allmulti"`
	Carrier   bool              `json:"carrier"` // of a NIC: a cable
	Alias     string            `json:"alias,omitempty"`
	Master    string            `json:"master,omitempty"`
	Peer      int               `json:"peer,omitempty"` // index of a veth's other end
	TxQueues  int               `json:"tx_queues"`
	RxQueues  int               `json:"rx_queues"`
	Addresses []netAddress      `json:"addresses"`
	Data      map[string]string `json:"data,omitempty"` // of a bridge or tap, in ip's words
	Ethtool   *ethtoolState     `json:"ethtool,omitempty"`
}

type netAddress struct {
	Prefix netip.Prefix `json:"prefix"`
	NoDAD  bool         `json:"nodad,omitempty"`
}

type netRoute struct {
	Type     string       `json:"type"`
	Dst      netip.Prefix `json:"dst"`
	Via      netip.Addr   `json:"via"`
	Dev      string       `json:"dev"`
	Table    string       `json:"table"`
	Protocol string       `json:"protocol"`
	Src      netip.Addr   `json:"src"`
	Scope    string       `json:"scope"`
	Metric   int          `json:"metric"`
	MTU      int          `json:"mtu"`
}

type netNeighbour struct {
	Dst   netip.Addr `json:"dst"`
	Dev   string     `json:"dev"`
	MAC   string     `json:"mac"`
	State string     `json:"state"`
}

func newSpace(serial int) *space {
	return &space{Serial: serial, Links: map[string]*netLink{"lo": {Index: 1, Kind: "loopback", MAC: "00:00:00:00:00:00", MTU: 65536, TxQueues: 1, RxQueues: 1}}}
}

// seedNetwork is a host with a loopback interface and eth0, which has the default route.
func seedNetwork() *network {
	s := newSpace(1)
	s.Links["lo"].Up = true
	s.Links["lo"].Addresses = []netAddress{{Prefix: netip.MustParsePrefix("127.0.0.1/8")}}
	s.Links["eth0"] = &netLink{Index: 2, MAC: "52:54:00:00:00:01", MTU: 1500, Up: true, Carrier: true, TxQueues: 1, RxQueues: 1,
		Addresses: []netAddress{{Prefix: netip.MustParsePrefix("192.0.2.10/24")}}, Ethtool: seedEthtool()}
	s.Routes = []netRoute{{Type: "unicast", Dst: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("192.0.2.1"), Dev: "eth0", Table: "main", Protocol: "boot", Scope: "global"}}
	return &network{Spaces: map[string]*space{"": s}, Serial: 2}
}

// addLink puts an interface of the host's own namespace in, as a driver does. One that is there stays as it is.
func (h *host) addLink(name, mac, pci string) error {
	s := h.state.Network.Spaces[""]
	if s.Links[name] == nil {
		s.Links[name] = &netLink{Index: h.serial(), PCI: pci, MAC: mac, MTU: 1500, TxQueues: 8, RxQueues: 8, Ethtool: seedEthtool()}
	}
	return h.showLinks()
}

// removeLink takes one out, with all it had.
func (h *host) removeLink(name string) error {
	h.state.Network.Spaces[""].drop(h, name)
	return h.showLinks()
}

func (h *host) serial() int {
	h.state.Network.Serial++
	return h.state.Network.Serial
}

// drop removes a link from a namespace, with what goes with it; a veth's other end too.
func (s *space) drop(h *host, name string) {
	l := s.Links[name]
	if l == nil {
		return
	}
	delete(s.Links, name)
	s.Routes = slices.DeleteFunc(s.Routes, func(r netRoute) bool { return r.Dev == name })
	s.Neighbours = slices.DeleteFunc(s.Neighbours, func(n netNeighbour) bool { return n.Dev == name })
	for _, other := range s.Links {
		if other.Master == name {
			other.Master = ""
		}
	}
	if peer, at, n := h.byIndex(l.Peer); peer != nil && l.Kind == "veth" {
		at.drop(h, n)
	}
}

// byIndex finds a link of any namespace.
func (h *host) byIndex(index int) (*netLink, *space, string) {
	for _, s := range h.state.Network.Spaces {
		for name, l := range s.Links {
			if l.Index == index && index > 1 {
				return l, s, name
			}
		}
	}
	return nil, nil, ""
}

// running says whether a link has a carrier.
func (h *host) running(l *netLink) bool {
	switch l.Kind {
	case "veth":
		peer, _, _ := h.byIndex(l.Peer)
		return l.Up && peer != nil && peer.Up
	case "loopback":
		return l.Up
	case "bridge":
		_, s, name := h.byIndex(l.Index)
		if s == nil || !l.Up {
			return false
		}
		for _, port := range s.Links {
			if port.Master == name && h.running(port) {
				return true
			}
		}
		return false
	case "tun":
		return false // nobody has opened it
	}
	return l.Up && l.Carrier
}

// setDown is what else the kernel does when a link goes down: IPv6 addresses, routes and neighbours go.
func (s *space) setDown(name string) {
	l := s.Links[name]
	l.Up = false
	l.Addresses = slices.DeleteFunc(l.Addresses, func(a netAddress) bool { return a.Prefix.Addr().Is6() })
	s.Routes = slices.DeleteFunc(s.Routes, func(r netRoute) bool { return r.Dev == name })
	s.Neighbours = slices.DeleteFunc(s.Neighbours, func(n netNeighbour) bool { return n.Dev == name })
}

// flags of a link, in the kernel's bits (netdevice(7)).
func (l *netLink) flags() uint {
	f := uint(0x1002) // BROADCAST, MULTICAST
	if l.Kind == "loopback" {
		f = 8
	}
	for bit, on := range map[uint]bool{1: l.Up, 0x100: l.Promisc, 0x200: l.AllMulti} {
		if on {
			f |= bit
		}
	}
	return f
}

func (h *host) operstate(l *netLink) string {
	switch {
	case l.Kind == "loopback" && l.Up:
		return "unknown"
	case h.running(l):
		return "up"
	}
	return "down"
}

// showLinks writes /sys/class/net.
func (h *host) showLinks() error {
	s := h.state.Network.Spaces[""]
	shown, _ := filepath.Glob(h.real("/sys/class/net/*", true))
	for _, d := range shown {
		if s.Links[filepath.Base(d)] == nil {
			if err := os.RemoveAll(d); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Links)) {
		l := s.Links[name]
		carrier := "0"
		if h.running(l) {
			carrier = "1"
		}
		files := map[string]string{"address": l.MAC, "mtu": fmt.Sprint(l.MTU), "operstate": h.operstate(l), "flags": fmt.Sprintf("0x%x", l.flags()), "carrier": carrier, "ifalias": l.Alias}
		dirs := []string{"/sys/class/net/" + name + "/"}
		if l.PCI != "" {
			dirs = append(dirs, pciDevices+l.PCI+"/net/"+name+"/")
		}
		for _, dir := range dirs {
			for f, text := range files {
				if err := h.put(dir+f, text+"\n"); err != nil {
					return err
				}
			}
		}
		master := h.real("/sys/class/net/"+name+"/master", false)
		if l.Master == "" {
			if err := os.RemoveAll(master); err != nil {
				return err
			}
		} else if err := h.put("/sys/class/net/"+name+"/master/uevent", "INTERFACE="+l.Master+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// addresses is what `ip -j address show` says of the interfaces of the host.
func (h *host) addresses() []map[string]any { return h.addressesOf("") }

func (h *host) addressesOf(ns string) []map[string]any {
	s := h.state.Network.Spaces[ns]
	out := []map[string]any{}
	names := slices.SortedFunc(maps.Keys(s.Links), func(a, b string) int { return s.Links[a].Index - s.Links[b].Index })
	for _, n := range names {
		out = append(out, h.showLink(s, n))
	}
	return out
}

// showLink is an object of `ip -j -d address show`.
func (h *host) showLink(s *space, name string) map[string]any {
	l := s.Links[name]
	running := h.running(l)
	words := []string{}
	add := func(on bool, w string) {
		if on {
			words = append(words, w)
		}
	}
	add(l.Up && !running, "NO-CARRIER")
	add(l.Kind != "loopback", "BROADCAST")
	add(l.Kind == "loopback", "LOOPBACK")
	add(l.Kind != "loopback", "MULTICAST")
	add(l.Promisc, "PROMISC")
	add(l.AllMulti, "ALLMULTI")
	add(l.Up, "UP")
	add(running, "LOWER_UP")
	infos := []map[string]any{}
	for _, a := range l.Addresses {
		infos = append(infos, showAddress(a.Prefix, a.NoDAD))
	}
	if running && l.Kind != "loopback" && l.Master == "" {
		infos = append(infos, showAddress(linkLocal(l.MAC), false))
	}
	kind := "ether"
	if l.Kind == "loopback" {
		kind = "loopback"
	}
	low, most := 68, 9710
	switch l.Kind {
	case "veth", "bridge":
		most = 65535
	case "tun":
		most = 65521
	case "loopback":
		low, most = 0, 0
	}
	out := map[string]any{"ifindex": l.Index, "ifname": name, "flags": words, "mtu": l.MTU, "operstate": strings.ToUpper(h.operstate(l)), "group": "default", "link_type": kind, "address": l.MAC,
		"promiscuity": map[bool]int{true: 1}[l.Promisc], "allmulti": map[bool]int{true: 1}[l.AllMulti], "min_mtu": low, "max_mtu": most, "num_tx_queues": l.TxQueues, "num_rx_queues": l.RxQueues, "addr_info": infos}
	if l.Alias != "" {
		out["ifalias"] = l.Alias
	}
	if l.Master != "" {
		out["master"] = l.Master
	}
	if l.Kind == "veth" {
		if _, at, peer := h.byIndex(l.Peer); at == s {
			out["link"] = peer
		} else {
			out["link_index"], out["link_netnsid"] = l.Peer, 0
		}
	}
	if info := l.info(s); info != nil {
		out["linkinfo"] = info
	}
	if vfs := h.showFunctions(l.PCI); len(vfs) > 0 {
		out["vfinfo_list"] = vfs
	}
	return out
}

// info is linkinfo of `ip -d link show`.
func (l *netLink) info(s *space) map[string]any {
	info := map[string]any{}
	switch l.Kind {
	case "veth", "bridge", "tun":
		info["info_kind"] = l.Kind
	}
	if m := s.Links[l.Master]; m != nil {
		info["info_slave_kind"] = m.Kind
	}
	switch l.Kind {
	case "bridge":
		data := map[string]any{}
		for k, v := range l.Data {
			var n int
			_, _ = fmt.Sscan(v, &n) // numbers all
			data[k] = n
		}
		info["info_data"] = data
	case "tun":
		data := map[string]any{"type": "tap", "pi": false, "persist": true, "vnet_hdr": l.Data["vnet_hdr"] != "", "multi_queue": l.Data["multi_queue"] != ""}
		for _, k := range []string{"user", "group"} {
			if v := l.Data[k]; v != "" {
				data[k] = v
			}
		}
		info["info_data"] = data
	}
	if len(info) == 0 {
		return nil
	}
	return info
}

func showAddress(p netip.Prefix, nodad bool) map[string]any {
	family, scope := "inet", "global"
	a := p.Addr()
	switch {
	case a.IsLoopback():
		scope = "host"
	case a.IsLinkLocalUnicast() && a.Is6():
		scope = "link"
	}
	if a.Is6() {
		family = "inet6"
	}
	out := map[string]any{"family": family, "local": a.String(), "prefixlen": p.Bits(), "scope": scope}
	if nodad && a.Is6() {
		out["nodad"] = true
	}
	return out
}

// linkLocal is the address that the kernel makes of a MAC (RFC 4291, appendix A).
func linkLocal(mac string) netip.Prefix {
	var m [6]byte
	_, _ = fmt.Sscanf(mac, "%02x:%02x:%02x:%02x:%02x:%02x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5])
	a := [16]byte{0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

// kernelRoutes are those that the kernel keeps for the addresses of links that are up.
func (s *space) kernelRoutes() []netRoute {
	var out []netRoute
	for _, name := range slices.Sorted(maps.Keys(s.Links)) {
		l := s.Links[name]
		if !l.Up {
			continue
		}
		for _, a := range l.Addresses {
			at := a.Prefix.Addr()
			out = append(out, netRoute{Type: "local", Dst: netip.PrefixFrom(at, at.BitLen()), Dev: name, Table: "local", Protocol: "kernel", Scope: "host"})
			if !at.IsLoopback() && a.Prefix.Bits() < at.BitLen() {
				r := netRoute{Type: "unicast", Dst: a.Prefix.Masked(), Dev: name, Table: "main", Protocol: "kernel", Scope: "link"}
				if at.Is4() {
					r.Src = at
				} else {
					r.Metric, r.Scope = 256, "global"
				}
				out = append(out, r)
			}
		}
	}
	return out
}

// showRoutes is `ip -j -d route show table TABLE`, of "main", a number, or "all"; family 0 is both.
func (s *space) showRoutes(table string, family int) []map[string]any {
	out := []map[string]any{}
	for _, r := range slices.Concat(s.kernelRoutes(), s.Routes) {
		if table != "all" && r.Table != table || family != 0 && r.Dst.Addr().BitLen() != family {
			continue
		}
		o := map[string]any{"type": r.Type, "dst": showPrefix(r.Dst), "protocol": r.Protocol, "scope": r.Scope, "flags": []string{}, "table": r.Table}
		if r.Via.IsValid() {
			o["gateway"] = r.Via.String()
		}
		if r.Dev != "" {
			o["dev"] = r.Dev
		}
		if r.Src.IsValid() {
			o["prefsrc"] = r.Src.String()
		}
		if r.Metric != 0 {
			o["metric"] = r.Metric
		}
		if r.MTU != 0 {
			o["metrics"] = []map[string]any{{"mtu": r.MTU}}
		}
		out = append(out, o)
	}
	return out
}

// showPrefix spells a destination as ip does: a host without its length, all as "default".
func showPrefix(p netip.Prefix) string {
	switch p.Bits() {
	case 0:
		return "default"
	case p.Addr().BitLen():
		return p.Addr().String()
	}
	return p.String()
}

func (s *space) showNeighbours(permanent bool) []map[string]any {
	out := []map[string]any{}
	for _, n := range s.Neighbours {
		if !permanent || n.State == "PERMANENT" {
			out = append(out, map[string]any{"dst": n.Dst.String(), "dev": n.Dev, "lladdr": n.MAC, "state": []string{n.State}})
		}
	}
	return out
}
