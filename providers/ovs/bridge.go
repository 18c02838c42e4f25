package ovs

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// bridgeType is ovs_bridge.
type bridgeType struct{}

var (
	_ providers.Resource = bridgeType{}
	_ providers.Planner  = bridgeType{}
	_ providers.Claimer  = bridgeType{}
)

// bridgeOptions follow ovs-vswitchd.conf.db(5), table Bridge, column other_config.
func bridgeOptions() []option {
	return []option{
		{attr: "hwaddr", key: "hwaddr", form: macForm, cost: schema.PortReset, desc: "MAC address of the bridge and its local port."},
		{attr: "datapath_id", key: "datapath-id", cost: schema.PortReset, desc: "OpenFlow datapath id: 16 hexadecimal digits."},
		{attr: "mac_aging_time", key: "mac-aging-time", form: intForm, min: 15, max: 1<<31 - 1, desc: "Seconds after which a learned MAC address is forgotten; 300 in Open vSwitch."},
		{attr: "mac_table_size", key: "mac-table-size", form: intForm, min: 10, max: 1000000, desc: "Most learned MAC addresses; more than a test has when flows say NORMAL."},
		{attr: "forward_bpdu", key: "forward-bpdu", form: boolForm, desc: "Forward BPDUs and other reserved multicast frames with NORMAL."},
		{attr: "disable_in_band", key: "disable-in-band", form: boolForm, desc: "No hidden flows for in-band control."},
		{attr: "mcast_table_size", key: "mcast-snooping-table-size", form: intForm, min: 1, max: 1<<31 - 1, desc: "Most multicast snooping entries."},
		{attr: "mcast_aging_time", key: "mcast-snooping-aging-time", form: intForm, min: 1, max: 1<<31 - 1, desc: "Seconds after which a multicast snooping entry is forgotten."},
		{attr: "mcast_disable_flood_unregistered", key: "mcast-snooping-disable-flood-unregistered", form: boolForm, desc: "Send unregistered multicast only to router ports."},
	}
}

// bridgeColumns are boolean columns of their own.
func bridgeColumns() map[string]string {
	return map[string]string{"mcast_snooping": "mcast_snooping_enable", "stp": "stp_enable", "rstp": "rstp_enable"}
}

func (bridgeType) Schema() *schema.Resource {
	attrs := map[string]*schema.Attribute{
		"name": {Type: cty.String, Required: true, Cost: schema.Replace, Validate: portName, Description: "Name of the bridge, and of its local port."},
		"datapath": {Type: cty.String, Optional: true, Default: cty.StringVal("system"), Cost: schema.PortReset, OneOf: []string{"system", "netdev"},
			Description: "system: the kernel forwards. netdev: ovs-vswitchd forwards (DPDK, AF_XDP). A change leaves the bridge and those of its ports whose type fits both, and loses its flows, which are applied again."},
		"fail_mode": {Type: cty.String, Optional: true, Default: cty.StringVal("secure"), OneOf: []string{"secure", "standalone"},
			Description: "secure: only the flows that are set. standalone: a NORMAL flow while there is no controller."},
		"protocols": {Type: cty.List(cty.String), Optional: true, Validate: openflowNames,
			Description: "OpenFlow versions that the bridge speaks: OpenFlow10 to OpenFlow15. Unset: all. OpenFlow14 is wanted for custom statistics and atomic flow changes."},
		"other_config": {Type: cty.Map(cty.String), Optional: true, Description: "Keys of other_config that have no attribute here."},
	}
	for _, o := range bridgeOptions() {
		attrs[o.attr] = o.attribute()
	}
	for a, col := range bridgeColumns() {
		attrs[a] = &schema.Attribute{Type: cty.Bool, Optional: true, Description: "Column " + col + ". Unset: false."}
	}
	return &schema.Resource{
		Type:        "ovs_bridge",
		Description: "A bridge of Open vSwitch. Ports of others on it are left alone; while there are any, the bridge is not removed.",
		After:       []string{"ovs_switch"},
		Example: `resource "ovs_bridge" "br0" {
  name     = "br0"
  datapath = "netdev"
}`,
		Block: schema.Block{Attributes: attrs},
	}
}

// portName holds for bridges and ports: the name is an interface's too (IFNAMSIZ in netdevice(7): 15 bytes).
func portName(v cty.Value) error {
	s := v.AsString()
	if s == "" || len(s) > 15 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" || strings.Trim(s, ".") == "" {
		return fmt.Errorf("%q: want 1 to 15 letters, digits, _, . or -", s)
	}
	if strings.Trim(s, "0123456789") == "" {
		return fmt.Errorf("%q: a name of digits alone would be taken for a port number in flows", s)
	}
	return nil
}

