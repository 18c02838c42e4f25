package ovs

import (
	"regexp"
	"strconv"
	"strings"
)

// rxqShare is one receive queue and the share of its PMD thread's time that it takes.
type rxqShare struct {
	core, queue     int
	port            string
	enabled         bool    // always, before OVS 2.13, which does not say
	usage, overhead float64 // percent; -1: not available. overhead is the thread's, outside of queues
	isolated        bool
}

// parseRxqs reads dpif-netdev/pmd-rxq-show.
func parseRxqs(out string) []rxqShare {
	queue := regexp.MustCompile(`^port:\s+(\S+)\s+queue-id:\s+(\d+)(?:\s+\((\w+)\))?\s+pmd usage:\s+(\d+|NOT AVAIL)`)
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
				list[first+i].overhead = wholePercent(v)
			}
		} else if m := queue.FindStringSubmatch(line); m != nil {
			q, err := strconv.Atoi(m[2])
			if err != nil {
				continue
			}
			list = append(list, rxqShare{core: core, queue: q, port: m[1], enabled: m[3] != "disabled", usage: wholePercent(m[4]), overhead: -1, isolated: isolated})
		}
	}
	return list
}

func wholePercent(s string) float64 {
	n, ok := leadingNumber(s)
	if !ok {
		return -1
	}
	return float64(n)
}

// shownWindow is how many seconds the shares are of, which pmd-rxq-show says since OVS 3.1; 0: it does not say.
func shownWindow(out string) int {
	m := regexp.MustCompile(`Displaying last (\d{1,4}) seconds`).FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}
