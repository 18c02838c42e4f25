package host

import (
	"cmp"
	"fmt"
	"slices"

	"plumb/providers"
)

// use is what one thread did between two readings.
type use struct {
	thread
	subject             string
	user, system, guest float64 // percent of a core; user is without guest, as pidstat's %usr
	minor, major        int64
}

func (u use) cpu() float64 { return u.user + u.system + u.guest }

// compareThreads shows threads as pidstat -t does, the busiest first. One that began in between counts from its beginning, one that ended is only
// counted: what it used since the first reading is not known.
func compareThreads(add adder, window float64, before, after *reading) {
	var list []use
	var rest struct {
		threads int
		cpu     float64
	}
	for tid, t := range after.threads {
		was := before.threads[tid]
		if was.pid != t.pid || was.user > t.user || was.system > t.system {
			was = thread{} // another thread with the same number
		}
		share := func(ticks int64) float64 { return 100 * float64(max(0, ticks)) / userHZ / window }
		guest := t.guest - was.guest
		u := use{thread: t, user: share(t.user - was.user - guest), system: share(t.system - was.system), guest: share(guest),
			minor: t.minor - was.minor, major: t.major - was.major}
		p, ours := after.procs[t.pid]
		u.subject = t.comm
		switch main := after.threads[t.pid].comm; {
		case ours && t.tid == t.pid:
			u.subject = p.label
		case ours:
			u.subject = p.label + " " + t.comm
		case main != t.comm && main != "":
			u.subject = main + " " + t.comm
		}
		if u.cpu() >= busyThread || isPMD(t.comm) || ours && u.minor+u.major > 0 {
			list = append(list, u)
		} else {
			rest.threads++
			rest.cpu += u.cpu()
		}
	}
	number(list)
	slices.SortFunc(list, func(a, b use) int {
		return cmp.Or(cmp.Compare(b.cpu(), a.cpu()), cmp.Compare(a.subject, b.subject))
	})
	for _, u := range list {
		add("thread", u.subject, u.metrics(window, before.threads[u.tid].detail)...)
	}
	ended := 0
	for tid, t := range before.threads {
		if after.threads[tid].pid != t.pid {
			ended++
		}
	}
	m := []providers.Metric{percent("cpu", rest.cpu), {Name: "threads", Value: float64(rest.threads)}}
	if ended > 0 {
		m = append(m, providers.Metric{Name: "ended", Value: float64(ended)})
	}
	add("thread", fmt.Sprintf("threads below %g %%", busyThread), m...)
}

// number tells threads of the same name apart.
func number(list []use) {
	seen := map[string]int{}
	for _, u := range list {
		seen[u.subject]++
	}
	for i, u := range list {
		if seen[u.subject] > 1 {
			list[i].subject = fmt.Sprintf("%s %d", u.subject, u.tid)
		}
	}
}

// metrics leaves out what is zero of the lesser figures. was may be nil: the thread is a new one.
func (u use) metrics(window float64, was *detail) []providers.Metric {
	m := []providers.Metric{percent("cpu", u.cpu()), percent("user", u.user), percent("system", u.system)}
	add := func(name string, v float64, unit string) {
		if v > 0 {
			m = append(m, providers.Metric{Name: name, Value: v, Unit: unit})
		}
	}
	add("guest", u.guest, "%")
	var now, then detail
	if u.detail != nil {
		now = *u.detail
	}
	if was != nil {
		then = *was
	}
	rate := func(a, b uint64) float64 { return float64(a-min(a, b)) / window }
	add("wait", rate(now.waited, then.waited)/1e9*100, "%")
	m = append(m, providers.Metric{Name: "core", Value: float64(u.core)})
	add("minor_faults", float64(max(0, u.minor))/window, "/s")
	add("major_faults", float64(max(0, u.major))/window, "/s")
	add("voluntary_switches", rate(now.voluntary, then.voluntary), "/s")
	add("involuntary_switches", rate(now.involuntary, then.involuntary), "/s")
	add("read", rate(now.read, then.read)/1024, "kB/s")
	add("written", rate(now.written, then.written)/1024, "kB/s")
	return m
}
