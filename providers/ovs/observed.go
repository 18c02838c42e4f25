package ovs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/providers"
)

const (
	// bottleneckBusy is the share of its cycles in percent above which a PMD is what limits the switch.
	bottleneckBusy = 90
	// suspiciousTime is the length of an iteration in µs that pmd-perf-log-set calls suspicious by default.
	suspiciousTime = 250
	topEvents      = 10 // coverage counters other than drops and upcalls that are shown
)

type adder func(kind, subject string, metrics ...providers.Metric)

// observations turns two readings into what a report shows.
func observations(host string, before, after reading) []providers.Observation {
	var out []providers.Observation
	add := func(kind, subject string, metrics ...providers.Metric) {
		if len(metrics) > 0 {
			out = append(out, providers.Observation{Host: host, Kind: kind, Subject: subject, Metrics: metrics})
		}
	}
	for _, core := range slices.Sorted(maps.Keys(after.pmds)) {
		p := after.pmds[core].since(before.pmds[core])
		addPMD(add, p)
		addCaches(add, p, before.pmds[core])
		addBottleneck(add, p, after.rxqs)
	}
	addRxqs(add, after)
	addPorts(add, before, after)
	addFlows(add, before, after)
	addEvents(add, before.coverage, after.coverage)
	return out
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

func percent(name string, v float64) providers.Metric {
	return providers.Metric{Name: name, Value: v, Unit: "%"}
}

func frames(name string, n uint64) providers.Metric {
	return providers.Metric{Name: name, Value: float64(n), Unit: "frames"}
}

func addPMD(add adder, p pmdStats) {
	cycles := func(name string, v float64) providers.Metric {
		return providers.Metric{Name: name, Value: v, Unit: "cycles"}
	}
	m := []providers.Metric{percent("busy", share(p.busy, p.idle+p.busy)), cycles("busy_cycles", float64(p.busy)), cycles("idle_cycles", float64(p.idle)), frames("packets", p.packets)}
	per := func(name string, a, b uint64, unit string) {
		if b > 0 {
			m = append(m, providers.Metric{Name: name, Value: float64(a) / float64(b), Unit: unit})
		}
	}
	per("busy_cycles_per_packet", p.busy, p.packets, "cycles")
	per("cycles_per_packet", p.busy+p.idle, p.packets, "cycles")
	per("passes_per_packet", p.passes, p.packets, "")
	per("packets_per_batch", p.perf.txPackets, p.perf.txBatches, "frames")
	per("packets_per_busy_iteration", p.packets, p.perf.busy, "frames")
	per("cycles_per_iteration", p.busy+p.idle, p.perf.iterations, "cycles")
	if p.perf.iterations > 0 {
		m = append(m, providers.Metric{Name: "iterations", Value: float64(p.perf.iterations)}, percent("busy_iterations", share(p.perf.busy, p.perf.iterations)))
	}
	if p.perf.asleep > 0 && p.perf.seconds > 0 {
		m = append(m, percent("asleep", min(100, float64(p.perf.asleep)/p.perf.seconds/1e4)))
	}
	if most, within := p.perf.cycles.most(); p.perf.cyclesPerMicrosecond > 0 && !p.perf.cycles.empty() {
		name := "longest_iteration_at_most"
		if !within {
			name = "longest_iteration_above"
		}
		m = append(m, providers.Metric{Name: name, Value: float64(most) / p.perf.cyclesPerMicrosecond, Unit: "µs"},
			providers.Metric{Name: "suspicious_iterations", Value: float64(p.perf.cycles.over(suspiciousTime * p.perf.cyclesPerMicrosecond))})
	}
	if most, _ := p.perf.vhostQueue.most(); !p.perf.vhostQueue.empty() {
		m = append(m, frames("longest_vhost_queue", most))
	}
	add("pmd", fmt.Sprintf("core %d", p.core), m...)
}

func addCaches(add adder, p, before pmdStats) {
	if p.passes == 0 {
		return
	}
	var m []providers.Metric
	for _, h := range []struct {
		name string
		n    uint64
	}{{"phwol", p.phwol}, {"simple_match", p.simple}, {"emc", p.emc}, {"smc", p.smc}, {"megaflow", p.megaflow}, {"upcall", p.upcalls}, {"upcall_failed", p.lost}} {
		m = append(m, percent(h.name, share(h.n, p.passes)))
	}
	// The average that ovs-vswitchd prints is of all hits and has two decimals: the difference of two says something where it is exact to 0.05.
	if p.megaflow > 0 && 0.005*float64(p.megaflow+2*before.megaflow) <= 0.05*float64(p.megaflow) {
		m = append(m, providers.Metric{Name: "subtable_lookups_per_megaflow_hit", Value: p.lookups / float64(p.megaflow)})
	}
	if p.upcalls+p.lost > 0 {
		m = append(m, frames("upcalls", p.upcalls), frames("upcalls_failed", p.lost))
	}
	add("cache", fmt.Sprintf("core %d", p.core), m...)
}

// ofBusy is the part of its thread's work that a queue took, in percent; false: not known.
func ofBusy(q rxqShare, all []rxqShare) (float64, bool) {
	sum := max(q.overhead, 0)
	for _, o := range all {
		if o.core == q.core {
			sum += max(o.usage, 0)
		}
	}
	if q.usage < 0 || sum <= 0 {
		return 0, false
	}
	return 100 * q.usage / sum, true
}

// addBottleneck names a PMD that has no time left, and the queue that takes most of it.
func addBottleneck(add adder, p pmdStats, rxqs []rxqShare) {
	busy := share(p.busy, p.idle+p.busy)
	if busy <= bottleneckBusy {
		return
	}
	subject, m := fmt.Sprintf("PMD core %d", p.core), []providers.Metric{percent("busy", busy)}
	best := -1.0
	for _, q := range rxqs {
		if part, ok := ofBusy(q, rxqs); ok && q.core == p.core && part > best {
			best = part
			subject = fmt.Sprintf("PMD core %d, most by %s queue %d", p.core, q.port, q.queue)
		}
	}
	if best >= 0 {
		m = append(m, percent("taken_by_queue", best))
	}
	add("bottleneck", subject, m...)
}

func addRxqs(add adder, r reading) {
	for _, q := range r.rxqs {
		flag := func(name string, b bool) providers.Metric {
			v := 0.0
			if b {
				v = 1
			}
			return providers.Metric{Name: name, Value: v}
		}
		m := []providers.Metric{flag("enabled", q.enabled)}
		if q.usage >= 0 {
			m = append(m, percent("usage", q.usage))
		}
		if part, ok := ofBusy(q, r.rxqs); ok {
			m = append(m, percent("part_of_busy", part))
		}
		if q.overhead >= 0 {
			m = append(m, percent("overhead_of_core", q.overhead))
		}
		if q.isolated {
			m = append(m, flag("isolated_core", true))
		}
		if r.rxqWindow > 0 && q.usage >= 0 {
			m = append(m, providers.Metric{Name: "usage_over", Value: float64(r.rxqWindow), Unit: "s"})
		}
		add("rxq", fmt.Sprintf("%s queue %d on core %d", q.port, q.queue, q.core), m...)
	}
}

// addPorts shows the ports at which something happened.
func addPorts(add adder, before, after reading) {
	for _, path := range slices.Sorted(maps.Keys(after.paths)) {
		ports := after.paths[path].ports
		for _, name := range slices.Sorted(maps.Keys(ports)) {
			a, b := ports[name], before.paths[path].ports[name]
			m := []providers.Metric{frames("rx", diff(a.rx, b.rx)), frames("tx", diff(a.tx, b.tx))}
			happened := m[0].Value+m[1].Value > 0
			for _, c := range []struct {
				name     string
				now, was uint64
			}{{"rx_dropped", a.rxDropped, b.rxDropped}, {"tx_dropped", a.txDropped, b.txDropped}, {"rx_errors", a.rxErrors, b.rxErrors}, {"tx_errors", a.txErrors, b.txErrors}} {
				if n := diff(c.now, c.was); n > 0 {
					m, happened = append(m, frames(c.name, n)), true
				}
			}
			if n := diff(after.resets[name], before.resets[name]); n > 0 {
				m, happened = append(m, providers.Metric{Name: "link_resets", Value: float64(n)}), true
			}
			if happened {
				add("port", name, m...)
			}
		}
	}
}

// addFlows shows each datapath's flow table.
func addFlows(add adder, before, after reading) {
	for _, path := range slices.Sorted(maps.Keys(after.paths)) {
		d, was := after.paths[path], before.paths[path]
		number := func(name string, n uint64) providers.Metric {
			return providers.Metric{Name: name, Value: float64(n)}
		}
		hit, missed := diff(d.hit, was.hit), diff(d.missed, was.missed)
		m := []providers.Metric{number("flows", d.flows), frames("hit", hit), frames("missed", missed), frames("lost", diff(d.lost, was.lost))}
		if d.masks > 0 {
			m = append(m, number("masks", d.masks))
			if hit+missed > 0 {
				m = append(m, providers.Metric{Name: "masks_looked_at_per_packet", Value: float64(diff(d.maskHit, was.maskHit)) / float64(hit+missed)})
			}
		}
		if u, ok := after.upcalls[path]; ok {
			m = append(m, number("most_flows", u.most), number("flow_limit", u.limit), providers.Metric{Name: "revalidation", Value: float64(u.dumpMilliseconds), Unit: "ms"})
		}
		add("flows", path, m...)
	}
}

// addEvents shows the coverage counters that moved: all that are drops (drop_action_*, datapath_drop_*, netdev_*_drops) as frames, all of upcalls, and
// of the others those that moved most.
func addEvents(add adder, before, after map[string]uint64) {
	var drops, events []providers.Metric
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch n := diff(after[name], before[name]); {
		case n == 0:
		case strings.Contains(name, "drop"):
			drops = append(drops, frames(name, n))
		default:
			events = append(events, providers.Metric{Name: name, Value: float64(n)})
		}
	}
	slices.SortStableFunc(events, func(a, b providers.Metric) int {
		first := func(m providers.Metric) int {
			if strings.Contains(m.Name, "upcall") {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(b.Value, a.Value))
	})
	shown := events[:0:0]
	for _, e := range events {
		if strings.Contains(e.Name, "upcall") || len(shown) < topEvents {
			shown = append(shown, e)
		}
	}
	if left := len(events) - len(shown); left > 0 {
		shown = append(shown, providers.Metric{Name: "events_not_shown", Value: float64(left)})
	}
	add("datapath", "drops", drops...)
	add("coverage", "events", shown...)
}
