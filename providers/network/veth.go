package network

import (
	"context"
	"fmt"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// vethType is net_veth.
type vethType struct{}

var (
	_ providers.Resource = vethType{}
	_ providers.Planner  = vethType{}
	_ providers.Claimer  = vethType{}
)

func (vethType) Schema() *schema.Resource {
	queues := func(what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.Number, Optional: true, Cost: schema.Replace, Validate: schema.Whole(1, 4096),
			Description: "Number of " + what + " queues of each end, 1 to 4096 (ip-link(8)). Unset: as many as the kernel makes, of which one is in use. AF_XDP wants one for each thread."}
	}
	return &schema.Resource{
		Type:        "net_veth",
		Description: "A pair of virtual Ethernet links, of which each end may be in a namespace of its own (veth(4)).",
		After:       []string{"host_package", "host_module", "net_namespace"},
		Example: `resource "net_veth" "client" {
  name           = "sw-client"
  peer_name      = "eth0"
  peer_namespace = "client"
  peer_addresses = ["198.51.100.1/24"]
}`,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"name":           nameAttribute("the first end"),
			"peer_name":      nameAttribute("the other end"),
			"namespace":      spaceAttribute("the first end"),
			"peer_namespace": spaceAttribute("the other end"),
			"mac":            macAttribute("the first end"),
			"peer_mac":       macAttribute("the other end"),
			"mtu":            mtuAttribute(65535),
			"up":             upAttribute("each end"),
			"addresses":      addressesAttribute("the first end"),
			"peer_addresses": addressesAttribute("the other end"),
			"tx_queues":      queues("transmit"),
			"rx_queues":      queues("receive"),
			"offloads":       offloadsAttribute("both ends"),
		}},
	}
}

// ends are the names of both.
func ends(v cty.Value) (end, end) {
	return end{attr.Text(v, "namespace"), attr.Text(v, "name")}, end{attr.Text(v, "peer_namespace"), attr.Text(v, "peer_name")}
}

// pair is a veth as it is found: an end is nil when it is not there or not ours.
type pair struct{ a, b *link }

func (w *world) pair(v cty.Value, m providers.Mark) pair {
	a, b := ends(v)
	ours := func(e end) *link {
		if l := w.link(e); l != nil && l.Alias == aliasOf(m) && l.Info.Kind == "veth" {
			return l
		}
		return nil
	}
	return pair{ours(a), ours(b)}
}

// whole says whether the two ends belong together. Numbers of links are a namespace's own, so that each end has to name the other.
func (p pair) whole(v cty.Value) bool {
	if p.a == nil || p.b == nil {
		return false
	}
	if a, b := ends(v); a.space == b.space {
		return p.a.Peer == b.name
	}
	return p.a.PeerIndex == p.b.Index && p.b.PeerIndex == p.a.Index
}

func (t vethType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	v, err := t.read(ctx, s, req.Prior, req.Mark)
	return providers.ReadResult{Current: v}, err
}

func (t vethType) read(ctx context.Context, s *session, prior cty.Value, m providers.Mark) (cty.Value, error) {
	w, err := s.look(ctx)
	if err != nil {
		return cty.NilVal, err
	}
	p := w.pair(prior, m)
	if p.a == nil && p.b == nil {
		return cty.NullVal(t.Schema().Block.ImpliedType()), nil
	}
	out := prior.AsValueMap()
	if !p.whole(prior) {
		// One end was renamed, moved or replaced: the pair has to be made anew.
		lost := "name"
		if p.a != nil {
			lost = "peer_name"
		}
		out[lost] = cty.StringVal("")
		return cty.ObjectVal(out), nil
	}
	readLink(out, prior, p.a, "")
	readLink(out, prior, p.b, "peer_")
	readBoth(out, prior, p.a, p.b)
	for name, have := range map[string]int{"tx_queues": p.a.TxQueues, "rx_queues": p.a.RxQueues} {
		if !prior.GetAttr(name).IsNull() {
			out[name] = cty.NumberIntVal(int64(have))
		}
	}
	if want := prior.GetAttr("offloads"); !want.IsNull() {
		a, b := ends(prior)
		da, err := s.driver(ctx, a)
		if err != nil {
			return cty.NilVal, err
		}
		db, err := s.driver(ctx, b)
		if err != nil {
			return cty.NilVal, err
		}
		out["offloads"] = readOffloads(want, da, db)
	}
	return cty.ObjectVal(out), nil
}

func (vethType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	a, b := ends(req.Desired)
	if a == b && a.name != "" && req.Desired.GetAttr("namespace").IsKnown() && req.Desired.GetAttr("peer_namespace").IsKnown() {
		res.Problems = append(res.Problems, providers.Problem{Path: cty.GetAttrPath("peer_name"), Summary: "Both ends have one name",
			Detail: fmt.Sprintf("Two links cannot both be called %s. Choose another peer_name, or put one end into another namespace.", a)})
	}
	if req.Host == nil {
		return res, nil
	}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return res, err
	}
	for _, e := range []end{a, b} {
		if err := w.foreignLink(e, req.Host.Name(), req.Mark); err != nil {
			return res, err
		}
	}
	return res, nil
}

// foreignLink is the error of a link that is there and not ours.
func (w *world) foreignLink(e end, host string, m providers.Mark) error {
	if l := w.link(e); l != nil && l.Alias != aliasOf(m) {
		return foreign("the link "+e.String(), host, l.Alias, removeByHand(e))
	}
	return nil
}

