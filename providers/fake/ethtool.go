package fake

import (
	"cmp"
	"slices"
	"strconv"
)

// ethtoolState is what a driver lets one set.
type ethtoolState struct {
	Ring        map[string]int    `json:"ring,omitempty"` // "rx", "tx"; none: not supported
	RingMax     map[string]int    `json:"ring_max,omitempty"`
	Channels    map[string]int    `json:"channels,omitempty"` // "rx", "tx", "combined"
	ChannelsMax map[string]int    `json:"channels_max,omitempty"`
	Coalesce    map[string]string `json:"coalesce,omitempty"`
	Pause       map[string]bool   `json:"pause,omitempty"` // "autoneg", "rx", "tx"
	Features    []netFeature      `json:"features"`
}

// netFeature is an offload. A group has no state of its own: it is on when one of its members is.
type netFeature struct {
	Name   string `json:"name"`
	Short  string `json:"short,omitempty"` // what ethtool -K calls it too
	Group  string `json:"group,omitempty"` // that it is a member of
	Wanted bool   `json:"wanted"`
	Fixed  bool   `json:"fixed,omitempty"`
	Needs  string `json:"needs,omitempty"` // cannot be on without
	IsAll  bool   `json:"is_group,omitempty"`
}

func seedFeatures() []netFeature {
	return []netFeature{
		{Name: "rx-checksumming", Short: "rx", Wanted: true},
		{Name: "tx-checksumming", Short: "tx", IsAll: true},
		{Name: "tx-checksum-ipv4", Group: "tx-checksumming", Fixed: true},
		{Name: "tx-checksum-ip-generic", Group: "tx-checksumming", Wanted: true},
		{Name: "scatter-gather", Short: "sg", IsAll: true},
		{Name: "tx-scatter-gather", Group: "scatter-gather", Wanted: true},
		{Name: "tcp-segmentation-offload", Short: "tso", IsAll: true},
		{Name: "tx-tcp-segmentation", Group: "tcp-segmentation-offload", Wanted: true, Needs: "tx-checksum-ip-generic"},
		{Name: "tx-tcp-mangleid-segmentation", Group: "tcp-segmentation-offload", Needs: "tx-checksum-ip-generic"},
		{Name: "tx-tcp6-segmentation", Group: "tcp-segmentation-offload", Wanted: true, Needs: "tx-checksum-ip-generic"},
		{Name: "generic-segmentation-offload", Short: "gso", Wanted: true},
		{Name: "generic-receive-offload", Short: "gro", Wanted: true},
		{Name: "large-receive-offload", Short: "lro", Fixed: true},
		{Name: "rx-vlan-offload", Short: "rxvlan", Wanted: true},
		{Name: "tx-vlan-offload", Short: "txvlan", Wanted: true},
		{Name: "ntuple-filters", Short: "ntuple"},
		{Name: "receive-hashing", Short: "rxhash", Wanted: true},
		{Name: "highdma", Wanted: true, Fixed: true},
		{Name: "rx-gro-list"},
	}
}

// seedEthtool is a NIC with rings of up to 4096 and up to 8 channels.
func seedEthtool() *ethtoolState {
	return &ethtoolState{
		Ring: map[string]int{"rx": 256, "tx": 256}, RingMax: map[string]int{"rx": 4096, "tx": 4096},
		Channels: map[string]int{"combined": 8}, ChannelsMax: map[string]int{"combined": 8},
		Coalesce: map[string]string{"adaptive-rx": "on", "adaptive-tx": "off", "rx-usecs": "3", "tx-usecs": "3"},
		Pause:    map[string]bool{"autoneg": true, "rx": true, "tx": true},
		Features: seedFeatures(),
	}
}

