package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func machines() map[string]func(*testing.T) recorded {
	return map[string]func(*testing.T) recorded{
		"vm":        func(t *testing.T) recorded { return load(t, "vm") },
		"server":    func(*testing.T) recorded { return server() },
		"tuned":     func(*testing.T) recorded { return tunedServer() },
		"amd":       func(*testing.T) recorded { return amd() },
		"container": func(*testing.T) recorded { return container() },
		"odd":       func(*testing.T) recorded { return odd() },
	}
}

// builder builds a machine that nobody had at hand.
type builder struct {
	files                   fileset
	links, routes, firmware []string
}

// build makes a machine of so many CPUs. nodes: the CPU list of each NUMA node by its number; none: a kernel without NUMA. With threads, CPU n and n + half of all share a core.
func build(cpus int, nodes map[int]string, threads bool, gigabytes int) *builder {
	b := &builder{files: fileset{}}
	all := fmt.Sprintf("0-%d", cpus-1)
	b.put(cpuDir+"/present", all, cpuDir+"/online", all, cpuDir+"/isolated", "", cpuDir+"/nohz_full", "(null)", "/proc/irq/default_smp_affinity", strings.Repeat("f", cpus/4),
		"/proc/self/status", "Uid:\t0\t0\t0\t0", "/proc/1/comm", "systemd", "/proc/sys/kernel/hostname", "dut", "/proc/sys/kernel/random/boot_id", "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
		"/proc/mounts", "hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0", "/proc/swaps", "Filename\tType\tSize\tUsed\tPriority", "/proc/sys/kernel/nmi_watchdog", "1",
		"/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never", "/sys/kernel/mm/ksm/run", "0", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc",
		"/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm", "/sys/devices/system/machinecheck/machinecheck0/ignore_ce", "0")
	for id := range cpus {
		dir := fmt.Sprintf("%s/cpu%d/topology/", cpuDir, id)
		core, siblings := id, fmt.Sprint(id)
		if threads {
			core = id % (cpus / 2)
			siblings = fmt.Sprintf("%d,%d", core, core+cpus/2)
		}
		b.put(dir+"core_id", core, dir+"physical_package_id", 0, dir+"thread_siblings_list", siblings)
	}
	for id, list := range nodes {
		dir := fmt.Sprintf("%s/node%d/", nodeDir, id)
		b.put(dir+"cpulist", list, dir+"meminfo", fmt.Sprintf("Node %d MemTotal:       %d kB", id, gigabytes<<20))
		for _, size := range []string{"2048", "1048576"} {
			b.put(dir+"hugepages/hugepages-"+size+"kB/nr_hugepages", 0, dir+"hugepages/hugepages-"+size+"kB/free_hugepages", 0)
		}
	}
	if len(nodes) == 0 {
		b.put("/proc/meminfo", fmt.Sprintf("MemTotal:       %d kB", gigabytes<<20), hugeDir+"/hugepages-2048kB/nr_hugepages", 0, hugeDir+"/hugepages-2048kB/free_hugepages", 0)
	}
	return b
}

// put writes files, by name and value in turn.
func (b *builder) put(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		b.files[pairs[i].(string)] = fmt.Appendln(nil, pairs[i+1])
	}
}

// cpu is what /proc/cpuinfo says of each.
func (b *builder) cpu(model, flags string) {
	b.put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: "+model+"\nflags\t\t: fpu pse tsc constant_tsc nonstop_tsc sse4_2 "+flags)
}

// power gives every CPU a governor and idle states, by name and the µs that they take to wake from.
func (b *builder) power(cpus int, driver, governor string, states ...string) {
	for id := range cpus {
		dir := fmt.Sprintf("%s/cpu%d/", cpuDir, id)
		b.put(dir+"cpufreq/scaling_driver", driver, dir+"cpufreq/scaling_governor", governor, dir+"cpufreq/scaling_available_governors", "performance powersave", dir+"power/energy_perf_bias", 6)
		for i, s := range states {
			name, latency, _ := strings.Cut(s, " ")
			state := fmt.Sprintf("%scpuidle/state%d/", dir, i)
			b.put(state+"name", name, state+"latency", latency, state+"disable", 0)
		}
	}
}

