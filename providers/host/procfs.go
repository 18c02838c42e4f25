package host

import (
	"errors"
	"strconv"
	"strings"
)

// ticks a second of every time in /proc (USER_HZ, proc(5)): 100 on all architectures that Linux supports now.
const userHZ = 100

// procStat is a stat file of a thread or process (proc_pid_stat(5)).
type procStat struct {
	tid, session, core  int // core: last run on
	comm                string
	state               byte
	minor, major        int64 // page faults
	user, system, guest int64 // ticks; user includes guest
}

// parseStat reads a stat file. The name is in parentheses and may hold any character. A thread that ended while it was read is not ok.
func parseStat(stat string) (procStat, bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return procStat{}, false
	}
	f := strings.Fields(stat[end+1:]) // from field 3, the state
	if len(f) < 41 {
		return procStat{}, false
	}
	s := procStat{comm: stat[open+1 : end], state: f[0][0]}
	var errs []error
	whole := func(field int, into *int64) {
		n, err := strconv.ParseInt(f[field-3], 10, 64)
		*into = n
		errs = append(errs, err)
	}
	var session, core int64
	for field, into := range map[int]*int64{6: &session, 10: &s.minor, 12: &s.major, 14: &s.user, 15: &s.system, 39: &core, 43: &s.guest} {
		whole(field, into)
	}
	s.session, s.core = int(session), int(core)
	var err error
	s.tid, err = strconv.Atoi(strings.TrimSpace(stat[:open]))
	return s, errors.Join(append(errs, err)...) == nil
}

// coreTimes are the ticks of one CPU by what they went to (proc_stat(5)). user and nice include guest.
type coreTimes struct{ user, nice, system, idle, iowait, irq, softirq, steal, guest, guestNice int64 }

func (c *coreTimes) fields() []*int64 {
	return []*int64{&c.user, &c.nice, &c.system, &c.idle, &c.iowait, &c.irq, &c.softirq, &c.steal, &c.guest, &c.guestNice}
}

// since is the difference of two readings; a time that went back (idle and iowait do) counts as none.
func (c coreTimes) since(before coreTimes) coreTimes {
	var d coreTimes
	now, was, out := c.fields(), before.fields(), d.fields()
	for i := range out {
		*out[i] = max(0, *now[i]-*was[i])
	}
	return d
}

// parseCores reads /proc/stat by CPU. Columns that an old kernel does not have are 0.
func parseCores(text string) map[int]coreTimes {
	cores := map[int]coreTimes{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		id, err := strconv.Atoi(f[0][3:])
		if err != nil {
			continue // the sum of all
		}
		var c coreTimes
		for i, into := range c.fields() {
			if i+1 < len(f) {
				*into, _ = strconv.ParseInt(f[i+1], 10, 64) // the kernel prints numbers
			}
		}
		cores[id] = c
	}
	return cores
}

// interrupts is one line of /proc/interrupts: how often each CPU took it.
type interrupts struct {
	name  string // "virtio0-input.0 (24)", "local timer interrupts"
	byCPU map[int]uint64
}

// parseInterrupts reads /proc/interrupts by line label. Lines that do not count by CPU (ERR, MIS) are left out.
func parseInterrupts(text string) map[string]interrupts {
	head, rest, _ := strings.Cut(text, "\n")
	var cpus []int
	for _, f := range strings.Fields(head) {
		if n, err := strconv.Atoi(strings.TrimPrefix(f, "CPU")); err == nil {
			cpus = append(cpus, n)
		}
	}
	lines := map[string]interrupts{}
	for line := range strings.Lines(rest) {
		label, counts, ok := strings.Cut(strings.TrimSpace(line), ":")
		f := strings.Fields(counts)
		if !ok || len(cpus) == 0 || len(f) < len(cpus) {
			continue
		}
		l := interrupts{byCPU: map[int]uint64{}}
		var err error
		for i, c := range cpus {
			var n uint64
			if n, err = strconv.ParseUint(f[i], 10, 64); err != nil {
				break
			}
			l.byCPU[c] = n
		}
		if err != nil {
			continue
		}
		what := f[len(cpus):]
		switch _, err := strconv.Atoi(label); {
		case len(what) == 0:
			l.name = label
		case err == nil: // of a device: chip, number, trigger, and the device's names
			l.name = what[len(what)-1] + " (" + label + ")"
		default:
			l.name = strings.ToLower(strings.Join(what, " "))
		}
		lines[label] = l
	}
	return lines
}

// parseSchedstat reads how many times slices of tasks each CPU has run from /proc/schedstat (Documentation/scheduler/sched-stats.rst: the
// ninth figure of a cpu line, in versions 14 to 17).
func parseSchedstat(text string) map[int]uint64 {
	out := map[int]uint64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		id, err := strconv.Atoi(f[0][3:])
		n, err2 := strconv.ParseUint(f[9], 10, 64)
		if err == nil && err2 == nil {
			out[id] = n
		}
	}
	return out
}

// keyed is a number of a file of lines "key: number ..." (proc_pid_status(5), proc_pid_io(5), proc_meminfo(5)), without its unit.
func keyed(text, key string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			v, _, _ = strings.Cut(strings.TrimSpace(v), " ")
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// parseNumaMaps adds up the kB that a process has on each node (numa_maps of proc_pid_numa_maps(5)).
func parseNumaMaps(text string) map[int]uint64 {
	nodes := map[int]uint64{}
	for line := range strings.Lines(text) {
		pages := map[int]uint64{}
		size := uint64(4)
		for _, f := range strings.Fields(line) {
			key, val, _ := strings.Cut(f, "=")
			n, err := strconv.ParseUint(val, 10, 40)
			if err != nil {
				continue
			}
			if key == "kernelpagesize_kB" {
				size = min(n, 16<<20)
			} else if node, err := strconv.Atoi(strings.TrimPrefix(key, "N")); err == nil && key != strings.TrimPrefix(key, "N") {
				pages[node] = n
			}
		}
		for node, n := range pages {
			nodes[node] += n * size
		}
	}
	return nodes
}
