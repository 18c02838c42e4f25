package ovs

import (
	"regexp"
	"strconv"
	"strings"
)

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

// datapath is what dpctl/show -s tells of one of them.
type datapath struct {
	hit, missed, lost, flows uint64
	masks, maskHit           uint64 // of the kernel's; masks 0: not told
	ports                    map[string]datapathPort
}

type datapathPort struct {
	rx, tx, rxDropped, txDropped, rxErrors, txErrors uint64
}

// parseDatapaths reads dpctl/show -s by the names of the datapaths. A counter that is ? or could not be read is zero.
func parseDatapaths(out string) map[string]datapath {
	head := regexp.MustCompile(`(?:^|\s)port \d+: (\S+)`)
	pair := regexp.MustCompile(`(\w+): ?(\d+)`)
	paths := map[string]datapath{}
	name, port := "", ""
	for line := range strings.Lines(out) {
		if m := head.FindStringSubmatch(line); m != nil && name != "" {
			port = m[1]
			paths[name].ports[port] = datapathPort{}
			continue
		}
		text := strings.TrimSpace(line)
		if n, ok := strings.CutSuffix(text, ":"); ok && n != "" && !strings.ContainsAny(n, " \t") && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			name, port = n, ""
			paths[name] = datapath{ports: map[string]datapathPort{}}
			continue
		}
		d, ok := paths[name]
		if !ok {
			continue
		}
		got := map[string]uint64{}
		for _, m := range pair.FindAllStringSubmatch(text, -1) {
			if n, err := strconv.ParseUint(m[2], 10, 64); err == nil {
				got[m[1]] = n
			}
		}
		switch {
		case strings.HasPrefix(text, "lookups:"):
			d.hit, d.missed, d.lost = got["hit"], got["missed"], got["lost"]
		case strings.HasPrefix(text, "flows:"):
			d.flows = got["flows"]
		case strings.HasPrefix(text, "masks:"):
			d.maskHit, d.masks = got["hit"], got["total"]
		case port != "" && strings.HasPrefix(text, "RX packets"):
			p := d.ports[port]
			p.rx, p.rxErrors, p.rxDropped = got["packets"], got["errors"], got["dropped"]
			d.ports[port] = p
		case port != "" && strings.HasPrefix(text, "TX packets"):
			p := d.ports[port]
			p.tx, p.txErrors, p.txDropped = got["packets"], got["errors"], got["dropped"]
			d.ports[port] = p
		}
		paths[name] = d
	}
	return paths
}

// revalidation is what upcall/show tells of a datapath: the flows that its revalidators keep, and how long one round of theirs takes.
type revalidation struct {
	flows, most, limit uint64
	dumpMilliseconds   uint64
}

// parseUpcalls reads upcall/show by the names of the datapaths (ofproto/ofproto-dpif-upcall.c).
func parseUpcalls(out string) map[string]revalidation {
	flows := regexp.MustCompile(`\(current (\d+)\) \(avg \d+\) \(max (\d+)\) \(limit (\d+)\)`)
	paths := map[string]revalidation{}
	name := ""
	for line := range strings.Lines(out) {
		text := strings.TrimSpace(line)
		if n, ok := strings.CutSuffix(text, ":"); ok && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			name = n
			paths[name] = revalidation{}
			continue
		}
		r, ok := paths[name]
		if !ok {
			continue
		}
		key, val, _ := strings.Cut(text, ":")
		switch strings.TrimSpace(key) {
		case "flows":
			if m := flows.FindStringSubmatch(val); m != nil {
				for i, into := range []*uint64{&r.flows, &r.most, &r.limit} {
					*into, _ = strconv.ParseUint(m[i+1], 10, 64) // digits, as the pattern says
				}
			}
		case "dump duration":
			r.dumpMilliseconds, _ = leadingNumber(val)
		}
		paths[name] = r
	}
	return paths
}
