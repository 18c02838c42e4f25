package network

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// nicType is nic_link.
type nicType struct{}

var (
	_ providers.Resource = nicType{}
	_ providers.Preparer = nicType{}
	_ providers.Planner  = nicType{}
	_ providers.Claimer  = nicType{}
)

func (nicType) Schema() *schema.Resource {
	attributes := map[string]*schema.Attribute{
		"interface": {Type: cty.String, Optional: true, Cost: schema.Replace, Validate: linkName, Description: "Name of the interface. Either this or pci."},
		"pci":       {Type: cty.String, Optional: true, Cost: schema.Replace, Canonical: canonicalPCI, Description: "PCI address of the NIC whose interface it is: 0000:01:00.0. Either this or interface."},
		"namespace": spaceAttribute("the interface, where it is already; it is not moved"),
		"name":      {Type: cty.String, Computed: true, Description: "The kernel's name of the interface."},
		"mtu":       mtuAttribute(65535),
		"up":        {Type: cty.Bool, Optional: true, Cost: schema.PortReset, Description: "Whether the interface is up. Unset: as it is."},
		"promiscuous": {Type: cty.Bool, Optional: true,
			Description: "Whether it takes frames to every address (ip-link(8), promisc). Unset: as it is."},
		"all_multicast": {Type: cty.Bool, Optional: true, Description: "Whether it takes frames to every group (ip-link(8), allmulticast). Unset: as it is."},
		"mac": {Type: cty.String, Optional: true, Cost: schema.PortReset, Canonical: schema.MAC,
			Description: "MAC address. Unset: as it is."},
		"addresses": addressesAttribute("the interface"),
		"neighbours": {Type: cty.Map(cty.String), Optional: true, Canonical: canonicalNeighbours,
			Description: "MAC addresses of hosts on its network by their IP addresses, so that nobody asks for them (ip-neighbour(8), permanent). Others are left alone."},
		"offloads": offloadsAttribute("the interface"),
	}
	for _, k := range knobs() {
		a := &schema.Attribute{Optional: true, Cost: schema.PortReset}
		switch {
		case k.flag:
			a.Type, a.Description = cty.Bool, k.unit+"."
		default:
			a.Type, a.Validate = cty.Number, schema.Whole(k.least, 1<<20)
			a.Description = fmt.Sprintf("Number of %s, from %d; the driver tells the maximum.", k.unit, k.least)
		}
		if k.kind == "coalesce" {
			a.Cost = schema.Live
		}
		a.Description += " Unset: as it is (ethtool(8), " + map[string]string{"ring": "-G", "channels": "-L", "pause": "-A", "coalesce": "-C"}[k.kind] + ")."
		attributes[k.attr] = a
	}
	return &schema.Resource{
		Type: "nic_link", Setting: true,
		Description: "Settings of a network interface. Each that is set here was recorded before, and destroy puts it back, with the routes that went with addresses or while the interface was down. " +
			"The interface that Plumb's own connection or the default route uses is not taken down, and keeps its addresses.",
		After: []string{"host_package", "host_module", "nic_driver", "nic_sriov", "net_namespace", "net_veth", "net_tap", "net_bridge"},
		LostOn: []schema.Loss{
			{Type: "nic_driver", Cost: schema.PortReset, Why: "an interface is made anew when its driver takes the NIC"},
			{Type: "nic_sriov", Cost: schema.PortReset, Release: true, Why: "interfaces of virtual functions are made anew with them"},
			{Type: "net_veth", Cost: schema.PortReset, Why: "a link that goes down loses neighbours and IPv6 addresses"},
			{Type: "net_tap", Cost: schema.PortReset, Why: "a link that goes down loses neighbours and IPv6 addresses"},
			{Type: "net_bridge", Cost: schema.PortReset, Why: "a link that goes down loses neighbours and IPv6 addresses"},
		},
		Example: `resource "nic_link" "p0" {
  pci       = "0000:01:00.0"
  up        = true
  mtu       = 9000
  ring_rx   = 4096
  pause_rx  = false
  pause_tx  = false
  addresses = ["198.51.100.1/24"]
  offloads = {
    lro = false
    gro = false
  }
}`,
		Block: schema.Block{Attributes: attributes},
	}
}

// pciAddress is domain:bus:device.function; a domain has four digits or more (a VMD's has five).
var pciAddress = regexp.MustCompile(`^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-1][0-9a-f]\.[0-7])$`)

func canonicalPCI(v cty.Value) (cty.Value, error) {
	m := pciAddress.FindStringSubmatch(strings.ToLower(v.AsString()))
	if m == nil {
		return v, fmt.Errorf("%q is not a PCI address such as 0000:01:00.0", v.AsString())
	}
	if m[1] == "" {
		m[1] = "0000"
	}
	return cty.StringVal(m[1] + ":" + m[2]), nil
}

// parseNeighbours reads a map; what is not known is left out.
func parseNeighbours(v cty.Value) (map[netip.Addr]string, error) {
	out := map[netip.Addr]string{}
	if v.IsNull() || !v.IsKnown() {
		return out, nil
	}
	for key, e := range v.AsValueMap() {
		host, err := canonicalHost(cty.StringVal(key))
		if err != nil {
			return nil, err
		}
		if !e.IsKnown() {
			continue
		}
		if e.IsNull() {
			return nil, fmt.Errorf("the MAC address of %s is null", key)
		}
		mac, err := schema.MAC(e)
		if err != nil {
			return nil, err
		}
		a, err := netip.ParseAddr(host.AsString())
		if err != nil {
			return nil, err
		}
		if was, twice := out[a]; twice && was != mac.AsString() {
			return nil, fmt.Errorf("%s is given twice", a)
		}
		out[a] = mac.AsString()
	}
	return out, nil
}

