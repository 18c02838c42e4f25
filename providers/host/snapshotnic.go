package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// snapLink is one object of `ip -d -j address show`: what is not in /sys/class/net.
type snapLink struct {
	Name     string   `json:"ifname"`
	Flags    []string `json:"flags"`
	Alias    string   `json:"ifalias"`
	Parent   string   `json:"link"`
	LinkInfo struct {
		Kind string `json:"info_kind"`
		Data struct {
			ID int `json:"id"` // of vlan and vxlan
		} `json:"info_data"`
	} `json:"linkinfo"`
	VFs []struct {
		Number int    `json:"vf"`
		MAC    string `json:"address"`
		VLANs  []struct {
			VLAN int `json:"vlan"`
			QoS  int `json:"qos"`
		} `json:"vlan_list"`
		Rate struct {
			Max int `json:"max_tx"`
			Min int `json:"min_tx"`
		} `json:"rate"`
		Trust    bool   `json:"trust"`
		Spoof    bool   `json:"spoofchk"`
		Link     string `json:"link_state"`
		QueryRSS bool   `json:"query_rss_en"`
	} `json:"vfinfo_list"`
	Addresses []struct {
		Family    string `json:"family"`
		Local     string `json:"local"`
		Peer      string `json:"address"`
		Prefix    int    `json:"prefixlen"`
		Scope     string `json:"scope"`
		Temporary bool   `json:"temporary"`
		Dynamic   bool   `json:"dynamic"`
	} `json:"addr_info"`
}

