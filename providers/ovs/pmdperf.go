package ovs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pmdPerf is what only pmd-perf-show tells of a thread. The zero value: it was not read.
type pmdPerf struct {
	seconds                  float64 // since the statistics were cleared
	iterations, busy         uint64  // busy: those that received something
	asleep                   uint64  // µs
	txPackets, txBatches     uint64
	cyclesPerMicrosecond     float64   // of the time stamp counter; 0: not known
	cycles, vhostQueue       histogram // by iteration; empty without other_config:pmd-perf-metrics
	sharesIdle, sharesOfBusy uint64    // cycles, exact to 0.1 % of all since the statistics were cleared
}

// histogram counts values that are at most each wall; the last bin those beyond.
type histogram struct {
	walls []uint64
	bins  []uint64 // one more than walls
}

// parsePMDPerf reads dpif-netdev/pmd-perf-show, by core (lib/dpif-netdev-perf.c). idle and busy are not set: it has shares only.
func parsePMDPerf(out string) map[int]pmdStats {
	pmds := map[int]pmdStats{}
	head := pmdHead()
	core, seconds := -1, 0.0
	var used uint64
	table := false
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		key, val, ok := strings.Cut(line, ":")
		switch {
		case key == "Measurement duration": // stands before the thread that it is of
			seconds = decimal(val)
			continue
		case head.MatchString(line):
			core, _ = strconv.Atoi(head.FindStringSubmatch(line)[2])
			pmds[core] = pmdStats{core: core, perf: pmdPerf{seconds: seconds}}
			used, table = 0, false
			continue
		case strings.HasPrefix(line, "main thread"):
			core = -1
		case line == "Histograms":
			table = true
			continue
		}
		p, there := pmds[core]
		if !there {
			continue
		}
		switch {
		case table && strings.HasPrefix(line, "---"): // averages follow
			core = -1
		case table:
			p.perf.addBins(strings.Fields(line))
		case ok:
			if n, found := leadingNumber(val); found {
				p.readPerf(strings.TrimPrefix(key, "- "), val, n, &used)
			}
		}
		if core >= 0 {
			pmds[core] = p
		}
	}
	return pmds
}

// readPerf takes one line. used are the thread's cycles, which stand before their shares.
func (p *pmdStats) readPerf(key, val string, n uint64, used *uint64) {
	share := func(of string) float64 {
		m := regexp.MustCompile(`([0-9.]+)\s*% of ` + of).FindStringSubmatch(val)
		if m == nil {
			return 0
		}
		return min(decimal(m[1]), 100) / 100
	}
	switch key {
	case "Iterations":
		p.perf.iterations = n
	case "Used TSC cycles":
		*used = n
		// The share has one decimal: of a thread that mostly sleeps it says too little.
		if s := share("total cycles"); s > 0.05 && p.perf.seconds > 0 {
			p.perf.cyclesPerMicrosecond = float64(n) / s / p.perf.seconds / 1e6
		}
	case "idle iterations":
		p.perf.sharesIdle = uint64(float64(*used) * share("used cycles"))
	case "busy iterations":
		p.perf.busy, p.perf.sharesOfBusy = n, uint64(float64(*used)*share("used cycles"))
	case "Sleep time (us)":
		p.perf.asleep = n
	case "Rx packets":
		p.packets = n
	case "Datapath passes":
		p.passes = n
	case "Upcalls":
		p.upcalls = n
	case "Lost upcalls":
		p.lost = n
	case "Tx packets":
		p.perf.txPackets = n
	case "Tx batches":
		p.perf.txBatches = n
	case "Megaflow hits":
		p.megaflow = n
		if _, rest, ok := strings.Cut(val, "%,"); ok {
			p.lookups = decimal(rest) * float64(n)
		}
	default:
		if into := p.counter(key); into != nil {
			*into = n
		}
	}
}

// addBins takes a line of the table: seven pairs of a wall and a count, of which cycles/it is the first and max vhost qlen the fifth.
func (p *pmdPerf) addBins(f []string) {
	if len(f) != 14 {
		return
	}
	for at, h := range map[int]*histogram{0: &p.cycles, 8: &p.vhostQueue} {
		n, err := strconv.ParseUint(f[at+1], 10, 64)
		wall, wallErr := strconv.ParseUint(f[at], 10, 64)
		switch {
		case err != nil || len(h.bins) > len(h.walls): // the last bin was there
		case f[at] == ">":
			h.bins = append(h.bins, n)
		case wallErr == nil:
			h.walls, h.bins = append(h.walls, wall), append(h.bins, n)
		}
	}
}

func (p pmdPerf) since(before pmdPerf) pmdPerf {
	d := p
	d.iterations, d.busy, d.asleep = diff(p.iterations, before.iterations), diff(p.busy, before.busy), diff(p.asleep, before.asleep)
	d.txPackets, d.txBatches = diff(p.txPackets, before.txPackets), diff(p.txBatches, before.txBatches)
	if p.seconds > before.seconds {
		d.seconds -= before.seconds
	}
	d.cycles, d.vhostQueue = histogram{}, histogram{}
	if before.iterations == 0 || !before.cycles.empty() { // else the metrics were switched on meanwhile, and the histograms may be older than that
		d.cycles, d.vhostQueue = p.cycles.since(before.cycles), p.vhostQueue.since(before.vhostQueue)
	}
	return d
}

func (h histogram) since(before histogram) histogram {
	if !slices.Equal(h.walls, before.walls) || len(h.bins) != len(before.bins) {
		return h
	}
	d := histogram{walls: h.walls, bins: slices.Clone(h.bins)}
	for i := range d.bins {
		d.bins[i] = diff(h.bins[i], before.bins[i])
	}
	return d
}

// most is the wall that the greatest value is not above; false: it is beyond the last wall, or there are none.
func (h histogram) most() (uint64, bool) {
	for i := len(h.bins) - 1; i >= 0 && len(h.walls) > 0; i-- {
		if h.bins[i] > 0 {
			return h.walls[min(i, len(h.walls)-1)], i < len(h.walls)
		}
	}
	return 0, false
}

// over counts the values in bins that lie wholly above a limit.
func (h histogram) over(limit float64) uint64 {
	var n uint64
	for i, count := range h.bins {
		if i > 0 && float64(h.walls[i-1]) >= limit {
			n += count
		}
	}
	return n
}

func (h histogram) empty() bool {
	return !slices.ContainsFunc(h.bins, func(n uint64) bool { return n > 0 })
}