// nic puts a PCI device in. link: the name of its interface and the rest of its entry in ip's answer, after a blank; "" for none.
func (b *builder) nic(pci, class, id, driver string, group int, link string, files ...any) {
	dir := pciDir + "/" + pci + "/"
	uevent := fmt.Sprintf("PCI_CLASS=%s\nPCI_ID=%s\nPCI_SLOT_NAME=%s", class, id, pci)
	if driver != "" {
		uevent = "DRIVER=" + driver + "\n" + uevent
	}
	b.put(dir+"uevent", uevent, dir+"driver_override", "(null)")
	if group >= 0 {
		b.put(fmt.Sprintf("%s/%d/devices/%s/uevent", groupDir, group, pci), uevent)
	}
	for i := 0; i < len(files); i += 2 {
		b.put(dir+files[i].(string), files[i+1])
	}
	if name, rest, ok := strings.Cut(link, " "); ok {
		speed := -1
		if rest != down {
			speed = 25000
		}
		b.put(dir+"net/"+name+"/address", "3c:fd:fe:00:00:01")
		b.link(name, `"address":"3c:fd:fe:00:00:01","mtu":1500,`+rest)
		b.firmware = append(b.firmware, fmt.Sprintf("interface: %s\nspeed: %d\ndriver: %s\nfirmware-version: 8.30 0x8000a49d", name, speed, driver))
	}
}

func (b *builder) link(name, rest string) {
	b.links = append(b.links, fmt.Sprintf(`{"ifname":%q,%s}`, name, rest))
}

// done is the machine with what its scripts print.
func (b *builder) done(units, packages, ovs, asked string) recorded {
	told := fmt.Sprintf("=== address\n[%s]\n=== route\n[%s]\n[]\n=== connection\n\n=== firmware\n%s\n=== units\n%s=== ovs\n%s=== packages\n%s=== programs\n=== end\n",
		strings.Join(b.links, ",\n"), strings.Join(b.routes, ","), strings.Join(b.firmware, "\n"), units, ovs, packages)
	return recorded{files: b.files, told: told, asked: asked + "=== end\n"}
}

func units(states ...string) string {
	var b strings.Builder
	for _, s := range states {
		name, state, _ := strings.Cut(s, " ")
		fmt.Fprintf(&b, "Id=%s.service\nLoadState=loaded\nActiveState=%s\n\n", name, state)
	}
	return b.String()
}

const (
	up       = `"flags":["BROADCAST","UP","LOWER_UP"]`
	down     = `"flags":["BROADCAST"]`
	upWithIP = up + `,"addr_info":[{"local":"192.0.2.10","prefixlen":24}]`
)

// intel is two sockets of eight cores with two threads each, an X710 with virtual functions, a ConnectX-5 in a domain beyond ffff, and a NIC for management.
func intel() *builder {
	b := build(32, map[int]string{0: "0-7,16-23", 1: "8-15,24-31"}, true, 96)
	for id := range 32 {
		b.put(fmt.Sprintf("%s/cpu%d/topology/physical_package_id", cpuDir, id), id/8%2)
	}
	b.cpu("Intel(R) Xeon(R) Gold 6134 CPU @ 3.20GHz", "pdpe1gb avx2 avx512f")
	b.put("/etc/os-release", "PRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "/proc/sys/kernel/osrelease", "5.14.0-427.el9.x86_64", "/proc/modules", "vfio_pci 16384 0 - Live 0x0",
		"/proc/cmdline", "root=/dev/sda3 ro quiet", cpuDir+"/smt/control", "on", cpuDir+"/intel_pstate/no_turbo", 0, "/sys/class/dmi/id/sys_vendor", "Supermicro", "/sys/class/dmi/id/product_name", "X11DPU",
		"/sys/class/dmi/id/bios_version", "3.4", "/sys/kernel/security/lockdown", "none [integrity] confidentiality", "/proc/sys/kernel/numa_balancing", 1)
	b.files[secureBoot] = []byte{6, 0, 0, 0, 1}
	b.power(32, "intel_pstate", "powersave", "POLL 0", "C1 2", "C1E 10", "C6 133")
	b.routes = []string{`{"dst":"default","gateway":"192.0.2.1","dev":"eno1"}`}
	return b
}

