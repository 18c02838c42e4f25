package nic

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/attr"
)

// vfSettings is what a physical function's driver tells of a virtual one. What a driver does not tell is nil, or 0.
type vfSettings struct {
	MAC     string `json:"mac"`
	VLAN    int    `json:"vlan"`
	QoS     int    `json:"qos"`
	Trust   *bool  `json:"trust,omitempty"`
	Spoof   *bool  `json:"spoofchk,omitempty"`
	Link    string `json:"link_state,omitempty"`
	MinRate int    `json:"min_tx_rate"`
	MaxRate int    `json:"max_tx_rate"`
}

// fresh is what a function has that was just made, as far as it can be set back to it. An address cannot be taken away again.
func fresh() vfSettings {
	no, yes := false, true
	return vfSettings{Trust: &no, Spoof: &yes, Link: "auto"}
}

// settings are those of a physical function's virtual ones, by number. All links are asked about at once, and by those who ask while it is under way only once.
func (b *bus) settings(ctx context.Context, pf *device) ([]vfSettings, error) {
	name := pf.first()
	if name == "" {
		return nil, fmt.Errorf("%s has no interface (its driver: %s), by which virtual functions are set up", pf.pci, called(pf.driver))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.links == nil {
		res, err := b.host.Conn().Run(ctx, providers.Cmd{Args: []string{"ip", "-j", "-d", "link", "show"}})
		if err != nil {
			return nil, fmt.Errorf("look at virtual functions: %w", err)
		}
		if b.links, err = parseLinks(res.Stdout); err != nil {
			return nil, fmt.Errorf("look at virtual functions: ip link: %w", err)
		}
	}
	out := b.links[name]
	if len(out) != pf.vfs {
		return nil, fmt.Errorf("%s (%s) has %d virtual functions, and ip link tells of %d", name, pf.pci, pf.vfs, len(out))
	}
	return out, nil
}

// parseLinks reads `ip -j -d link show` (iproute2, ip/ipaddress.c): the settings of each interface's virtual functions.
func parseLinks(out []byte) (map[string][]vfSettings, error) {
	var links []struct {
		Name string `json:"ifname"`
		VFs  []struct {
			VF       int    `json:"vf"`
			Address  string `json:"address"`
			MAC      string `json:"mac"` // of iproute2 before 5.0
			VLAN     int    `json:"vlan"`
			QoS      int    `json:"qos"`
			VLANList []struct {
				VLAN int `json:"vlan"`
				QoS  int `json:"qos"`
			} `json:"vlan_list"`
			TxRate int `json:"tx_rate"`
			Rate   struct {
				Max int `json:"max_tx"`
				Min int `json:"min_tx"`
			} `json:"rate"`
			Spoof *bool  `json:"spoofchk"`
			Link  string `json:"link_state"`
			Trust *bool  `json:"trust"`
		} `json:"vfinfo_list"`
	}
	if err := json.Unmarshal(out, &links); err != nil {
		return nil, err
	}
	all := map[string][]vfSettings{}
	for _, l := range links {
		for i, v := range l.VFs {
			if v.VF != i {
				return nil, fmt.Errorf("%s: virtual function %d stands where %d should", l.Name, v.VF, i)
			}
			s := vfSettings{MAC: v.Address, VLAN: v.VLAN, QoS: v.QoS, Trust: v.Trust, Spoof: v.Spoof, Link: v.Link, MinRate: v.Rate.Min, MaxRate: v.Rate.Max}
			if s.MAC == "" {
				s.MAC = v.MAC
			}
			if s.MaxRate == 0 {
				s.MaxRate = v.TxRate
			}
			for _, e := range v.VLANList { // the outermost one, which is all that can be set here
				s.VLAN, s.QoS = e.VLAN, e.QoS
				break
			}
			all[l.Name] = append(all[l.Name], s)
		}
	}
	return all, nil
}

// in is a block with what it sets as it is. Arguments that are not set stay so.
func (s vfSettings) in(block cty.Value, vf *device) cty.Value {
	out := block.AsValueMap()
	put := func(name string, v cty.Value) {
		if !out[name].IsNull() {
			out[name] = v
		}
	}
	flag := func(b *bool) cty.Value {
		if b == nil {
			return cty.NullVal(cty.Bool)
		}
		return cty.BoolVal(*b)
	}
	if mac := cty.StringVal(s.MAC); out["mac"].IsNull() || !same(vfBlock().Attributes["mac"], out["mac"], mac) {
		put("mac", mac)
	}
	put("vlan", cty.NumberIntVal(int64(s.VLAN)))
	put("qos", cty.NumberIntVal(int64(s.QoS)))
	put("trust", flag(s.Trust))
	put("spoofchk", flag(s.Spoof))
	put("link_state", cty.StringVal(s.Link))
	put("min_tx_rate", cty.NumberIntVal(int64(s.MinRate)))
	put("max_tx_rate", cty.NumberIntVal(int64(s.MaxRate)))
	driver := cty.StringVal("none")
	if vf != nil {
		driver = cty.StringVal(vf.spelled(attr.Text(block, "driver")))
	}
	put("driver", driver)
	return cty.ObjectVal(out)
}

// aim is what a function is to have: what its block sets; for what only the block before set, what was found, or what a new one has; else what it has now.
func aimVF(now, found vfSettings, block, before cty.Value) vfSettings {
	managed := func(b cty.Value, name string) bool {
		return b != cty.NilVal && !b.IsNull() && !b.GetAttr(name).IsNull()
	}
	out := now
	number := func(name string, to *int, was int) {
		switch {
		case managed(block, name):
			*to = int(attr.Number(block, name, 0))
		case managed(before, name):
			*to = was
		}
	}
	truth := func(name string, to **bool, was *bool) {
		switch {
		case managed(block, name):
			v := attr.Truth(block, name, false)
			*to = &v
		case managed(before, name):
			*to = was
		}
	}
	text := func(name string, to *string, was string) {
		switch {
		case managed(block, name):
			*to = attr.Text(block, name)
		case managed(before, name) && was != "":
			*to = was
		}
	}
	number("vlan", &out.VLAN, found.VLAN)
	number("qos", &out.QoS, found.QoS)
	number("min_tx_rate", &out.MinRate, found.MinRate)
	number("max_tx_rate", &out.MaxRate, found.MaxRate)
	truth("trust", &out.Trust, found.Trust)
	truth("spoofchk", &out.Spoof, found.Spoof)
	text("link_state", &out.Link, found.Link)
	text("mac", &out.MAC, found.MAC)
	return out
}

// vfLine is one line of ip's batch, and the argument that it is for.
type vfLine struct{ argument, line string }

// lines are what makes a function's settings those wanted, one for each argument, so that what ip refuses names it.
func (s vfSettings) lines(name string, n int, now vfSettings) []vfLine {
	var out []vfLine
	add := func(argument, words string) {
		out = append(out, vfLine{argument, fmt.Sprintf("link set dev %s vf %d %s", name, n, words)})
	}
	same := func(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
	onOff := func(b *bool) string {
		if b != nil && *b {
			return "on"
		}
		return "off"
	}
	if s.MAC != now.MAC {
		add("mac", "mac "+s.MAC)
	}
	if s.VLAN != now.VLAN || s.QoS != now.QoS {
		words := "vlan " + strconv.Itoa(s.VLAN)
		if s.VLAN != 0 { // without a tag there is no priority
			words += " qos " + strconv.Itoa(s.QoS)
		}
		add("vlan", words)
	}
	if !same(s.Trust, now.Trust) {
		add("trust", "trust "+onOff(s.Trust))
	}
	if !same(s.Spoof, now.Spoof) {
		add("spoofchk", "spoofchk "+onOff(s.Spoof))
	}
	if s.Link != now.Link {
		add("link_state", "state "+s.Link)
	}
	if s.MinRate != now.MinRate || s.MaxRate != now.MaxRate {
		words := fmt.Sprintf("max_tx_rate %d min_tx_rate %d", s.MaxRate, s.MinRate)
		if s.MinRate == now.MinRate { // a driver without a least rate refuses the word
			words = "max_tx_rate " + strconv.Itoa(s.MaxRate)
		}
		add(map[bool]string{true: "min_tx_rate", false: "max_tx_rate"}[s.MinRate != now.MinRate], words)
	}
	return out
}