// snapLinks lists what ip(8) says of links: flags that somebody set, alias, kind, virtual functions as they are set, and addresses but for those that the kernel makes itself (link-local
// ones, and those that routers announce).
func snapLinks(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil // no ip(8) there
	}
	var links []snapLink
	if err := json.Unmarshal([]byte(text), &links); err != nil {
		return nil, fmt.Errorf("ip address: %w", err)
	}
	var lines []string
	for _, l := range links {
		if l.Name == "" {
			continue
		}
		var set []string
		for _, f := range []string{"PROMISC", "ALLMULTI"} { // bridges and captures do not show here: they count by themselves
			if slices.Contains(l.Flags, f) {
				set = append(set, strings.ToLower(f))
			}
		}
		if l.LinkInfo.Kind != "" {
			set = append(set, "kind "+l.LinkInfo.Kind)
		}
		if l.LinkInfo.Data.ID != 0 {
			set = append(set, fmt.Sprintf("id %d", l.LinkInfo.Data.ID))
		}
		if l.Parent != "" {
			set = append(set, "on "+l.Parent)
		}
		if l.Alias != "" {
			set = append(set, fmt.Sprintf("alias %q", l.Alias))
		}
		if len(set) > 0 {
			lines = append(lines, fmt.Sprintf("link %s is: %s", l.Name, strings.Join(set, ", ")))
		}
		for _, v := range l.VFs {
			line := fmt.Sprintf("virtual function %d of %s: mac %s, trust %s, spoofchk %s, rate %d to %d Mbit/s, link %s, query_rss %s", v.Number, l.Name, v.MAC, onOff(v.Trust), onOff(v.Spoof), v.Rate.Min, v.Rate.Max,
				cmp.Or(v.Link, "auto"), onOff(v.QueryRSS))
			for _, n := range v.VLANs {
				if n.VLAN != 0 {
					line += fmt.Sprintf(", vlan %d qos %d", n.VLAN, n.QoS)
				}
			}
			lines = append(lines, line)
		}
		for _, a := range l.Addresses {
			if a.Scope == "link" || a.Temporary || a.Dynamic && a.Family == "inet6" {
				continue
			}
			line := fmt.Sprintf("address %s: %s/%d", l.Name, a.Local, a.Prefix)
			if a.Peer != "" && a.Peer != a.Local {
				line += ", peer " + a.Peer
			}
			lines = append(lines, line)
		}
	}
	return lines, nil
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// snapRoutes lists routes that somebody set, of all tables: not those that follow from addresses, and those that routers announce. Lists of `ip -j route` come one after the other.
func snapRoutes(text string) ([]string, error) {
	var lines []string
	dec := json.NewDecoder(strings.NewReader(text))
	for dec.More() {
		var routes []struct {
			Type     string `json:"type"`
			Dst      string `json:"dst"`
			Via      string `json:"gateway"`
			Dev      string `json:"dev"`
			Table    string `json:"table"`
			Protocol string `json:"protocol"`
			Source   string `json:"prefsrc"`
			Metric   int    `json:"metric"`
			Hops     []struct {
				Via string `json:"gateway"`
				Dev string `json:"dev"`
			} `json:"nexthops"`
		}
		if err := dec.Decode(&routes); err != nil {
			return nil, fmt.Errorf("ip route: %w", err)
		}
		for _, r := range routes {
			if r.Dst == "" || slices.Contains([]string{"kernel", "ra", "redirect"}, r.Protocol) || slices.Contains([]string{"local", "broadcast", "anycast", "multicast"}, r.Type) {
				continue
			}
			if r.Type == "unicast" { // ip leaves out what is usual
				r.Type = ""
			}
			if r.Table == "main" {
				r.Table = ""
			}
			line := fmt.Sprintf("route %s:", strings.TrimSpace(r.Type+" "+r.Dst))
			add := func(word, value string) {
				if value != "" && value != "0" {
					line += " " + word + " " + value
				}
			}
			add("via", r.Via)
			add("dev", r.Dev)
			for _, h := range r.Hops {
				add("nexthop", strings.TrimSpace(h.Via+" "+h.Dev))
			}
			add("src", r.Source)
			add("metric", strconv.Itoa(r.Metric))
			add("table", r.Table)
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// snapNeighbours lists permanent neighbours: those that somebody set.
func snapNeighbours(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var list []struct {
		Dst, Dev, Lladdr string
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("ip neighbour: %w", err)
	}
	var lines []string
	for _, n := range list {
		if n.Dst != "" {
			lines = append(lines, fmt.Sprintf("neighbour %s on %s: %s", n.Dst, n.Dev, n.Lladdr))
		}
	}
	return lines, nil
}

// snapDriver lists what ethtool(8) says of the current rings, channels, flow control, coalescing and offloads of NICs, in parts that begin with "interface: NAME KIND". What the hardware
// adapts by itself is left out: with autonegotiation, what RX and TX say is what the other side made of it.
func snapDriver(text string) []string {
	var lines []string
	var name, kind string
	var set []string
	drop := func(prefixes ...string) {
		set = slices.DeleteFunc(set, func(s string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
		})
	}
	flush := func() {
		slices.Sort(set)
		if kind == "pause" && slices.Contains(set, "Autonegotiate on") {
			drop("RX ", "TX ")
		}
		if i := slices.IndexFunc(set, func(s string) bool { return strings.HasPrefix(s, "Adaptive RX ") }); i >= 0 {
			rx, tx, _ := strings.Cut(strings.TrimPrefix(set[i], "Adaptive RX "), "TX:")
			if strings.TrimSpace(rx) == "on" {
				drop("rx-")
			}
			if strings.TrimSpace(tx) == "on" {
				drop("tx-")
			}
		}
		if name != "" && len(set) > 0 {
			lines = append(lines, fmt.Sprintf("nic %s %s: %s", name, kind, strings.Join(set, ", ")))
		}
		set = nil
	}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.Join(strings.Fields(value), " ")
		switch {
		case key == "interface":
			flush()
			name, kind, _ = strings.Cut(value, " ")
		case strings.HasPrefix(key, "Current"): // what was before are the maxima
			set = nil
		case !ok || value == "" || strings.HasPrefix(value, "n/a") || strings.HasSuffix(value, "[fixed]"):
		case kind == "offloads" && !strings.HasPrefix(value, "on"):
		case kind == "offloads":
			set = append(set, key)
		default:
			set = append(set, key+" "+value)
		}
	}
	flush()
	return lines
}

// devices are network links, and PCI devices of class network (02) with their drivers, virtual functions and where their interrupts go.
func devices(files fileset) []string {
	var lines []string
	for name, data := range files {
		dir, base := path.Split(name)
		switch {
		case strings.HasPrefix(name, "/sys/class/net/") && base == "mtu":
			dir = strings.TrimSuffix(dir, "/")
			up := "down"
			if f := files.text(dir + "/flags"); len(f) > 0 && strings.ContainsAny(f[len(f)-1:], "13579bdfBDF") { // IFF_UP is bit 0
				up = "up"
			}
			line := fmt.Sprintf("link %s: %s, mtu %s, address %s", path.Base(dir), up, strings.TrimSpace(string(data)), files.text(dir+"/address"))
			if m := property(files[dir+"/master/uevent"], "INTERFACE"); m != "" {
				line += ", master " + m
			}
			lines = append(lines, line)
		case strings.HasPrefix(name, "/sys/bus/pci/devices/") && base == "uevent":
			// The class has six digits, without leading zeros.
			if class := property(data, "PCI_CLASS"); len(class) != 5 || !strings.HasPrefix(class, "2") {
				continue
			}
			pci := path.Base(dir)
			line := fmt.Sprintf("nic %s: driver %s", pci, property(data, "DRIVER"))
			if o := files.text(dir + "driver_override"); o != "" && o != "(null)" {
				line += ", override " + o
			}
			if n := files.text(dir + "sriov_numvfs"); n != "" && n != "0" {
				line += ", virtual functions " + n
			}
			if files.text(dir+"sriov_drivers_autoprobe") == "0" {
				line += ", drivers of virtual functions are not probed"
			}
			lines = append(lines, line)
			lines = append(lines, nicInterrupts(files, pci)...)
		}
	}
	return lines
}

func property(uevent []byte, key string) string {
	for line := range strings.Lines(string(uevent)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			return v
		}
	}
	return ""
}
