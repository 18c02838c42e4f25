package network

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// bridgeType is net_bridge.
type bridgeType struct{}

var (
	_ providers.Resource = bridgeType{}
	_ providers.Planner  = bridgeType{}
	_ providers.Claimer  = bridgeType{}
)

// ticks of the kernel's clock as user space sees it in a second (USER_HZ): what ip(8) counts ageing_time in.
const ticks = 100

func (bridgeType) Schema() *schema.Resource {
	return &schema.Resource{
		Type:        "net_bridge",
		Description: "A bridge of the kernel. Ports of others on it are left alone; while there are any, the bridge is not removed.",
		After:       []string{"host_package", "host_module", "net_namespace", "net_veth", "net_tap", "nic_driver", "nic_sriov"},
		Example: `resource "net_bridge" "br0" {
  name  = "br0"
  ports = [net_tap.vm0.name]
}`,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"name":      nameAttribute("the bridge"),
			"namespace": spaceAttribute("the bridge and its ports"),
			"ports": {Type: cty.List(cty.String), Optional: true, Cost: schema.PortReset, Canonical: canonicalPorts,
				Description: "Names of the interfaces that are its ports; they have to be there, and be no other bridge's or bond's. Others that somebody else puts on the bridge are left there."},
			"stp": {Type: cty.Bool, Optional: true, Cost: schema.PortReset, Description: "Whether the kernel runs the spanning tree protocol on it (IEEE 802.1D): a new port then forwards after 30 s. Unset: off."},
			"ageing_time": {Type: cty.Number, Optional: true, Validate: schema.Whole(0, 1000000),
				Description: "Seconds after which a learned MAC address is forgotten; 0: at once, so that every frame is flooded. Unset: 300."},
			"vlan_filtering": {Type: cty.Bool, Optional: true, Cost: schema.PortReset, Description: "Whether the bridge looks at VLAN tags. Unset: off."},
			"mac": {Type: cty.String, Optional: true, Cost: schema.PortReset, Canonical: schema.MAC,
				Description: "MAC address of the bridge. Unset: the kernel takes the lowest one of its ports, and changes it with them."},
			"mtu":       mtuAttribute(65535),
			"up":        upAttribute("it"),
			"addresses": addressesAttribute("the bridge"),
		}},
	}
}

// canonicalPorts spells a list of interfaces in order and each once.
func canonicalPorts(v cty.Value) (cty.Value, error) {
	if !v.IsWhollyKnown() {
		return v, nil
	}
	var all []string
	for _, e := range v.AsValueSlice() {
		if e.IsNull() {
			return v, fmt.Errorf("a port is null")
		}
		if err := linkName(e); err != nil {
			return v, err
		}
		all = append(all, e.AsString())
	}
	slices.Sort(all)
	return stringList(slices.Compact(all)), nil
}