// intelNICs puts them in IOMMU groups from the first on; -1: there are none.
func (b *builder) intelNICs(first int) {
	group := func(n int) int {
		if first < 0 {
			return -1
		}
		return first + n
	}
	b.nic("0000:04:00.0", "20000", "8086:1533", "igb", group(0), "eno1 "+upWithIP, "numa_node", 0)
	b.nic("0000:3b:00.0", "20000", "8086:1572", "i40e", group(1), "ens1f0 "+down, "numa_node", 0, "sriov_totalvfs", 64, "virtfn0/uevent", "PCI_SLOT_NAME=0000:3b:02.0", "virtfn1/uevent", "PCI_SLOT_NAME=0000:3b:02.1",
		"current_link_speed", "5.0 GT/s PCIe", "max_link_speed", "8.0 GT/s PCIe", "current_link_width", 8, "max_link_width", 8)
	for i := range 2 {
		b.nic(fmt.Sprintf("0000:3b:02.%d", i), "20000", "8086:154C", "vfio-pci", group(2+i), "", "numa_node", 0, "physfn/uevent", "PCI_SLOT_NAME=0000:3b:00.0")
	}
	b.nic("0000:3b:00.1", "20000", "8086:1572", "i40e", group(1), `ens1f1 "flags":["BROADCAST","UP"]`, "numa_node", 0, "current_link_width", 4, "max_link_width", 8)
	b.nic("10000:af:00.0", "20000", "15B3:1017", "mlx5_core", group(4), "ens2np0 "+up, "numa_node", 1)
	b.nic("0000:00:1f.0", "60100", "8086:A1C1", "", group(5), "")
}

// server is a machine as it comes: BIOS and kernel at their defaults, Secure Boot on.
func server() recorded {
	b := intel()
	b.intelNICs(-1)
	return b.done(units("irqbalance active", "tuned active", "NetworkManager active", "firewalld active", "auditd active"), "", "",
		"=== modules\nvfio-pci /lib/modules/5.14.0/kernel/drivers/vfio/pci/vfio-pci.ko.xz\nigb_uio \n=== tables\nDMAR\n=== memory\nHandle 0x1, DMI type 17\nMemory Device\n\tSize: 16 GB\n\tLocator: P1-DIMMA1\n\tSpeed: 2666 MT/s\n\tConfigured Memory Speed: 2400 MT/s\n\n"+
			"Handle 0x2, DMI type 17\nMemory Device\n\tSize: No Module Installed\n\tLocator: P1-DIMMA2\n\tSpeed: Unknown\n\n")
}

// tunedServer is the same one as a testbed has it.
func tunedServer() recorded {
	b := intel()
	b.intelNICs(20)
	b.files[secureBoot] = []byte{6, 0, 0, 0, 0}
	b.put("/sys/kernel/security/lockdown", "[none] integrity confidentiality", "/proc/cmdline", "root=/dev/sda3 ro intel_iommu=on iommu=pt isolcpus=managed_irq,domain,1-7,9-15,17-23,25-31 nohz_full=1-7,9-15,17-23,25-31 audit=0",
		cpuDir+"/isolated", "1-7,9-15,17-23,25-31", cpuDir+"/nohz_full", "1-7,9-15,17-23,25-31", "/proc/irq/default_smp_affinity", "01010101", cpuDir+"/intel_pstate/no_turbo", 1, "/proc/sys/kernel/nmi_watchdog", 0,
		"/proc/sys/kernel/numa_balancing", 0, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never", "/sys/devices/system/machinecheck/machinecheck0/ignore_ce", 1, "/etc/tuned/active_profile", "cpu-partitioning",
		"/proc/mounts", "hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=1024M 0 0")
	b.power(32, "intel_pstate", "performance", "POLL 0", "C1 2", "C1E 10", "C6 133")
	for id := range 32 {
		b.put(fmt.Sprintf("%s/cpu%d/power/energy_perf_bias", cpuDir, id), 0)
		for _, s := range []int{2, 3} {
			b.put(fmt.Sprintf("%s/cpu%d/cpuidle/state%d/disable", cpuDir, id, s), 1)
		}
	}
	for node := range 2 {
		dir := fmt.Sprintf("%s/node%d/hugepages/hugepages-1048576kB/", nodeDir, node)
		b.put(dir+"nr_hugepages", 8, dir+"free_hugepages", 6)
	}
	return b.done(units("irqbalance inactive", "tuned active"), "dpdk 23.11-1.el9 installed\ntuned 2.21.0-1.el9 installed\n", "ovs-vswitchd (Open vSwitch) 3.3.1\nDPDK 23.11.1\n",
		"=== modules\nvfio-pci /lib/modules/x/vfio-pci.ko\n=== tables\nDMAR\n=== memory\n")
}

