package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/ovsdb"
)

const ovsSocket = "/var/run/openvswitch/db.sock"

// columns of the Open vSwitch database that a configuration sets (ovs-vswitchd.conf.db(5)); what the daemon reports is left out.
func columns() map[string][]string {
	return map[string][]string{
		"Open_vSwitch": {"other_config", "external_ids"},
		"Bridge":       {"name", "datapath_type", "fail_mode", "protocols", "other_config", "external_ids", "mcast_snooping_enable", "stp_enable", "rstp_enable"},
		"Port":         {"name", "tag", "trunks", "vlan_mode", "bond_mode", "other_config", "external_ids"},
		"Interface":    {"name", "type", "options", "ofport_request", "mtu_request", "mac", "other_config", "external_ids"},
		"QoS":          {"type", "other_config", "external_ids"},
		"Mirror":       {"name", "select_all", "external_ids"},
		"Controller":   {"target", "connection_mode"},
		"Manager":      {"target", "connection_mode"},
	}
}

// database lists the configuration of Open vSwitch when its database server runs.
func database(ctx context.Context, h providers.Host) ([]string, error) {
	raw, err := h.Conn().Dial(ctx, "unix", ovsSocket)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var op *net.OpError
		if errors.As(err, &op) {
			return []string{"ovs database server: not running"}, nil
		}
		return nil, err
	}
	db, err := ovsdb.Dial(ctx, raw)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	cols := columns()
	var tables []string
	for t := range cols {
		tables = append(tables, t)
	}
	slices.Sort(tables)
	var ops []ovsdb.Op
	for _, t := range tables {
		ops = append(ops, ovsdb.Select(t).Columns(cols[t]...))
	}
	h.Count(providers.Reads{OVSDB: 1})
	res, err := db.Transact(ctx, "Open_vSwitch", ops...)
	if err != nil {
		return nil, err
	}
	lines := []string{"ovs database server: running"}
	for i, t := range tables {
		for _, row := range res[i].Rows {
			lines = append(lines, fmt.Sprintf("ovs %s: %s", t, printRow(row, cols[t])))
		}
	}
	return lines, nil
}

// printRow prints columns in order; the order within sets and maps does not count.
func printRow(row ovsdb.Row, cols []string) string {
	var parts []string
	for _, c := range cols {
		if v := printValue(row[c]); v != "" {
			parts = append(parts, c+"="+v)
		}
	}
	return strings.Join(parts, " ")
}

func printValue(v any) string {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return fmt.Sprint(v)
	}
	items, ok := pair[1].([]any)
	if !ok {
		return fmt.Sprint(pair[1])
	}
	var out []string
	for _, i := range items {
		if kv, ok := i.([]any); ok && len(kv) == 2 && pair[0] == "map" {
			out = append(out, fmt.Sprintf("%v:%v", kv[0], kv[1]))
			continue
		}
		out = append(out, printValue(i))
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return "{" + strings.Join(out, ",") + "}"
}
