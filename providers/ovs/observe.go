package ovs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/unixctl"
)

// reading is everything that the observer reads at one moment.
type reading struct {
	pmds     map[int]pmdStats
	rxqs     []rxqShare
	ports    map[string]datapathPort
	coverage map[string]uint64
}

// Observe reads the counters of the datapath's threads before and after, and reports the differences: busy and idle cycles, cache
// hits, drops. The shares of receive queues are ovs-vswitchd's own, over the last minute at most.
func (switchType) Observe(ctx context.Context, host providers.Host, _ []providers.Subject) (func(context.Context) ([]providers.Observation, error), error) {
	s, err := sessionOf(ctx, host)
	if err != nil {
		return nil, err
	}
	perf, err := s.perfOnly(ctx)
	if err != nil {
		return nil, err
	}
	before, err := s.read(ctx, perf)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]providers.Observation, error) {
		after, err := s.read(ctx, perf)
		if err != nil {
			return nil, err
		}
		return observations(host.Name(), before, after), nil
	}, nil
}

// perfOnly says whether pmd-stats-show is gone (OVS 4.0), so that pmd-perf-show has to do.
func (s *session) perfOnly(ctx context.Context) (bool, error) {
	_, err := s.appctl(ctx, []string{"dpif-netdev/pmd-stats-show"})
	var refused *unixctl.Error
	if errors.As(err, &refused) {
		return strings.Contains(refused.Text, "is not a valid command"), nil
	}
	return false, err
}

func (s *session) read(ctx context.Context, perf bool) (reading, error) {
	show := "dpif-netdev/pmd-stats-show"
	if perf {
		show = "dpif-netdev/pmd-perf-show"
	}
	var r reading
	out, err := s.appctl(ctx, []string{show}, []string{"dpif-netdev/pmd-rxq-show"}, []string{"dpctl/show", "-s"}, []string{"coverage/show"})
	var refused *unixctl.Error
	if err != nil && !errors.As(err, &refused) { // without a netdev datapath there is less to read
		return r, fmt.Errorf("watch ovs-vswitchd on %s: %w", s.host.Name(), err)
	}
	if perf {
		r.pmds = parsePMDPerf(out[0])
	} else {
		r.pmds = parsePMDStats(out[0])
	}
	r.rxqs, r.ports, r.coverage = parseRxqs(out[1]), parseDatapath(out[2]), parseCoverage(out[3])
	return r, nil
}

// observations turns two readings into what a report shows.
func observations(host string, before, after reading) []providers.Observation {
	var out []providers.Observation
	add := func(kind, subject string, metrics ...providers.Metric) {
		if len(metrics) > 0 {
			out = append(out, providers.Observation{Host: host, Kind: kind, Subject: subject, Metrics: metrics})
		}
	}
	share := func(part, whole uint64) float64 {
		if whole == 0 {
			return 0
		}
		return 100 * float64(part) / float64(whole)
	}
	for _, core := range slices.Sorted(maps.Keys(after.pmds)) {
		p := after.pmds[core].since(before.pmds[core])
		name := fmt.Sprintf("core %d", core)
		total := p.idle + p.busy
		m := []providers.Metric{
			{Name: "busy", Value: share(p.busy, total), Unit: "%"}, {Name: "busy_cycles", Value: float64(p.busy), Unit: "cycles"},
			{Name: "idle_cycles", Value: float64(p.idle), Unit: "cycles"}, {Name: "packets", Value: float64(p.packets), Unit: "frames"},
		}
		if p.packets > 0 {
			m = append(m, providers.Metric{Name: "busy_cycles_per_packet", Value: float64(p.busy) / float64(p.packets), Unit: "cycles"},
				providers.Metric{Name: "passes_per_packet", Value: float64(p.passes) / float64(p.packets)})
		}
		add("pmd", name, m...)
		if p.passes > 0 {
			var hits []providers.Metric
			for _, h := range []struct {
				name string
				n    uint64
			}{{"phwol", p.phwol}, {"simple_match", p.simple}, {"emc", p.emc}, {"smc", p.smc}, {"megaflow", p.megaflow}, {"upcall", p.upcalls}, {"upcall_failed", p.lost}} {
				hits = append(hits, providers.Metric{Name: h.name, Value: share(h.n, p.passes), Unit: "%"})
			}
			add("cache", name, hits...)
		}
	}
	for _, q := range after.rxqs {
		m := []providers.Metric{{Name: "enabled", Value: 1}}
		if !q.enabled {
			m[0].Value = 0
		}
		if q.usage >= 0 {
			m = append(m, providers.Metric{Name: "usage", Value: q.usage, Unit: "%"})
		}
		if q.overhead >= 0 {
			m = append(m, providers.Metric{Name: "overhead_of_core", Value: q.overhead, Unit: "%"})
		}
		add("rxq", fmt.Sprintf("%s queue %d on core %d", q.port, q.queue, q.core), m...)
	}
	minus := func(a, b uint64) float64 { return float64(a - min(a, b)) }
	for _, name := range slices.Sorted(maps.Keys(after.ports)) {
		a, b := after.ports[name], before.ports[name]
		add("port", name,
			providers.Metric{Name: "rx", Value: minus(a.rx, b.rx), Unit: "frames"}, providers.Metric{Name: "tx", Value: minus(a.tx, b.tx), Unit: "frames"},
			providers.Metric{Name: "rx_dropped", Value: minus(a.rxDropped, b.rxDropped), Unit: "frames"},
			providers.Metric{Name: "tx_dropped", Value: minus(a.txDropped, b.txDropped), Unit: "frames"},
			providers.Metric{Name: "rx_errors", Value: minus(a.rxErrors, b.rxErrors), Unit: "frames"},
			providers.Metric{Name: "tx_errors", Value: minus(a.txErrors, b.txErrors), Unit: "frames"})
	}
	var drops []providers.Metric
	for _, name := range slices.Sorted(maps.Keys(after.coverage)) {
		if n := minus(after.coverage[name], before.coverage[name]); n > 0 && (strings.Contains(name, "drop") || strings.Contains(name, "upcall")) {
			drops = append(drops, providers.Metric{Name: name, Value: n, Unit: "frames"})
		}
	}
	add("datapath", "drops and upcalls", drops...)
	return out
}
