package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// foundNIC is what an interface had before, of what is set. Once recorded, a value stays: nothing at all is a record too, and null is none.
type foundNIC struct {
	MTU        int               `json:"mtu,omitempty"`
	MAC        string            `json:"mac,omitempty"`
	Flags      map[string]bool   `json:"flags,omitempty"`      // by attribute
	Listed     bool              `json:"listed,omitempty"`     // addresses were set
	Addresses  []words           `json:"addresses"`            // as ip takes them
	Routes     []words           `json:"routes"`               // like it: those that go with addresses, or when the link goes down
	Neighbours map[string]string `json:"neighbours,omitempty"` // by IP address; "" for none
	Others     map[string]string `json:"others"`               // neighbours that are not set, and go when the link goes down or gets another MAC address
	Knobs      map[string]string `json:"knobs,omitempty"`      // by attribute, as ethtool takes them
	Features   map[string]bool   `json:"features"`             // all single ones that can be set: one draws others along
}

func decodeFound(raw json.RawMessage) (foundNIC, error) {
	f := foundNIC{Flags: map[string]bool{}, Neighbours: map[string]string{}, Knobs: map[string]string{}}
	if len(raw) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("what was recorded of the interface: %w", err)
	}
	return f, nil
}

// Prepare records what is set and was not set before.
func (nicType) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	w, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	f, err := decodeFound(req.Undo)
	if err != nil {
		return nil, err
	}
	e := w.nicEnd(req.Planned)
	l := w.link(e)
	if l == nil {
		return nil, noInterface(req.Planned, req.Host.Name())
	}
	set := func(name string) bool { return !req.Planned.GetAttr(name).IsNull() }
	if set("mtu") && f.MTU == 0 {
		f.MTU = l.MTU
	}
	if (set("mac") || set("addresses") || set("up")) && f.Routes == nil {
		f.Routes = w.routesOf(e)
	}
	if set("mac") && f.MAC == "" {
		f.MAC = l.MAC
	}
	for name, flag := range flags() {
		if _, known := f.Flags[name]; set(name) && !known {
			f.Flags[name] = l.has(flag)
		}
	}
	// A link that goes down loses IPv6 addresses and neighbours too.
	if (set("addresses") || set("up")) && f.Addresses == nil {
		f.Addresses = []words{}
		for _, a := range l.given() {
			f.Addresses = append(f.Addresses, a.words())
		}
	}
	f.Listed = f.Listed || set("addresses")
	want, err := parseNeighbours(req.Planned.GetAttr("neighbours"))
	if err != nil {
		return nil, err
	}
	have := w.neighboursOf(e)
	if (set("up") || set("mac")) && f.Others == nil {
		f.Others = map[string]string{}
		for a, mac := range have {
			f.Others[a.String()] = mac
		}
	}
	for a := range want {
		if _, known := f.Neighbours[a.String()]; !known {
			f.Neighbours[a.String()] = have[a]
		}
	}
	if asked(req.Planned) {
		d, err := s.driver(ctx, e)
		if err != nil {
			return nil, err
		}
		f.record(req.Planned, d)
	}
	return json.Marshal(f)
}

// record keeps what ethtool tells.
func (f *foundNIC) record(planned cty.Value, d *driver) {
	for _, k := range knobs() {
		now, have := d.values[k.attr]
		if _, known := f.Knobs[k.attr]; have && !known && !planned.GetAttr(k.attr).IsNull() {
			f.Knobs[k.attr] = now
		}
	}
	if planned.GetAttr("offloads").IsNull() || f.Features != nil {
		return
	}
	f.Features = map[string]bool{}
	for name, x := range d.features {
		if x.single && !x.fixed {
			f.Features[name] = x.wanted
		}
	}
}

func noInterface(v cty.Value, host string) error {
	name := attr.Text(v, "interface")
	if name == "" {
		return fmt.Errorf("the NIC %s on %s has no interface: no kernel driver has it", attr.Text(v, "pci"), host)
	}
	return fmt.Errorf("there is no interface %s on %s", end{attr.Text(v, "namespace"), name}, host)
}

// routesOf are the routes out by a link that the kernel does not keep by itself; those without a gateway come first, since others may need them. Routes of several ways are none.
func (w *world) routesOf(e end) []words {
	out := []words{}
	for _, direct := range []bool{true, false} {
		for _, r := range w.spaces[e.space].routes {
			if r.Dev == e.name && r.Protocol != kernelProto && r.Protocol != raProto && direct == (r.Gateway == "" && r.Via == nil) {
				out = append(out, r.line("replace"))
			}
		}
	}
	return out
}

