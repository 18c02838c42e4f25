package network

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/hostkit"
)

// Plan refuses what the driver does not take, with its numbers, and what would cut us off.
func (t nicType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	d := req.Desired
	if d.GetAttr("interface").IsNull() == d.GetAttr("pci").IsNull() {
		res.Problems = append(res.Problems, providers.Problem{Path: cty.GetAttrPath("interface"), Summary: "Which interface?", Detail: "Set interface or pci, and not both."})
		return res, nil
	}
	if !d.GetAttr("pci").IsNull() && !d.GetAttr("namespace").IsNull() {
		res.Problems = append(res.Problems, providers.Problem{Path: cty.GetAttrPath("namespace"), Summary: "NIC in a namespace", Detail: "An interface in another namespace cannot be found by its PCI address. Name it with interface."})
		return res, nil
	}
	if req.Host == nil || !d.GetAttr("interface").IsKnown() || !d.GetAttr("pci").IsKnown() || !d.GetAttr("namespace").IsKnown() {
		return res, nil
	}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	f, err := req.Host.Facts(ctx)
	if err != nil {
		return res, err
	}
	if !f.Root {
		res.Problems = append(res.Problems, hostkit.NotRoot(req.Host.Name()))
	}
	w, err := s.look(ctx)
	if err != nil {
		return res, err
	}
	e := w.nicEnd(d)
	l := w.link(e)
	if l == nil {
		return res, nil // it may come by what is planned before
	}
	out := req.Proposed.AsValueMap()
	out["name"] = cty.StringVal(l.Name)
	res.Planned = cty.ObjectVal(out)
	res.Problems = append(res.Problems, s.nicProblems(w, e, d)...)
	if !asked(d) {
		return res, nil
	}
	drv, err := s.driver(ctx, e)
	if err != nil {
		return res, err
	}
	res.Problems = append(res.Problems, driverProblems(e, req.Host.Name(), d, drv)...)
	return res, nil
}

// nicProblems are refusals that concern the link itself.
func (s *session) nicProblems(w *world, e end, v cty.Value) []providers.Problem {
	var out []providers.Problem
	l, host := w.link(e), s.host.Name()
	add := func(attribute, summary, format string, args ...any) {
		out = append(out, providers.Problem{Path: cty.GetAttrPath(attribute), Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	mtu := int(attr.Number(v, "mtu", 0))
	if mtu != 0 && (mtu < l.MinMTU || l.MaxMTU > 0 && mtu > l.MaxMTU) {
		add("mtu", "MTU is out of the driver's range", "%s on %s takes an MTU from %d to %d, and %d is asked for.", e, host, l.MinMTU, l.MaxMTU, mtu)
	}
	if want, err := parseAddresses(v.GetAttr("addresses")); err == nil && mtu != 0 && mtu < 1280 && slices.ContainsFunc(want, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		add("mtu", "MTU is too small for IPv6", "IPv6 needs an MTU of 1280 at least (RFC 8200, section 5), and the kernel drops the IPv6 addresses of an interface with %d.", mtu)
	}
	why := s.managed(w, e)
	if why == "" {
		return out
	}
	what := fmt.Sprintf("%s on %s %s", e, host, why)
	if up := v.GetAttr("up"); up.IsKnown() && !up.IsNull() && up.False() && l.up() {
		add("up", "Interface is what the host is reached by", "%s. Taken down, the host would be out of reach.", what)
	}
	if list := v.GetAttr("addresses"); !list.IsNull() && list.IsWhollyKnown() {
		want, err := parseAddresses(list)
		if gone := slices.DeleteFunc(l.prefixes(want), func(p netip.Prefix) bool { return slices.Contains(want, p) }); err == nil && len(gone) > 0 {
			add("addresses", "Interface is what the host is reached by", "%s, and would lose %s. Add these to addresses, or leave addresses out.", what, printPrefixes(gone))
		}
	}
	if mac := v.GetAttr("mac"); mac.IsKnown() && !mac.IsNull() {
		if c, err := schema.MAC(mac); err == nil && c.AsString() != l.MAC {
			add("mac", "Interface is what the host is reached by", "%s. With another MAC address others would not find it for minutes, and a DHCP server may give it another address.", what)
		}
	}
	if resets := resetting(v, l); len(resets) > 0 {
		out = append(out, providers.Problem{Warning: true, Path: cty.GetAttrPath(resets[0]), Summary: "Interface is what the host is reached by",
			Detail: fmt.Sprintf("%s, and many drivers reset the link for %s: the host may be out of reach for seconds.", what, strings.Join(resets, ", "))})
	}
	return out
}

// resetting are the attributes for which many drivers reset the link.
func resetting(v cty.Value, l *link) []string {
	var out []string
	if n := attr.Number(v, "mtu", 0); n != 0 && int(n) != l.MTU {
		out = append(out, "mtu")
	}
	if !v.GetAttr("offloads").IsNull() {
		out = append(out, "offloads")
	}
	for _, k := range knobs() {
		if k.kind != "coalesce" && !v.GetAttr(k.attr).IsNull() {
			out = append(out, k.attr)
		}
	}
	return out
}

func printPrefixes(all []netip.Prefix) string {
	var out []string
	for _, p := range all {
		out = append(out, p.String())
	}
	return strings.Join(out, ", ")
}

// driverProblems are what the driver does not have, or does not take.
func driverProblems(e end, host string, v cty.Value, d *driver) []providers.Problem {
	var out []providers.Problem
	for _, k := range knobs() {
		want := k.spelled(v.GetAttr(k.attr))
		if want == "" {
			continue
		}
		add := func(summary, format string, args ...any) {
			out = append(out, providers.Problem{Path: cty.GetAttrPath(k.attr), Summary: summary, Detail: fmt.Sprintf(format, args...)})
		}
		_, have := d.values[k.attr]
		most, limited := d.most[k.attr]
		n, _ := strconv.ParseInt(want, 10, 64)
		limit, _ := strconv.ParseInt(most, 10, 64)
		switch {
		case d.why[k.kind] != "":
			add("Driver cannot do that", "The driver of %s on %s has no settings of %s: %s. Leave %s out.", e, host, k.kind, d.why[k.kind], k.attr)
		case !have || limited && limit == 0:
			add("Driver cannot do that", "The driver of %s on %s has no %s. `ethtool %s %s` shows what it has.", e, host, k.attr, map[string]string{"ring": "-g", "channels": "-l", "pause": "-a", "coalesce": "-c"}[k.kind], e.name)
		case limited && n > limit:
			add("More than the driver takes", "The driver of %s on %s takes %d at most, and %s asks for %d.", e, host, limit, k.attr, n)
		}
	}
	want, err := parseOffloads(v.GetAttr("offloads"))
	if err != nil {
		return out // the schema has said so
	}
	return append(out, offloadProblems(cty.GetAttrPath("offloads"), e, host, want, d)...)
}
