package host

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plumb/lang/cpuset"
	"plumb/providers"
)

// Files that facts come from: Documentation/ABI/stable/sysfs-devices-node, sysfs-devices-system-cpu and testing/sysfs-kernel-mm-hugepages of
// Linux, and proc(5).
const (
	cpuDir  = "/sys/devices/system/cpu"
	nodeDir = "/sys/devices/system/node"
	hugeDir = "/sys/kernel/mm/hugepages"
)

func factFiles() []string {
	return append(hugepageFiles(),
		"/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/random/boot_id", "/proc/cmdline", "/proc/meminfo",
		"/proc/self/status", "/proc/1/comm", "/etc/os-release",
		cpuDir+"/present", cpuDir+"/online", cpuDir+"/isolated",
		cpuDir+"/cpu[0-9]*/topology/core_id", cpuDir+"/cpu[0-9]*/topology/physical_package_id", cpuDir+"/cpu[0-9]*/topology/thread_siblings_list",
		nodeDir+"/node[0-9]*/cpulist", nodeDir+"/node[0-9]*/meminfo")
}

// Gather reads what a host is, in one round trip. It changes nothing. A machine without NUMA counts as one node, 0.
func Gather(ctx context.Context, conn providers.Conn) (*providers.Facts, error) {
	files, err := conn.ReadFiles(ctx, factFiles()...)
	if err != nil {
		return nil, fmt.Errorf("gather facts: %w", err)
	}
	f, err := parseFacts(files)
	if err != nil {
		return nil, fmt.Errorf("gather facts: %w", err)
	}
	return f, nil
}

type fileset map[string][]byte

func (f fileset) text(path string) string { return strings.TrimSpace(string(f[path])) }

func (f fileset) cpus(path string) (cpuset.Set, error) {
	s, err := cpuset.Parse(f.text(path))
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// number is the whole number in a file; def when there is no such file.
func (f fileset) number(path string, def int) (int, error) {
	s, ok := f[path]
	if !ok {
		return def, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(s)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

func parseFacts(files fileset) (*providers.Facts, error) {
	f := &providers.Facts{
		Hostname:     files.text("/proc/sys/kernel/hostname"),
		Kernel:       files.text("/proc/sys/kernel/osrelease"),
		Distribution: distribution(files.text("/etc/os-release")),
		Cmdline:      files.text("/proc/cmdline"),
		BootID:       files.text("/proc/sys/kernel/random/boot_id"),
		Root:         regexp.MustCompile(`(?m)^Uid:\t\d+\t0\t`).Match(files["/proc/self/status"]),
		Systemd:      files.text("/proc/1/comm") == "systemd",
	}
	nodeOf, err := parseNodes(files, f)
	if err != nil {
		return nil, err
	}
	if err := parseCPUs(files, f, nodeOf); err != nil {
		return nil, err
	}
	f.Value = factsValue(f)
	return f, nil
}

// distribution is PRETTY_NAME of os-release(5).
func distribution(osRelease string) string {
	for line := range strings.Lines(osRelease) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

func parseCPUs(files fileset, f *providers.Facts, nodeOf map[int]int) error {
	present, err := files.cpus(cpuDir + "/present")
	if err != nil {
		return err
	}
	online, err := files.cpus(cpuDir + "/online")
	if err != nil {
		return err
	}
	isolated, err := files.cpus(cpuDir + "/isolated")
	if err != nil {
		return err
	}
	for id := range present.All() {
		topology := fmt.Sprintf("%s/cpu%d/topology/", cpuDir, id)
		c := providers.CPU{ID: id, Node: nodeOf[id], Online: online.Contains(id), Isolated: isolated.Contains(id)}
		if c.Core, err = files.number(topology+"core_id", id); err != nil {
			return err
		}
		if c.Socket, err = files.number(topology+"physical_package_id", 0); err != nil {
			return err
		}
		siblings, err := files.cpus(topology + "thread_siblings_list")
		if err != nil {
			return err
		}
		for s := range siblings.All() {
			if s != id {
				c.Siblings = append(c.Siblings, s)
			}
		}
		f.CPUs = append(f.CPUs, c)
	}
	return nil
}

// parseNodes fills f.Nodes and says on which node each CPU is.
func parseNodes(files fileset, f *providers.Facts) (map[int]int, error) {
	pools, err := parsePools(files)
	if err != nil {
		return nil, err
	}
	nodeOf := map[int]int{}
	ids := map[int]bool{}
	for name := range files {
		var id int
		if n, _ := fmt.Sscanf(name, nodeDir+"/node%d/", &id); n != 1 || path.Base(name) != "cpulist" {
			continue
		}
		ids[id] = true
		cpus, err := files.cpus(name)
		if err != nil {
			return nil, err
		}
		for c := range cpus.All() {
			nodeOf[c] = id
		}
	}
	meminfo := func(id int) string { return fmt.Sprintf("%s/node%d/meminfo", nodeDir, id) }
	if len(ids) == 0 {
		ids[0] = true
		meminfo = func(int) string { return "/proc/meminfo" }
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		n := providers.Node{ID: id}
		if m := regexp.MustCompile(`MemTotal:\s+(\d+) kB`).FindSubmatch(files[meminfo(id)]); m != nil {
			kb, err := strconv.ParseUint(string(m[1]), 10, 53)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", meminfo(id), err)
			}
			n.MemoryBytes = kb << 10
		}
		for _, p := range pools {
			if p.node == id {
				n.Hugepages = append(n.Hugepages, providers.Hugepages{Size: p.size, Total: p.total, Free: p.free})
			}
		}
		f.Nodes = append(f.Nodes, n)
	}
	return nodeOf, nil
}
