package openflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/lang/diagfmt"
)

// CheckNames finds fields of a flow's match that were probably misspelled: names that are not known, but near to one that is. Parse keeps unknown names,
// since a newer Open vSwitch has more fields and prints them; this is for what people write.
func (p *Parser) CheckNames(line string) error {
	match, _, _ := cutActions(line)
	known := append(slices.Sorted(maps.Keys(p.fields)), slices.Sorted(maps.Keys(p.aliases))...)
	known = append(known, "dl_vlan", "nw_tos", "table", "priority", "cookie", "idle_timeout", "hard_timeout", "importance",
		"nsh_mdtype", "nsh_np", "nsi", "nsp", "nshc1", "nshc2", "nshc3", "nshc4", "tun_erspan_dir", "tun_erspan_hwid", "tun_erspan_idx", "tun_erspan_ver", "tun_gtpu_flags", "tun_gtpu_msgtype")
	for _, item := range splitTop(match, ", \t\r\n") {
		name, _, hasVal := strings.Cut(item, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !hasVal || slices.Contains(known, name) || slices.Contains([]string{"duration", "n_packets", "n_bytes", "idle_age", "hard_age", "out_port", "out_group"}, name) {
			continue
		}
		if near := diagfmt.Suggest(name, known); near != "" {
			return fmt.Errorf("flow %q: there is no field %q. Did you mean %q?", line, name, near)
		}
	}
	return nil
}