// seedVeth has no rings, no coalescing and no flow control.
func seedVeth() *ethtoolState {
	e := &ethtoolState{Channels: map[string]int{"rx": 1, "tx": 1}, ChannelsMax: map[string]int{"rx": 2, "tx": 2}, Features: seedFeatures()}
	for i := range e.Features {
		switch e.Features[i].Name {
		case "generic-receive-offload":
			e.Features[i].Wanted = false
		case "ntuple-filters", "receive-hashing":
			e.Features[i].Wanted, e.Features[i].Fixed = false, true
		case "tx-tcp-mangleid-segmentation":
			e.Features[i].Wanted = true
		}
	}
	return e
}

func (e *ethtoolState) feature(name string) *netFeature {
	for i := range e.Features {
		if e.Features[i].Name == name {
			return &e.Features[i]
		}
	}
	return nil
}

func (e *ethtoolState) on(f *netFeature) bool {
	if f.IsAll {
		return slices.ContainsFunc(e.Features, func(m netFeature) bool { return m.Group == f.Name && e.on(&m) })
	}
	need := e.feature(f.Needs)
	return f.Wanted && (need == nil || e.on(need))
}

const netlinkUnsupported = "netlink error: Operation not supported"

// ethtool is ethtool(8): -g, -l, -k, -a, -c and what sets those.
func ethtool(h *host, r *run) int {
	return h.ethtool("", r)
}

func (h *host) ethtool(ns string, r *run) int {
	if len(r.args) < 3 {
		return r.fail(1, "ethtool: bad command line argument(s)\nFor more information run ethtool -h")
	}
	s := h.state.Network.Spaces[ns]
	verb, name, words := r.args[1], r.args[2], r.args[3:]
	if s == nil || s.Links[name] == nil {
		return r.fail(1, "netlink error: no device matches name (offset 24)\nnetlink error: No such device")
	}
	e := s.Links[name].Ethtool
	if e == nil {
		e = &ethtoolState{}
	}
	switch verb {
	case "-g", "-l", "-a", "-c", "-k":
		return e.show(r, verb, name)
	}
	if h.settings.Unprivileged {
		return r.fail(1, "netlink error: Operation not permitted")
	}
	switch verb {
	case "-G":
		return setNumbers(r, words, e.Ring, e.RingMax, "requested ring size exceeds maximum")
	case "-L":
		return setNumbers(r, words, e.Channels, e.ChannelsMax, "requested channel count exceeds maximum")
	case "-A":
		return e.setPause(r, words)
	case "-C":
		return e.setCoalesce(r, words)
	case "-K":
		return e.setFeatures(r, words)
	}
	return r.fail(1, "ethtool: bad command line argument(s)\nFor more information run ethtool -h")
}

func (e *ethtoolState) show(r *run, verb, name string) int {
	number := func(m map[string]int, key string) string {
		if n, ok := m[key]; ok {
			return strconv.Itoa(n)
		}
		return "n/a"
	}
	onOff := map[bool]string{true: "on", false: "off"}
	titles := []string{"Pre-set maximums:", "Current hardware settings:"}
	switch {
	case verb == "-g" && e.Ring == nil, verb == "-l" && e.Channels == nil, verb == "-a" && e.Pause == nil, verb == "-c" && e.Coalesce == nil:
		return r.fail(1, netlinkUnsupported)
	case verb == "-g":
		r.printf("Ring parameters for %s:\n", name)
		for i, m := range []map[string]int{e.RingMax, e.Ring} {
			r.printf("%s\nRX:\t\t%s\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t%s\n", titles[i], number(m, "rx"), number(m, "tx"))
		}
		r.printf("RX Buf Len:\t\tn/a\nCQE Size:\t\tn/a\nTX Push:\toff\nTCP data split:\tn/a\n")
	case verb == "-l":
		r.printf("Channel parameters for %s:\n", name)
		for i, m := range []map[string]int{e.ChannelsMax, e.Channels} {
			r.printf("%s\nRX:\t\t%s\nTX:\t\t%s\nOther:\t\tn/a\nCombined:\t%s\n", titles[i], number(m, "rx"), number(m, "tx"), number(m, "combined"))
		}
	case verb == "-a":
		r.printf("Pause parameters for %s:\nAutonegotiate:\t%s\nRX:\t\t%s\nTX:\t\t%s\n\n", name, onOff[e.Pause["autoneg"]], onOff[e.Pause["rx"]], onOff[e.Pause["tx"]])
	case verb == "-c":
		r.printf("Coalesce parameters for %s:\nAdaptive RX: %s  TX: %s\nstats-block-usecs:\tn/a\n\n", name, cmp.Or(e.Coalesce["adaptive-rx"], "n/a"), cmp.Or(e.Coalesce["adaptive-tx"], "n/a"))
		for _, k := range []string{"rx-usecs", "rx-frames", "tx-usecs", "tx-frames"} {
			r.printf("%s:\t%s\n", k, cmp.Or(e.Coalesce[k], "n/a"))
		}
		r.printf("\nCQE mode RX: n/a  TX: n/a\n\n")
	case verb == "-k":
		r.printf("Features for %s:\n", name)
		for i := range e.Features {
			f := &e.Features[i]
			note := ""
			switch {
			case f.IsAll:
			case f.Fixed:
				note = " [fixed]"
			case f.Wanted != e.on(f):
				note = " [requested " + onOff[f.Wanted] + "]"
			}
			indent := ""
			if f.Group != "" {
				indent = "\t"
			}
			r.printf("%s%s: %s%s\n", indent, f.Name, onOff[e.on(f)], note)
		}
	}
	return 0
}

