package host

import (
	"fmt"
	"regexp"
	"strings"

	"plumb/providers"
)

// validated is the DPDK that each Open vSwitch is made for (Documentation/faq/releases.rst of Open vSwitch).
func validated() map[string]string {
	return map[string]string{"2.13": "19.11", "2.14": "19.11", "2.15": "20.11", "2.16": "20.11", "2.17": "21.11", "3.0": "21.11", "3.1": "22.11", "3.2": "22.11", "3.3": "23.11", "3.4": "23.11",
		"3.5": "24.11", "3.6": "24.11", "3.7": "25.11", "4.0": "25.11"}
}

func series(version string) string { return regexp.MustCompile(`^\d+\.\d+`).FindString(version) }

// packageBlock is a resource that installs packages, by the names that the host's distribution has for them.
func (m *patient) packageBlock(name, debian, redhat string) string {
	names := redhat
	for _, id := range m.f.OS {
		if id == "debian" || id == "ubuntu" {
			names = debian
		}
	}
	if names == "" || len(m.f.OS) == 0 {
		return ""
	}
	return block("host_package", name, `names = ["`+strings.Join(strings.Fields(names), `", "`)+`"]`)
}

func examineSoftware(m *patient) {
	v := m.f.Versions
	ovs, linked := v["ovs"], v["ovs_dpdk"]
	want := validated()[series(ovs)]
	switch {
	case ovs == "":
		m.say(providers.Warning, "Open vSwitch", "It is not installed.", "It is what a testbed of Open vSwitch measures.", "Install it.", m.packageBlock("openvswitch", "openvswitch-switch-dpdk", "openvswitch"))
	case linked == "":
		m.ok("Open vSwitch", "%s. The ovs-vswitchd that starts now has no DPDK; where packages bring two of them, ovs_switch chooses.", ovs)
	case want != "" && series(linked) != want:
		m.say(providers.Warning, "Open vSwitch", fmt.Sprintf("%s with DPDK %s.", ovs, linked), fmt.Sprintf("Open vSwitch %s was made for and tested with DPDK %s.", series(ovs), want), "Use a build with that DPDK.", "")
	default:
		m.ok("Open vSwitch", "%s with DPDK %s.", ovs, linked)
	}
	switch {
	case v["dpdk"] == "":
		m.say(providers.Advice, "DPDK", "testpmd is not installed.", "dpdk_testpmd and generator testpmd need it.", "Install it where they are used; generator loadgen needs nothing.", m.packageBlock("dpdk", "dpdk", "dpdk"))
	default:
		m.ok("DPDK", "%s.", v["dpdk"])
	}
	var more []string
	for _, name := range []string{"qemu", "libvirt", "docker", "podman", "driverctl"} {
		if v[name] != "" {
			more = append(more, name+" "+v[name])
		}
	}
	if len(more) > 0 {
		m.ok("other software", "%s.", strings.Join(more, ", "))
	}
}

// examineFirmware names what only the firmware knows, and what testbeds set there.
func examineFirmware(m *patient) {
	if m.virtual() || !m.x86() {
		return
	}
	what := "This machine's firmware"
	if name := strings.TrimSpace(m.files.text("/sys/class/dmi/id/sys_vendor") + " " + m.files.text("/sys/class/dmi/id/product_name")); name != "" {
		what = "The firmware of this " + name
		if v := m.files.text("/sys/class/dmi/id/bios_version"); v != "" {
			what += " (" + v + ")"
		}
	}
	m.say(providers.Advice, "BIOS", what+" has settings that the operating system cannot see.", "They decide on latency and memory bandwidth.",
		"Look there for: Direct Cache Access (on), Energy Performance Tuning (off) and BIAS (performance), Power/Performance Switch (off), Energy Efficient Turbo (off), memory frequency (the highest, with a module in each channel of each processor) and "+
			"Enforce POR (off, if that limits it), DRAM RAPL (off), sub-NUMA clustering (on only on purpose), PCIe ASPM (off), and a profile for performance or low latency, if there is one.", "")
}
