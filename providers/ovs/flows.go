package ovs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/openflow"
)

// flowsType is ovs_flows.
type flowsType struct{}

var (
	_ providers.Resource = flowsType{}
	_ providers.Planner  = flowsType{}
	_ providers.Claimer  = flowsType{}
)

const (
	flowLimit = 5 * time.Minute // for a million flows
	maxShown  = 20              // foreign flows that Read lists
)

func (flowsType) Schema() *schema.Resource {
	return &schema.Resource{
		Type: "ovs_flows",
		Description: "OpenFlow flows of a bridge: all of its flow tables, or only the flows with one cookie. Changed as one bundle where the bridge " +
			"speaks OpenFlow14 and the flows can be said in it; compared by meaning, not by text.",
		After: []string{"ovs_switch", "ovs_bridge", "ovs_port"},
		LostOn: []schema.Loss{
			{Type: "ovs_switch", Cost: schema.ServiceRestart, Why: "a restart of ovs-vswitchd loses OpenFlow flows"},
			{Type: "ovs_bridge", Cost: schema.PortReset, Why: "a bridge loses its flows when it is made anew, or gets another datapath"},
			{Type: "ovs_port", Cost: schema.Replace, Why: "a port that is made anew may have another number, which flows by name then mean"},
		},
		Example: `resource "ovs_flows" "br0" {
  bridge = "br0"
  flows = [
    "in_port=1 actions=output:2",
    "in_port=2 actions=output:1",
  ]
}`,
		Block: schema.Block{
			Attributes: map[string]*schema.Attribute{
				"bridge": {Type: cty.String, Required: true, Cost: schema.Replace, Description: "Name of the bridge."},
				"flows":  {Type: cty.List(cty.String), Optional: true, Validate: flowTexts, Description: "Flows as ovs-ofctl(8) add-flow takes them."},
				"cookie": {Type: cty.String, Optional: true, Cost: schema.Replace, Validate: cookieText, Canonical: cookieCanonical,
					Description: "Manage only the flows with this cookie (0x… or decimal, not 0), and give it to them. Unset: the whole of the bridge's flow tables."},
				"flow_count": {Type: cty.Number, Computed: true, Description: "How many flows there are."},
				"digest":     {Type: cty.String, Computed: true, Description: "SHA-256 over the flows in canonical form."},
			},
			Blocks: map[string]*schema.NestedBlock{"generate": {Nesting: schema.List, Block: generateBlock()}},
		},
	}
}

func generateBlock() schema.Block {
	ints := func(lo, hi int64) func(cty.Value) error { return option{form: intForm, min: lo, max: hi}.validate }
	return schema.Block{
		Description: "Makes many flows from a template. Flow i has the base value plus i in each argument that vary names. The state keeps a digest, not the flows.",
		Attributes: map[string]*schema.Attribute{
			"count":    {Type: cty.Number, Required: true, Validate: ints(1, 10000000), Description: "How many flows."},
			"headers":  {Type: cty.String, Optional: true, Default: cty.StringVal("ipv4"), OneOf: []string{"l2", "ipv4", "ipv6", "udp", "tcp", "udp6", "tcp6"}, Description: "What the flows match on."},
			"in_port":  {Type: cty.String, Optional: true, Description: "Name or number of the port. Unset: any."},
			"table":    {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(0), Validate: ints(0, 254), Description: "Flow table."},
			"priority": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(openflow.DefaultPriority), Validate: ints(0, 65535), Description: "Priority."},
			"src":      {Type: cty.String, Optional: true, Description: "First source address: MAC with l2, else IP. Unset: not matched."},
			"dst":      {Type: cty.String, Optional: true, Description: "First destination address. Unset: not matched."},
			"src_port": {Type: cty.Number, Optional: true, Validate: ints(0, 65535), Description: "First source port. Unset: not matched."},
			"dst_port": {Type: cty.Number, Optional: true, Validate: ints(0, 65535), Description: "First destination port. Unset: not matched."},
			"vary":     {Type: cty.List(cty.String), Optional: true, Default: cty.ListVal([]cty.Value{cty.StringVal("src")}), Description: "What differs from flow to flow: src, dst, src_port, dst_port."},
			"actions":  {Type: cty.String, Required: true, Description: "Actions of every flow."},
		},
	}
}

