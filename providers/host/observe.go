package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"plumb/providers"
)

// Observer watches the host itself: how each core spent its time and what interrupted it, which threads used it (as pidstat shows them), where the
// memory of the data plane lies, and how many hugepages are taken. It reads before and after, and is idle in between.
type Observer struct{}

var _ providers.Observer = Observer{}

// reading is what was read at one moment.
type reading struct {
	up       float64 // seconds since boot
	cores    map[int]coreTimes
	irqs     map[string]interrupts
	switches map[int]uint64 // times slices run, by CPU; empty without CONFIG_SCHEDSTATS
	clocks   map[int]clock
	pools    []pool
	threads  map[int]thread // by thread id
	procs    map[int]process
}

// clock is a CPU's frequency now; a virtual machine has none.
type clock struct {
	mhz      float64
	governor string
}

type thread struct {
	procStat
	pid    int
	detail *detail // of a watched process
}

// detail is what is read of the threads of watched processes only.
type detail struct {
	voluntary, involuntary uint64 // context switches
	read, written          uint64 // bytes that really came from or went to a block device
	waited                 uint64 // ns, runnable and not run (/proc/PID/schedstat)
}

// process is a watched process.
type process struct {
	label                   string
	virtual, resident, huge uint64 // kB
	nodes                   map[int]uint64
}

// watched says whether a process belongs to the data plane or drives it: by the names that Open vSwitch, DPDK's programs, QEMU and Plumb have.
func watched(comm string) bool {
	return dataPlane(comm) || strings.HasPrefix(comm, "qemu-") || comm == "kvm" || comm == "plumb"
}

func dataPlane(comm string) bool {
	return strings.HasPrefix(comm, "ovs-") || strings.HasPrefix(comm, "ovsdb-") || strings.HasPrefix(comm, "dpdk-")
}

// Observe takes the first reading. Which instances are measured does not matter: it is about the whole host.
func (Observer) Observe(ctx context.Context, h providers.Host, _ []providers.Subject) (func(context.Context) ([]providers.Observation, error), error) {
	if h == nil {
		return nil, errors.New("a host is observed, and none is given")
	}
	facts, err := h.Facts(ctx)
	if err != nil {
		return nil, err
	}
	isolated := map[int]bool{}
	for _, c := range facts.CPUs {
		isolated[c.ID] = c.Isolated
	}
	// Who is there must be known before it can be read more closely; the second time all comes in one go.
	files, err := read(ctx, h.Conn(), "/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	var details []string
	for name, comm := range files {
		if watched(strings.TrimSpace(string(comm))) {
			details = append(details, detailFiles(path.Dir(name))...)
		}
	}
	files, err = read(ctx, h.Conn(), append(details, wholeFiles()...)...)
	if err != nil {
		return nil, err
	}
	before, err := parseReading(files)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]providers.Observation, error) {
		last := append(append(details, wholeFiles()...), lastFiles()...)
		for pid := range before.procs {
			last = append(last, fmt.Sprintf("/proc/%d/numa_maps", pid))
		}
		files, err := read(ctx, h.Conn(), last...)
		if err != nil {
			return nil, err
		}
		after, err := parseReading(files)
		if err != nil {
			return nil, err
		}
		return compare(h.Name(), isolated, before, after), nil
	}, nil
}

// wholeFiles are about the whole host; lastFiles are states, of which the last is enough.
func wholeFiles() []string {
	return []string{"/proc/uptime", "/proc/stat", "/proc/interrupts", "/proc/schedstat", "/proc/[0-9]*/task/[0-9]*/stat"}
}

func lastFiles() []string {
	return append(hugepageFiles(), cpuDir+"/cpu[0-9]*/cpufreq/scaling_cur_freq", cpuDir+"/cpu[0-9]*/cpufreq/scaling_governor")
}

func detailFiles(proc string) []string {
	return []string{proc + "/status", proc + "/environ", proc + "/cmdline", proc + "/task/[0-9]*/status", proc + "/task/[0-9]*/io", proc + "/task/[0-9]*/schedstat"}
}

