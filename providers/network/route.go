package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// routeType is net_route. A route has no place for a mark but its protocol: the number tells that a Plumb made it, and what Prepare found tells whether that was this instance.
type routeType struct{}

var (
	_ providers.Resource = routeType{}
	_ providers.Preparer = routeType{}
	_ providers.Planner  = routeType{}
	_ providers.Claimer  = routeType{}
)

const (
	// ourProto is the protocol of routes of ours: 'P', which nobody has in rtnetlink.h or /etc/iproute2/rt_protos.
	ourProto = "80"
	// metric6 is what the kernel gives an IPv6 route that asks for none (IP6_RT_PRIO_USER of linux/ipv6_route.h).
	metric6 = 1024
)

func (routeType) Schema() *schema.Resource {
	return &schema.Resource{
		Type: "net_route", Setting: true,
		Description: "A route of the kernel. The same one that is there already is left, and stays when this is destroyed; another one to the same destination in the same table with the same metric is refused. Routes are kept apart by protocol number 80.",
		After:       []string{"host_sysctl", "net_namespace", "net_veth", "net_tap", "net_bridge", "nic_driver", "nic_sriov", "nic_link"},
		LostOn: []schema.Loss{
			{Type: "net_veth", Cost: schema.PortReset, Why: "a link that goes down loses its routes"},
			{Type: "net_tap", Cost: schema.PortReset, Why: "a link that goes down loses its routes"},
			{Type: "net_bridge", Cost: schema.PortReset, Why: "a link that goes down loses its routes"},
			{Type: "nic_link", Cost: schema.PortReset, Why: "a link that goes down loses its routes"},
		},
		Example: `resource "net_route" "far" {
  destination = "203.0.113.0/24"
  via         = "198.51.100.2"
}`,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"destination": {Type: cty.String, Required: true, Cost: schema.Replace, Canonical: canonicalDestination, Description: "Network that the route leads to, such as 203.0.113.0/24, a single address, or \"default\"; that is IPv6's where via is an IPv6 address."},
			"namespace":   spaceAttribute("the route"),
			"table":       {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(254), Cost: schema.Replace, Validate: schema.Whole(1, 1<<32-1), Description: "Number of the routing table (ip-route(8)): 254 is the main one."},
			"metric":      {Type: cty.Number, Optional: true, Cost: schema.Replace, Validate: schema.Whole(0, 1<<32-1), Description: "Of routes to one destination the one with the lowest metric is taken. Unset: 0 for IPv4, 1024 for IPv6, as the kernel does."},
			"via":         {Type: cty.String, Optional: true, Canonical: canonicalHost, Description: "IP address of the gateway, which has to be on a network that an interface is on. Unset: the destination is on the device's own network."},
			"device":      {Type: cty.String, Optional: true, Validate: linkName, Description: "Interface that the route goes out by. Unset: the one whose network the gateway is on."},
			"src":         {Type: cty.String, Optional: true, Canonical: canonicalHost, Description: "Source address of what the host itself sends by this route; one of its own addresses. Unset: the kernel chooses."},
			"mtu":         {Type: cty.Number, Optional: true, Validate: schema.Whole(68, 65535), Description: "Path MTU in bytes, 68 to 65535. Unset: that of the device."},
		}},
	}
}

// parseDestination reads a destination; the zero Prefix stands for "default".
func parseDestination(s string) (netip.Prefix, error) {
	if s == "default" {
		return netip.Prefix{}, nil
	}
	p, err := netip.ParsePrefix(s)
	if a, err2 := netip.ParseAddr(s); err != nil && err2 == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is not a network such as 203.0.113.0/24, an address, or \"default\"", s)
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%q: write it as an IPv4 network", s)
	case p != p.Masked():
		return p, fmt.Errorf("%q names an address within its network: the network is %s", s, p.Masked())
	}
	return p, nil
}

func canonicalDestination(v cty.Value) (cty.Value, error) {
	p, err := parseDestination(v.AsString())
	if err != nil || !p.IsValid() {
		return v, err
	}
	return cty.StringVal(p.String()), nil
}

func canonicalHost(v cty.Value) (cty.Value, error) {
	a, err := netip.ParseAddr(v.AsString())
	if err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
		return v, fmt.Errorf("%q is not the IP address of a host", v.AsString())
	}
	return cty.StringVal(a.Unmap().String()), nil
}

// way is a route as it is asked for; zero values are not asked for.
type way struct {
	space    string
	dst      netip.Prefix
	table    string
	metric   int
	via, src netip.Addr
	device   string
	mtu      int
}

