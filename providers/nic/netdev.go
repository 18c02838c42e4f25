package nic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"plumb/providers"
)

// netdev is what an interface loses with its driver.
type netdev struct {
	Name        string     `json:"name"`
	MTU         int        `json:"mtu"`
	Up          bool       `json:"up"`
	Promiscuous bool       `json:"promiscuous"`
	Master      string     `json:"master,omitempty"`
	Alias       string     `json:"alias,omitempty"`
	Addresses   []string   `json:"addresses,omitempty"` // with prefix length; those that the kernel makes itself are left out
	Routes      []netRoute `json:"routes,omitempty"`
}

// netRoute is a route through the interface that somebody has set.
type netRoute struct {
	Dst     string `json:"dst"`
	Gateway string `json:"gateway,omitempty"`
	Source  string `json:"source,omitempty"`
	Metric  int    `json:"metric,omitempty"`
}

// readScript prints link and routes of an interface.
const readScript = `export LC_ALL=C
ip -j -d address show dev "$1" || exit
echo "==="; ip -j route show dev "$1" table main; echo "==="; ip -j -6 route show dev "$1" table main`

// readNetdev records an interface, in one round trip.
func readNetdev(ctx context.Context, conn providers.Conn, name string) (*netdev, error) {
	res, err := conn.Run(ctx, providers.Cmd{Args: []string{"sh", "-c", readScript, "plumb-nic-read", name}})
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	return parseNetdev(res.Stdout, name)
}

func parseNetdev(out []byte, name string) (*netdev, error) {
	parts := bytes.Split(out, []byte("===\n"))
	if len(parts) != 3 {
		return nil, fmt.Errorf("interface %s: the host's answer is cut off", name)
	}
	var links []struct {
		Name         string   `json:"ifname"`
		MTU          int      `json:"mtu"`
		Flags        []string `json:"flags"`
		Promiscuity  int      `json:"promiscuity"`
		Master       string   `json:"master"`
		Alias        string   `json:"ifalias"`
		AddressInfos []struct {
			Local   string `json:"local"`
			Prefix  int    `json:"prefixlen"`
			Dynamic bool   `json:"dynamic"`
		} `json:"addr_info"`
	}
	if err := json.Unmarshal(parts[0], &links); err != nil || len(links) == 0 {
		return nil, fmt.Errorf("interface %s: ip address: %w", name, errors.Join(err, errors.New("no such interface")))
	}
	l := links[0]
	n := &netdev{Name: name, MTU: l.MTU, Up: slices.Contains(l.Flags, "UP"), Promiscuous: slices.Contains(l.Flags, "PROMISC"), Master: l.Master, Alias: l.Alias}
	for _, a := range l.AddressInfos {
		addr, err := netip.ParseAddr(a.Local)
		if err != nil || a.Dynamic || addr.Is6() && addr.IsLinkLocalUnicast() { // the kernel, or whoever leased it, brings those back
			continue
		}
		n.Addresses = append(n.Addresses, fmt.Sprintf("%s/%d", a.Local, a.Prefix))
	}
	for _, part := range parts[1:] {
		if len(bytes.TrimSpace(part)) == 0 {
			continue
		}
		var routes []struct {
			Dst, Gateway, Protocol, Prefsrc string
			Metric                          int
		}
		if err := json.Unmarshal(part, &routes); err != nil {
			return nil, fmt.Errorf("interface %s: ip route: %w", name, err)
		}
		for _, r := range routes {
			if r.Protocol != "kernel" && r.Protocol != "ra" && r.Protocol != "dhcp" {
				n.Routes = append(n.Routes, netRoute{Dst: r.Dst, Gateway: r.Gateway, Source: r.Prefsrc, Metric: r.Metric})
			}
		}
	}
	return n, nil
}

// restoreNetdev gives an interface back what was recorded: one round trip, by commands of ip(8) on its standard input. All words are the kernel's own.
func restoreNetdev(ctx context.Context, conn providers.Conn, name string, was *netdev) error {
	_, err := conn.Run(ctx, providers.Cmd{Args: []string{"ip", "-force", "-batch", "-"}, Stdin: []byte(strings.Join(restoreLines(name, was), "\n") + "\n")})
	var exit *providers.ExitError
	if errors.As(err, &exit) && onlyExisting(string(exit.Stderr)) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("give interface %s back what it had: %w", name, err)
	}
	return nil
}

// onlyExisting says that ip complained of nothing but what is there already: somebody else, such as systemd-networkd, was faster.
func onlyExisting(stderr string) bool {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, "File exists") && !strings.Contains(line, "already assigned") && !strings.HasPrefix(line, "Command failed") {
			return false
		}
	}
	return true
}

func restoreLines(name string, was *netdev) []string {
	lines := []string{fmt.Sprintf("link set dev %s mtu %d", name, was.MTU)}
	if was.Alias != "" && !strings.ContainsAny(was.Alias, "\n\"\\") {
		lines = append(lines, fmt.Sprintf("link set dev %s alias \"%s\"", name, was.Alias))
	}
	if was.Promiscuous {
		lines = append(lines, "link set dev "+name+" promisc on")
	}
	if was.Master != "" {
		lines = append(lines, "link set dev "+name+" master "+was.Master)
	}
	state := "down"
	if was.Up {
		state = "up"
	}
	lines = append(lines, "link set dev "+name+" "+state)
	for _, a := range was.Addresses {
		lines = append(lines, "address replace "+a+" dev "+name)
	}
	for _, r := range was.Routes {
		l := "route replace " + r.Dst
		if r.Gateway != "" {
			l += " via " + r.Gateway
		}
		l += " dev " + name
		if r.Source != "" {
			l += " src " + r.Source
		}
		if r.Metric != 0 {
			l += fmt.Sprint(" metric ", r.Metric)
		}
		lines = append(lines, l)
	}
	return lines
}
