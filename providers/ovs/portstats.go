package ovs

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/attr"
)

// portStats is one port's block of ovs-ofctl dump-ports, by name: "rx pkts", "tx drop", and the custom statistics. What is printed
// as ? is not there.
type portStats map[string]uint64

// parsePorts reads ovs-ofctl dump-ports: by port number, or LOCAL, or name.
func parsePorts(out string) map[string]portStats {
	head := regexp.MustCompile(`^\s*port\s+"?([^":]+)"?:\s*(.*)$`)
	pair := regexp.MustCompile(`([A-Za-z_0-9.]+)=(\d+)(?:,|\s|$)`)
	ports := map[string]portStats{}
	var cur portStats
	prefix := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\r\n")
		if m := head.FindStringSubmatch(line); m != nil {
			cur = portStats{}
			ports[m[1]] = cur
			line = m[2]
		}
		line = strings.TrimSpace(line)
		switch {
		case cur == nil:
			continue
		case strings.HasPrefix(line, "rx "):
			prefix = "rx "
		case strings.HasPrefix(line, "tx "):
			prefix = "tx "
		case strings.HasPrefix(line, "duration="):
			continue
		default:
			prefix = ""
		}
		for _, m := range pair.FindAllStringSubmatch(line, -1) {
			if n, err := strconv.ParseUint(m[2], 10, 64); err == nil {
				cur[prefix+m[1]] = n
			}
		}
	}
	return ports
}

// counters takes what the ledger wants. The drops that Open vSwitch itself names are parts of the port's rx and tx drops
// (lib/netdev-dpdk.c), so those are reported without them: the causes add up to the whole.
func (s portStats) counters() providers.Counters {
	c := providers.Counters{Rx: s["rx pkts"], Tx: s["tx pkts"], RxBytes: s["rx bytes"], TxBytes: s["tx bytes"], Drops: map[string]uint64{}}
	named := map[string]uint64{}
	for k, n := range s {
		if strings.HasPrefix(k, "ovs_") && strings.HasSuffix(k, "_drops") {
			c.Drops[k] = n
			if strings.HasPrefix(k, "ovs_tx_") {
				named["tx"] += n
			} else if strings.HasPrefix(k, "ovs_rx_") {
				named["rx"] += n
			}
		}
	}
	for _, d := range []string{"rx", "tx"} {
		total := s[d+" drop"]
		c.Drops[d+"_dropped"] = total - min(total, named[d])
		c.Drops[d+"_errors"] = s[d+" errs"]
	}
	for _, k := range []string{"rx_missed_errors", "rx_mbuf_allocation_errors"} {
		if n, ok := s[k]; ok {
			c.Drops[k] = n
		}
	}
	return c
}

// Count asks each bridge once: the numbers are those of now, not the ones of the database, which are up to 5 s old. Only the resets of links come
// from there: they are written when they happen.
func (portType) Count(ctx context.Context, host providers.Host, of []providers.Subject) ([]providers.Counters, error) {
	s, err := sessionOf(ctx, host)
	if err != nil {
		return nil, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	resets, err := s.linkResets(ctx)
	if err != nil {
		return nil, err
	}
	byBridge := map[string]map[string]portStats{}
	out := make([]providers.Counters, len(of))
	for i, sub := range of {
		name := attr.Text(sub.Value, "bridge")
		stats, ok := byBridge[name]
		if !ok {
			b := w.bridges[name]
			if b == nil {
				return nil, fmt.Errorf("count at %s: %s has no bridge %s", sub.Addr, host.Name(), name)
			}
			res, err := host.Conn().Run(ctx, providers.Cmd{Args: []string{"ovs-ofctl", "-O", statsVersion(b), "--no-names", "dump-ports", name}})
			if err != nil {
				return nil, fmt.Errorf("read the counters of bridge %s: %w", name, err)
			}
			stats = parsePorts(string(res.Stdout))
			byBridge[name] = stats
		}
		n, _ := number(sub.Value, "ofport")
		port, ok := stats[strconv.FormatInt(n, 10)]
		if !ok {
			return nil, fmt.Errorf("count at %s: bridge %s on %s has no port %d", sub.Addr, name, host.Name(), n)
		}
		out[i] = port.counters()
		out[i].LinkResets = resets[attr.Text(sub.Value, "name")]
	}
	return out, nil
}

// linkResets is how often the link of each interface went up or down. Open vSwitch counts that for NICs and kernel devices; of vhost ports it stays 0
// although their links come and go with the other side (netdev_dpdk of 3.1).
func (s *session) linkResets(ctx context.Context) (map[string]uint64, error) {
	res, err := s.transact(ctx, op{"op": "select", "table": "Interface", "where": []any{}, "columns": []string{"name", "link_resets"}})
	if err != nil {
		return nil, fmt.Errorf("read the resets of links on %s: %w", s.host.Name(), err)
	}
	out := map[string]uint64{}
	for _, r := range res[0] {
		n, _ := r.num("link_resets") // no value: not known
		out[r.str("name")] = uint64(max(0, n))
	}
	return out, nil
}

// statsVersion is OpenFlow14 where it is spoken: only from there on are there custom statistics.
func statsVersion(b *bridge) string {
	for _, v := range []string{"OpenFlow14", "OpenFlow15"} {
		if len(b.protocols) == 0 || slices.Contains(b.protocols, v) {
			return v
		}
	}
	return readVersion(b)
}
