package ovs

import (
	"regexp"
	"strconv"
	"strings"
)

// pmdStats is what one PMD thread counted since it was started or its statistics were cleared. Hits and misses are of datapath passes, and
// exclude one another (lib/dpif-netdev-perf.h).
type pmdStats struct {
	core            int
	packets, passes uint64 // passes: with recirculations
	idle, busy      uint64 // cycles
	phwol, mfex     uint64 // hits of partial hardware offload, of the optimised miniflow extract
	simple, emc     uint64
	smc, megaflow   uint64
	upcalls, lost   uint64  // misses whose upcall succeeded, failed
	lookups         float64 // subtables looked at for all megaflow hits; exact to 0.005 a hit
	perf            pmdPerf
}

func pmdHead() *regexp.Regexp {
	return regexp.MustCompile(`^pmd thread numa_id (\d+) core_id\s+(\d+):`)
}

// counter is where a line of pmd-stats-show or pmd-perf-show goes; nil: it is not a counter of both.
func (p *pmdStats) counter(key string) *uint64 {
	switch strings.ToLower(key) {
	case "phwol hits":
		return &p.phwol
	case "mfex opt hits":
		return &p.mfex
	case "simple match hits":
		return &p.simple
	case "emc hits":
		return &p.emc
	case "smc hits":
		return &p.smc
	case "megaflow hits":
		return &p.megaflow
	}
	return nil
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
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") { // tabs before OVS 2.10
			core = -1 // "main thread:"
			continue
		}
		key, val, ok := strings.Cut(strings.TrimSpace(line), ":")
		n, found := leadingNumber(val)
		if core < 0 || !ok || !found {
			continue
		}
		p := pmds[core]
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
		case "avg. subtable lookups per megaflow hit": // follows the hits
			p.lookups = decimal(val) * float64(p.megaflow)
		case "miss with success upcall":
			p.upcalls = n
		case "miss with failed upcall":
			p.lost = n
		default:
			if into := p.counter(key); into != nil {
				*into = n
			}
		}
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

// decimal is the number that a text begins with, such as 1.25; 0 for none.
func decimal(s string) float64 {
	s = strings.TrimSpace(s)
	if end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		s = s[:end]
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return f
}

// since is the difference of two readings; a counter that went back (cleared by others) counts from zero.
func (p pmdStats) since(before pmdStats) pmdStats {
	lookups := p.lookups
	if p.megaflow >= before.megaflow {
		lookups = max(0, lookups-before.lookups)
	}
	return pmdStats{
		core: p.core, packets: diff(p.packets, before.packets), idle: diff(p.idle, before.idle), busy: diff(p.busy, before.busy),
		passes: diff(p.passes, before.passes), phwol: diff(p.phwol, before.phwol), mfex: diff(p.mfex, before.mfex),
		simple: diff(p.simple, before.simple), emc: diff(p.emc, before.emc), smc: diff(p.smc, before.smc),
		megaflow: diff(p.megaflow, before.megaflow), upcalls: diff(p.upcalls, before.upcalls), lost: diff(p.lost, before.lost),
		lookups: lookups, perf: p.perf.since(before.perf),
	}
}

func diff(a, b uint64) uint64 {
	if a < b {
		return a
	}
	return a - b
}