func flowTexts(v cty.Value) error {
	p := openflow.NewParser(nil)
	for _, e := range v.AsValueSlice() {
		if !e.IsKnown() {
			continue
		}
		if e.IsNull() {
			return errors.New("a flow is null")
		}
		if _, err := p.Parse(e.AsString()); err != nil {
			return err
		}
		if err := p.CheckNames(e.AsString()); err != nil {
			return err
		}
	}
	return nil
}

func cookieText(v cty.Value) error {
	n, err := strconv.ParseUint(v.AsString(), 0, 64)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not a cookie: want 1 to 2^64-1 as decimal or 0x…; 0 is what flows without a cookie have", v.AsString())
	}
	return nil
}

func cookieCanonical(v cty.Value) (cty.Value, error) {
	if err := cookieText(v); err != nil {
		return v, err
	}
	n, _ := strconv.ParseUint(v.AsString(), 0, 64)
	return cty.StringVal(fmt.Sprintf("0x%x", n)), nil
}

// wanted is what an ovs_flows object says.
type wanted struct {
	bridge string
	cookie uint64 // 0: all flows
	lines  []string
	gens   []openflow.Template
}

func wantedOf(obj cty.Value) wanted {
	w := wanted{bridge: attr.Text(obj, "bridge"), lines: texts(obj, "flows")}
	w.cookie, _ = strconv.ParseUint(attr.Text(obj, "cookie"), 0, 64)
	for _, g := range list(obj, "generate") {
		w.gens = append(w.gens, templateOf(g))
	}
	return w
}

func templateOf(g cty.Value) openflow.Template {
	num := func(attr string, unset int) int {
		if n, ok := number(g, attr); ok {
			return int(n)
		}
		return unset
	}
	return openflow.Template{
		Count: num("count", 0), Headers: attr.Text(g, "headers"), Table: num("table", 0), Priority: num("priority", openflow.DefaultPriority),
		InPort: attr.Text(g, "in_port"), Src: attr.Text(g, "src"), Dst: attr.Text(g, "dst"), SrcPort: num("src_port", -1), DstPort: num("dst_port", -1),
		Vary: texts(g, "vary"), Actions: attr.Text(g, "actions"),
	}
}