func (vethType) Claims(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	a, b := ends(planned)
	var c providers.Claims
	for _, x := range []struct {
		e      end
		prefix string
	}{{a, ""}, {b, "peer_"}} {
		at := cty.GetAttrPath(x.prefix + "namespace")
		if !planned.GetAttr(x.prefix+"namespace").IsKnown() || x.e.name == "" {
			continue
		}
		c.Unique = append(c.Unique, uniqueLink(x.e, cty.GetAttrPath(x.prefix+"name")))
		needs, err := needsSpace(ctx, h, x.e.space, at)
		if err != nil {
			return c, err
		}
		c.Needs = append(c.Needs, needs...)
	}
	c.MTU = int(attr.Number(planned, "mtu", 1500))
	return c, nil
}

func (t vethType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	w, err := s.fresh(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if req.Planned.IsNull() {
		var c steps
		removePair(&c, w.pair(req.Prior, req.Mark), req.Prior)
		if err := s.do(ctx, &c); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("remove veth %s: %w", attr.Text(req.Prior, "name"), err)
		}
		return providers.ApplyResult{New: req.Planned}, nil
	}
	a, b := ends(req.Planned)
	what := "veth " + a.String()
	for _, e := range []end{a, b} {
		if _, err := w.space(e.space, req.Host.Name()); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
		}
		if err := w.foreignLink(e, req.Host.Name(), req.Mark); err != nil {
			return providers.ApplyResult{}, err
		}
	}
	var c steps
	p := w.pair(req.Planned, req.Mark)
	if !p.whole(req.Planned) {
		removePair(&c, p, req.Planned)
		p = pair{}
		c.ip("", makePair(req.Planned))
		mark := func(e end) { c.ip(e.space, words{"link", "set", "dev", e.name, "alias", aliasOf(req.Mark)}) }
		mark(a)
		mark(b)
	}
	for _, x := range []struct {
		e      end
		prefix string
		have   *link
	}{{a, "", p.a}, {b, "peer_", p.b}} {
		like, err := wanted(req.Planned, req.Prior, x.prefix)
		if err != nil {
			return providers.ApplyResult{}, err
		}
		c.ip(x.e.space, like.lines(x.e.name, x.have)...)
	}
	if err := s.do(ctx, &c); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := s.pairOffloads(ctx, req); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
	}
	v, err := t.read(context.WithoutCancel(ctx), s, knownOnly(req.Planned), req.Mark)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if v.IsNull() {
		return providers.ApplyResult{}, fmt.Errorf("%s vanished while it was made: something else removes it", what)
	}
	return providers.ApplyResult{New: v}, checkCame(&t.Schema().Block, what, req.Planned, v)
}

// removePair removes what is there of a pair: either end takes the other with it.
func removePair(c *steps, p pair, v cty.Value) {
	a, b := ends(v)
	switch {
	case p.a != nil:
		c.ip(a.space, words{"link", "del", "dev", a.name})
	case p.b != nil:
		c.ip(b.space, words{"link", "del", "dev", b.name})
	}
}

// makePair is the line that makes both ends where they belong.
func makePair(v cty.Value) words {
	a, b := ends(v)
	half := func(e end, prefix string, w words) words {
		if e.space != "" {
			w = append(w, "netns", e.space)
		}
		if mac := attr.Text(v, prefix+"mac"); mac != "" {
			w = append(w, "address", mac)
		}
		for attribute, word := range map[string]string{"mtu": "mtu", "tx_queues": "numtxqueues", "rx_queues": "numrxqueues"} {
			if n := attr.Number(v, attribute, 0); n > 0 {
				w = append(w, word, strconv.FormatInt(n, 10))
			}
		}
		return w
	}
	w := half(a, "", words{"link", "add", "dev", a.name})
	return half(b, "peer_", append(w, "type", "veth", "peer", "name", b.name))
}

// pairOffloads sets the offloads of both ends. Those that are no longer named get back what the kernel gives a new pair.
func (s *session) pairOffloads(ctx context.Context, req providers.ApplyRequest) error {
	want, err := parseOffloads(req.Planned.GetAttr("offloads"))
	if err != nil {
		return err
	}
	if !req.Prior.IsNull() {
		had, err := parseOffloads(req.Prior.GetAttr("offloads"))
		if err != nil {
			return err
		}
		for name := range had {
			if _, still := want[name]; !still {
				want[name] = vethDefault(name)
			}
		}
	}
	if len(want) == 0 {
		return nil
	}
	var c steps
	a, b := ends(req.Planned)
	for _, e := range []end{a, b} {
		d, err := s.driver(ctx, e)
		if err != nil {
			return err
		}
		for _, p := range offloadProblems(nil, e, s.host.Name(), want, d) {
			return fmt.Errorf("%s", p.Detail)
		}
		setOffloads(&c, e, want, d)
	}
	return s.do(ctx, &c)
}

// vethDefault is whether a new veth has an offload on (veth_setup in drivers/net/veth.c of Linux).
func vethDefault(name string) bool {
	switch name {
	case "generic-receive-offload", "rx-gro-list", "rx-udp-gro-forwarding", "tx-nocache-copy":
		return false
	}
	return true
}
