package host

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plumb/providers"
)

// factsScript prints what no file tells, in sections that begin with "=== NAME". Every part may fail by itself: what is not installed is left out. Units are its
// arguments. Of programs that are slow to start the packages are asked, and the program itself only where no package has it.
const factsScript = `export LC_ALL=C
echo "=== address"; ip -j address show 2>/dev/null
echo "=== route"; ip -j route show table main 2>/dev/null; ip -j -6 route show default 2>/dev/null
echo "=== units"; [ ! -d /run/systemd/system ] || systemctl show -p Id -p LoadState -p ActiveState -- "$@" 2>/dev/null
echo "=== firmware"
for n in /sys/class/net/*; do
	[ -e "$n/device" ] || continue
	echo "interface: ${n##*/}"; echo "speed: $(cat "$n/speed" 2>/dev/null)"; ethtool -i "${n##*/}" 2>/dev/null
done
echo "=== packages"
if command -v dpkg-query >/dev/null 2>&1; then
	dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' dpdk dpdk-dev qemu-system-x86 libvirt-daemon docker.io podman tuned driverctl 2>/dev/null
elif command -v rpm >/dev/null 2>&1; then
	rpm -q --qf '%{NAME} %{VERSION}-%{RELEASE} installed\n' dpdk qemu-kvm libvirt-daemon docker-ce podman tuned driverctl 2>/dev/null | grep -v ' is not installed'
fi
echo "=== ovs"; ovs-vswitchd --version 2>/dev/null
echo "=== end"
`

// packages that tell a version, by what it is called in facts.
var packages = map[string][]string{"dpdk": {"dpdk-dev", "dpdk"}, "qemu": {"qemu-system-x86", "qemu-kvm"}, "libvirt": {"libvirt-daemon"}, "docker": {"docker.io", "docker-ce"},
	"podman": {"podman"}, "tuned": {"tuned"}, "driverctl": {"driverctl"}}

// factUnits are the systemd units that matter to a testbed.
func factUnits() []string {
	return []string{"irqbalance.service", "tuned.service", "openvswitch-switch.service", "openvswitch.service", "ovs-vswitchd.service", "NetworkManager.service", "firewalld.service",
		"libvirtd.service", "docker.service", "podman.socket", "lldpd.service", "ksm.service", "ksmtuned.service", "power-profiles-daemon.service"}
}

// sections are the parts of the script's answer, by name.
func sections(out string) map[string]string {
	parts := map[string]string{}
	name := ""
	for line := range strings.Lines(out) {
		if n, ok := strings.CutPrefix(line, "=== "); ok {
			name = strings.TrimSpace(n)
			continue
		}
		parts[name] += line
	}
	return parts
}

// parseScript fills in what the script told.
func parseScript(out string, f *providers.Facts) (map[string]*providers.Interface, error) {
	parts := sections(out)
	if _, ok := parts["end"]; !ok && !strings.Contains(out, "=== end") {
		return nil, fmt.Errorf("the answer of the host is cut off")
	}
	f.Versions = map[string]string{}
	installed := map[string]string{}
	for line := range strings.Lines(parts["packages"]) {
		if w := strings.Fields(line); len(w) == 3 && w[2] == "installed" {
			installed[w[0]] = upstream(w[1])
		}
	}
	for what, names := range packages {
		if i := slices.IndexFunc(names, func(n string) bool { return installed[n] != "" }); i >= 0 {
			f.Versions[what] = installed[names[i]]
		}
	}
	if m := regexp.MustCompile(`\(Open vSwitch\) (\S+)`).FindStringSubmatch(parts["ovs"]); m != nil {
		f.Versions["ovs"] = m[1]
	}
	if m := regexp.MustCompile(`(?m)^DPDK (\S+)`).FindStringSubmatch(parts["ovs"]); m != nil {
		f.Versions["ovs_dpdk"] = m[1]
	}
	f.Services = parseUnits(parts["units"])
	return parseInterfaces(parts)
}

// upstream is the version without what a distribution puts around it: 1:10.0.2+ds-2 is 10.0.2.
func upstream(v string) string {
	if _, rest, ok := strings.Cut(v, ":"); ok {
		v = rest
	}
	return regexp.MustCompile(`^[0-9]+(\.[0-9]+)*`).FindString(v)
}

// parseUnits reads `systemctl show`: blocks of KEY=VALUE with an empty line in between.
func parseUnits(text string) map[string]string {
	out := map[string]string{}
	for _, block := range strings.Split(text, "\n\n") {
		id, load, active := property([]byte(block), "Id"), property([]byte(block), "LoadState"), property([]byte(block), "ActiveState")
		if id != "" && load != "not-found" && load != "" {
			out[strings.TrimSuffix(id, ".service")] = active
		}
	}
	return out
}

// ipLink is one object of `ip -j address show`.
type ipLink struct {
	Name      string   `json:"ifname"`
	Address   string   `json:"address"`
	MTU       int      `json:"mtu"`
	Flags     []string `json:"flags"`
	State     string   `json:"operstate"`
	Master    string   `json:"master"`
	Addresses []struct {
		Local  string `json:"local"`
		Prefix int    `json:"prefixlen"`
	} `json:"addr_info"`
}

// ipRoute is one object of `ip -j route show`.
type ipRoute struct {
	Dst string `json:"dst"`
	Dev string `json:"dev"`
}

// parseInterfaces is all interfaces of the kernel by name.
func parseInterfaces(parts map[string]string) (map[string]*providers.Interface, error) {
	out := map[string]*providers.Interface{}
	if strings.TrimSpace(parts["address"]) != "" {
		var links []ipLink
		if err := json.Unmarshal([]byte(parts["address"]), &links); err != nil {
			return nil, fmt.Errorf("ip address: %w", err)
		}
		for _, l := range links {
			if l.Name == "" {
				continue // ip prints {} for what a filter leaves out
			}
			i := &providers.Interface{Name: l.Name, MAC: l.Address, MTU: l.MTU, Up: slices.Contains(l.Flags, "UP"), Master: l.Master}
			if i.Up {
				carrier := slices.Contains(l.Flags, "LOWER_UP")
				i.Carrier = &carrier
			}
			for _, a := range l.Addresses {
				i.Addresses = append(i.Addresses, fmt.Sprintf("%s/%d", a.Local, a.Prefix))
			}
			out[l.Name] = i
		}
	}
	dec := json.NewDecoder(strings.NewReader(parts["route"])) // two lists, one after the other
	for dec.More() {
		var routes []ipRoute
		if err := dec.Decode(&routes); err != nil {
			return nil, fmt.Errorf("ip route: %w", err)
		}
		for _, r := range routes {
			if i := out[r.Dev]; r.Dst == "default" && i != nil {
				i.DefaultRoute = true
			}
		}
	}
	var at *providers.Interface
	for line := range strings.Lines(parts["firmware"]) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch {
		case key == "interface":
			at = out[value]
		case at == nil:
		case key == "speed": // -1 or nothing while there is no carrier
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				at.SpeedMbit = n
			}
		case key == "driver":
			at.Driver = value
		case key == "firmware-version":
			at.Firmware = value
		}
	}
	return out, nil
}
