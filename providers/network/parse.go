package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

// world is what ip(8) tells of a host.
type world struct {
	spaces  map[string]*space // by name; "" is the one that the connection leads to
	devices map[string]string // PCI address by name of the interface, in space ""
}

// space is a network namespace.
type space struct {
	name       string
	links      map[string]*link
	routes     []route
	neighbours []neighbour
}

// alias is our mark on the namespace: that of its loopback interface, which comes and goes with it.
func (s *space) alias() string {
	if lo := s.links["lo"]; lo != nil {
		return lo.Alias
	}
	return ""
}

// link is an interface. Its JSON is that of `ip -N -j -d address show`.
type link struct {
	Index     int       `json:"ifindex"`
	Name      string    `json:"ifname"`
	Flags     []string  `json:"flags"`
	MTU       int       `json:"mtu"`
	MinMTU    int       `json:"min_mtu"`
	MaxMTU    int       `json:"max_mtu"`
	MAC       string    `json:"address"`
	Alias     string    `json:"ifalias"`
	Master    string    `json:"master"`
	Peer      string    `json:"link"`       // of a veth in the same namespace
	PeerIndex int       `json:"link_index"` // of one in another namespace
	TxQueues  int       `json:"num_tx_queues"`
	RxQueues  int       `json:"num_rx_queues"`
	Addresses []address `json:"addr_info"`
	Info      struct {
		Kind      string         `json:"info_kind"`
		SlaveKind string         `json:"info_slave_kind"`
		Data      map[string]any `json:"info_data"`
	} `json:"linkinfo"`
}

func (l *link) has(flag string) bool { return slices.Contains(l.Flags, flag) }
func (l *link) up() bool             { return l.has("UP") }

// address is one of a link.
type address struct {
	Local         string `json:"local"`
	Peer          string `json:"address"` // of a point-to-point link
	Prefix        int    `json:"prefixlen"`
	Broadcast     string `json:"broadcast"`
	Label         string `json:"label"`
	Scope         string `json:"scope"`
	Metric        int    `json:"metric"`
	Dynamic       bool   `json:"dynamic"`
	Temporary     bool   `json:"temporary"`
	NoPrefixRoute bool   `json:"noprefixroute"`
}

// prefix is the address with its length; the zero Prefix where ip says something odd.
func (a address) prefix() netip.Prefix {
	p, err := netip.ParseAddr(a.Local)
	if err != nil {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(p, a.Prefix)
}

// given says that somebody gave the link this address: the kernel and DHCP bring the others themselves.
func (a address) given() bool {
	p := a.prefix()
	return p.IsValid() && !a.Dynamic && !a.Temporary && !(p.Addr().Is6() && p.Addr().IsLinkLocalUnicast())
}

// given are the addresses that somebody gave the link.
func (l *link) given() []address {
	return slices.DeleteFunc(slices.Clone(l.Addresses), func(a address) bool { return !a.given() })
}

// prefixes are the addresses of a link as far as a list that wants some can tell: the kernel's own ones are left out unless they are wanted.
func (l *link) prefixes(wanted []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range l.Addresses {
		if p := a.prefix(); p.IsValid() && (a.given() || slices.Contains(wanted, p)) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, comparePrefixes)
	return out
}

// Numbers of rtnetlink(7).
const (
	mainTable   = "254"
	kernelProto = "2"
	raProto     = "9" // router advertisements
	unicast     = "1"
)

// route is one of a namespace. Its JSON is that of `ip -N -j -d route show table all`.
type route struct {
	Type     string `json:"type"`
	Dst      string `json:"dst"`
	Gateway  string `json:"gateway"`
	Via      *via   `json:"via"`
	Dev      string `json:"dev"`
	Table    string `json:"table"`
	Protocol string `json:"protocol"`
	Scope    string `json:"scope"`
	Src      string `json:"prefsrc"`
	Metric   int    `json:"metric"`
	Pref     string `json:"pref"` // of IPv6 alone
	Metrics  []struct {
		MTU int `json:"mtu"`
	} `json:"metrics"`
	Nexthops []nexthop `json:"nexthops"`
}

// nexthop is one of several ways of a route.
type nexthop struct {
	Dev string `json:"dev"`
}

// via is a gateway of the other family.
type via struct {
	Family string `json:"family"`
	Host   string `json:"host"`
}

// destination is where a route leads to.
func (r route) destination() netip.Prefix {
	if r.Dst == "default" {
		if r.Pref != "" || strings.Contains(r.Gateway+r.Src, ":") {
			return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	if p, err := netip.ParsePrefix(r.Dst); err == nil {
		return p
	}
	if a, err := netip.ParseAddr(r.Dst); err == nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	return netip.Prefix{}
}

func (r route) mtu() int {
	if len(r.Metrics) == 0 {
		return 0
	}
	return r.Metrics[0].MTU
}

// neighbour is a permanent entry of a namespace's neighbour tables.
type neighbour struct {
	Dst string `json:"dst"`
	Dev string `json:"dev"`
	MAC string `json:"lladdr"`
}

var pciPart = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// parseLook reads the answer of lookScript.
func parseLook(out []byte) (*world, error) {
	w := &world{spaces: map[string]*space{}, devices: map[string]string{}}
	var at *space
	section := ""
	var body bytes.Buffer
	ended := false
	finish := func() error {
		if section != "space" {
			return nil
		}
		err := at.parse(body.Bytes())
		if err == nil {
			w.spaces[at.name] = at
		} else if at.name == "" {
			return err
		}
		return nil // a name below /run/netns that is no namespace any more is none
	}
	for line := range bytes.Lines(out) {
		head, ok := bytes.CutPrefix(line, []byte("=== "))
		if !ok {
			switch section {
			case "space":
				body.Write(line)
			case "devices":
				w.device(strings.TrimSpace(string(line)))
			}
			continue
		}
		if err := finish(); err != nil {
			return nil, err
		}
		body.Reset()
		words := strings.Fields(string(head))
		if len(words) == 0 {
			return nil, fmt.Errorf("the host's answer about its links is garbled: %q", line)
		}
		switch section = words[0]; section {
		case "space":
			at = &space{}
			if len(words) > 1 {
				at.name = words[1]
			}
		case "end":
			ended = true
		}
	}
	if !ended || w.spaces[""] == nil {
		return nil, fmt.Errorf("the host's answer about its links is cut off")
	}
	return w, nil
}

// device reads "NAME PATH-IN-SYS": the last PCI device of the path is the one that the interface is of.
func (w *world) device(text string) {
	name, file, ok := strings.Cut(text, " ")
	if !ok {
		return
	}
	for file = path.Clean(file); file != "/" && file != "."; file = path.Dir(file) {
		if base := path.Base(file); pciPart.MatchString(base) {
			w.devices[name] = base
			return
		}
	}
}

// parse reads three JSON lists: links, routes, neighbours.
func (s *space) parse(out []byte) error {
	var links []*link
	dec := json.NewDecoder(bytes.NewReader(out))
	for _, part := range []struct {
		what string
		into any
	}{{"address", &links}, {"route", &s.routes}, {"neighbour", &s.neighbours}} {
		if err := dec.Decode(part.into); err != nil {
			return fmt.Errorf("ip %s show: %w", part.what, err)
		}
	}
	s.links = map[string]*link{}
	for _, l := range links {
		if l != nil && l.Name != "" { // ip prints {} for what a filter leaves out
			s.links[l.Name] = l
		}
	}
	return nil
}