func wayOf(v cty.Value) (way, error) {
	w := way{space: attr.Text(v, "namespace"), device: attr.Text(v, "device"), mtu: int(attr.Number(v, "mtu", 0)), table: strconv.FormatInt(attr.Number(v, "table", 254), 10)}
	var err error
	if w.dst, err = parseDestination(attr.Text(v, "destination")); err != nil {
		return w, err
	}
	for name, to := range map[string]*netip.Addr{"via": &w.via, "src": &w.src} {
		if s := attr.Text(v, name); s != "" {
			a, err := netip.ParseAddr(s)
			if err != nil {
				return w, fmt.Errorf("%s: %w", name, err)
			}
			*to = a.Unmap()
		}
	}
	if !w.dst.IsValid() {
		w.dst = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if w.via.Is6() || w.src.Is6() {
			w.dst = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
	}
	def := int64(0)
	if w.dst.Addr().Is6() {
		def = metric6
	}
	w.metric = int(attr.Number(v, "metric", def))
	return w, nil
}

// find is the route to the same destination in the same table with the same metric.
func (w way) find(all *world) *route {
	s := all.spaces[w.space]
	if s == nil {
		return nil
	}
	for i := range s.routes {
		if r := &s.routes[i]; r.Table == w.table && r.Metric == w.metric && r.destination() == w.dst && r.Protocol != kernelProto {
			return r
		}
	}
	return nil
}

// same says whether a route is what is asked for.
func (w way) same(r *route) bool {
	return r.Type == unicast && len(r.Nexthops) == 0 && text(w.via) == r.Gateway && (w.device == "" || w.device == r.Dev) && (!w.src.IsValid() || text(w.src) == r.Src) && w.mtu == r.mtu()
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// line makes or removes the route.
func (w way) line(verb string) words {
	l := words{"route", verb, w.dst.String()}
	if w.via.IsValid() {
		if w.via.Is6() != w.dst.Addr().Is6() {
			l = append(l, "via", "inet6", w.via.String())
		} else {
			l = append(l, "via", w.via.String())
		}
	}
	if w.device != "" {
		l = append(l, "dev", w.device)
	}
	l = append(l, "table", w.table, "metric", strconv.Itoa(w.metric), "proto", ourProto)
	if verb == "del" {
		return l
	}
	if w.src.IsValid() {
		l = append(l, "src", w.src.String())
	}
	if w.mtu != 0 {
		l = append(l, "mtu", strconv.Itoa(w.mtu))
	}
	return l
}

func (t routeType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	return readFrom(ctx, t, req)
}

func (t routeType) current(all *world, prior cty.Value, _ providers.Mark) cty.Value {
	null := cty.NullVal(t.Schema().Block.ImpliedType())
	w, err := wayOf(prior)
	if err != nil {
		return null
	}
	r := w.find(all)
	switch {
	case r == nil:
		return null
	case w.same(r):
		return prior
	case r.Protocol != ourProto:
		return null // somebody has put another one in its place
	}
	out := prior.AsValueMap()
	tell := func(name, have string) {
		out[name] = cty.NullVal(cty.String)
		if have != "" {
			out[name] = keepSpelling(prior.GetAttr(name), cty.StringVal(have), canonicalHost)
		}
	}
	tell("via", r.Gateway)
	if w.device != "" {
		out["device"] = cty.StringVal(r.Dev)
	}
	if w.src.IsValid() {
		tell("src", r.Src)
	}
	if r.mtu() != w.mtu {
		out["mtu"] = cty.NullVal(cty.Number)
		if r.mtu() != 0 {
			out["mtu"] = cty.NumberIntVal(int64(r.mtu()))
		}
	}
	return cty.ObjectVal(out)
}

// foundRoute is what was there before; nil for nothing.
type foundRoute struct {
	Line words `json:"line,omitempty"` // of ip, that makes it
}

// Prepare records the route that is there already.
func (routeType) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	if len(req.Undo) > 0 {
		return req.Undo, nil
	}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	all, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	w, err := wayOf(req.Planned)
	if err != nil {
		return nil, err
	}
	var found foundRoute
	if r := w.find(all); r != nil {
		found.Line = r.line("replace")
	}
	return json.Marshal(found)
}

// line makes a route that was found as it was. Routes of several ways are not told by it.
func (r route) line(verb string) words {
	l := words{"route", verb}
	if r.Type != unicast && r.Type != "" {
		l = append(l, r.Type)
	}
	l = append(l, r.destination().String())
	add := func(word, value string) {
		if value != "" {
			l = append(l, word, value)
		}
	}
	if r.Via != nil && r.Via.Host != "" {
		l = append(l, "via", r.Via.Family, r.Via.Host)
	}
	add("via", r.Gateway)
	add("dev", r.Dev)
	add("table", r.Table)
	add("proto", r.Protocol)
	if r.Pref == "" { // IPv6 has no scopes of routes
		add("scope", r.Scope)
	}
	add("src", r.Src)
	if r.Metric != 0 {
		add("metric", strconv.Itoa(r.Metric))
	}
	if r.mtu() != 0 {
		add("mtu", strconv.Itoa(r.mtu()))
	}
	return l
}

func (routeType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	d := req.Desired
	if d.GetAttr("via").IsNull() && d.GetAttr("device").IsNull() {
		res.Problems = append(res.Problems, providers.Problem{Path: cty.GetAttrPath("destination"), Summary: "Route leads nowhere", Detail: "A route needs a gateway or an interface. Set via or device."})
		return res, nil
	}
	if req.Host == nil || !d.IsWhollyKnown() {
		return res, nil
	}
	w, err := wayOf(d)
	if err != nil {
		return res, err
	}
	for name, a := range map[string]netip.Addr{"via": w.via, "src": w.src} {
		if a.IsValid() && a.Is6() != w.dst.Addr().Is6() {
			res.Problems = append(res.Problems, providers.Problem{Path: cty.GetAttrPath(name), Summary: "Families differ", Detail: fmt.Sprintf("%s is an address of another family than the destination %s.", a, w.dst)})
		}
	}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	all, err := s.look(ctx)
	if err != nil {
		return res, err
	}
	if !req.Prior.IsNull() {
		return res, nil
	}
	return res, w.foreign(all, req.Host.Name())
}

// foreign is the error of another route in this one's place.
func (w way) foreign(all *world, host string) error {
	r := w.find(all)
	if r == nil || w.same(r) || r.Protocol == ourProto {
		return nil
	}
	return fmt.Errorf("the route to %s in table %s with metric %d on %s %w: it is \"%s\". Choose another metric or table, or remove it there by hand (ip %s)",
		w.dst, w.table, w.metric, host, providers.ErrForeign, strings.Join(r.line("add")[2:], " "), strings.Join(r.line("del"), " "))
}

func (routeType) Claims(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	if !planned.GetAttr("namespace").IsKnown() {
		return providers.Claims{}, nil
	}
	needs, err := needsSpace(ctx, h, attr.Text(planned, "namespace"), cty.GetAttrPath("namespace"))
	c := providers.Claims{Needs: needs}
	if w, err := wayOf(planned); err == nil && planned.GetAttr("via").IsKnown() {
		scope := "route"
		if w.space != "" {
			scope += " in network namespace " + w.space
		}
		c.Unique = append(c.Unique, providers.Unique{Scope: scope, Value: fmt.Sprintf("%s in table %s with metric %d", w.dst, w.table, w.metric), Path: cty.GetAttrPath("destination")})
	}
	return c, err
}

func (t routeType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	all, err := s.fresh(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	var found foundRoute
	if len(req.Undo) > 0 {
		if err := json.Unmarshal(req.Undo, &found); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("what was recorded of the route found: %w", err)
		}
	}
	if req.Planned.IsNull() {
		return providers.ApplyResult{New: req.Planned}, s.removeRoute(ctx, all, req.Prior, found)
	}
	w, err := wayOf(req.Planned)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	what := "route to " + w.dst.String()
	if _, err := all.space(w.space, req.Host.Name()); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
	}
	var c steps
	switch r := w.find(all); {
	case r == nil:
		c.ip(w.space, w.line("add"))
	case w.same(r):
	case r.Protocol == ourProto, found.is(r):
		c.ip(w.space, w.line("replace"))
	default:
		return providers.ApplyResult{}, w.foreign(all, req.Host.Name())
	}
	if err := s.do(ctx, &c); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
	}
	return s.outcome(ctx, t, what, req)
}

// is says whether a route is the one that was found.
func (f foundRoute) is(r *route) bool {
	return len(f.Line) > 0 && strings.Join(f.Line, " ") == strings.Join(r.line("replace"), " ")
}

// removeRoute removes our route, or puts back what was there.
func (s *session) removeRoute(ctx context.Context, all *world, prior cty.Value, found foundRoute) error {
	w, err := wayOf(prior)
	if err != nil {
		return err
	}
	r := w.find(all)
	var c steps
	switch {
	case r == nil && len(found.Line) == 0, r != nil && found.is(r), r != nil && r.Protocol != ourProto, all.spaces[w.space] == nil:
		return nil
	case len(found.Line) > 0:
		c.ip(w.space, found.Line)
	default:
		c.ip(w.space, r.line("del"))
	}
	if err := s.do(ctx, &c); err != nil {
		return fmt.Errorf("remove route to %s: %w", w.dst, err)
	}
	return nil
}
