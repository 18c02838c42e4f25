package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/providers"
)

// What is worth a line of its own, in percent of a core: less is counted in one line together.
const (
	busyThread = 0.5
	busyCore   = 1.0
	topIRQs    = 4 // kinds of interrupts that a core's line names
)

// compare is what happened between two readings.
func compare(host string, isolated map[int]bool, before, after *reading) []providers.Observation {
	out := []providers.Observation{}
	add := func(kind, subject string, metrics ...providers.Metric) {
		if len(metrics) > 0 {
			out = append(out, providers.Observation{Host: host, Kind: kind, Subject: subject, Metrics: metrics})
		}
	}
	window := after.up - before.up
	if window > 0 {
		shown := compareCores(add, isolated, window, before, after)
		compareIRQs(add, shown, window, before, after)
		for _, id := range shown {
			if c, ok := after.clocks[id]; ok {
				add("frequency", strings.TrimSpace(fmt.Sprintf("core %d %s", id, c.governor)), providers.Metric{Name: "frequency", Value: c.mhz, Unit: "MHz"})
			}
		}
		compareThreads(add, window, before, after)
	}
	labels := map[int]string{}
	for pid, p := range after.procs {
		labels[pid] = p.label
	}
	for _, pid := range slices.SortedFunc(maps.Keys(labels), byText(labels)) {
		p := after.procs[pid]
		m := []providers.Metric{kB("virtual", p.virtual), kB("resident", p.resident), kB("hugepages", p.huge)}
		for _, node := range slices.Sorted(maps.Keys(p.nodes)) {
			m = append(m, kB(fmt.Sprintf("on_node_%d", node), p.nodes[node]))
		}
		add("memory", p.label, m...)
	}
	for _, p := range after.pools {
		if p.total > 0 {
			count := func(name string, n uint64) providers.Metric {
				return providers.Metric{Name: name, Value: float64(n), Unit: "pages"}
			}
			add("hugepages", fmt.Sprintf("node %d, %s", p.node, formatSize(p.size)), count("total", p.total), count("free", p.free), count("used", p.total-min(p.free, p.total)))
		}
	}
	return out
}

type adder func(kind, subject string, metrics ...providers.Metric)

func percent(name string, v float64) providers.Metric {
	return providers.Metric{Name: name, Value: v, Unit: "%"}
}

func kB(name string, n uint64) providers.Metric {
	return providers.Metric{Name: name, Value: float64(n), Unit: "kB"}
}

// byText compares keys by their texts, equal ones by themselves.
func byText(text map[int]string) func(a, b int) int {
	return func(a, b int) int { return cmp.Or(cmp.Compare(text[a], text[b]), cmp.Compare(a, b)) }
}

// pmdCores are the CPUs that PMD threads of Open vSwitch last ran on.
func (r *reading) pmdCores() map[int]bool {
	out := map[int]bool{}
	for _, t := range r.threads {
		if isPMD(t.comm) {
			out[t.core] = true
		}
	}
	return out
}

// isPMD knows the threads by the name that lib/dpif-netdev.c gives them, pmd-c01/id:9, without -c01 before OVS 2.17.
func isPMD(comm string) bool {
	return strings.HasPrefix(comm, "pmd-c") || len(comm) > 3 && strings.HasPrefix(comm, "pmd") && strings.Trim(comm[3:], "0123456789") == ""
}

// compareCores returns the CPUs that are shown: those that were busy, are isolated, or run a PMD.
func compareCores(add adder, isolated map[int]bool, window float64, before, after *reading) []int {
	pmds := after.pmdCores()
	var shown []int
	rest := 0
	for _, id := range slices.Sorted(maps.Keys(after.cores)) {
		was, ok := before.cores[id]
		if !ok {
			continue // it came online
		}
		d := after.cores[id].since(was)
		all := d.user + d.nice + d.system + d.idle + d.iowait + d.irq + d.softirq + d.steal // guest is in user, guest_nice in nice
		if all == 0 {
			continue
		}
		share := func(ticks int64) float64 { return 100 * float64(ticks) / float64(all) }
		busy := share(all - d.idle - d.iowait - d.steal)
		if busy < busyCore && share(d.steal) < busyCore && !isolated[id] && !pmds[id] {
			rest++
			continue
		}
		shown = append(shown, id)
		m := []providers.Metric{percent("busy", busy), percent("user", share(max(0, d.user+d.nice-d.guest-d.guestNice))), percent("system", share(d.system)),
			percent("irq", share(d.irq)), percent("softirq", share(d.softirq)), percent("guest", share(d.guest+d.guestNice)), percent("steal", share(d.steal)),
			percent("idle", share(d.idle+d.iowait))}
		if n, ok := after.switches[id]; ok && n >= before.switches[id] {
			m = append(m, perSecond("context_switches", n-before.switches[id], window))
		}
		add("cpu", fmt.Sprintf("core %d", id), m...)
	}
	if rest > 0 {
		add("cpu", fmt.Sprintf("cores below %g %%", busyCore), providers.Metric{Name: "cores", Value: float64(rest)})
	}
	return shown
}

func perSecond(name string, n uint64, window float64) providers.Metric {
	return providers.Metric{Name: name, Value: float64(n) / window, Unit: "/s"}
}

// compareIRQs says for each CPU how often it was interrupted, and by what most.
func compareIRQs(add adder, cores []int, window float64, before, after *reading) {
	for _, id := range cores {
		var total uint64
		var each []providers.Metric
		for label, line := range after.irqs {
			now, was := line.byCPU[id], before.irqs[label].byCPU[id]
			if now > was {
				total += now - was
				each = append(each, perSecond(line.name, now-was, window))
			}
		}
		if len(after.irqs) == 0 {
			continue
		}
		slices.SortFunc(each, func(a, b providers.Metric) int {
			return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name))
		})
		add("irq", fmt.Sprintf("core %d", id), append([]providers.Metric{perSecond("interrupts", total, window)}, each[:min(len(each), topIRQs)]...)...)
	}
}