func openflowNames(v cty.Value) error {
	for _, e := range v.AsValueSlice() {
		if !e.IsKnown() {
			continue
		}
		if e.IsNull() || !slices.Contains([]string{"OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15"}, e.AsString()) {
			return fmt.Errorf("each is one of OpenFlow10 to OpenFlow15")
		}
	}
	return nil
}

func (t bridgeType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	gone := providers.ReadResult{Current: cty.NullVal(t.Schema().Block.ImpliedType())}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return gone, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return gone, err
	}
	b := w.bridges[attr.Text(req.Prior, "name")]
	if b == nil || !ours(b.external, req.Mark) {
		return gone, nil
	}
	return providers.ReadResult{Current: readBridge(b, req.Prior)}, nil
}

// readBridge is the bridge as it is, in the spelling of prior.
func readBridge(b *bridge, prior cty.Value) cty.Value {
	attrs := attrsOf(prior)
	readInto(attrs, prior, bridgeOptions(), b.otherConfig)
	attrs["datapath"] = cty.StringVal(b.datapath)
	attrs["fail_mode"] = cty.StringVal(b.failMode)
	if b.failMode == "" {
		attrs["fail_mode"] = cty.StringVal("standalone")
	}
	if p := prior.GetAttr("protocols"); !p.IsNull() {
		attrs["protocols"] = keepOrder(p, b.protocols)
	}
	attrs["other_config"] = readMap(prior.GetAttr("other_config"), b.otherConfig)
	for a, have := range map[string]bool{"mcast_snooping": b.mcastSnooping, "stp": b.stp, "rstp": b.rstp} {
		if !prior.GetAttr(a).IsNull() {
			attrs[a] = cty.BoolVal(have)
		}
	}
	return cty.ObjectVal(attrs)
}

func (bridgeType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed, Problems: overlaps(req.Desired, "other_config", bridgeOptions(), nil)}
	if attr.Truth(req.Desired, "stp", false) && attr.Truth(req.Desired, "rstp", false) {
		res.Problems = append(res.Problems, providers.Problem{Path: at("rstp"), Summary: "stp and rstp exclude one another",
			Detail: "Open vSwitch runs one spanning tree protocol for a bridge. Set only one of stp and rstp."})
	}
	name := attr.Text(req.Desired, "name")
	if req.Host == nil || name == "" {
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
	if b := w.bridges[name]; b != nil && !ours(b.external, req.Mark) {
		return res, foreign("bridge", name, req.Host.Name(), owner(b.external))
	} else if p := w.ports[name]; b == nil && p != nil {
		res.Problems = append(res.Problems, providers.Problem{Path: at("name"), Summary: "A port has the name of the bridge",
			Detail: fmt.Sprintf("The bridge %s on %s has a port called %s; names of ports and bridges are unique in one database. Choose another name.", p.bridge.name, req.Host.Name(), name)})
	}
	return res, nil
}

func (bridgeType) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	name := attr.Text(planned, "name")
	if name == "" {
		return providers.Claims{}, nil
	}
	kind := "port on bridge " + name
	return providers.Claims{
		Unique:   []providers.Unique{{Scope: "name in the switch", Value: name, Path: at("name")}},
		Provides: []providers.Named{{Kind: kind, Name: name}, {Kind: kind, Name: "LOCAL"}, {Kind: kind, Name: "65534"}, {Kind: "bridge", Name: name}},
	}, nil
}

func (t bridgeType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	null := providers.ApplyResult{New: cty.NullVal(t.Schema().Block.ImpliedType())}
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
	if req.Planned.IsNull() {
		if err := s.removeBridge(ctx, w, attr.Text(req.Prior, "name"), req.Mark); err != nil {
			return providers.ApplyResult{}, err
		}
		return null, nil
	}
	name := attr.Text(req.Planned, "name")
	b := w.bridges[name]
	if b != nil && !ours(b.external, req.Mark) {
		return providers.ApplyResult{}, foreign("bridge", name, req.Host.Name(), owner(b.external))
	}
	if !w.daemon {
		return providers.ApplyResult{}, fmt.Errorf("make bridge %s: %w on %s: add an ovs_switch resource, or start it", name, errStopped, req.Host.Name())
	}
	if err := s.commit(ctx, bridgeOps(b, req.Prior, req.Planned, req.Mark)...); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("bridge %s: %w", name, err)
	}
	if err := s.bridgeWorks(ctx, name); err != nil {
		if b == nil { // leave nothing that does not work
			if w, lookErr := s.look(ctx); lookErr == nil {
				_ = s.removeBridge(ctx, w, name, req.Mark)
			}
		}
		return providers.ApplyResult{}, err
	}
	return providers.ApplyResult{New: req.Planned}, nil
}

