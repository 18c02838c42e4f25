package fake

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"plumb/providers/internal/ovsdb/ovsdbtest"
)

const (
	bootID    = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	plainOVS  = "/usr/lib/openvswitch-switch/ovs-vswitchd"
	dpdkOVS   = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
	linkedOVS = "/usr/sbin/ovs-vswitchd"
)

// seed makes the files of a Debian 12 machine with two NUMA nodes of four cores, as far as Plumb looks at them.
func seed(dir string) error {
	root := filepath.Join(dir, "root")
	for _, d := range []string{"run", "var/lib/openvswitch", "var/log", "tmp", "etc/openvswitch", "etc/default", "etc/sysctl.d", "etc/udev/rules.d", "etc/alternatives", "dev/hugepages", "proc/sys/vm", "sys/bus/pci/devices",
		"sys/bus/pci/drivers", "sys/kernel/iommu_groups", "usr/sbin", "usr/bin"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	for link, to := range map[string]string{"var/run": "../run", "etc/openvswitch/conf.db": "../../var/lib/openvswitch/conf.db", "etc/openvswitch/.conf.db.~lock~": "../../var/lib/openvswitch/.conf.db.~lock~", "proc/self": "1"} {
		err := os.Symlink(to, filepath.Join(root, link))
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	for name, text := range seedFiles() {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func seedFiles() map[string]string {
	last := nodes*cpusPerNode - 1
	f := map[string]string{
		"proc/cmdline":                   "BOOT_IMAGE=/boot/vmlinuz-6.1.0-13-amd64 root=/dev/vda1 ro quiet\n",
		"proc/mounts":                    "/dev/vda1 / ext4 rw,relatime 0 0\nproc /proc proc rw,relatime 0 0\nsysfs /sys sysfs rw,relatime 0 0\ntmpfs /run tmpfs rw,nosuid 0 0\n",
		"proc/filesystems":               "nodev\tsysfs\nnodev\tproc\nnodev\ttmpfs\nnodev\thugetlbfs\n\text4\n",
		"proc/modules":                   "",
		"proc/version":                   "Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)\n",
		"proc/uptime":                    "1000.00 7000.00\n",
		"proc/loadavg":                   "0.00 0.00 0.00 1/100 1000\n",
		"proc/sys/kernel/hostname":       "fake\n",
		"proc/sys/kernel/osrelease":      "6.1.0-13-amd64\n",
		"proc/sys/kernel/random/boot_id": bootID + "\n",
		"proc/sys/vm/nr_hugepages":       "0\n",
		"proc/1/comm":                    "init\n",
		"proc/1/cmdline":                 "/sbin/init\x00",
		"proc/1/environ":                 "HOME=/\x00",
		"proc/1/stat":                    procStat(1, "init"),
		"proc/stat":                      seedStat(),
		"proc/net/route":                 "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\neth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
		"proc/swaps":                     "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
		"sys/kernel/mm/transparent_hugepage/enabled":                        "always [madvise] never\n",
		"sys/kernel/mm/ksm/run":                                             "0\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc\n",
		"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
		"etc/hostname":                            "fake\n",
		"etc/os-release":                          "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n",
		"sys/devices/system/cpu/online":           fmt.Sprintf("0-%d\n", last),
		"sys/devices/system/cpu/present":          fmt.Sprintf("0-%d\n", last),
		"sys/devices/system/cpu/possible":         fmt.Sprintf("0-%d\n", last),
		"sys/devices/system/cpu/offline":          "\n",
		"sys/devices/system/cpu/isolated":         "\n",
		"sys/devices/system/cpu/nohz_full":        "\n",
		"sys/devices/system/cpu/smt/active":       "0\n",
		"sys/devices/system/node/online":          fmt.Sprintf("0-%d\n", nodes-1),
		"sys/devices/system/node/possible":        fmt.Sprintf("0-%d\n", nodes-1),
		"usr/share/openvswitch/vswitch.ovsschema": string(ovsdbtest.SchemaJSON()),
		"usr/sbin/ovs-vswitchd":                   "",
		"usr/sbin/ovsdb-server":                   "",
		"usr/bin/dpdk-testpmd":                    "",
		strings.TrimPrefix(plainOVS, "/"):         "",
		strings.TrimPrefix(dpdkOVS, "/"):          "",
	}
	var info strings.Builder
	for cpu := range nodes * cpusPerNode {
		node := cpu / cpusPerNode
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		f[dir+"topology/core_id"] = fmt.Sprintln(cpu % cpusPerNode)
		f[dir+"topology/physical_package_id"] = fmt.Sprintln(node)
		f[dir+"topology/thread_siblings_list"] = fmt.Sprintln(cpu)
		f[dir+"topology/core_cpus_list"] = fmt.Sprintln(cpu)
		if cpu > 0 { // the first one cannot be switched off
			f[dir+"online"] = "1\n"
		}
		fmt.Fprintf(&info, "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: Fake CPU\nflags\t\t: fpu hypervisor sse4_2 avx2 pdpe1gb\n\n", cpu)
	}
	f["proc/cpuinfo"] = info.String()
	for node := range nodes {
		dir := fmt.Sprintf("sys/devices/system/node/node%d/", node)
		f[dir+"cpulist"] = fmt.Sprintf("%d-%d\n", node*cpusPerNode, (node+1)*cpusPerNode-1)
		f[dir+"distance"] = "10 20\n"
		f[dir+"meminfo"] = fmt.Sprintf("Node %d MemTotal:       %d kB\nNode %d MemFree:        %d kB\n", node, nodeMemory, node, nodeMemory-1<<20)
	}
	for _, size := range pageSizes() {
		dirs := []string{globalDir(size)}
		for node := range nodes {
			dirs = append(dirs, nodeDir(node, size))
		}
		for _, d := range dirs {
			for _, n := range []string{"nr_hugepages", "free_hugepages", "surplus_hugepages"} {
				f[d[1:]+"/"+n] = "0\n"
			}
		}
		f[globalDir(size)[1:]+"/resv_hugepages"] = "0\n"
		f[globalDir(size)[1:]+"/nr_overcommit_hugepages"] = "0\n"
	}
	total := nodes * nodeMemory
	f["proc/meminfo"] = fmt.Sprintf("MemTotal:       %d kB\nMemFree:        %d kB\nMemAvailable:   %d kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\nHugetlb:               0 kB\n",
		total, total-1<<20, total-1<<20)
	for _, net := range []string{"lo", "eth0"} {
		dir := "sys/class/net/" + net + "/"
		f[dir+"address"] = map[string]string{"lo": "00:00:00:00:00:00\n", "eth0": "52:54:00:00:00:01\n"}[net]
		f[dir+"mtu"] = map[string]string{"lo": "65536\n", "eth0": "1500\n"}[net]
		f[dir+"operstate"] = map[string]string{"lo": "unknown\n", "eth0": "up\n"}[net]
		f[dir+"flags"] = map[string]string{"lo": "0x9\n", "eth0": "0x1003\n"}[net]
		f[dir+"carrier"] = "1\n"
	}
	maps.Copy(f, settingsSeed())
	maps.Copy(f, bootSeed())
	return f
}

func seedStat() string {
	var b strings.Builder
	b.WriteString("cpu  0 0 0 80000 0 0 0 0 0 0\n")
	for cpu := range nodes * cpusPerNode {
		fmt.Fprintf(&b, "cpu%d 0 0 0 10000 0 0 0 0 0 0\n", cpu)
	}
	b.WriteString("intr 0\nctxt 0\nbtime 1700000000\nprocesses 1000\n")
	return b.String()
}
