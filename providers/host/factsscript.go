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
// arguments. The slow parts run side by side: each feeds a descriptor of what comes after it in the pipeline. Of programs that are slow to start the packages are asked, and the
// program itself only where no package has it. Virtual functions are not asked for their firmware: it is that of the physical function, and there may be hundreds.
const factsScript = `export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
packages() {
	if command -v dpkg-query >/dev/null; then
		dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' dpdk dpdk-dev qemu-system-x86 libvirt-daemon docker.io docker-ce podman tuned driverctl
	elif command -v rpm >/dev/null; then
		rpm -q --qf '%{NAME} %{VERSION}-%{RELEASE} installed\n' dpdk dpdk-devel qemu-kvm-core qemu-kvm qemu-system-x86-core libvirt-daemon docker-ce podman tuned driverctl
	fi
}
units() { [ ! -d /run/systemd/system ] || systemctl show -p Id -p LoadState -p ActiveState -p UnitFileState -- "$@"; }
program() {
	what=$1 names=$2; shift 2
	for name in $names; do
		case "
$packages" in *"
$name "[0-9]*) return ;; esac
	done
	command -v "$1" >/dev/null || return 0
	echo "$what: $("$@" 2>/dev/null </dev/null | head -n 1)"
}
programs() {
	echo "=== packages"; packages=$(cat); echo "$packages"
	echo "=== programs"
	program dpdk "dpdk-dev dpdk dpdk-devel" pkg-config --modversion libdpdk
	program qemu "qemu-system-x86 qemu-kvm-core qemu-kvm qemu-system-x86-core" qemu-system-x86_64 --version
	program libvirt libvirt-daemon libvirtd --version
	program docker "docker.io docker-ce" docker --version
	program podman podman podman --version
}
packages 2>/dev/null | programs | { exec 3<&0; ovs-vswitchd --version 2>/dev/null | { exec 4<&0; units "$@" 2>/dev/null | {
echo "=== address"; ip -j address show 2>/dev/null
echo "=== route"; ip -j route show table main 2>/dev/null; ip -j -6 route show default 2>/dev/null
echo "=== connection"; echo "$SSH_CONNECTION"
echo "=== firmware"
for n in /sys/class/net/*; do
	[ -e "$n/device" ] && [ ! -e "$n/device/physfn" ] || continue
	speed=; { read -r speed <"$n/speed"; } 2>/dev/null
	echo "interface: ${n##*/}"; echo "speed: $speed"; ethtool -i "${n##*/}" 2>/dev/null
done
echo "=== units"; cat
echo "=== ovs"; cat <&4
cat <&3
echo "=== end"
} } }
`

// packages that tell a version, by what it is called in facts: those that the script asks for.
var packages = map[string][]string{"dpdk": {"dpdk-dev", "dpdk-devel", "dpdk"}, "qemu": {"qemu-system-x86", "qemu-kvm-core", "qemu-kvm", "qemu-system-x86-core"}, "libvirt": {"libvirt-daemon"},
	"docker": {"docker.io", "docker-ce"}, "podman": {"podman"}, "tuned": {"tuned"}, "driverctl": {"driverctl"}}

// factUnits are the systemd units that matter to a testbed.
func factUnits() []string {
	return []string{"irqbalance.service", "tuned.service", "openvswitch-switch.service", "openvswitch.service", "ovs-vswitchd.service", "NetworkManager.service", "systemd-networkd.service",
		"firewalld.service", "libvirtd.service", "docker.service", "podman.socket", "lldpd.service", "lldpad.service", "ksm.service", "ksmtuned.service", "numad.service", "thermald.service", "auditd.service",
		"power-profiles-daemon.service", "unattended-upgrades.service"}
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
	if !strings.Contains(out, "=== end\n") {
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
	for line := range strings.Lines(parts["programs"]) {
		what, text, _ := strings.Cut(line, ":")
		if v := regexp.MustCompile(`\d+(\.\d+)+`).FindString(text); v != "" {
			f.Versions[what] = v
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

// arrival is where the shell's own SSH connection ends at: the third word of SSH_CONNECTION (ssh(1)). It tells of a Plumb that somebody started by SSH on the host itself.
func arrival(told string) string {
	if w := strings.Fields(sections(told)["connection"]); len(w) == 4 {
		return w[2]
	}
	return ""
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
		case key == "firmware-version" && value != "N/A":
			at.Firmware = value
		}
	}
	return out, nil
}
