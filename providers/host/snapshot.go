package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"plumb/providers"
)

// Snapshot is a host's fingerprint: what a testbed may change and a destroy must put back, as sorted lines "what: value". It is the same as long as nothing changed, and after a reboot:
// counters, times, process numbers, free memory, link states and leases are not in it, nor what the kernel makes itself.
//
// What it cannot know: files of the user's own choice (host_file, host_command), kernel parameters beside those that testbeds set, parameters of modules beside vfio's, ids that were
// written to a driver's new_id (the kernel does not show them), what is inside other network namespaces, and the boot loader's menu where it is made from files that are in it. Interrupts of
// NICs are left out while irqbalance runs, since that moves them. Logs of daemons are kept, and are not in it. What may not be read is not in it either.
func Snapshot(ctx context.Context, h providers.Host) ([]string, error) {
	if h == nil {
		return nil, errors.New("a snapshot is a host's, and none is given")
	}
	conn := h.Conn()
	var files fileset
	var told providers.Result
	var rows []string
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if files, err = conn.ReadFiles(ctx, snapshotFiles()...); errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return err
	})
	g.Go(func() (err error) {
		told, err = conn.Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", snapshotScript, "plumb-snapshot"}, factUnits()...)})
		return err
	})
	g.Go(func() (err error) {
		rows, err = database(ctx, h)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	lines, err := fingerprint(files)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	more, err := parseSnapshot(string(told.Stdout))
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	lines = slices.Concat(lines, more, rows)
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// fingerprint is the part that files tell.
func fingerprint(files fileset) ([]string, error) {
	pools, err := parsePools(files)
	if err != nil {
		return nil, err
	}
	var lines []string
	add := func(what, value string) { lines = append(lines, what+": "+value) }
	for _, p := range pools {
		add(fmt.Sprintf("hugepages node %d %s", p.node, formatSize(p.size)), fmt.Sprint(p.total))
	}
	for _, m := range parseMounts(string(files["/proc/mounts"])) {
		add("hugetlbfs "+m.path, formatSize(m.size))
	}
	add("kernel command line", files.text("/proc/cmdline"))
	for line := range strings.Lines(string(files["/proc/modules"])) {
		name, _, _ := strings.Cut(line, " ")
		add("module "+name, "loaded")
	}
	choice, _, _ := strings.Cut(files.text("/var/lib/dpkg/alternatives/ovs-vswitchd"), "\n")
	if choice != "" {
		add("alternative ovs-vswitchd", choice)
	}
	for what, n := range processes(files) {
		add("process "+what, fmt.Sprint(n))
	}
	return slices.Concat(lines, mounts(string(files["/proc/mounts"])), settings(files), powerLines(files), devices(files)), nil
}

// processes counts those of DPDK and Open vSwitch. One that has ended and was not waited for yet is none.
func processes(files fileset) map[string]int {
	out := map[string]int{}
	for comm := range alive(files) {
		if dataPlane(comm) {
			out[comm]++
		}
	}
	return out
}

// alive yields the name of every process that has not ended.
func alive(files fileset) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name, data := range files {
			parts := strings.Split(name, "/") // "", proc, PID, stat
			if len(parts) != 4 || parts[1] != "proc" || parts[3] != "stat" {
				continue
			}
			open, end := strings.IndexByte(string(data), '('), strings.LastIndexByte(string(data), ')')
			if open < 0 || end < open {
				continue
			}
			state := strings.TrimSpace(string(data[end+1:]))
			if !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X") && !yield(string(data[open+1:end])) {
				return
			}
		}
	}
}

// mounts lists what is mounted, but for what every machine has for itself, what login sessions and containers bring, and the sizes that a tmpfs has by the memory there was when it was made.
func mounts(text string) []string {
	own := []string{"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "overlay", "proc", "pstore", "ramfs", "rpc_pipefs",
		"securityfs", "selinuxfs", "squashfs", "sysfs", "tracefs"}
	var lines []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 || f[2] != "hugetlbfs" && (slices.Contains(own, f[2]) || strings.HasPrefix(f[2], "fuse.") || strings.HasPrefix(f[1], "/run/user/") || strings.HasPrefix(f[1], "/run/credentials/") ||
			f[1] == "/run/netns") { // which ip-netns(8) mounts over itself for the first namespace, and leaves

			continue
		}
		options := slices.DeleteFunc(strings.Split(f[3], ","), func(o string) bool {
			key, _, _ := strings.Cut(o, "=")
			return f[2] == "tmpfs" && (key == "size" || key == "nr_inodes")
		})
		lines = append(lines, fmt.Sprintf("mount %s: %s %s %s", unescapeMount(f[1]), f[0], f[2], strings.Join(options, ",")))
	}
	return lines
}

// parseSnapshot is the part that the script tells.
func parseSnapshot(told string) ([]string, error) {
	if !strings.Contains(told, "=== end\n") {
		return nil, errors.New("the answer of the host is cut off")
	}
	parts := sections(told)
	lines := found(parts["found"])
	for name, parse := range map[string]func(string) ([]string, error){"address": snapLinks, "route": snapRoutes, "neighbour": snapNeighbours} {
		more, err := parse(parts[name])
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	lines = append(lines, snapDriver(parts["driver"])...)
	for _, block := range strings.Split(parts["units"], "\n\n") {
		get := func(key string) string { return property([]byte(block), key) }
		if get("Id") == "" || get("LoadState") == "not-found" {
			continue
		}
		state := get("ActiveState")
		if state == "activating" || state == "reloading" || state == "deactivating" {
			state = "active"
		}
		lines = append(lines, fmt.Sprintf("service %s: %s, %s", get("Id"), state, cmp.Or(get("UnitFileState"), get("LoadState"))))
	}
	for line := range strings.Lines(parts["packages"]) {
		if w := strings.Fields(line); len(w) == 3 && w[2] == "installed" {
			lines = append(lines, fmt.Sprintf("package %s: %s", w[0], w[1]))
		}
	}
	return lines, nil
}

// found are the files that a testbed makes.
func found(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 {
			continue
		}
		switch {
		case f[2] != "":
			lines = append(lines, fmt.Sprintf("link to %s: %s", f[1], f[2]))
		case f[0] != "d": // a folder that stays behind empty has no effect; DPDK and its users leave some
			lines = append(lines, "file "+processless(f[1])+": exists")
		}
	}
	return lines
}

// processless takes the process number out of the name of a control socket: ovs-vswitchd.123.ctl.
func processless(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if i > 0 && p != "" && strings.Trim(p, "0123456789") == "" {
			parts[i] = "PID"
		}
	}
	return strings.Join(parts, ".")
}