func canonicalNeighbours(v cty.Value) (cty.Value, error) {
	if !v.IsWhollyKnown() {
		return v, nil
	}
	all, err := parseNeighbours(v)
	if err != nil || len(all) == 0 {
		return cty.MapValEmpty(cty.String), err
	}
	out := map[string]cty.Value{}
	for a, mac := range all {
		out[a.String()] = cty.StringVal(mac)
	}
	return cty.MapVal(out), nil
}

// nicEnd is the interface that an instance is about; its name is "" where a NIC has none.
func (w *world) nicEnd(v cty.Value) end {
	e := end{attr.Text(v, "namespace"), attr.Text(v, "interface")}
	pci := v.GetAttr("pci")
	if e.name != "" || !pci.IsKnown() || pci.IsNull() {
		return e
	}
	c, err := canonicalPCI(pci)
	if err != nil {
		return e
	}
	for _, name := range slices.Sorted(maps.Keys(w.devices)) {
		if w.devices[name] == c.AsString() {
			return end{name: name}
		}
	}
	return e
}

// asked says whether an instance sets something that only ethtool tells.
func asked(v cty.Value) bool {
	if v.IsNull() {
		return false
	}
	if !v.GetAttr("offloads").IsNull() {
		return true
	}
	return slices.ContainsFunc(knobs(), func(k knob) bool { return !v.GetAttr(k.attr).IsNull() })
}

func (t nicType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	v, err := t.read(ctx, s, req.Prior)
	return providers.ReadResult{Current: v}, err
}

// read is the interface as it is, in the spelling of prior; null when it is not there.
func (t nicType) read(ctx context.Context, s *session, prior cty.Value) (cty.Value, error) {
	w, err := s.look(ctx)
	if err != nil {
		return cty.NilVal, err
	}
	e := w.nicEnd(prior)
	l := w.link(e)
	if l == nil {
		return cty.NullVal(t.Schema().Block.ImpliedType()), nil
	}
	out := prior.AsValueMap()
	readLink(out, prior, l, "")
	if prior.GetAttr("mac").IsNull() {
		out["mac"] = cty.NullVal(cty.String)
	}
	out["name"] = cty.StringVal(l.Name)
	if !prior.GetAttr("mtu").IsNull() {
		out["mtu"] = cty.NumberIntVal(int64(l.MTU))
	}
	for name, flag := range flags() {
		if !prior.GetAttr(name).IsNull() {
			out[name] = cty.BoolVal(l.has(flag))
		}
	}
	if want := prior.GetAttr("neighbours"); !want.IsNull() {
		out["neighbours"] = w.readNeighbours(want, e)
	}
	if !asked(prior) {
		return cty.ObjectVal(out), nil
	}
	d, err := s.driver(ctx, e)
	if err != nil {
		return cty.NilVal, err
	}
	if want := prior.GetAttr("offloads"); !want.IsNull() {
		out["offloads"] = readOffloads(want, d)
	}
	for _, k := range knobs() {
		if !prior.GetAttr(k.attr).IsNull() {
			out[k.attr] = k.value(d.values[k.attr])
		}
	}
	return cty.ObjectVal(out), nil
}

// flags of a link, by attribute.
func flags() map[string]string {
	return map[string]string{"up": "UP", "promiscuous": "PROMISC", "all_multicast": "ALLMULTI"}
}

// readNeighbours tells those that want names, in its spelling.
func (w *world) readNeighbours(want cty.Value, e end) cty.Value {
	have := w.neighboursOf(e)
	out := map[string]cty.Value{}
	for key, mac := range want.AsValueMap() {
		a, err := netip.ParseAddr(key)
		if err != nil {
			continue
		}
		if now, ok := have[a.Unmap()]; ok {
			out[key] = keepSpelling(mac, cty.StringVal(now), schema.MAC)
		}
	}
	if len(out) == 0 {
		return cty.MapValEmpty(cty.String)
	}
	return cty.MapVal(out)
}

// neighboursOf are the permanent neighbours on a link.
func (w *world) neighboursOf(e end) map[netip.Addr]string {
	out := map[netip.Addr]string{}
	if s := w.spaces[e.space]; s != nil {
		for _, n := range s.neighbours {
			if a, err := netip.ParseAddr(n.Dst); err == nil && n.Dev == e.name {
				out[a] = n.MAC
			}
		}
	}
	return out
}

func (nicType) Claims(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	if !planned.GetAttr("namespace").IsKnown() {
		return providers.Claims{}, nil
	}
	needs, err := needsSpace(ctx, h, attr.Text(planned, "namespace"), cty.GetAttrPath("namespace"))
	c := providers.Claims{Needs: needs, MTU: int(attr.Number(planned, "mtu", 0))}
	at := "interface"
	e := end{attr.Text(planned, "namespace"), attr.Text(planned, "interface")}
	if name := attr.Text(planned, "name"); e.name == "" && name != "" {
		at, e = "pci", end{name: name}
	}
	if e.name != "" {
		u := uniqueLink(e, cty.GetAttrPath(at))
		u.Scope = "settings of " + u.Scope
		c.Unique = append(c.Unique, u)
	}
	return c, err
}