// amd has four nodes on one socket (NPS4), no hyperthreads, an IOMMU that the kernel was told not to use, a bond for management, and an Open vSwitch with another DPDK than it was made for.
func amd() recorded {
	b := build(16, map[int]string{0: "0-3", 1: "4-7", 2: "8-11", 3: "12-15"}, false, 16)
	b.cpu("AMD EPYC 7313P 16-Core Processor", "pdpe1gb avx2")
	b.put("/etc/os-release", "PRETTY_NAME=\"Ubuntu 22.04.4 LTS\"\nID=ubuntu\nID_LIKE=debian", "/proc/sys/kernel/osrelease", "5.15.0-101-generic", "/proc/cmdline", "root=/dev/sda3 ro amd_iommu=off", cpuDir+"/cpufreq/boost", 1,
		cpuDir+"/smt/control", "notimplemented", nodeDir+"/node0/hugepages/hugepages-2048kB/nr_hugepages", 1024, nodeDir+"/node0/hugepages/hugepages-2048kB/free_hugepages", 1024,
		"/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm", "/sys/kernel/mm/ksm/run", 1,
		"/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/swap.img file 8388604 0 -2", cpuDir+"/cpu0/cpufreq/energy_performance_preference", "balance_performance")
	b.power(16, "acpi-cpufreq", "schedutil", "POLL 0", "C1 1", "C2 400")
	b.nic("0000:c1:00.0", "20000", "14E4:16D7", "bnxt_en", -1, `eno1 "master":"bond0",`+up, "numa_node", 0, "current_link_speed", "16.0 GT/s PCIe", "max_link_speed", "16.0 GT/s PCIe", "current_link_width", 255, "max_link_width", 16)
	b.nic("0000:c1:00.1", "20000", "14E4:16D7", "bnxt_en", -1, "eno2 "+down, "numa_node", 2)
	b.link("bond0", upWithIP)
	b.routes = []string{`{"dst":"default","gateway":"192.0.2.1","dev":"bond0"}`}
	return b.done(units("ksmtuned active", "unattended-upgrades active"), "dpdk 21.11.6-0ubuntu0.22.04.1 installed\n", "ovs-vswitchd (Open vSwitch) 2.16.9\nDPDK 21.11.6\n", "=== modules\n=== tables\nIVRS\n=== memory\n")
}

// container sees neither the PCI bus nor NUMA nor systemd, and is not root; it is on ARM.
func container() recorded {
	return recorded{files: fileset{cpuDir + "/present": []byte("0-3\n"), cpuDir + "/online": []byte("0-3\n"), "/proc/meminfo": []byte("MemTotal: 8388608 kB\n"), "/proc/self/status": []byte("Uid:\t1000\t1000\t1000\t1000\n"),
		"/proc/cpuinfo": []byte("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm aes\n"), "/proc/sys/kernel/osrelease": []byte("4.14.0\n"), "/proc/1/comm": []byte("sh\n")},
		told: "=== address\n=== route\n=== connection\n10.0.0.9 55000 10.0.0.1 22\n=== firmware\n=== units\n=== ovs\n=== packages\n=== programs\ndocker: Docker version 28.2.2, build e6534b4\n=== end\n", asked: "=== modules\n=== tables\n=== memory\n=== end\n"}
}

// odd has nodes 0, 8 and 9, of which one has no memory and one no CPUs, an isolated thread whose sibling is not, no SSE4.2, a NIC of which nobody knows the node, an IOMMU group that is shared,
// vfio's unsafe mode, and a NIC that we are connected by.
func odd() recorded {
	b := build(8, map[int]string{0: "0-1,4-5", 8: "2-3,6-7", 9: ""}, true, 2)
	b.put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: QEMU Virtual CPU version 2.5+\nflags\t\t: fpu pse hypervisor", "/proc/sys/kernel/osrelease", "5.2.0", cpuDir+"/isolated", "1,3,7", nodeDir+"/node8/meminfo", "Node 8 MemTotal: 0 kB",
		"/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y", cpuDir+"/smt/control", "on")
	b.nic("0000:01:00.0", "20000", "8086:10D3", "e1000e", 3, "eth0 "+up, "numa_node", -1)
	b.nic("0000:01:00.1", "10400", "1000:0097", "mpt3sas", 3, "")
	b.nic("0000:02:00.0", "20000", "1AF4:1041", "virtio-pci", -1, "", "virtio0/net/eth1/address", "52:54:00:00:00:09")
	b.link("eth1", up+`,"addr_info":[{"local":"10.0.0.1","prefixlen":8}]`)
	r := b.done("", "", "", "=== modules\n=== tables\n=== memory\n")
	r.address = "10.0.0.1"
	return r
}

func pretty(t *testing.T, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}
