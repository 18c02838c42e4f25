package host

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"plumb/lang/cpuset"
)

const (
	ovsDB = "/etc/openvswitch/conf.db"
	varDB = "/var/lib/openvswitch/conf.db" // where Debian points ovsDB to
)

// snapshotScript prints, in sections that begin with "=== NAME", what no file tells: files that a testbed makes (network namespaces, what Plumb, DPDK and Open vSwitch keep while they run, the
// database, files of hugetlbfs, where the alternative and systemd's links point), links, routes and neighbours, what ethtool knows of NICs, units (its arguments), and packages.
const snapshotScript = `export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
packages() {
	if command -v dpkg-query >/dev/null; then
		dpkg-query -W -f '${Package}:${Architecture} ${Version} ${db:Status-Status}\n'
	elif command -v rpm >/dev/null; then
		rpm -qa --qf '%{NAME}:%{ARCH} %{VERSION}-%{RELEASE} installed\n'
	fi
}
packages 2>/dev/null | { exec 3<&0
echo "=== units"; [ ! -d /run/systemd/system ] || systemctl show -p Id -p LoadState -p ActiveState -p UnitFileState -- "$@" 2>/dev/null
echo "=== found"
set -- /run/netns /run/plumb /run/dpdk /run/openvswitch ` + ovsDB + ` ` + varDB + ` /etc/alternatives/ovs-vswitchd /etc/systemd/system
while read -r _ dir type _; do
	[ "$type" != hugetlbfs ] || set -- "$@" "$(printf %b "$dir")"
done </proc/mounts
find "$@" -printf '%y\t%p\t%l\n' 2>/dev/null
echo "=== address"; ip -d -j address show 2>/dev/null
echo "=== route"; ip -j route show table all 2>/dev/null; ip -j -6 route show table all 2>/dev/null
echo "=== neighbour"; ip -j neighbour show nud permanent 2>/dev/null
echo "=== driver"
for n in /sys/class/net/*; do
	[ -e "$n/device" ] && [ ! -e "$n/device/physfn" ] || continue
	i=${n##*/}
	echo "interface: $i ring"; ethtool -g "$i" 2>/dev/null
	echo "interface: $i channels"; ethtool -l "$i" 2>/dev/null
	echo "interface: $i pause"; ethtool -a "$i" 2>/dev/null
	echo "interface: $i coalescing"; ethtool -c "$i" 2>/dev/null
	echo "interface: $i offloads"; ethtool -k "$i" 2>/dev/null
done
echo "=== packages"; cat <&3
echo "=== end"
}
`

// sysctls are the kernel parameters that testbeds set, below /proc/sys (Documentation/admin-guide/sysctl of Linux).
func sysctls() []string {
	return []string{
		"kernel/numa_balancing", "kernel/sched_rt_runtime_us", "kernel/nmi_watchdog", "kernel/watchdog", "kernel/watchdog_cpumask", "kernel/soft_watchdog", "kernel/timer_migration",
		"kernel/randomize_va_space", "kernel/hung_task_timeout_secs", "kernel/perf_event_paranoid", "kernel/sched_autogroup_enabled",
		"vm/nr_overcommit_hugepages", "vm/hugetlb_shm_group", "vm/swappiness", "vm/stat_interval", "vm/max_map_count", "vm/zone_reclaim_mode", "vm/overcommit_memory",
		"net/core/rmem_max", "net/core/wmem_max", "net/core/rmem_default", "net/core/wmem_default", "net/core/netdev_max_backlog", "net/core/netdev_budget", "net/core/busy_poll", "net/core/busy_read",
		"net/core/somaxconn", "net/core/default_qdisc", "net/core/rps_sock_flow_entries",
		"net/ipv4/ip_forward", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem", "net/ipv4/conf/*/rp_filter", "net/ipv4/conf/*/forwarding", "net/ipv4/conf/*/arp_ignore", "net/ipv4/conf/*/arp_announce",
		"net/ipv6/conf/*/forwarding", "net/ipv6/conf/*/disable_ipv6", "net/ipv6/conf/*/accept_ra",
		"net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables", "net/bridge/bridge-nf-call-arptables",
	}
}

// configuration are the files by which a host is set up to boot and run.
func configuration() []string {
	return []string{
		"/etc/default/grub", "/etc/default/grub.d/*", "/etc/kernel/cmdline", "/boot/loader/entries/*.conf", "/efi/loader/entries/*.conf", "/boot/efi/loader/entries/*.conf",
		"/etc/modules", "/etc/modules-load.d/*", "/etc/modprobe.d/*", "/etc/sysctl.conf", "/etc/sysctl.d/*", "/etc/udev/rules.d/*", "/etc/driverctl.d/*", "/etc/fstab",
		"/etc/tuned/active_profile", "/etc/tuned/profile_mode", "/etc/tuned/cpu-partitioning-variables.conf", "/etc/default/openvswitch-switch", "/etc/sysconfig/openvswitch", "/etc/default/irqbalance",
	}
}