// bridgeWorks looks whether the local port came up: without a datapath it never gets a number.
func (s *session) bridgeWorks(ctx context.Context, name string) error {
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	p := w.ports[name]
	if p == nil {
		return fmt.Errorf("bridge %s on %s vanished while it was made: something else changes the database", name, s.host.Name())
	}
	if p.ofport > 0 && p.failure == "" {
		return nil
	}
	why := p.failure
	if why == "" {
		why = "its local port got no number"
		if b := w.bridges[name]; b != nil && b.datapath == "system" {
			why += ": the kernel has no Open vSwitch datapath (module openvswitch), or refuses it"
		}
	}
	return fmt.Errorf("ovs-vswitchd on %s could not make bridge %s: %s%s", s.host.Name(), name, why, s.logTail(ctx, 6))
}

// bridgeOps make (b nil) or change a bridge.
func bridgeOps(b *bridge, prior, planned cty.Value, mark providers.Mark) []op {
	want := stringMap(planned.GetAttr("other_config"))
	keysOf(planned, bridgeOptions(), want)
	cols := map[string]any{
		"fail_mode": attr.Text(planned, "fail_mode"), "datapath_type": attr.Text(planned, "datapath"), "protocols": setOf(texts(planned, "protocols")),
	}
	for a, col := range bridgeColumns() {
		cols[col] = attr.Truth(planned, a, false)
	}
	name := attr.Text(planned, "name")
	if b == nil {
		cols["name"] = name
		cols["other_config"] = mapOf(want)
		cols["external_ids"] = mapOf(markIDs(mark))
		cols["ports"] = namedRef("localport")
		return []op{
			{"op": "insert", "table": "Interface", "uuid-name": "localif", "row": map[string]any{"name": name, "type": "internal", "external_ids": mapOf(markIDs(mark))}},
			{"op": "insert", "table": "Port", "uuid-name": "localport", "row": map[string]any{"name": name, "interfaces": namedRef("localif"), "external_ids": mapOf(markIDs(mark))}},
			{"op": "insert", "table": "Bridge", "uuid-name": "newbridge", "row": cols},
			{"op": "mutate", "table": "Open_vSwitch", "where": []any{}, "mutations": []any{[]any{"bridges", "insert", namedRef("newbridge")}}},
		}
	}
	mutations := mapChange("other_config", want, dropped(prior, want, bridgeOptions()))
	mutations = append(mutations, mapChange("external_ids", markIDs(mark), nil)...)
	return []op{
		{"op": "update", "table": "Bridge", "where": byUUID(b.uuid), "row": cols},
		{"op": "mutate", "table": "Bridge", "where": byUUID(b.uuid), "mutations": mutations},
	}
}

// dropped lists the keys that prior managed and want does not.
func dropped(prior cty.Value, want map[string]string, opts []option) []string {
	if prior.IsNull() {
		return nil
	}
	had := stringMap(prior.GetAttr("other_config"))
	keysOf(prior, opts, had)
	var out []string
	for k := range had {
		if _, ok := want[k]; !ok {
			out = append(out, k)
		}
	}
	sort.Strings(out)
	return out
}

// removeBridge removes our bridge with what is ours on it. When it is gone, there may be another's of that name, which is left alone.
func (s *session) removeBridge(ctx context.Context, w *world, name string, mark providers.Mark) error {
	b := w.bridges[name]
	if b == nil || !ours(b.external, mark) {
		return nil
	}
	var others []string
	refs := []any{}
	for _, p := range b.ports {
		if !p.local() && !ours(p.external, mark) {
			others = append(others, p.name)
		}
		refs = append(refs, uuidRef(p.uuid))
	}
	if len(others) > 0 {
		slices.Sort(others)
		return fmt.Errorf("bridge %s on %s is kept, since ports that are not ours hang on it: %s. Removing the bridge would take them away. Remove them (ovs-vsctl del-port %s PORT) or move them, and run destroy again: %w",
			name, s.host.Name(), strings.Join(others, ", "), name, providers.ErrForeign)
	}
	// The wait makes the transaction fail when somebody has added a port since we looked.
	ops := []op{
		{"op": "wait", "table": "Bridge", "where": byUUID(b.uuid), "columns": []string{"ports"}, "until": "==",
			"rows": []any{map[string]any{"ports": []any{"set", refs}}}, "timeout": 0},
		{"op": "mutate", "table": "Open_vSwitch", "where": []any{}, "mutations": []any{[]any{"bridges", "delete", uuidRef(b.uuid)}}},
	}
	for _, p := range b.ports {
		ops = append(ops, dropPolicer(p)...)
	}
	return s.commit(ctx, ops...)
}
