package host

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"plumb/providers"
)

// examineKernel: DPDK's guide asks for 4.19 (23.11) or a Red Hat kernel, which has newer parts; AF_XDP's need_wakeup came with 5.4, hugepages by node at boot with 5.15.
func examineKernel(m *patient) {
	switch {
	case slices.Contains(m.f.OS, "rhel") && before(m.f.Kernel, 5, 15):
		m.ok("kernel", "%s, %s. Hugepages at boot are the same on every NUMA node (by node from Linux 5.15 on).", m.f.Kernel, m.f.Distribution)
	case before(m.f.Kernel, 4, 19):
		m.say(providers.Warning, "kernel", "The kernel is "+m.f.Kernel+".", "DPDK is made for Linux 4.19 and later.", "Install a newer kernel of the distribution.", "")
	case before(m.f.Kernel, 5, 4):
		m.say(providers.Advice, "kernel", "The kernel is "+m.f.Kernel+".", "AF_XDP without need_wakeup (Linux 5.4) wants a core of its own for the driver, and hugepages cannot be reserved by node at boot (5.15).", "Install a newer kernel of the distribution where those are used.", "")
	case before(m.f.Kernel, 5, 15):
		m.ok("kernel", "%s, %s. Hugepages at boot are the same on every NUMA node (by node from Linux 5.15 on).", m.f.Kernel, m.f.Distribution)
	default:
		m.ok("kernel", "%s, %s.", m.f.Kernel, m.f.Distribution)
	}
}

// before says whether a version is less than major.minor. One that cannot be read is not.
func before(version string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a < major || a == major && b < minor
}

func examineIOMMU(m *patient) {
	level := providers.Hinders
	if len(m.forVFIO()) == 0 {
		level = providers.Advice // there is no NIC that would need it
	}
	const why = "vfio-pci gives a NIC to DPDK, or to a guest, only where an IOMMU keeps it from all other memory."
	switch {
	case m.f.IOMMU.NoIOMMU:
		m.say(providers.Warning, "IOMMU", "vfio's unsafe mode without an IOMMU is on.", "A program that has a NIC in that mode can read and write all memory, and so can frames that find a bug in it.", "Use an IOMMU where the machine has one: noiommu = false in nic_driver.", "")
	case m.f.IOMMU.Enabled:
		m.ok("IOMMU", "There is one, with %s.", plural(len(m.f.IOMMU.Groups), "group"))
		if !m.passthrough() {
			m.say(providers.Advice, "IOMMU", "The kernel's own devices go through the IOMMU, too (no iommu=pt).", "Each buffer of a kernel driver is then mapped and unmapped, which costs throughput of the kernel's data path.", "Boot with iommu=pt.", kernelArgs("iommu_pt", "iommu=pt"))
		}
	case m.switchedOff() != "":
		m.say(level, "IOMMU", "There are no IOMMU groups: the kernel was booted with "+m.switchedOff()+".", why, "Take that off the kernel's command line, and reboot.", "")
	case slices.Contains(m.tables, "DMAR"):
		m.say(level, "IOMMU", "There are no IOMMU groups, but the firmware has VT-d switched on.", why, "Boot with intel_iommu=on iommu=pt.", kernelArgs("iommu", "intel_iommu=on", "iommu=pt"))
	case slices.Contains(m.tables, "IVRS"):
		m.say(level, "IOMMU", "There are no IOMMU groups, but the firmware has AMD-Vi switched on.", why, "The kernel uses it without being told: look into its log for the reason, and update the BIOS.", "")
	case m.virtual():
		m.say(level, "IOMMU", "There are no IOMMU groups.", why, "Give the virtual machine an IOMMU (QEMU: -device intel-iommu,intremap=on, machine q35), and boot it with intel_iommu=on iommu=pt. Where that cannot be, noiommu = true in nic_driver uses vfio's unsafe mode.", "")
	default:
		m.say(level, "IOMMU", "There are no IOMMU groups, and the firmware has no table for one.", why, "Switch VT-d (Intel) or AMD-Vi on in the BIOS. On Intel also boot with intel_iommu=on iommu=pt.", "")
	}
}