func snapshotFiles() []string {
	list := slices.Concat(hugepageFiles(), configuration())
	for _, s := range sysctls() {
		list = append(list, "/proc/sys/"+s)
	}
	for _, s := range powerNames() {
		list = append(list, cpuDir+"/cpu[0-9]*/"+s)
	}
	return append(list, "/proc/mounts", "/proc/cmdline", "/proc/modules", "/proc/[0-9]*/stat", "/proc/irq/default_smp_affinity", "/proc/irq/*/smp_affinity_list",
		"/sys/class/net/*/mtu", "/sys/class/net/*/flags", "/sys/class/net/*/address", "/sys/class/net/*/master/uevent",
		pciDir+"/*/uevent", pciDir+"/*/driver_override", pciDir+"/*/sriov_numvfs", pciDir+"/*/sriov_drivers_autoprobe", pciDir+"/*/msi_irqs/*", "/var/lib/dpkg/alternatives/ovs-vswitchd",
		"/sys/module/vfio*/parameters/*", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/transparent_hugepage/defrag", "/sys/kernel/mm/ksm/run",
		cpuDir+"/online", cpuDir+"/smt/control", cpuDir+"/intel_pstate/no_turbo", cpuDir+"/cpufreq/boost")
}

// settings are values of the kernel and files of /etc. Of a file there is a part of its SHA-256.
func settings(files fileset) []string {
	var lines []string
	for name, data := range files {
		switch {
		case strings.HasPrefix(name, "/proc/sys/"):
			lines = append(lines, fmt.Sprintf("sysctl %s: %s", strings.TrimPrefix(name, "/proc/sys/"), strings.Join(strings.Fields(string(data)), " ")))
		case strings.HasPrefix(name, "/sys/module/"):
			lines = append(lines, fmt.Sprintf("module parameter %s: %s", strings.ReplaceAll(strings.TrimPrefix(name, "/sys/module/"), "/parameters/", "."), files.text(name)))
		case strings.HasPrefix(name, "/sys/kernel/mm/") && !strings.HasPrefix(name, hugeDir):
			lines = append(lines, fmt.Sprintf("%s: %s", strings.TrimPrefix(name, "/sys/kernel/mm/"), files.text(name)))
		case name == "/proc/irq/default_smp_affinity":
			lines = append(lines, "interrupts by default: mask "+files.text(name))
		default:
			if slices.ContainsFunc(configuration(), func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }) {
				lines = append(lines, fmt.Sprintf("file %s: sha256 %.8x", name, sha256.Sum256(data)))
			}
		}
	}
	return lines
}

// powerNames are files in the folder of a CPU.
func powerNames() []string {
	return []string{"cpufreq/scaling_governor", "cpufreq/scaling_min_freq", "cpufreq/scaling_max_freq", "cpufreq/energy_performance_preference", "power/energy_perf_bias", "cpuidle/state*/disable"}
}

// powerLines are the power settings of CPUs, those that are the same in one line.
func powerLines(files fileset) []string {
	by := map[string][]int{}
	var lines []string
	for name := range files {
		rest, ok := strings.CutPrefix(name, cpuDir+"/cpu")
		number, what, _ := strings.Cut(rest, "/")
		id, err := strconv.Atoi(number)
		switch {
		case !ok && strings.HasPrefix(name, cpuDir+"/"), ok && err != nil: // of all CPUs; cpufreq/boost
			lines = append(lines, fmt.Sprintf("cpu %s: %s", strings.TrimPrefix(name, cpuDir+"/"), files.text(name)))
		case ok && slices.ContainsFunc(powerNames(), func(pattern string) bool { ok, _ := path.Match(pattern, what); return ok }):
			key := what + " " + files.text(name)
			by[key] = append(by[key], id)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		set, err := cpuset.Of(by[key]...)
		if err != nil { // more CPUs than Linux is built for
			continue
		}
		lines = append(lines, fmt.Sprintf("cpu %s: on %s", key, set))
	}
	return lines
}

// nicInterrupts are where the interrupts of a NIC go, numbered in their order: the kernel gives them other numbers each time a driver asks for them.
func nicInterrupts(files fileset, pci string) []string {
	for comm := range alive(files) {
		if comm == "irqbalance" {
			return nil
		}
	}
	var numbers []int
	for name := range files {
		if dir, base := path.Split(name); dir == pciDir+"/"+pci+"/msi_irqs/" {
			if n, err := strconv.Atoi(base); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	var lines []string
	for i, n := range numbers {
		if to := files.text(fmt.Sprintf("/proc/irq/%d/smp_affinity_list", n)); to != "" {
			lines = append(lines, fmt.Sprintf("interrupt %d of nic %s: to CPUs %s", i, pci, to))
		}
	}
	return lines
}
