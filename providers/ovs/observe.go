package ovs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plumb/providers"
	"plumb/providers/internal/unixctl"
)

// reading is everything that the observer reads at one moment.
type reading struct {
	pmds      map[int]pmdStats
	rxqs      []rxqShare // of the second reading
	rxqWindow int        // seconds that their shares are of; 0: as ovs-vswitchd sees fit
	paths     map[string]datapath
	upcalls   map[string]revalidation
	coverage  map[string]uint64
	resets    map[string]uint64 // of links, by interface
}

// Observe reads the counters of the datapath before and after, and reports the differences: busy and idle cycles, cache hits, upcalls, drops.
// Each reading is one connection to ovs-vswitchd and one to the database, and nothing is read in between. The shares of receive queues are
// ovs-vswitchd's own, of whole intervals of 5 s that have ended; coverage counters of PMD threads reach the total up to some seconds late
// (lib/coverage.c).
func (switchType) Observe(ctx context.Context, host providers.Host, _ []providers.Subject) (func(context.Context) ([]providers.Observation, error), error) {
	s, err := sessionOf(ctx, host)
	if err != nil {
		return nil, err
	}
	before, exact, err := s.observed(ctx)
	if err != nil {
		return nil, err
	}
	if !exact && len(before.pmds) > 0 {
		// Shares of all cycles since the statistics were cleared say nothing of a few seconds when that is long ago.
		if _, err := s.appctl(ctx, []string{"dpif-netdev/pmd-stats-clear"}); err != nil {
			return nil, fmt.Errorf("clear the statistics of PMD threads on %s: %w", host.Name(), err)
		}
		before.pmds = map[int]pmdStats{}
	}
	began := time.Now()
	return func(ctx context.Context) ([]providers.Observation, error) {
		window := rxqWindow(time.Since(began))
		after, _, err := s.observed(ctx, []string{"dpif-netdev/pmd-rxq-show", "-secs", fmt.Sprint(window)}, []string{"dpif-netdev/pmd-rxq-show"})
		if err != nil {
			return nil, err
		}
		return observations(host.Name(), before, after), nil
	}, nil
}

// rxqWindow is how many seconds pmd-rxq-show is to look back: it counts in intervals of 5 s, of which it keeps twelve.
func rxqWindow(d time.Duration) int {
	return int(min(max((d+5*time.Second-1)/(5*time.Second), 1), 12)) * 5
}

// observed reads once. rxqs are the commands that show receive queues, the first of which an old ovs-vswitchd refuses. exact: cycles are known to
// the last one, which pmd-stats-show tells. It is gone in OVS 4.0; pmd-perf-show has shares only.
func (s *session) observed(ctx context.Context, rxqs ...[]string) (r reading, exact bool, err error) {
	commands := append([][]string{{"dpif-netdev/pmd-stats-show"}, {"dpif-netdev/pmd-perf-show"}, {"dpctl/show", "-s"}, {"upcall/show"}, {"coverage/show"}}, rxqs...)
	out, err := s.appctl(ctx, commands...)
	var refused *unixctl.Error
	if err != nil && !errors.As(err, &refused) { // without a netdev datapath, and of another version, there is less to read
		return r, false, fmt.Errorf("watch ovs-vswitchd on %s: %w", s.host.Name(), err)
	}
	if r.resets, err = s.linkResets(ctx); err != nil {
		return r, false, err
	}
	r.pmds, exact = mergePMDs(parsePMDStats(out[0]), parsePMDPerf(out[1]))
	r.paths, r.upcalls, r.coverage = parseDatapaths(out[2]), parseUpcalls(out[3]), parseCoverage(out[4])
	for i := range rxqs {
		if r.rxqs = parseRxqs(out[5+i]); len(r.rxqs) > 0 {
			r.rxqWindow = shownWindow(out[5+i])
			break
		}
	}
	return r, exact, nil
}

// mergePMDs takes the cycles and hits of pmd-stats-show where it was read, and the rest of pmd-perf-show.
func mergePMDs(stats, perf map[int]pmdStats) (merged map[int]pmdStats, exact bool) {
	if len(stats) == 0 {
		for core, p := range perf {
			p.idle, p.busy = p.perf.sharesIdle, p.perf.sharesOfBusy
			perf[core] = p
		}
		return perf, false
	}
	for core, p := range stats {
		p.perf = perf[core].perf
		stats[core] = p
	}
	return stats, true
}