// switchedOff is the argument that keeps the kernel from using an IOMMU; "" for none.
func (m *patient) switchedOff() string {
	for _, name := range []string{"iommu", "intel_iommu", "amd_iommu"} {
		if v, _ := m.argument(name); v == "off" {
			return name + "=off"
		}
	}
	return ""
}

// passthrough says whether the kernel's own devices bypass the IOMMU: by argument, or as all groups of NICs say.
func (m *patient) passthrough() bool {
	if v, _ := m.argument("iommu"); v == "pt" {
		return true
	}
	if v, _ := m.argument("iommu.passthrough"); v == "1" {
		return true
	}
	for file := range m.files {
		if ok, _ := path.Match(groupDir+"/*/type", file); ok && m.files.text(file) == "identity" {
			return true
		}
	}
	return false
}

func examineModules(m *patient) {
	has := func(name string) bool {
		return m.f.Modules[strings.ReplaceAll(name, "-", "_")] || m.modules[name] != ""
	}
	switch {
	case has("vfio-pci"):
		m.ok("vfio-pci", "The kernel has it.")
	case len(m.forVFIO()) > 0:
		m.say(providers.Hinders, "vfio-pci", "The kernel has no module vfio-pci.", "DPDK needs it for every NIC that it drives itself.", "Install the kernel's other modules (Debian: linux-image-…; Ubuntu: linux-modules-extra-…; Fedora: kernel-modules).", "")
	default:
		m.ok("vfio-pci", "The kernel has no such module; there is no NIC that needs it.")
	}
	if why := m.f.Locked(); why != "" {
		m.say(providers.Advice, "lockdown", strings.ToUpper(why[:1])+why[1:]+".", "igb_uio cannot be loaded, uio_pci_generic gives no access to NICs, and MSRs cannot be written.", "Use vfio-pci, which works. Switch Secure Boot off in the BIOS only for what needs one of those.", "")
	} else {
		m.ok("lockdown", "Neither Secure Boot nor lockdown keeps modules out.")
	}
}

// examineQuiet looks for what the kernel does on cores on its own account.
func examineQuiet(m *patient) {
	if m.files.text("/proc/sys/kernel/nmi_watchdog") == "1" {
		m.say(providers.Advice, "watchdog", "The NMI watchdog is on.", "It takes a hardware counter and interrupts every core, isolated or not.", "Switch it off.", sysctlBlock("nmi_watchdog", "kernel.nmi_watchdog", "0"))
	}
	if v, _ := m.argument("audit"); m.f.Services["auditd"] == "active" && v != "0" {
		m.say(providers.Advice, "audit", "Auditing is on.", "Every system call looks at its rules.", "Boot with audit=0 on a testbed that does not need it.", kernelArgs("audit", "audit=0"))
	}
	if m.files.text("/sys/devices/system/machinecheck/machinecheck0/ignore_ce") == "0" && !m.virtual() {
		m.say(providers.Advice, "machine checks", "Corrected machine checks are polled for and interrupt.", "Each takes time from the core that it meets.", "Boot with mce=ignore_ce on a testbed that does not need to know of them.", kernelArgs("mce", "mce=ignore_ce"))
	}
	if strings.Contains(m.files.text("/sys/kernel/mm/transparent_hugepage/enabled"), "[always]") {
		m.say(providers.Advice, "transparent hugepages", "They are always on.", "The kernel stops a program while it gathers pages for it; DPDK and guests have hugepages of their own.", "Boot with transparent_hugepage=madvise.", kernelArgs("thp", "transparent_hugepage=madvise"))
	} else {
		m.ok("transparent hugepages", "Only where programs ask for them, or not at all.")
	}
	if m.files.text("/sys/kernel/mm/ksm/run") == "1" {
		m.say(providers.Warning, "KSM", "The kernel merges equal pages of guests.", "It takes a core, and guests stop when they write to a page that was merged.", "Stop ksmtuned and ksm, or write 0 to /sys/kernel/mm/ksm/run.", block("host_command", "ksm", `do = ["sh", "-c", "echo 0 > /sys/kernel/mm/ksm/run"]`, `check = ["grep", "-q", "^0", "/sys/kernel/mm/ksm/run"]`, `undo = ["sh", "-c", "echo 1 > /sys/kernel/mm/ksm/run"]`))
	}
	if m.files.text("/proc/sys/kernel/numa_balancing") == "1" && len(m.f.Nodes) > 1 {
		m.say(providers.Warning, "NUMA balancing", "The kernel moves memory between nodes by itself.", "To find out what to move it takes pages away from programs, which then stop at each.", "Switch it off: memory of a testbed is placed on purpose.", sysctlBlock("numa_balancing", "kernel.numa_balancing", "0"))
	}
	if lines := strings.Split(m.files.text("/proc/swaps"), "\n"); len(lines) > 1 {
		m.say(providers.Advice, "swap", fmt.Sprintf("%s in use.", plural(len(lines)-1, "swap area")), "A guest or a tool whose memory was moved out stops until it is back. Hugepages never are.", "Switch it off for measurements (swapoff -a), or give guests hugepages.", "")
	} else {
		m.ok("swap", "None.")
	}
}

