package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/ovsdb"
)

const (
	ovsSocket = "/var/run/openvswitch/db.sock"
	ovsDB     = "/etc/openvswitch/conf.db"
	varDB     = "/var/lib/openvswitch/conf.db" // where Debian points ovsDB to
)

// Snapshot is a host's fingerprint: everything that a testbed may change and a destroy must put back, as sorted lines "what: value". It is the same
// as long as nothing changed: counters, times, process numbers and free memory are not in it. Logs of daemons are not either: they are kept.
func Snapshot(ctx context.Context, h providers.Host) ([]string, error) {
	if h == nil {
		return nil, errors.New("a snapshot is a host's, and none is given")
	}
	conn := h.Conn()
	files, err := conn.ReadFiles(ctx, append(hugepageFiles(), "/proc/mounts", "/proc/cmdline", "/proc/modules", "/proc/[0-9]*/stat",
		"/sys/class/net/*/mtu", "/sys/class/net/*/flags", "/sys/class/net/*/address", "/sys/class/net/*/master/uevent",
		"/sys/bus/pci/devices/*/uevent", "/sys/bus/pci/devices/*/driver_override", "/var/lib/dpkg/alternatives/ovs-vswitchd")...)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	lines, err := fingerprint(files)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	found, err := list(ctx, conn, parseMounts(string(files["/proc/mounts"])))
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	lines = append(lines, found...)
	rows, err := database(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	lines = append(lines, rows...)
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
	return append(lines, devices(files)...), nil
}

// processes counts those of DPDK and Open vSwitch. One that has ended and was not waited for yet is none.
func processes(files fileset) map[string]int {
	out := map[string]int{}
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
		if comm := string(data[open+1 : end]); dataPlane(comm) && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X") {
			out[comm]++
		}
	}
	return out
}

// devices are network links, and PCI devices of class network (02) with their drivers.
func devices(files fileset) []string {
	var lines []string
	for name, data := range files {
		dir, base := path.Split(name)
		switch {
		case strings.HasPrefix(name, "/sys/class/net/") && base == "mtu":
			dir = strings.TrimSuffix(dir, "/")
			up := "down"
			if f := files.text(dir + "/flags"); len(f) > 0 && strings.ContainsAny(f[len(f)-1:], "13579bdfBDF") { // IFF_UP is bit 0
				up = "up"
			}
			line := fmt.Sprintf("link %s: %s, mtu %s, address %s", path.Base(dir), up, strings.TrimSpace(string(data)), files.text(dir+"/address"))
			if m := property(files[dir+"/master/uevent"], "INTERFACE"); m != "" {
				line += ", master " + m
			}
			lines = append(lines, line)
		case strings.HasPrefix(name, "/sys/bus/pci/devices/") && base == "uevent":
			// The class has six digits, without leading zeros.
			if class := property(data, "PCI_CLASS"); len(class) != 5 || !strings.HasPrefix(class, "2") {
				continue
			}
			line := fmt.Sprintf("nic %s: driver %s", path.Base(dir), property(data, "DRIVER"))
			if o := files.text(dir + "driver_override"); o != "" && o != "(null)" {
				line += ", override " + o
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func property(uevent []byte, key string) string {
	for line := range strings.Lines(string(uevent)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			return v
		}
	}
	return ""
}

// list names files that a testbed makes: network namespaces, what Plumb, DPDK and Open vSwitch keep while they run, the database, files of hugetlbfs,
// and where the alternative points.
func list(ctx context.Context, conn providers.Conn, mounts []mount) ([]string, error) {
	args := []string{"find", "/run/netns", "/run/plumb", "/run/dpdk", "/run/openvswitch", ovsDB, varDB, "/etc/alternatives/ovs-vswitchd"}
	for _, m := range mounts {
		args = append(args, m.path)
	}
	res, err := conn.Run(ctx, providers.Cmd{Args: append(args, "-printf", `%y\t%p\t%l\n`)})
	var exit *providers.ExitError
	if err != nil && !errors.As(err, &exit) { // it complains of folders that are not there
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(res.Stdout)) {
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
	return lines, nil
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

// columns of the Open vSwitch database that a configuration sets (ovs-vswitchd.conf.db(5)); what the daemon reports is left out.
func columns() map[string][]string {
	return map[string][]string{
		"Open_vSwitch": {"other_config", "external_ids"},
		"Bridge":       {"name", "datapath_type", "fail_mode", "protocols", "other_config", "external_ids", "mcast_snooping_enable", "stp_enable", "rstp_enable"},
		"Port":         {"name", "tag", "trunks", "vlan_mode", "bond_mode", "other_config", "external_ids"},
		"Interface":    {"name", "type", "options", "ofport_request", "mtu_request", "mac", "other_config", "external_ids"},
		"QoS":          {"type", "other_config", "external_ids"},
		"Mirror":       {"name", "select_all", "external_ids"},
		"Controller":   {"target", "connection_mode"},
		"Manager":      {"target", "connection_mode"},
	}
}

// database lists the configuration of Open vSwitch when its database server runs.
func database(ctx context.Context, h providers.Host) ([]string, error) {
	raw, err := h.Conn().Dial(ctx, "unix", ovsSocket)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var op *net.OpError
		if errors.As(err, &op) {
			return []string{"ovs database server: not running"}, nil
		}
		return nil, err
	}
	db, err := ovsdb.Dial(ctx, raw)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	cols := columns()
	var tables []string
	for t := range cols {
		tables = append(tables, t)
	}
	slices.Sort(tables)
	var ops []ovsdb.Op
	for _, t := range tables {
		ops = append(ops, ovsdb.Select(t).Columns(cols[t]...))
	}
	h.Count(providers.Reads{OVSDB: 1})
	res, err := db.Transact(ctx, "Open_vSwitch", ops...)
	if err != nil {
		return nil, err
	}
	lines := []string{"ovs database server: running"}
	for i, t := range tables {
		for _, row := range res[i].Rows {
			lines = append(lines, fmt.Sprintf("ovs %s: %s", t, printRow(row, cols[t])))
		}
	}
	return lines, nil
}

// printRow prints columns in order; the order within sets and maps does not count.
func printRow(row ovsdb.Row, cols []string) string {
	var parts []string
	for _, c := range cols {
		if v := printValue(row[c]); v != "" {
			parts = append(parts, c+"="+v)
		}
	}
	return strings.Join(parts, " ")
}

func printValue(v any) string {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return fmt.Sprint(v)
	}
	items, ok := pair[1].([]any)
	if !ok {
		return fmt.Sprint(pair[1])
	}
	var out []string
	for _, i := range items {
		if kv, ok := i.([]any); ok && len(kv) == 2 && pair[0] == "map" {
			out = append(out, fmt.Sprintf("%v:%v", kv[0], kv[1]))
			continue
		}
		out = append(out, printValue(i))
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return "{" + strings.Join(out, ",") + "}"
}