// words are what ip takes to give a link an address as this one was given.
func (a address) words() words {
	w := words{a.prefix().String()}
	if a.Peer != "" {
		w = words{a.Local, "peer", a.Peer + "/" + strconv.Itoa(a.Prefix)}
	}
	if a.Broadcast != "" {
		w = append(w, "broadcast", a.Broadcast)
	}
	if a.Label != "" && strings.Trim(a.Label, alphanumeric+"_.:-") == "" {
		w = append(w, "label", a.Label)
	}
	if a.Scope != "" {
		w = append(w, "scope", a.Scope)
	}
	if a.Metric != 0 {
		w = append(w, "metric", strconv.Itoa(a.Metric))
	}
	if strings.Contains(a.Local, ":") {
		w = append(w, "nodad")
	}
	if a.NoPrefixRoute {
		w = append(w, "noprefixroute")
	}
	return w
}

// aim is what an interface shall have: what is planned, and what was found for all that was once set and is no longer.
type aim struct {
	likeness
	flags      map[string]bool // without up
	neighbours map[netip.Addr]string
	knobs      map[string]string
	offloads   map[string]bool // by long name
	features   map[string]bool // found ones
	routes     []words         // found ones
}

// aimOf is the aim of a plan; null: all as it was found.
func aimOf(planned cty.Value, f foundNIC) (aim, error) {
	a, err := f.aim(planned.IsNull())
	if err != nil {
		return a, fmt.Errorf("what was recorded of the interface: %w", err)
	}
	managed := func(name string) bool { return !planned.IsNull() && !planned.GetAttr(name).IsNull() }
	if managed("offloads") {
		if a.offloads, err = parseOffloads(planned.GetAttr("offloads")); err != nil {
			return a, err
		}
	}
	if managed("mtu") {
		a.mtu = int(attr.Number(planned, "mtu", 0))
	}
	if managed("mac") {
		c, err := schema.MAC(planned.GetAttr("mac"))
		if err != nil {
			return a, err
		}
		a.mac = c.AsString()
	}
	for name := range flags() {
		if managed(name) {
			a.flags[name] = attr.Truth(planned, name, false)
		}
	}
	if up, ok := a.flags["up"]; ok {
		a.up = &up
		delete(a.flags, "up")
	}
	if managed("addresses") {
		list, err := parseAddresses(planned.GetAttr("addresses"))
		if err != nil {
			return a, err
		}
		a.listed, a.list = true, list
	}
	if managed("neighbours") {
		want, err := parseNeighbours(planned.GetAttr("neighbours"))
		if err != nil {
			return a, err
		}
		maps.Copy(a.neighbours, want)
	}
	for _, k := range knobs() {
		if managed(k.attr) {
			a.knobs[k.attr] = k.spelled(planned.GetAttr(k.attr))
		}
	}
	return a, nil
}

// aim is what was found of all that was ever set; and at the end of what went with it.
func (f foundNIC) aim(end bool) (aim, error) {
	a := aim{likeness: likeness{mtu: f.MTU, mac: f.MAC, listed: f.Listed, as: map[netip.Prefix]words{}}, flags: maps.Clone(f.Flags), neighbours: map[netip.Addr]string{}, knobs: maps.Clone(f.Knobs), features: f.Features}
	neighbours := maps.Clone(f.Neighbours)
	if end {
		a.routes = f.Routes
		maps.Copy(neighbours, f.Others)
	}
	for ip, mac := range neighbours {
		to, err := netip.ParseAddr(ip)
		if err != nil {
			return a, err
		}
		a.neighbours[to] = mac
	}
	if !end && !f.Listed {
		return a, nil
	}
	for _, w := range f.Addresses {
		p, err := w.prefix()
		if err != nil {
			return a, err
		}
		a.list = append(a.list, p)
		a.as[p] = w
	}
	return a, nil
}

// prefix is the address that recorded words give.
func (w words) prefix() (netip.Prefix, error) {
	if len(w) == 0 {
		return netip.Prefix{}, errors.New("an address without words")
	}
	if len(w) > 2 && w[1] == "peer" {
		_, bits, _ := strings.Cut(w[2], "/")
		return netip.ParsePrefix(w[0] + "/" + bits)
	}
	return netip.ParsePrefix(w[0])
}