func examineServices(m *patient) {
	running := func(name string) bool { return m.f.Services[name] == "active" }
	if running("irqbalance") {
		m.say(providers.Warning, "irqbalance", "It runs.", "It moves interrupts of NICs between cores while one measures, and undoes host_irq_affinity.", "Stop it.", stopped("irqbalance"))
	}
	for _, s := range []struct{ name, why string }{
		{"ksmtuned", "It switches the merging of guests' pages on."},
		{"numad", "It moves programs and their memory between NUMA nodes."},
		{"thermald", "It lowers frequencies by its own rules."},
		{"power-profiles-daemon", "It sets governors and preferences of CPUs by its own rules."},
		{"unattended-upgrades", "It may install packages, and restart services such as Open vSwitch, at any time."},
	} {
		if running(s.name) {
			m.say(providers.Advice, s.name, "It runs.", s.why, "Stop it.", stopped(s.name))
		}
	}
	switch profile := m.f.Tuned; {
	case profile == "" && m.f.Services["tuned"] == "":
		m.ok("tuned", "It is not installed; host_cpu_isolation and host_cpu_power do what is needed.")
	case profile == "" || slices.Contains([]string{"cpu-partitioning", "cpu-partitioning-powersave", "network-latency", "network-throughput", "latency-performance", "throughput-performance", "realtime", "realtime-virtual-host", "virtual-host"}, profile):
		m.ok("tuned", "Its profile is %s.", map[bool]string{true: "none", false: profile}[profile == ""])
	default:
		m.say(providers.Advice, "tuned", "Its profile is "+profile+".", "That profile saves power; it sets governors and preferences again whenever tuned starts.", "Stop tuned, or use one of its profiles for latency or cpu-partitioning.", stopped("tuned"))
	}
	if running("firewalld") {
		m.say(providers.Advice, "firewalld", "It runs.", "It drops tunnels (VXLAN, Geneve) and management connections that no rule allows. Frames through Open vSwitch do not meet it.", "Allow the ports of tunnels, or stop it.", "")
	}
	if running("NetworkManager") {
		var names []string
		for _, n := range m.candidates() {
			for _, i := range n.Interfaces {
				names = append(names, i.Name)
			}
		}
		if len(names) > 0 {
			m.say(providers.Warning, "NetworkManager", fmt.Sprintf("It runs, and may configure %s.", strings.Join(names, ", ")), "Whenever a NIC comes back from DPDK, or its link goes up, it asks for addresses and sets routes there.",
				"Tell it to leave NICs of the testbed alone, and reload it (nmcli general reload).",
				block("host_file", "unmanaged", `path = "/etc/NetworkManager/conf.d/90-testbed.conf"`, fmt.Sprintf(`content = "[keyfile]\nunmanaged-devices=interface-name:%s\n"`, strings.Join(names, ";interface-name:"))))
		}
	}
}
