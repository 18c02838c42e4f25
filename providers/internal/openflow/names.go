package openflow

import (
	"slices"
	"strings"
)

// PortRefs lists the ports that a flow names in in_port and in actions: numbers and names as they stand, sorted, without the
// reserved ones. It never fails: what cannot be read names no port.
func PortRefs(line string) []string {
	var out []string
	add := func(s string) {
		s = strings.Trim(strings.TrimSpace(s), `"`)
		if s == "" || strings.ContainsAny(s, "[]=") {
			return
		}
		if _, ok := reserved()[strings.ToUpper(s)]; !ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	match, actions, ok := cutActions(line)
	if !ok {
		return nil
	}
	for _, item := range splitTop(match, ", \t\r\n") {
		if name, val, ok := strings.Cut(item, "="); ok && strings.EqualFold(name, "in_port") {
			add(val)
		}
	}
	actionRefs(actions, add, 0)
	slices.Sort(out)
	return out
}

// actionRefs walks actions, into those that hold actions.
func actionRefs(s string, add func(string), nested int) {
	if nested > 8 {
		return
	}
	for _, a := range splitTop(s, ", \t\r\n") {
		name, arg, has := cutAction(a)
		switch strings.ToLower(name) {
		case "output":
			if port, ok := strings.CutPrefix(arg, "port="); ok {
				arg, _, _ = strings.Cut(port, ",")
			}
			add(arg)
		case "enqueue":
			port, _, _ := strings.Cut(strings.ReplaceAll(arg, ":", ","), ",")
			add(port)
		case "resubmit":
			port, _, _ := strings.Cut(arg, ",")
			add(port)
		case "write_actions", "clone":
			actionRefs(arg, add, nested+1)
		case "ct":
			for _, part := range splitTop(arg, ",") {
				if inner, ok := strings.CutPrefix(part, "exec("); ok {
					actionRefs(strings.TrimSuffix(inner, ")"), add, nested+1)
				}
			}
		default:
			if _, err := parseNumber(name); !has && err == nil || strings.HasPrefix(name, `"`) {
				add(name)
			}
		}
	}
}
