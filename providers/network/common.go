package network

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// Attributes that several types share.

func nameAttribute(what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.String, Required: true, Cost: schema.Replace, Validate: linkName,
		Description: "Name of " + what + ": 1 to 15 letters, digits, _, . or - (netdevice(7), IFNAMSIZ)."}
}

func spaceAttribute(what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.String, Optional: true, Cost: schema.Replace, Validate: spaceName,
		Description: "Network namespace of " + what + ", by its name. Unset: the one that the host's connection leads to."}
}

func mtuAttribute(most int64) *schema.Attribute {
	return &schema.Attribute{Type: cty.Number, Optional: true, Cost: schema.PortReset, Validate: schema.Whole(68, most),
		Description: fmt.Sprintf("Largest payload of a frame in bytes, 68 to %d (ip-link(8), mtu). IPv6 needs 1280.", most)}
}

func macAttribute(what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.String, Optional: true, Computed: true, Cost: schema.PortReset, Canonical: schema.MAC,
		Description: "MAC address of " + what + ". Unset: the kernel chooses one."}
}

func upAttribute(what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.Bool, Optional: true, Default: cty.True, Cost: schema.PortReset, Description: "Whether " + what + " is set up."}
}

func addressesAttribute(what string) *schema.Attribute {
	return &schema.Attribute{Type: cty.List(cty.String), Optional: true, Canonical: canonicalAddresses,
		Description: "IP addresses of " + what + " with their prefix lengths, such as 192.0.2.1/24. It has these and no others, but for the link-local ones and leases that the kernel and DHCP bring. IPv6 addresses are in use at once, without duplicate address detection. Unset: addresses are left alone."}
}

// likeness is what a link shall be. The zero value of a field leaves that alone.
type likeness struct {
	mtu     int
	mac     string
	up      *bool
	listed  bool                   // addresses are exactly those of the list
	list    []netip.Prefix         // with listed
	without []netip.Prefix         // not listed: these were ours and go
	as      map[netip.Prefix]words // how an address was given, for those that were found
}

// wanted reads a likeness from a configuration; prior tells what is no longer wanted. Names of attributes that differ from end to end have a prefix.
func wanted(planned, prior cty.Value, prefix string) (likeness, error) {
	up := attr.Truth(planned, "up", true)
	w := likeness{up: &up, mtu: int(attr.Number(planned, "mtu", 0))}
	if !prior.IsNull() && w.mtu == 0 && attr.Number(prior, "mtu", 0) != 0 {
		w.mtu = 1500
	}
	if mac := planned.GetAttr(prefix + "mac"); mac.IsKnown() && !mac.IsNull() {
		c, err := schema.MAC(mac)
		if err != nil {
			return w, err
		}
		w.mac = c.AsString()
	}
	var err error
	list := planned.GetAttr(prefix + "addresses")
	if w.listed = !list.IsNull(); w.listed {
		w.list, err = parseAddresses(list)
	} else if !prior.IsNull() {
		w.without, err = parseAddresses(prior.GetAttr(prefix + "addresses"))
	}
	return w, err
}

// lines bring a link from what it is (nil: it has just been made) to what is wanted.
func (w likeness) lines(name string, have *link) []words {
	var out []words
	set := func(more ...string) { out = append(out, append(words{"link", "set", "dev", name}, more...)) }
	if have == nil {
		have = &link{}
	}
	if w.mtu != 0 && have.MTU != w.mtu {
		set("mtu", strconv.Itoa(w.mtu))
	}
	if w.mac != "" && have.MAC != w.mac {
		set("address", w.mac)
	}
	flushed := false
	if w.up != nil && *w.up != have.up() {
		if *w.up {
			set("up")
		} else {
			set("down")
			flushed = true // a link that goes down loses its IPv6 addresses
		}
	}
	for _, p := range have.prefixes(w.list) {
		if flushed && p.Addr().Is6() {
			continue
		}
		if w.listed && !slices.Contains(w.list, p) || slices.Contains(w.without, p) {
			out = append(out, words{"address", "del", p.String(), "dev", name})
		}
	}
	for _, p := range w.list {
		if !slices.Contains(have.prefixes(w.list), p) || flushed && p.Addr().Is6() {
			if as, ok := w.as[p]; ok {
				out = append(out, append(words{"address", "replace"}, append(slices.Clone(as), "dev", name)...))
				continue
			}
			out = append(out, addAddress(p, name))
		}
	}
	return out
}

func addAddress(p netip.Prefix, name string) words {
	w := words{"address", "replace", p.String(), "dev", name}
	if p.Addr().Is6() {
		w = append(w, "nodad")
	}
	return w
}

// readLink puts what a link is into an object, in the spelling of prior.
func readLink(out map[string]cty.Value, prior cty.Value, l *link, prefix string) {
	out[prefix+"mac"] = keepSpelling(prior.GetAttr(prefix+"mac"), cty.StringVal(l.MAC), schema.MAC)
	if list := prior.GetAttr(prefix + "addresses"); !list.IsNull() {
		want, _ := parseAddresses(list)
		out[prefix+"addresses"] = keepSpelling(list, prefixList(l.prefixes(want)), canonicalAddresses)
	}
}

