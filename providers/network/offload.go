package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// shortNames are those that ethtool(8), -K, has for features that it prints under longer ones.
func shortNames() map[string]string {
	return map[string]string{"rx": "rx-checksumming", "tx": "tx-checksumming", "sg": "scatter-gather", "tso": "tcp-segmentation-offload", "gso": "generic-segmentation-offload", "gro": "generic-receive-offload",
		"lro": "large-receive-offload", "rxvlan": "rx-vlan-offload", "txvlan": "tx-vlan-offload", "ntuple": "ntuple-filters", "rxhash": "receive-hashing"}
}

// longName is the name that ethtool -k prints.
func longName(name string) string {
	if long, ok := shortNames()[name]; ok {
		return long
	}
	return name
}

// settable is the name that ethtool -K takes: older ones do not take the long names of these.
func settable(long string) string {
	for short, l := range shortNames() {
		if l == long {
			return short
		}
	}
	return long
}

func offloadsAttribute(what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.Map(cty.Bool), Optional: true, Cost: schema.PortReset, Canonical: canonicalOffloads,
		Description: "Offloads of " + what + " by name, and whether each is on: rx, tx, sg, tso, gso, gro, lro, rxvlan, txvlan, ntuple, rxhash, or any that `ethtool -k` prints (ethtool(8), -K). Others are left alone. " +
			"With tx = false frames have their checksums when they leave, which programs on AF_PACKET, AF_XDP and DPDK rely on."}
}

// canonicalOffloads spells all by the long names.
func canonicalOffloads(v cty.Value) (cty.Value, error) {
	if !v.IsWhollyKnown() {
		return v, nil
	}
	all, err := parseOffloads(v)
	if err != nil {
		return v, err
	}
	out := map[string]cty.Value{}
	for name, on := range all {
		out[name] = cty.BoolVal(on)
	}
	if len(out) == 0 {
		return cty.MapValEmpty(cty.Bool), nil
	}
	return cty.MapVal(out), nil
}

// parseOffloads reads a map by long names; what is not known is left out.
func parseOffloads(v cty.Value) (map[string]bool, error) {
	out := map[string]bool{}
	if v.IsNull() || !v.IsKnown() {
		return out, nil
	}
	for name, on := range v.AsValueMap() {
		switch {
		case name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || name[0] == '-':
			return nil, fmt.Errorf("%q is not the name of an offload", name)
		case !on.IsKnown():
			continue
		case on.IsNull():
			return nil, fmt.Errorf("%s is null", name)
		}
		if was, twice := out[longName(name)]; twice && was != on.True() {
			return nil, fmt.Errorf("%s is set twice, on and off", longName(name))
		}
		out[longName(name)] = on.True()
	}
	return out, nil
}

// readOffloads tells those that prior names, in its spelling; one that the driver does not know is left out.
func readOffloads(prior cty.Value, drivers ...*driver) cty.Value {
	out := map[string]cty.Value{}
	for name, want := range prior.AsValueMap() {
		for _, d := range drivers {
			f, ok := d.features[longName(name)]
			if !ok {
				delete(out, name)
				break
			}
			if have, ok := out[name]; !ok || have.RawEquals(want) {
				out[name] = cty.BoolVal(f.on)
			}
		}
	}
	if len(out) == 0 {
		return cty.MapValEmpty(cty.Bool)
	}
	return cty.MapVal(out)
}

// setOffloads adds what makes the offloads of a link those wanted.
func setOffloads(c *steps, e end, want map[string]bool, d *driver) {
	line := words{"-K", e.name}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if f, ok := d.features[name]; !ok || f.on != want[name] {
			line = append(line, settable(name), onOff(want[name]))
		}
	}
	if len(line) > 2 {
		c.ethtool(e.space, line)
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// offloadProblems are those that the driver does not have or does not let one set.
func offloadProblems(p cty.Path, e end, host string, want map[string]bool, d *driver) []providers.Problem {
	var out []providers.Problem
	for _, name := range slices.Sorted(maps.Keys(want)) {
		f, ok := d.features[name]
		switch {
		case !ok && len(d.features) == 0:
			return []providers.Problem{{Path: p, Summary: "No offloads", Detail: fmt.Sprintf("%s on %s has no offloads that can be set: %s.", e, host, d.why["offloads"])}}
		case !ok:
			out = append(out, providers.Problem{Path: p, Summary: "Unknown offload", Detail: fmt.Sprintf("The driver of %s on %s has no offload %s. `ethtool -k %s` lists those there are.", e, host, name, e.name)})
		case f.fixed && f.on != want[name]:
			out = append(out, providers.Problem{Path: p, Summary: "Offload is fixed", Detail: fmt.Sprintf("The driver of %s on %s keeps %s %s and does not let it be changed. Leave it out of offloads.", e, host, name, onOff(f.on))})
		}
	}
	return out
}
