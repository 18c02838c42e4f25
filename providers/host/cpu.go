package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plumb/providers"
)

// CPU watches the host itself: how each core spent its time, and which threads used it, as pidstat -t shows them. It reads before and after and
// is idle in between.
type CPU struct{}

var _ providers.Observer = CPU{}

// ticks a second of every time in /proc (USER_HZ, proc(5)): 100 on all architectures that Linux supports now.
const userHZ = 100

// busyThread is the share of a core, in percent, from which a thread is worth a line. Threads of Open vSwitch and DPDK always are.
const busyThread = 1.0

// usage is one reading.
type usage struct {
	up      float64          // seconds since boot
	cores   map[int][8]int64 // user, nice, system, idle, iowait, irq, softirq, steal
	threads map[int]thread   // by thread id
}

type thread struct {
	pid, tid     int
	comm         string
	process      string // comm of its process
	user, system int64  // ticks
	core         int    // last run on
}

// Observe takes the first reading. Which instances are measured does not matter: it is about the whole host.
func (CPU) Observe(ctx context.Context, h providers.Host, _ []providers.Subject) (func(context.Context) ([]providers.Observation, error), error) {
	if h == nil {
		return nil, errors.New("CPU time is a host's, and none is given")
	}
	before, err := readUsage(ctx, h.Conn())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]providers.Observation, error) {
		after, err := readUsage(ctx, h.Conn())
		if err != nil {
			return nil, err
		}
		return compare(h.Name(), before, after), nil
	}, nil
}

func readUsage(ctx context.Context, conn providers.Conn) (*usage, error) {
	files, err := conn.ReadFiles(ctx, "/proc/stat", "/proc/uptime", "/proc/[0-9]*/task/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("read CPU times: %w", err)
	}
	return parseUsage(files)
}

func parseUsage(files map[string][]byte) (*usage, error) {
	u := &usage{cores: map[int][8]int64{}, threads: map[int]thread{}}
	up, _, _ := strings.Cut(string(files["/proc/uptime"]), " ")
	var err error
	if u.up, err = strconv.ParseFloat(up, 64); err != nil {
		return nil, fmt.Errorf("/proc/uptime: %w", err)
	}
	for line := range strings.Lines(string(files["/proc/stat"])) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		id, err := strconv.Atoi(f[0][3:])
		if err != nil {
			return nil, fmt.Errorf("/proc/stat: %w", err)
		}
		var times [8]int64
		for i := range times {
			if times[i], err = strconv.ParseInt(f[i+1], 10, 64); err != nil {
				return nil, fmt.Errorf("/proc/stat: %w", err)
			}
		}
		u.cores[id] = times
	}
	for name, data := range files {
		parts := strings.Split(name, "/") // "", proc, PID, task, TID, stat
		if len(parts) != 6 || len(data) == 0 {
			continue
		}
		t, ok := parseThread(string(data))
		if t.pid, err = strconv.Atoi(parts[2]); err != nil || !ok {
			continue // it ended while it was read
		}
		u.threads[t.tid] = t
	}
	for tid, t := range u.threads {
		t.process = u.threads[t.pid].comm
		u.threads[tid] = t
	}
	return u, nil
}

// parseThread reads a stat file (proc_pid_stat(5)): the name is in parentheses and may hold any character.
func parseThread(stat string) (thread, bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return thread{}, false
	}
	f := strings.Fields(stat[end+1:]) // from field 3, the state
	if len(f) < 37 {
		return thread{}, false
	}
	t := thread{comm: stat[open+1 : end]}
	var errs [4]error
	t.tid, errs[0] = strconv.Atoi(strings.TrimSpace(stat[:open]))
	t.user, errs[1] = strconv.ParseInt(f[14-3], 10, 64)
	t.system, errs[2] = strconv.ParseInt(f[15-3], 10, 64)
	t.core, errs[3] = strconv.Atoi(f[39-3])
	return t, errors.Join(errs[:]...) == nil
}

// compare is what happened between two readings. Threads that began in between count from their beginning.
func compare(host string, before, after *usage) []providers.Observation {
	out := []providers.Observation{}
	ids := make([]int, 0, len(after.cores))
	for id := range after.cores {
		if _, ok := before.cores[id]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		var d [8]int64
		var all int64
		for i := range d {
			d[i] = max(0, after.cores[id][i]-before.cores[id][i])
			all += d[i]
		}
		if all == 0 {
			continue
		}
		share := func(ticks int64) float64 { return 100 * float64(ticks) / float64(all) }
		out = append(out, providers.Observation{Host: host, Kind: "cpu", Subject: fmt.Sprintf("core %d", id), Metrics: []providers.Metric{
			percent("user", share(d[0]+d[1])), percent("system", share(d[2]+d[5]+d[6])), percent("idle", share(d[3]+d[4])), percent("steal", share(d[7])),
		}})
	}
	return append(out, compareThreads(host, before, after)...)
}

func compareThreads(host string, before, after *usage) []providers.Observation {
	window := after.up - before.up
	if window <= 0 {
		return nil
	}
	type used struct {
		thread
		user, system float64
	}
	var list []used
	for tid, t := range after.threads {
		was := before.threads[tid]
		if was.pid != t.pid || was.user > t.user {
			was = thread{} // another thread with the same number
		}
		u := used{thread: t, user: 100 * float64(t.user-was.user) / userHZ / window, system: 100 * float64(t.system-was.system) / userHZ / window}
		if total := u.user + u.system; total >= busyThread || total > 0 && dataPlane(t.process) {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b used) int {
		return cmp.Or(cmp.Compare(b.user+b.system, a.user+a.system), cmp.Compare(a.tid, b.tid))
	})
	var out []providers.Observation
	for _, u := range list {
		out = append(out, providers.Observation{Host: host, Kind: "thread", Subject: fmt.Sprintf("%s/%s %d", u.process, u.comm, u.tid), Metrics: []providers.Metric{
			percent("user", u.user), percent("system", u.system), {Name: "core", Value: float64(u.core)},
		}})
	}
	return out
}

func percent(name string, v float64) providers.Metric {
	return providers.Metric{Name: name, Value: v, Unit: "%"}
}

func dataPlane(comm string) bool {
	return strings.HasPrefix(comm, "ovs-") || strings.HasPrefix(comm, "ovsdb-") || strings.HasPrefix(comm, "dpdk-")
}