// readBoth tells mtu and up of links that share them: where one differs from prior, that one is told.
func readBoth(out map[string]cty.Value, prior cty.Value, links ...*link) {
	for _, l := range links {
		if want := attr.Number(prior, "mtu", 0); want != 0 && int64(l.MTU) != want {
			out["mtu"] = cty.NumberIntVal(int64(l.MTU))
		}
		if up := prior.GetAttr("up"); up.IsNull() || l.up() != up.True() {
			out["up"] = cty.BoolVal(l.up())
		}
	}
}

// keepSpelling is have, or prior where it means the same.
func keepSpelling(prior, have cty.Value, canonical func(cty.Value) (cty.Value, error)) cty.Value {
	if prior.IsNull() || !prior.IsWhollyKnown() {
		return have
	}
	if c, err := canonical(prior); err == nil && c.RawEquals(have) {
		return prior
	}
	return have
}

// knownOnly makes what is not known null: it is filled in by what is read.
func knownOnly(v cty.Value) cty.Value {
	out := v.AsValueMap()
	for name, e := range out {
		if !e.IsWhollyKnown() {
			out[name] = cty.NullVal(e.Type())
		}
	}
	return cty.ObjectVal(out)
}

// checkCame compares what is there after a change with what was planned.
func checkCame(b *schema.Block, what string, planned, got cty.Value) error {
	var wrong []string
	for name, a := range b.Attributes {
		want, have := planned.GetAttr(name), got.GetAttr(name)
		if !want.IsWhollyKnown() || want.RawEquals(have) {
			continue
		}
		if a.Canonical != nil && !want.IsNull() && !have.IsNull() {
			w, err := a.Canonical(want)
			h, err2 := a.Canonical(have)
			if err == nil && err2 == nil && w.RawEquals(h) {
				continue
			}
		}
		wrong = append(wrong, fmt.Sprintf("%s is %s and should be %s", name, printValue(have), printValue(want)))
	}
	if len(wrong) == 0 {
		return nil
	}
	sort.Strings(wrong)
	return fmt.Errorf("%s did not come out as planned: %s", what, strings.Join(wrong, ", "))
}

func printValue(v cty.Value) string {
	switch {
	case v.IsNull():
		return "not set"
	case v.Type() == cty.String:
		return v.AsString()
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	case v.Type() == cty.Bool:
		return strconv.FormatBool(v.True())
	case v.CanIterateElements():
		var parts []string
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if s := printValue(e); v.Type().IsListType() {
				parts = append(parts, s)
			} else {
				parts = append(parts, k.AsString()+"="+s)
			}
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return v.GoString()
}

// reader is a type whose instances can be read from a world.
type reader interface {
	Schema() *schema.Resource
	// current is the instance as it is, in the spelling of prior; null when it is not there.
	current(w *world, prior cty.Value, m providers.Mark) cty.Value
}

// readFrom is Read of such a type.
func readFrom(ctx context.Context, r reader, req providers.ReadRequest) (providers.ReadResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return providers.ReadResult{}, err
	}
	return providers.ReadResult{Current: r.current(w, req.Prior, req.Mark)}, nil
}

// outcome reads an instance back after a change.
func (s *session) outcome(ctx context.Context, r reader, what string, req providers.ApplyRequest) (providers.ApplyResult, error) {
	w, err := s.look(context.WithoutCancel(ctx))
	if err != nil {
		return providers.ApplyResult{}, err
	}
	v := r.current(w, knownOnly(req.Planned), req.Mark)
	if v.IsNull() {
		return providers.ApplyResult{}, fmt.Errorf("%s vanished while it was made: something else removes it", what)
	}
	return providers.ApplyResult{New: v}, checkCame(&r.Schema().Block, what, req.Planned, v)
}

// needsSpace is the claim on a namespace that the host does not have by itself.
func needsSpace(ctx context.Context, h providers.Host, name string, p cty.Path) ([]providers.Named, error) {
	if name == "" || h == nil {
		return nil, nil
	}
	s, err := sessionOf(ctx, h)
	if err != nil {
		return nil, err
	}
	w, err := s.look(ctx)
	if err != nil || w.spaces[name] != nil {
		return nil, err
	}
	hint := fmt.Sprintf("Make it with a net_namespace, and refer to that one's name. %s has none now.", h.Name())
	if all := w.names(); len(all) > 0 {
		hint = fmt.Sprintf("Make it with a net_namespace, and refer to that one's name. %s has now: %s.", h.Name(), strings.Join(all, ", "))
	}
	return []providers.Named{{Kind: spaceKind, Name: name, Hint: hint, Path: p}}, nil
}

// uniqueLink is the claim on a name of a link.
func uniqueLink(e end, p cty.Path) providers.Unique {
	scope := "interface"
	if e.space != "" {
		scope += " in network namespace " + e.space
	}
	return providers.Unique{Scope: scope, Value: e.name, Path: p}
}

// removeLink is how a link is removed by hand.
func removeByHand(e end) string {
	if e.space == "" {
		return "ip link del dev " + e.name
	}
	return "ip -n " + e.space + " link del dev " + e.name
}