func setNumbers(r *run, words []string, have, most map[string]int, tooMany string) int {
	if have == nil {
		return r.fail(1, netlinkUnsupported)
	}
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.Atoi(words[i+1])
		switch limit, ok := most[words[i]]; {
		case err != nil:
			return r.fail(1, "ethtool (-G): invalid value '%s' for parameter '%s'", words[i+1], words[i])
		case !ok || n > limit:
			return r.fail(1, "netlink error: %s (offset 36)\nnetlink error: Invalid argument", tooMany)
		case n == 0:
			return r.fail(1, "netlink error: Invalid argument")
		}
	}
	for i := 0; i+1 < len(words); i += 2 {
		have[words[i]], _ = strconv.Atoi(words[i+1])
	}
	return 0
}

func (e *ethtoolState) setPause(r *run, words []string) int {
	if e.Pause == nil {
		return r.fail(1, netlinkUnsupported)
	}
	for i := 0; i+1 < len(words); i += 2 {
		e.Pause[words[i]] = words[i+1] == "on"
	}
	return 0
}

func (e *ethtoolState) setCoalesce(r *run, words []string) int {
	if e.Coalesce == nil {
		return r.fail(1, netlinkUnsupported)
	}
	for i := 0; i+1 < len(words); i += 2 {
		if _, ok := e.Coalesce[words[i]]; !ok {
			return r.fail(1, "netlink error: unsupported parameter (offset 36)\nnetlink error: Operation not supported")
		}
		e.Coalesce[words[i]] = words[i+1]
	}
	return 0
}

func (e *ethtoolState) setFeatures(r *run, words []string) int {
	for i := 0; i+1 < len(words); i += 2 {
		if !slices.ContainsFunc(e.Features, func(f netFeature) bool { return words[i] == f.Name || words[i] == f.Short }) {
			return r.fail(1, "ethtool (-K): feature '%s' not found", words[i])
		}
	}
	before := slices.Clone(e.Features)
	for i := 0; i+1 < len(words); i += 2 {
		on := words[i+1] == "on"
		for j := range e.Features {
			f := &e.Features[j]
			group := e.feature(f.Group)
			if f.Name == words[i] || f.Short == words[i] || group != nil && (group.Name == words[i] || group.Short == words[i]) {
				if !f.Fixed && !f.IsAll {
					f.Wanted = on
				}
			}
		}
	}
	if slices.Equal(before, e.Features) && len(words) > 0 {
		return r.fail(1, "Could not change any device features")
	}
	return 0
}
