package ovs

import (
	"regexp"
	"strconv"
	"strings"
)

// pmdStats is what one PMD thread counted. Hits and misses are of datapath passes.
type pmdStats struct {
	core              int
	packets           uint64
	idle, busy        uint64 // cycles
	passes            uint64
	phwol, mfex       uint64 // hits of partial hardware offload, of the optimised miniflow extract
	simple, emc, smc  uint64
	megaflow          uint64
	upcalls, lost     uint64 // misses whose upcall succeeded, failed
	sleepMicroseconds uint64
}

func pmdHead() *regexp.Regexp {
	return regexp.MustCompile(`^pmd thread numa_id (\d+) core_id\s+(\d+):`)
}

// parsePMDStats reads dpif-netdev/pmd-stats-show (OVS up to 3.7), by core.
func parsePMDStats(out string) map[int]pmdStats {
	pmds := map[int]pmdStats{}
	head := pmdHead()
	core := -1
	for line := range strings.Lines(out) {
		if m := head.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			core, _ = strconv.Atoi(m[2])
			pmds[core] = pmdStats{core: core}
			continue
		}
		if !strings.HasPrefix(line, " ") {
			core = -1 // "main thread:"
			continue
		}
		key, val, ok := strings.Cut(strings.TrimSpace(line), ":")
		if core < 0 || !ok {
			continue
		}
		p := pmds[core]
		n, found := leadingNumber(val)
		if !found {
			continue
		}
		switch key {
		case "packets received":
			p.packets = n
			p.passes += n
		case "packet recirculations":
			p.passes += n
		case "idle cycles":
			p.idle = n
		case "processing cycles":
			p.busy = n
		case "phwol hits":
			p.phwol = n
		case "mfex opt hits":
			p.mfex = n
		case "simple match hits":
			p.simple = n
		case "emc hits":
			p.emc = n
		case "smc hits":
			p.smc = n
		case "megaflow hits":
			p.megaflow = n
		case "miss with success upcall":
			p.upcalls = n
		case "miss with failed upcall":
			p.lost = n
		}
		pmds[core] = p
	}
	return pmds
}

// parsePMDPerf reads dpif-netdev/pmd-perf-show, by core. It has cycles as a sum with shares, so idle and busy are exact to 0.1 %.
func parsePMDPerf(out string) map[int]pmdStats {
	share := regexp.MustCompile(`\(\s*([0-9.]+)\s*% of used cycles\)`)
	pmds := map[int]pmdStats{}
	head := pmdHead()
	core := -1
	var used uint64
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if m := head.FindStringSubmatch(line); m != nil {
			core, _ = strconv.Atoi(m[2])
			pmds[core] = pmdStats{core: core}
			used = 0
			continue
		}
		if strings.HasPrefix(line, "Histograms") {
			core = -1
		}
		key, val, ok := strings.Cut(line, ":")
		if core < 0 || !ok {
			continue
		}
		n, found := leadingNumber(val)
		if !found {
			continue
		}
		p := pmds[core]
		part := func() uint64 {
			if m := share.FindStringSubmatch(val); m != nil {
				if f, err := strconv.ParseFloat(m[1], 64); err == nil {
					return uint64(float64(used) * min(f, 100) / 100)
				}
			}
			return 0
		}
		switch strings.TrimPrefix(key, "- ") {
		case "Used TSC cycles":
			used = n
		case "idle iterations":
			p.idle = part()
		case "busy iterations":
			p.busy = part()
		case "Sleep time (us)":
			p.sleepMicroseconds = n
		case "Rx packets":
			p.packets = n
		case "Datapath passes":
			p.passes = n
		case "PHWOL hits":
			p.phwol = n
		case "MFEX Opt hits":
			p.mfex = n
		case "Simple Match hits":
			p.simple = n
		case "EMC hits":
			p.emc = n
		case "SMC hits":
			p.smc = n
		case "Megaflow hits":
			p.megaflow = n
		case "Upcalls":
			p.upcalls = n
		case "Lost upcalls":
			p.lost = n
		}
		pmds[core] = p
	}
	for core, p := range pmds { // perf-show counts lost upcalls among the upcalls
		p.upcalls -= min(p.lost, p.upcalls)
		pmds[core] = p
	}
	return pmds
}

func leadingNumber(s string) (uint64, bool) {
	s = strings.TrimSpace(s)
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	n, err := strconv.ParseUint(s[:end], 10, 64)
	return n, err == nil
}