// all calls yield with every flow's text, with the cookie where one is managed.
func (w wanted) all(yield func(string) error) error {
	for _, l := range w.lines {
		if err := yield(w.withCookie(l)); err != nil {
			return err
		}
	}
	for _, g := range w.gens {
		for l := range g.Lines() {
			if err := yield(w.withCookie(l)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w wanted) withCookie(line string) string {
	if w.cookie == 0 {
		return line
	}
	return fmt.Sprintf("cookie=0x%x,%s", w.cookie, line)
}

// set parses all flows.
func (w wanted) set(p *openflow.Parser) (openflow.Set, error) {
	out := openflow.Set{}
	err := w.all(func(line string) error {
		f, err := p.Parse(line)
		if err == nil {
			out[f.Key] = f
		}
		return err
	})
	return out, err
}

// flowPorts is the port table of a bridge.
func flowPorts(b *bridge) openflow.Ports {
	ports := openflow.Ports{}
	for _, p := range b.ports {
		if p.ofport > 0 {
			ports[p.name] = int(p.ofport)
		}
	}
	return ports
}

// dump returns the bridge's flows as text, once for all Reads of a run.
func (s *session) dump(ctx context.Context, b *bridge) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out, ok := s.dumps[b.name]; ok {
		return out, nil
	}
	res, err := s.host.Conn().Run(ctx, providers.Cmd{Timeout: flowLimit,
		Args: []string{"ovs-ofctl", "-O", readVersion(b), "--no-stats", "--no-names", "dump-flows", b.name}})
	if err != nil {
		return "", fmt.Errorf("read the flows of bridge %s: %w", b.name, err)
	}
	s.dumps[b.name] = string(res.Stdout)
	return s.dumps[b.name], nil
}

// readVersion is the OpenFlow version in which flows are read: the one that shows most of them as they were written.
func readVersion(b *bridge) string {
	for _, v := range []string{"OpenFlow14", "OpenFlow13", "OpenFlow15", "OpenFlow12", "OpenFlow11", "OpenFlow10"} {
		if len(b.protocols) == 0 || slices.Contains(b.protocols, v) {
			return v
		}
	}
	return "OpenFlow13"
}

// bundles says whether the bridge can change flows all at once.
func bundles(b *bridge) bool {
	v := readVersion(b)
	return v == "OpenFlow14" || v == "OpenFlow15" || slices.Contains(b.protocols, "OpenFlow15")
}

// flowsNow compares what is wanted with what the bridge has.
func (s *session) flowsNow(ctx context.Context, b *bridge, want wanted) (wantSet, have openflow.Set, err error) {
	out, err := s.dump(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	p := openflow.NewParser(flowPorts(b))
	if wantSet, err = want.set(p); err != nil {
		return nil, nil, err
	}
	keep := func(f openflow.Flow) bool { return want.cookie == 0 || f.Cookie == want.cookie }
	if have, err = p.ParseDump(out, keep); err != nil {
		return nil, nil, fmt.Errorf("read the flows of bridge %s: %w", b.name, err)
	}
	return wantSet, have, nil
}

// sameToOVS asks Open vSwitch itself whether the flows that the canonical forms tell apart are the same. It is asked only then: most texts
// are understood without it.
func (s *session) sameToOVS(ctx context.Context, b *bridge, want wanted, have openflow.Set) (bool, error) {
	if want.cookie != 0 || len(want.gens) > 0 || len(have) != len(want.lines) {
		return false, nil
	}
	var exit *providers.ExitError
	_, err := s.host.Conn().Run(ctx, providers.Cmd{Timeout: flowLimit, Stdin: []byte(strings.Join(want.lines, "\n") + "\n"),
		Args: []string{"ovs-ofctl", "-O", oldVersion(b), "diff-flows", b.name, "-"}})
	if errors.As(err, &exit) {
		return false, nil
	}
	return err == nil, err
}

func (t flowsType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	gone := providers.ReadResult{Current: cty.NullVal(t.Schema().Block.ImpliedType())}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return gone, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return gone, err
	}
	want := wantedOf(req.Prior)
	b := w.bridges[want.bridge]
	if b == nil {
		return gone, nil
	}
	var wantSet, have openflow.Set
	if w.daemon {
		if wantSet, have, err = s.flowsNow(ctx, b, want); err != nil {
			return gone, err
		}
	} else if wantSet, err = want.set(openflow.NewParser(flowPorts(b))); err != nil {
		return gone, err
	}
	missing, extra := openflow.Diff(wantSet, have)
	if len(missing)+len(extra) > 0 && w.daemon {
		same, err := s.sameToOVS(ctx, b, want, have)
		if err != nil {
			return gone, err
		}
		if same {
			missing, extra = nil, nil
		}
	}
	attrs := attrsOf(req.Prior)
	if len(missing)+len(extra) == 0 {
		count, digest := s.summary(want)
		attrs["flow_count"], attrs["digest"] = cty.NumberIntVal(count), cty.StringVal(digest)
		return providers.ReadResult{Current: cty.ObjectVal(attrs)}, nil
	}
	attrs["flow_count"], attrs["digest"] = cty.NumberIntVal(int64(len(have))), cty.StringVal(have.Digest())
	attrs["flows"] = shownFlows(b, want, missing, extra)
	return providers.ReadResult{Current: cty.ObjectVal(attrs)}, nil
}

// shownFlows is the list of flows as it is: those of prior that are there, and some of those that should not be.
func shownFlows(b *bridge, want wanted, missing, extra []openflow.Flow) cty.Value {
	lost := openflow.NewSet(missing)
	p := openflow.NewParser(flowPorts(b))
	var lines []string
	for _, l := range want.lines {
		if f, err := p.Parse(l); err == nil {
			if _, gone := lost[f.Key]; !gone {
				lines = append(lines, l)
			}
		}
	}
	for i, f := range extra {
		if i == maxShown {
			break
		}
		lines = append(lines, f.String())
	}
	return textList(lines)
}

// summary is the number and digest of the flows as the configuration has them, names of ports unresolved: it is known at plan time.
func summary(w wanted) (int64, string) {
	set, err := w.set(openflow.NewParser(nil))
	if err != nil {
		return 0, ""
	}
	return int64(len(set)), set.Digest()
}

// digested is a summary.
type digested struct {
	count  int64
	digest string
}

// summary is made once a run for the same flows: reading, planning and applying all need it.
func (s *session) summary(w wanted) (int64, string) {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%+v\n", w.cookie, w.gens)
	for _, l := range w.lines {
		fmt.Fprintf(h, "%s\n", l)
	}
	key := [sha256.Size]byte(h.Sum(nil))
	s.mu.Lock()
	d, ok := s.summaries[key]
	s.mu.Unlock()
	if !ok {
		d.count, d.digest = summary(w)
		s.mu.Lock()
		s.summaries[key] = d
		s.mu.Unlock()
	}
	return d.count, d.digest
}

func (t flowsType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	w, err := s.look(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	obj := req.Planned
	if obj.IsNull() {
		obj = req.Prior
	}
	want := wantedOf(obj)
	b := w.bridges[want.bridge]
	if req.Planned.IsNull() {
		null := providers.ApplyResult{New: cty.NullVal(t.Schema().Block.ImpliedType())}
		if b == nil || !w.daemon || want.cookie == 0 && !ours(b.external, req.Mark) {
			return null, nil // they went with the bridge
		}
		if err := s.setFlows(ctx, b, wanted{bridge: want.bridge, cookie: want.cookie}, true); err != nil {
			return providers.ApplyResult{}, err
		}
		return null, nil
	}
	switch {
	case b == nil:
		return providers.ApplyResult{}, fmt.Errorf("set flows: %s has no bridge %s", req.Host.Name(), want.bridge)
	case !w.daemon:
		return providers.ApplyResult{}, fmt.Errorf("set flows: %w on %s", errStopped, req.Host.Name())
	case want.cookie == 0 && !ours(b.external, req.Mark):
		return providers.ApplyResult{}, fmt.Errorf("all flows of bridge %s on %s would be replaced, but it %w: set cookie to manage only some", want.bridge, req.Host.Name(), providers.ErrForeign)
	}
	if err := s.setFlows(ctx, b, want, false); err != nil {
		return providers.ApplyResult{}, err
	}
	attrs := attrsOf(req.Planned)
	count, digest := s.summary(want)
	attrs["flow_count"], attrs["digest"] = cty.NumberIntVal(count), cty.StringVal(digest)
	return providers.ApplyResult{New: cty.ObjectVal(attrs)}, nil
}

// setFlows makes the bridge's flows as wanted, as one bundle, and looks whether they came true.
func (s *session) setFlows(ctx context.Context, b *bridge, want wanted, remove bool) error {
	var in strings.Builder
	what := "replace-flows"
	if want.cookie == 0 {
		_ = want.all(func(l string) error { in.WriteString(l); in.WriteByte('\n'); return nil })
		if remove && b.failMode != "secure" { // what Open vSwitch itself puts there
			in.WriteString("priority=0 actions=NORMAL\n")
		}
	} else {
		wantSet, have, err := s.flowsNow(ctx, b, want)
		if err != nil {
			return err
		}
		missing, extra := openflow.Diff(wantSet, have)
		if len(missing)+len(extra) == 0 {
			return nil
		}
		what = "add-flows"
		for _, f := range extra {
			fmt.Fprintf(&in, "delete_strict cookie=0x%x/-1,%s\n", want.cookie, f.Strict())
		}
		lost := openflow.NewSet(missing)
		p := openflow.NewParser(flowPorts(b))
		_ = want.all(func(l string) error {
			if f, err := p.Parse(l); err == nil && lost[f.Key] == f {
				in.WriteString("add " + l + "\n")
			}
			return nil
		})
	}
	ofctl := func(options ...string) error {
		args := append(append([]string{"ovs-ofctl"}, options...), what, b.name, "-")
		_, err := s.host.Conn().Run(ctx, providers.Cmd{Args: args, Stdin: []byte(in.String()), Timeout: flowLimit})
		return err
	}
	defer s.changed()
	err := error(nil)
	if bundles(b) {
		err = ofctl("-O", bundleVersion(b), "--bundle")
	}
	// Some flows exist only in OpenFlow 1.0 (strip_vlan without a match on the VLAN), and bundles only from 1.4 on.
	if !bundles(b) {
		err = ofctl("-O", readVersion(b))
	}
	if err != nil && strings.Contains(err.Error(), "usable flow formats") && oldVersion(b) != readVersion(b) {
		err = ofctl("-O", oldVersion(b))
	}
	if err != nil {
		return fmt.Errorf("set the flows of bridge %s: %w", b.name, err)
	}
	return nil
}

// oldVersion is OpenFlow 1.0 where the bridge speaks it: every flow that ovs-ofctl takes by default can be said in it.
func oldVersion(b *bridge) string {
	if len(b.protocols) == 0 || slices.Contains(b.protocols, "OpenFlow10") {
		return "OpenFlow10"
	}
	return readVersion(b)
}

func bundleVersion(b *bridge) string {
	if len(b.protocols) == 0 || slices.Contains(b.protocols, "OpenFlow14") {
		return "OpenFlow14"
	}
	return "OpenFlow15"
}