// read reads files; those that this user may not look at are as if they were not there.
func read(ctx context.Context, conn providers.Conn, patterns ...string) (fileset, error) {
	files, err := conn.ReadFiles(ctx, patterns...)
	if err != nil && (!errors.Is(err, fs.ErrPermission) || files == nil) {
		return nil, fmt.Errorf("observe: %w", err)
	}
	return files, nil
}

func parseReading(files fileset) (*reading, error) {
	up, _, _ := strings.Cut(files.text("/proc/uptime"), " ")
	r := &reading{cores: parseCores(string(files["/proc/stat"])), irqs: parseInterrupts(string(files["/proc/interrupts"])),
		switches: parseSchedstat(string(files["/proc/schedstat"])), clocks: map[int]clock{}, threads: map[int]thread{}, procs: map[int]process{}}
	var err error
	if r.up, err = strconv.ParseFloat(up, 64); err != nil {
		return nil, fmt.Errorf("/proc/uptime: %w", err)
	}
	if r.pools, err = parsePools(files); err != nil {
		return nil, err
	}
	for name, data := range files {
		p := strings.Split(name, "/")
		switch {
		case len(p) == 6 && p[3] == "task" && p[5] == "stat": // "", proc, PID, task, TID, stat
			s, ok := parseStat(string(data))
			pid, err := strconv.Atoi(p[2])
			if !ok || err != nil {
				continue // it ended while it was read
			}
			r.threads[s.tid] = thread{procStat: s, pid: pid, detail: parseDetail(files, path.Dir(name))}
		case strings.HasPrefix(name, cpuDir+"/") && p[len(p)-1] == "scaling_cur_freq":
			id, err := strconv.Atoi(strings.TrimPrefix(p[5], "cpu"))
			khz, err2 := strconv.ParseFloat(strings.TrimSpace(string(data)), 64)
			if err == nil && err2 == nil {
				r.clocks[id] = clock{mhz: khz / 1000, governor: files.text(path.Dir(name) + "/scaling_governor")}
			}
		}
	}
	for _, t := range r.threads {
		if t.tid == t.pid && watched(t.comm) {
			r.procs[t.pid] = parseProcess(files, t)
		}
	}
	return r, nil
}

func parseDetail(files fileset, task string) *detail {
	status, ok := files[task+"/status"]
	if !ok {
		return nil
	}
	d := &detail{}
	d.voluntary, _ = keyed(string(status), "voluntary_ctxt_switches")
	d.involuntary, _ = keyed(string(status), "nonvoluntary_ctxt_switches")
	d.read, _ = keyed(string(files[task+"/io"]), "read_bytes")
	d.written, _ = keyed(string(files[task+"/io"]), "write_bytes")
	if f := strings.Fields(string(files[task+"/schedstat"])); len(f) > 1 {
		d.waited, _ = strconv.ParseUint(f[1], 10, 64) // the kernel prints numbers
	}
	return d
}

// parseProcess labels a process by its name and, where it has them, by the address of the instance that it is of and the name of its guest.
func parseProcess(files fileset, t thread) process {
	dir := fmt.Sprintf("/proc/%d/", t.pid)
	p := process{label: t.comm, nodes: parseNumaMaps(string(files[dir+"numa_maps"]))}
	p.virtual, _ = keyed(string(files[dir+"status"]), "VmSize")
	p.resident, _ = keyed(string(files[dir+"status"]), "VmRSS")
	p.huge, _ = keyed(string(files[dir+"status"]), "HugetlbPages")
	for _, e := range strings.Split(string(files[dir+"environ"]), "\x00") {
		if a, ok := strings.CutPrefix(e, "PLUMB_ADDRESS="); ok {
			p.label += " of " + a
		}
	}
	args := strings.Split(string(files[dir+"cmdline"]), "\x00")
	for i, a := range args[:len(args)-1] {
		if a == "-name" && strings.HasPrefix(t.comm, "qemu-") { // guest=NAME,...
			name, _, _ := strings.Cut(strings.TrimPrefix(args[i+1], "guest="), ",")
			p.label += " of " + name
		}
	}
	return p
}
