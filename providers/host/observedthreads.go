package host

import (
	"cmp"
	"fmt"
	"slices"

	"plumb/providers"
)

// use is what threads of one name did between two readings.
type use struct {
	threads                 int
	pmd, watched            bool
	user, system, guest     float64 // percent of a core; user is without guest, as pidstat's %usr
	wait                    float64 // percent of the window, runnable and not run
	minor, major            float64 // page faults a second
	voluntary, involuntary  float64 // context switches a second
	read, written           float64 // kB a second
	core                    int     // last run on
	hasFaults, severalCores bool
}

func (u use) cpu() float64 { return u.user + u.system + u.guest }

// compareThreads shows threads as pidstat -t does, the busiest first. Threads with one name, such as those of Plumb itself or of several equal
// processes, are added up. One that began in between counts from its beginning, one that ended is only counted: what it used since the first
// reading is not known.
func compareThreads(add adder, window float64, before, after *reading) {
	uses := map[string]use{}
	for tid, t := range after.threads {
		subject := after.subject(t)
		u, more := uses[subject], used(t, before.threads[tid], window)
		_, more.watched = after.procs[t.pid]
		uses[subject] = u.plus(more)
	}
	var rest use
	var shown []string
	for subject, u := range uses {
		if u.cpu() >= busyThread || u.pmd || u.watched && u.hasFaults {
			shown = append(shown, subject)
		} else {
			rest = rest.plus(u)
		}
	}
	slices.SortFunc(shown, func(a, b string) int {
		return cmp.Or(cmp.Compare(uses[b].cpu(), uses[a].cpu()), cmp.Compare(a, b))
	})
	for _, s := range shown {
		add("thread", s, uses[s].metrics()...)
	}
	m := []providers.Metric{percent("cpu", rest.cpu()), {Name: "threads", Value: float64(rest.threads)}}
	ended := 0
	for tid, t := range before.threads {
		if after.threads[tid].pid != t.pid {
			ended++
		}
	}
	if ended > 0 {
		m = append(m, providers.Metric{Name: "ended", Value: float64(ended)})
	}
	add("thread", fmt.Sprintf("threads below %g %%", busyThread), m...)
}

// subject names a thread: its process first, unless it is the only one there with a name of its own.
func (r *reading) subject(t thread) string {
	if p, ok := r.procs[t.pid]; ok {
		if t.tid == t.pid || t.comm == r.threads[t.pid].comm {
			return p.label
		}
		return p.label + " " + t.comm
	}
	if main := r.threads[t.pid].comm; main != t.comm && main != "" {
		return main + " " + t.comm
	}
	return t.comm
}

// used is the difference of two readings of one thread. was may be another thread that had the same number.
func used(t, was thread, window float64) use {
	if was.pid != t.pid || was.user > t.user || was.system > t.system {
		was = thread{}
	}
	share := func(ticks int64) float64 { return 100 * float64(max(0, ticks)) / userHZ / window }
	guest := t.guest - was.guest
	u := use{threads: 1, pmd: isPMD(t.comm), core: t.core, hasFaults: t.minor+t.major > was.minor+was.major,
		user: share(t.user - was.user - guest), system: share(t.system - was.system), guest: share(guest),
		minor: float64(max(0, t.minor-was.minor)) / window, major: float64(max(0, t.major-was.major)) / window}
	if t.detail == nil {
		return u
	}
	var then detail
	if was.detail != nil {
		then = *was.detail
	}
	rate := func(a, b uint64) float64 { return float64(a-min(a, b)) / window }
	u.wait = rate(t.detail.waited, then.waited) / 1e9 * 100
	u.voluntary, u.involuntary = rate(t.detail.voluntary, then.voluntary), rate(t.detail.involuntary, then.involuntary)
	u.read, u.written = rate(t.detail.read, then.read)/1024, rate(t.detail.written, then.written)/1024
	return u
}

func (u use) plus(o use) use {
	if u.threads == 0 {
		return o
	}
	return use{threads: u.threads + o.threads, pmd: u.pmd || o.pmd, watched: u.watched || o.watched, user: u.user + o.user, system: u.system + o.system, guest: u.guest + o.guest,
		wait: u.wait + o.wait, minor: u.minor + o.minor, major: u.major + o.major, voluntary: u.voluntary + o.voluntary, involuntary: u.involuntary + o.involuntary,
		read: u.read + o.read, written: u.written + o.written, core: u.core, hasFaults: u.hasFaults || o.hasFaults, severalCores: u.severalCores || o.severalCores || u.core != o.core}
}

// metrics leaves out what is zero of the lesser figures, and the core where there are several.
func (u use) metrics() []providers.Metric {
	m := []providers.Metric{percent("cpu", u.cpu()), percent("user", u.user), percent("system", u.system)}
	add := func(name string, v float64, unit string) {
		if v > 0 {
			m = append(m, providers.Metric{Name: name, Value: v, Unit: unit})
		}
	}
	add("guest", u.guest, "%")
	add("wait", u.wait, "%")
	if !u.severalCores {
		m = append(m, providers.Metric{Name: "core", Value: float64(u.core)})
	}
	if u.threads > 1 {
		add("threads", float64(u.threads), "")
	}
	add("minor_faults", u.minor, "/s")
	add("major_faults", u.major, "/s")
	add("voluntary_switches", u.voluntary, "/s")
	add("involuntary_switches", u.involuntary, "/s")
	add("read", u.read, "kB/s")
	add("written", u.written, "kB/s")
	return m
}