// Apply sets what is planned, or puts back what was found.
func (t nicType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	w, err := s.fresh(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	f, err := decodeFound(req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	about := req.Planned
	if about.IsNull() {
		about = req.Prior
	}
	e := w.nicEnd(about)
	what := "interface " + e.String()
	switch l := w.link(e); {
	case l == nil && req.Planned.IsNull():
		return providers.ApplyResult{New: req.Planned}, nil // it has gone with all it had
	case l == nil:
		return providers.ApplyResult{}, noInterface(about, req.Host.Name())
	case !req.Planned.IsNull():
		for _, p := range s.nicProblems(w, e, req.Planned) {
			if !p.Warning {
				return providers.ApplyResult{}, errors.New(p.Detail)
			}
		}
	}
	a, err := aimOf(req.Planned, f)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if why := s.managed(w, e); req.Planned.IsNull() && a.up != nil && !*a.up && why != "" {
		req.Log(fmt.Sprintf("%s was down before and stays up, since it %s", what, why))
		a.up = nil
	}
	if err := s.dropOffloads(ctx, e, req, a); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := s.reach(ctx, w, e, a); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
	}
	if req.Planned.IsNull() {
		return providers.ApplyResult{New: req.Planned}, nil
	}
	v, err := t.read(context.WithoutCancel(ctx), s, knownOnly(req.Planned))
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if v.IsNull() {
		return providers.ApplyResult{}, fmt.Errorf("%s vanished while it was set up", what)
	}
	return providers.ApplyResult{New: v}, checkCame(&t.Schema().Block, what, req.Planned, v)
}

// reach brings an interface to what is aimed at: the driver's settings first, since they may take the link down for a moment.
func (s *session) reach(ctx context.Context, w *world, e end, a aim) error {
	var c steps
	if len(a.knobs)+len(a.offloads)+len(a.features) > 0 {
		d, err := s.driver(ctx, e)
		if err != nil {
			return err
		}
		a.driverSteps(&c, e, d)
	}
	l := w.link(e)
	c.ip(e.space, a.lines(e.name, l)...)
	for _, name := range slices.Sorted(maps.Keys(a.flags)) {
		if a.flags[name] != l.has(flags()[name]) {
			c.ip(e.space, words{"link", "set", "dev", e.name, map[string]string{"promiscuous": "promisc", "all_multicast": "allmulticast"}[name], onOff(a.flags[name])})
		}
	}
	have := w.neighboursOf(e)
	others := map[netip.Addr]string{}
	switch {
	case l.up() && a.up != nil && !*a.up:
		have = nil // they go with it
	case a.mac != "" && a.mac != l.MAC:
		others, have = have, nil // the kernel forgets them, as if they were of another network
	}
	for ip, mac := range others {
		if _, ours := a.neighbours[ip]; !ours {
			a.neighbours[ip] = mac
		}
	}
	for _, ip := range slices.SortedFunc(maps.Keys(a.neighbours), netip.Addr.Compare) {
		mac := a.neighbours[ip]
		now, there := have[ip]
		switch {
		case mac == "" && there:
			c.ip(e.space, words{"neighbour", "del", ip.String(), "dev", e.name})
		case mac != "" && now != mac:
			c.ip(e.space, words{"neighbour", "replace", ip.String(), "lladdr", mac, "dev", e.name, "nud", "permanent"})
		}
	}
	if err := s.do(ctx, &c); err != nil {
		return err
	}
	return s.routesBack(ctx, e, a)
}

// driverSteps adds what makes the driver's settings those wanted: one call of ethtool for each kind that differs.
func (a aim) driverSteps(c *steps, e end, d *driver) {
	for _, kind := range []string{"channels", "ring", "coalesce", "pause"} {
		line := words{map[string]string{"channels": "-L", "ring": "-G", "coalesce": "-C", "pause": "-A"}[kind], e.name}
		for _, k := range knobs() {
			if want, ok := a.knobs[k.attr]; ok && k.kind == kind && want != d.values[k.attr] {
				line = append(line, k.word, want)
			}
		}
		if len(line) > 2 {
			c.ethtool(e.space, line)
		}
	}
	if a.offloads == nil {
		restoreFeatures(c, e, a.features, d)
	} else {
		setOffloads(c, e, a.offloads, d)
	}
}

// dropOffloads puts back all offloads as they were found when one is no longer set: one draws others along, so that only all together are as they were. Those that are set are set again after it.
func (s *session) dropOffloads(ctx context.Context, e end, req providers.ApplyRequest, a aim) error {
	if req.Prior.IsNull() || a.offloads == nil {
		return nil
	}
	had, err := parseOffloads(req.Prior.GetAttr("offloads"))
	if err != nil {
		return err
	}
	for name := range had {
		if _, still := a.offloads[name]; still {
			continue
		}
		d, err := s.driver(ctx, e)
		if err != nil {
			return err
		}
		var c steps
		restoreFeatures(&c, e, a.features, d)
		return s.do(ctx, &c)
	}
	return nil
}

// restoreFeatures adds what makes all single offloads what they were set to before.
func restoreFeatures(c *steps, e end, want map[string]bool, d *driver) {
	line := words{"-K", e.name}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if f, ok := d.features[name]; ok && !f.fixed && f.wanted != want[name] {
			line = append(line, settable(name), onOff(want[name]))
		}
	}
	if len(line) > 2 {
		c.ethtool(e.space, line)
	}
}

// routesBack puts back those routes found that are no longer there. A link that is down has none.
func (s *session) routesBack(ctx context.Context, e end, a aim) error {
	if len(a.routes) == 0 {
		return nil
	}
	w, err := s.look(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if l := w.link(e); l == nil || !l.up() {
		return nil
	}
	have := w.routesOf(e)
	var c steps
	for _, r := range a.routes {
		if !slices.ContainsFunc(have, func(h words) bool { return slices.Equal(h, r) }) {
			c.ip(e.space, r)
		}
	}
	return s.do(ctx, &c)
}
