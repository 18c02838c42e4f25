package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

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
	return append(slices.Concat(hugepageFiles(), nicFiles(), powerFiles()),
		"/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/random/boot_id", "/proc/cmdline", "/proc/meminfo",
		"/proc/self/status", "/proc/1/comm", "/etc/os-release",
		cpuDir+"/present", cpuDir+"/online", cpuDir+"/isolated",
		cpuDir+"/cpu[0-9]*/topology/core_id", cpuDir+"/cpu[0-9]*/topology/physical_package_id", cpuDir+"/cpu[0-9]*/topology/thread_siblings_list",
		nodeDir+"/node[0-9]*/cpulist", nodeDir+"/node[0-9]*/meminfo")
}

// Gather reads what a host is: its files and what a script tells, side by side, so that it costs the time of one round trip. It changes nothing. A machine without NUMA
// counts as one node, 0. What may not be read, as in a container, is not known.
func Gather(ctx context.Context, conn providers.Conn) (*providers.Facts, error) {
	var files fileset
	var told providers.Result
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		files, err = conn.ReadFiles(ctx, factFiles()...)
		if errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return err
	})
	g.Go(func() (err error) {
		told, err = conn.Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", factsScript, "plumb-facts"}, factUnits()...)})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	address := ""
	if m, ok := conn.(providers.Managed); ok {
		address = m.ManagementAddress()
	}
	return parseFacts(files, string(told.Stdout), address)
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

// parseFacts puts together what files and the script told. address is where our connection comes in; "" for none.
func parseFacts(files fileset, told, address string) (*providers.Facts, error) {
	f := &providers.Facts{
		Hostname:     files.text("/proc/sys/kernel/hostname"),
		Kernel:       files.text("/proc/sys/kernel/osrelease"),
		Distribution: osRelease(files.text("/etc/os-release"), "PRETTY_NAME"),
		OS:           strings.Fields(osRelease(files.text("/etc/os-release"), "ID") + " " + osRelease(files.text("/etc/os-release"), "ID_LIKE")),
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
	all, err := parseScript(told, f)
	if err != nil {
		return nil, err
	}
	spread(all, func(i *providers.Interface) *bool { return &i.DefaultRoute })
	if address == "" {
		address = arrival(told)
	}
	markManagement(all, address)
	if err := parseNICs(files, all, f); err != nil {
		return nil, err
	}
	if err := parsePower(files, f); err != nil {
		return nil, err
	}
	f.Value = factsValue(f)
	return f, nil
}

// osRelease is a value of os-release(5).
func osRelease(text, key string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
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
