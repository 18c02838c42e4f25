package network

import (
	"context"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// tapType is net_tap.
type tapType struct{}

var (
	_ providers.Resource = tapType{}
	_ providers.Planner  = tapType{}
	_ providers.Claimer  = tapType{}
)

func (tapType) Schema() *schema.Resource {
	flag := func(desc string) *schema.Attribute {
		return &schema.Attribute{Type: cty.Bool, Optional: true, Default: cty.False, Cost: schema.Replace, Description: desc}
	}
	who := func(what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Cost: schema.Replace, Validate: account,
			Description: "Name or number of the " + what + " that may open it without being root. Unset: none."}
	}
	return &schema.Resource{
		Type:        "net_tap",
		Description: "A tap: an Ethernet link whose other end is a program's, such as a virtual machine's (Documentation/networking/tuntap.rst of Linux). It stays when the program ends.",
		After:       []string{"host_package", "host_module", "net_namespace"},
		Example: `resource "net_tap" "vm0" {
  name        = "vm0"
  multi_queue = true
  owner       = "libvirt-qemu"
}`,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"name":        nameAttribute("the tap"),
			"namespace":   spaceAttribute("the tap"),
			"multi_queue": flag("Whether a program may open it several times, once for each queue. QEMU wants it for queues=N, and refuses it without."),
			"vnet_hdr":    flag("Whether frames come with a virtio header, so that checksums and segmentation are left to the guest. Programs ask for it when they open the tap; this only makes it the default."),
			"owner":       who("user"),
			"group":       who("group"),
			"mac":         macAttribute("the tap on the host's side"),
			"mtu":         mtuAttribute(65521),
			"up":          upAttribute("it"),
			"addresses":   addressesAttribute("the tap on the host's side"),
		}},
	}
}

// linkEnd is the link that an object is.
func linkEnd(v cty.Value) end { return end{attr.Text(v, "namespace"), attr.Text(v, "name")} }

// oursOf is our link of a kind; nil where there is none.
func (w *world) oursOf(e end, kind string, m providers.Mark) *link {
	if l := w.link(e); l != nil && l.Alias == aliasOf(m) && l.Info.Kind == kind {
		return l
	}
	return nil
}

func (t tapType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	return readFrom(ctx, t, req)
}

func (t tapType) current(w *world, prior cty.Value, m providers.Mark) cty.Value {
	l := w.oursOf(linkEnd(prior), "tun", m)
	if l == nil {
		return cty.NullVal(t.Schema().Block.ImpliedType())
	}
	out := prior.AsValueMap()
	readLink(out, prior, l, "")
	readBoth(out, prior, l)
	for _, name := range []string{"multi_queue", "vnet_hdr"} {
		on, _ := l.Info.Data[name].(bool)
		out[name] = cty.BoolVal(on)
	}
	for name, key := range map[string]string{"owner": "user", "group": "group"} {
		have, _ := l.Info.Data[key].(string)
		want := attr.Text(prior, name)
		// ip tells a name where there is one, and a number that was asked for is somebody's.
		if numeric := strings.Trim(want, "0123456789") == ""; want != have && !(numeric && want != "" && have != "") {
			out[name] = cty.StringVal(have)
			if have == "" {
				out[name] = cty.NullVal(cty.String)
			}
		}
	}
	return cty.ObjectVal(out)
}

func (tapType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	return planLink(ctx, req)
}

// planLink refuses a name that is somebody else's.
func planLink(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	if req.Host == nil || !req.Desired.GetAttr("namespace").IsKnown() {
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
	return res, w.foreignLink(linkEnd(req.Desired), req.Host.Name(), req.Mark)
}

func (tapType) Claims(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	return claimLink(ctx, h, planned)
}

// claimLink claims the name of a link.
func claimLink(ctx context.Context, h providers.Host, planned cty.Value) (providers.Claims, error) {
	e := linkEnd(planned)
	if e.name == "" || !planned.GetAttr("namespace").IsKnown() {
		return providers.Claims{}, nil
	}
	needs, err := needsSpace(ctx, h, e.space, cty.GetAttrPath("namespace"))
	return providers.Claims{Unique: []providers.Unique{uniqueLink(e, cty.GetAttrPath("name"))}, Needs: needs, MTU: int(attr.Number(planned, "mtu", 1500))}, err
}

func (t tapType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	return applyLink(ctx, t, "tun", "tap ", req, func(v cty.Value) words {
		w := words{"tuntap", "add", "dev", attr.Text(v, "name"), "mode", "tap"}
		for name, word := range map[string]string{"owner": "user", "group": "group"} {
			if who := attr.Text(v, name); who != "" {
				w = append(w, word, who)
			}
		}
		for _, name := range []string{"multi_queue", "vnet_hdr"} {
			if attr.Truth(v, name, false) {
				w = append(w, name)
			}
		}
		return w
	}, nil)
}

// applyLink is Apply of an object that is one link. add is the line that makes it; more, where there is any, adds what else there is to do.
func applyLink(ctx context.Context, r reader, kind, called string, req providers.ApplyRequest, add func(cty.Value) words, more func(c *steps, w *world, have *link) error) (providers.ApplyResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	w, err := s.fresh(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	var c steps
	if req.Planned.IsNull() {
		e := linkEnd(req.Prior)
		have := w.oursOf(e, kind, req.Mark)
		if have == nil {
			return providers.ApplyResult{New: req.Planned}, nil
		}
		if more != nil {
			if err := more(&c, w, have); err != nil {
				return providers.ApplyResult{}, err
			}
		}
		c.ip(e.space, words{"link", "del", "dev", e.name})
		if err := s.do(ctx, &c); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("remove %s%s: %w", called, e, err)
		}
		return providers.ApplyResult{New: req.Planned}, nil
	}
	e := linkEnd(req.Planned)
	what := called + e.String()
	if _, err := w.space(e.space, req.Host.Name()); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := w.foreignLink(e, req.Host.Name(), req.Mark); err != nil {
		return providers.ApplyResult{}, err
	}
	have := w.link(e)
	if have == nil {
		c.ip(e.space, add(req.Planned), words{"link", "set", "dev", e.name, "alias", aliasOf(req.Mark)})
	}
	if more != nil {
		if err := more(&c, w, have); err != nil {
			return providers.ApplyResult{}, err
		}
	}
	like, err := wanted(req.Planned, req.Prior, "")
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c.ip(e.space, like.lines(e.name, have)...)
	if err := s.do(ctx, &c); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("%s: %w", what, err)
	}
	return s.outcome(ctx, r, what, req)
}