func stringList(all []string) cty.Value {
	var out []cty.Value
	for _, s := range all {
		out = append(out, cty.StringVal(s))
	}
	if out == nil {
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(out)
}

// portsOf are those of a configuration; none for null. What is not known is left out.
func portsOf(v cty.Value) []string {
	if v.IsNull() {
		return nil
	}
	list := v.GetAttr("ports")
	if list.IsNull() || !list.IsKnown() {
		return nil
	}
	var out []string
	for _, e := range list.AsValueSlice() {
		if e.IsKnown() && !e.IsNull() {
			out = append(out, e.AsString())
		}
	}
	return out
}

func (t bridgeType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	return readFrom(ctx, t, req)
}

func (t bridgeType) current(w *world, prior cty.Value, m providers.Mark) cty.Value {
	e := linkEnd(prior)
	l := w.oursOf(e, "bridge", m)
	if l == nil {
		return cty.NullVal(t.Schema().Block.ImpliedType())
	}
	out := prior.AsValueMap()
	readLink(out, prior, l, "")
	if prior.GetAttr("mac").IsNull() { // it is that of one of its ports by turns
		out["mac"] = cty.NullVal(cty.String)
	}
	readBoth(out, prior, l)
	number := func(key string) int64 {
		n, _ := l.Info.Data[key].(float64)
		return int64(n)
	}
	for name, key := range map[string]string{"stp": "stp_state", "vlan_filtering": "vlan_filtering"} {
		if want := prior.GetAttr(name); !want.IsNull() {
			out[name] = cty.BoolVal(number(key) != 0)
		}
	}
	if !prior.GetAttr("ageing_time").IsNull() {
		out["ageing_time"] = cty.NumberIntVal(number("ageing_time") / ticks)
	}
	if !prior.GetAttr("ports").IsNull() {
		out["ports"] = stringList(slices.DeleteFunc(portsOf(prior), func(p string) bool { return !slices.Contains(w.members(e), p) }))
	}
	return cty.ObjectVal(out)
}

// members are the ports of a bridge, sorted.
func (w *world) members(e end) []string {
	var out []string
	if s := w.spaces[e.space]; s != nil {
		for name, l := range s.links {
			if l.Master == e.name {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (bridgeType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, err := planLink(ctx, req)
	if err != nil || req.Host == nil || !req.Desired.GetAttr("namespace").IsKnown() {
		return res, err
	}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return res, err
	}
	e := linkEnd(req.Desired)
	at := cty.GetAttrPath("ports")
	for _, name := range portsOf(req.Desired) {
		port := end{e.space, name}
		if why := s.managed(w, port); why != "" {
			res.Problems = append(res.Problems, providers.Problem{Path: at, Summary: "Interface is what the host is reached by",
				Detail: fmt.Sprintf("%s on %s %s. As a port of a bridge its addresses would be of no use any more. Take another interface.", port, req.Host.Name(), why)})
		}
		if l := w.link(port); l != nil && l.Master != "" && l.Master != e.name {
			res.Problems = append(res.Problems, providers.Problem{Path: at, Summary: "Interface belongs to another bridge or bond",
				Detail: fmt.Sprintf("%s on %s belongs to %s. Take it out there first (ip link set dev %s nomaster), or leave it out here.", port, req.Host.Name(), l.Master, name)})
		}
	}
	return res, nil
}

func (bridgeType) Claims(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	c, err := claimLink(ctx, h, planned)
	if err != nil || !planned.GetAttr("namespace").IsKnown() {
		return c, err
	}
	for _, name := range portsOf(planned) {
		port := uniqueLink(end{attr.Text(planned, "namespace"), name}, cty.GetAttrPath("ports"))
		port.Scope = "port of a bridge or bond, " + port.Scope
		c.Unique = append(c.Unique, port)
	}
	return c, nil
}

func (t bridgeType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	add := func(v cty.Value) words { return words{"link", "add", "dev", attr.Text(v, "name"), "type", "bridge"} }
	return applyLink(ctx, t, "bridge", "bridge ", req, add, func(c *steps, w *world, have *link) error {
		if req.Planned.IsNull() {
			return w.onlyOurs(linkEnd(req.Prior), portsOf(req.Prior), req.Host.Name())
		}
		e := linkEnd(req.Planned)
		options := words{"link", "set", "dev", e.name, "type", "bridge"}
		wants := bridgeOptions(req.Planned, req.Prior)
		for _, key := range slices.Sorted(maps.Keys(wants)) {
			now := int64(-1)
			if have != nil {
				if n, ok := have.Info.Data[key].(float64); ok {
					now = int64(n)
				}
			}
			if now != wants[key] {
				options = append(options, key, strconv.FormatInt(wants[key], 10))
			}
		}
		if len(options) > 6 {
			c.ip(e.space, options)
		}
		return w.setPorts(c, e, portsOf(req.Planned), portsOf(req.Prior), req.Host.Name())
	})
}

// bridgeOptions are those that are set, and those that were and get back what a new bridge has, in ip's words (ip-link(8)).
func bridgeOptions(planned, prior cty.Value) map[string]int64 {
	out := map[string]int64{}
	for name, o := range map[string]struct {
		key          string
		scale, fresh int64
	}{"stp": {"stp_state", 1, 0}, "vlan_filtering": {"vlan_filtering", 1, 0}, "ageing_time": {"ageing_time", ticks, 300}} {
		v := planned.GetAttr(name)
		switch {
		case v.IsNull() && (prior.IsNull() || prior.GetAttr(name).IsNull()):
		case v.IsNull():
			out[o.key] = o.fresh * o.scale
		case v.Type() == cty.Bool:
			out[o.key] = map[bool]int64{true: 1}[v.True()]
		default:
			out[o.key] = attr.Number(planned, name, o.fresh) * o.scale
		}
	}
	return out
}

// setPorts puts ports on a bridge, and takes those off that were on it for us.
func (w *world) setPorts(c *steps, e end, want, had []string, host string) error {
	for _, name := range want {
		l := w.link(end{e.space, name})
		switch {
		case l == nil:
			return fmt.Errorf("bridge %s: there is no interface %s on %s to be its port", e, end{e.space, name}, host)
		case l.Master == e.name:
		case l.Master != "":
			return fmt.Errorf("bridge %s: the interface %s on %s %w: it belongs to %s", e, name, host, providers.ErrForeign, l.Master)
		default:
			c.ip(e.space, words{"link", "set", "dev", name, "master", e.name})
		}
	}
	for _, name := range had {
		if l := w.link(end{e.space, name}); l != nil && l.Master == e.name && !slices.Contains(want, name) {
			c.ip(e.space, words{"link", "set", "dev", name, "nomaster"})
		}
	}
	return nil
}

// onlyOurs is the error of a bridge that others have put ports on.
func (w *world) onlyOurs(e end, ours []string, host string) error {
	others := slices.DeleteFunc(w.members(e), func(p string) bool { return slices.Contains(ours, p) })
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("bridge %s on %s is kept, since ports that are not ours hang on it: %s. Removing the bridge would cut them off. Take them off it (ip link set dev %s nomaster), and run destroy again: %w",
		e, host, strings.Join(others, ", "), others[0], providers.ErrForeign)
}