// since is the difference of two readings; a counter that went back (cleared by others) counts from zero.
func (p pmdStats) since(before pmdStats) pmdStats {
	diff := func(a, b uint64) uint64 {
		if a < b {
			return a
		}
		return a - b
	}
	return pmdStats{
		core: p.core, packets: diff(p.packets, before.packets), idle: diff(p.idle, before.idle), busy: diff(p.busy, before.busy),
		passes: diff(p.passes, before.passes), phwol: diff(p.phwol, before.phwol), mfex: diff(p.mfex, before.mfex),
		simple: diff(p.simple, before.simple), emc: diff(p.emc, before.emc), smc: diff(p.smc, before.smc),
		megaflow: diff(p.megaflow, before.megaflow), upcalls: diff(p.upcalls, before.upcalls), lost: diff(p.lost, before.lost),
		sleepMicroseconds: diff(p.sleepMicroseconds, before.sleepMicroseconds),
	}
}

// rxqShare is one receive queue and the share of its PMD thread's time that it takes.
type rxqShare struct {
	core, queue     int
	port            string
	enabled         bool
	usage, overhead float64 // percent; -1: not available. overhead is the thread's, outside of queues
	isolated        bool
}

// parseRxqs reads dpif-netdev/pmd-rxq-show.
func parseRxqs(out string) []rxqShare {
	queue := regexp.MustCompile(`^port:\s+(\S+)\s+queue-id:\s+(\d+)\s+\((\w+)\)\s+pmd usage:\s+(\d+|NOT AVAIL)`)
	var list []rxqShare
	head := pmdHead()
	core, isolated, first := -1, false, 0
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if m := head.FindStringSubmatch(line); m != nil {
			core, _ = strconv.Atoi(m[2])
			isolated, first = false, len(list)
			continue
		}
		if core < 0 {
			continue
		}
		if v, ok := strings.CutPrefix(line, "isolated :"); ok {
			isolated = strings.TrimSpace(v) == "true"
		} else if v, ok := strings.CutPrefix(line, "overhead:"); ok {
			for i := range list[first:] {
				list[first+i].overhead = percent(v)
			}
		} else if m := queue.FindStringSubmatch(line); m != nil {
			q, err := strconv.Atoi(m[2])
			if err != nil {
				continue
			}
			list = append(list, rxqShare{core: core, queue: q, port: m[1], enabled: m[3] == "enabled", usage: percent(m[4]), overhead: -1, isolated: isolated})
		}
	}
	return list
}

func percent(s string) float64 {
	n, ok := leadingNumber(s)
	if !ok {
		return -1
	}
	return float64(n)
}

// parseCoverage reads coverage/show: totals by event.
func parseCoverage(out string) map[string]uint64 {
	totals := map[string]uint64{}
	for line := range strings.Lines(out) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.LastIndex(rest, "total: "); i >= 0 {
			if n, ok := leadingNumber(rest[i+len("total: "):]); ok {
				totals[name] = n
			}
		}
	}
	return totals
}

// datapathPort is one port of dpctl/show -s.
type datapathPort struct {
	rx, tx, rxDropped, txDropped, rxErrors, txErrors uint64
}

// parseDatapath reads dpctl/show -s: ports by name. What is ? or could not be read is zero.
func parseDatapath(out string) map[string]datapathPort {
	head := regexp.MustCompile(`(?:^|\s)port \d+: (\S+)`)
	counter := regexp.MustCompile(`(packets|errors|dropped):(\d+)`)
	ports := map[string]datapathPort{}
	name := ""
	for line := range strings.Lines(out) {
		if m := head.FindStringSubmatch(line); m != nil {
			name = m[1]
			ports[name] = datapathPort{}
			continue
		}
		line = strings.TrimSpace(line)
		rx := strings.HasPrefix(line, "RX packets")
		if name == "" || !rx && !strings.HasPrefix(line, "TX packets") {
			continue
		}
		p := ports[name]
		for _, m := range counter.FindAllStringSubmatch(line, -1) {
			n, err := strconv.ParseUint(m[2], 10, 64)
			if err != nil {
				continue
			}
			switch into := map[bool]string{true: "rx ", false: "tx "}[rx] + m[1]; into {
			case "rx packets":
				p.rx = n
			case "rx errors":
				p.rxErrors = n
			case "rx dropped":
				p.rxDropped = n
			case "tx packets":
				p.tx = n
			case "tx errors":
				p.txErrors = n
			case "tx dropped":
				p.txDropped = n
			}
		}
		ports[name] = p
	}
	return ports
}
