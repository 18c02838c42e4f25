package ovs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/unixctl"
)

// portType is ovs_port.
type portType struct{}

var (
	_ providers.Resource = portType{}
	_ providers.Planner  = portType{}
	_ providers.Claimer  = portType{}
	_ providers.Counter  = portType{}
)

func (t portType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	gone := providers.ReadResult{Current: cty.NullVal(t.Schema().Block.ImpliedType())}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return gone, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return gone, err
	}
	p := w.ports[attr.Text(req.Prior, "name")]
	if p == nil || !ours(p.external, req.Mark) {
		return gone, nil
	}
	return providers.ReadResult{Current: readPort(p, req.Prior)}, nil
}

// readPort is the port as it is, in the spelling of prior.
func readPort(p *port, prior cty.Value) cty.Value {
	attrs := attrsOf(prior)
	readInto(attrs, prior, portOptions(), p.options)
	readInto(attrs, prior, queueOptions(), p.otherConfig)
	attrs["bridge"] = cty.StringVal(p.bridge.name)
	if p.typ != attr.Text(prior, "type") {
		attrs["type"] = cty.StringVal(p.typ)
	}
	switch p.typ {
	case clientType:
		attrs["vhost_server_path"] = cty.StringVal(p.options["vhost-server-path"])
	case serverType: // the socket is ovs-vswitchd's; where it is does not change while that runs
		if sock := p.status["socket"]; sock != "" && prior.GetAttr("vhost_server_path").IsNull() {
			attrs["vhost_server_path"] = cty.StringVal(sock)
		}
	}
	if prior.GetAttr("vhost_server_path").IsNull() && !slices.Contains([]string{clientType, serverType}, p.typ) {
		attrs["vhost_server_path"] = cty.NullVal(cty.String)
	}
	ofport := p.ofport
	if p.failure != "" {
		ofport = -1
	}
	attrs["ofport"] = cty.NumberIntVal(ofport)
	attrs["mac_in_use"] = cty.StringVal(p.macInUse)
	if known(prior, "mtu") {
		attrs["mtu"] = cty.NullVal(cty.Number)
		switch {
		case p.mtuRequest != 0 && (p.mtu == p.mtuRequest || p.waitsForGuest()):
			attrs["mtu"] = cty.NumberIntVal(p.mtuRequest)
		case p.mtu != 0 && p.mtuRequest != 0:
			attrs["mtu"] = cty.NumberIntVal(p.mtu)
		}
	}
	if known(prior, "mac") {
		attrs["mac"] = prior.GetAttr("mac")
		if !strings.EqualFold(p.mac, attr.Spelled(prior, "mac", schema.MAC)) {
			attrs["mac"] = cty.StringVal(p.mac)
		}
	}
	attrs["tag"] = cty.NullVal(cty.Number)
	if p.tag >= 0 {
		attrs["tag"] = cty.NumberIntVal(p.tag)
	}
	attrs["trunks"] = sameInts(prior.GetAttr("trunks"), p.trunks)
	attrs["vlan_mode"] = cty.NullVal(cty.String)
	if p.vlanMode != "" {
		attrs["vlan_mode"] = cty.StringVal(p.vlanMode)
	}
	for i, o := range policing() {
		if !prior.GetAttr(o.attr).IsNull() {
			attrs[o.attr] = cty.NumberIntVal(p.policing[i])
		}
	}
	attrs["options"] = readMap(prior.GetAttr("options"), p.options)
	if !prior.GetAttr("egress_policer").IsNull() || p.qosOurs {
		attrs["egress_policer"] = readPolicer(p, prior.GetAttr("egress_policer").Type())
	}
	return cty.ObjectVal(attrs)
}

func readPolicer(p *port, typ cty.Type) cty.Value {
	cir, err1 := strconv.ParseInt(p.qosConfig["cir"], 10, 64)
	cbs, err2 := strconv.ParseInt(p.qosConfig["cbs"], 10, 64)
	if p.qosType != "egress-policer" || err1 != nil || err2 != nil {
		return cty.NullVal(typ)
	}
	return cty.ObjectVal(map[string]cty.Value{"cir": cty.NumberIntVal(cir), "cbs": cty.NumberIntVal(cbs)})
}

// sameInts returns prior when it names the same numbers as have.
func sameInts(prior cty.Value, have []int64) cty.Value {
	if !prior.IsNull() && prior.IsWhollyKnown() {
		p := ints(cty.ObjectVal(map[string]cty.Value{"x": prior}), "x")
		slices.Sort(p)
		if slices.Equal(p, have) {
			return prior
		}
	}
	if len(have) == 0 {
		return cty.NullVal(cty.List(cty.Number))
	}
	return intList(have)
}

func (t portType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
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
		if err := s.removePort(ctx, w, attr.Text(req.Prior, "name"), req.Mark); err != nil {
			return providers.ApplyResult{}, err
		}
		s.tidySocketDir(ctx, attr.Text(req.Prior, "vhost_server_path"))
		return providers.ApplyResult{New: cty.NullVal(t.Schema().Block.ImpliedType())}, nil
	}
	name := attr.Text(req.Planned, "name")
	p := w.ports[name]
	if p != nil && !ours(p.external, req.Mark) {
		return providers.ApplyResult{}, foreign("port", name, req.Host.Name(), owner(p.external))
	}
	b := w.bridges[attr.Text(req.Planned, "bridge")]
	if b == nil {
		return providers.ApplyResult{}, fmt.Errorf("add port %s: %s has no bridge %s", name, req.Host.Name(), attr.Text(req.Planned, "bridge"))
	}
	if !w.daemon {
		return providers.ApplyResult{}, fmt.Errorf("add port %s: %w on %s", name, errStopped, req.Host.Name())
	}
	if sock := attr.Text(req.Planned, "vhost_server_path"); path.Dir(sock) == vhostDir {
		if _, err := req.Host.Conn().Run(ctx, providers.Cmd{Args: []string{"mkdir", "-p", vhostDir}}); err != nil {
			return providers.ApplyResult{}, fmt.Errorf("make the folder of the socket %s: %w", sock, err)
		}
	}
	if err := s.commit(ctx, portOps(b, p, req.Prior, req.Planned, req.Mark)...); err != nil {
		return providers.ApplyResult{}, fmt.Errorf("port %s: %w", name, err)
	}
	got, err := s.portWorks(ctx, name, req.Planned)
	if err == nil {
		return providers.ApplyResult{New: finishPort(got, req.Planned)}, nil
	}
	if p == nil { // leave nothing that does not work
		ctx := context.WithoutCancel(ctx)
		if w, lookErr := s.look(ctx); lookErr == nil {
			err = errors.Join(err, s.removePort(ctx, w, name, req.Mark))
		}
		return providers.ApplyResult{}, err
	}
	if got == nil {
		return providers.ApplyResult{}, err
	}
	return providers.ApplyResult{New: readPort(got, req.Planned)}, err
}

// finishPort fills what the plan left open.
func finishPort(p *port, planned cty.Value) cty.Value {
	attrs := attrsOf(planned)
	for name, v := range map[string]cty.Value{"ofport": cty.NumberIntVal(p.ofport), "mac_in_use": cty.StringVal(p.macInUse)} {
		if !attrs[name].IsKnown() || attrs[name].IsNull() {
			attrs[name] = v
		}
	}
	if v := attrs["vhost_server_path"]; !v.IsKnown() {
		attrs["vhost_server_path"] = cty.NullVal(cty.String)
		if sock := p.options["vhost-server-path"]; sock != "" {
			attrs["vhost_server_path"] = cty.StringVal(sock)
		} else if sock := p.status["socket"]; sock != "" {
			attrs["vhost_server_path"] = cty.StringVal(sock)
		}
	}
	return cty.ObjectVal(attrs)
}

// portWorks waits until the interface has its number and the MTU asked for, or an error.
func (s *session) portWorks(ctx context.Context, name string, planned cty.Value) (*port, error) {
	wantPort, hasPort := number(planned, "ofport")
	wantMTU, hasMTU := number(planned, "mtu")
	deadline, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		w, err := s.look(ctx)
		if err != nil {
			return nil, err
		}
		p := w.ports[name]
		var problem error
		switch {
		case p == nil:
			return nil, fmt.Errorf("port %s on %s vanished while it was made: something else changes the database", name, s.host.Name())
		case p.failure != "":
			return p, fmt.Errorf("interface %s on %s: Open vSwitch reports: %s%s", name, s.host.Name(), p.failure, s.dpdkLog(ctx, p))
		case p.ofport <= 0:
			problem = fmt.Errorf("interface %s on %s got no OpenFlow port number%s", name, s.host.Name(), s.dpdkLog(ctx, p))
		case hasPort && wantPort > 0 && p.ofport != wantPort:
			problem = fmt.Errorf("port %s on %s has OpenFlow port number %d, not %d: another port of the bridge has that", name, s.host.Name(), p.ofport, wantPort)
		case hasMTU && p.mtu != wantMTU && !p.waitsForGuest():
			problem = fmt.Errorf("interface %s on %s stays at MTU %d and does not take %d: the device refuses it, or there is too little memory for its packet buffers%s",
				name, s.host.Name(), p.mtu, wantMTU, s.dpdkLog(ctx, p))
		default:
			return p, nil
		}
		if deadline.Err() != nil {
			return p, problem
		}
		if err := s.awaitInterface(deadline, p); err != nil {
			return p, errors.Join(problem, err)
		}
	}
}

// awaitInterface waits a while for the interface's row to change, and forgets the snapshot.
func (s *session) awaitInterface(ctx context.Context, p *port) error {
	defer s.changed()
	_, err := s.transact(ctx, op{"op": "wait", "table": "Interface", "where": byUUID(p.ifUUID), "columns": []string{"ofport", "mtu", "error"}, "until": "!=",
		"rows": []any{map[string]any{"ofport": optional(p.ofport), "mtu": optional(p.mtu), "error": optional(p.failure)}}, "timeout": int(pollStep / time.Millisecond)})
	if timedOut(err) || ctx.Err() != nil {
		return nil
	}
	return err
}

// dpdkLog is the end of the log for interfaces that DPDK drives.
func (s *session) dpdkLog(ctx context.Context, p *port) string {
	if !strings.HasPrefix(p.typ, dpdkType) && p.typ != afxdpType {
		return ""
	}
	return s.logTail(ctx, 6)
}

// portOps make (p nil) or change a port.
func portOps(b *bridge, p *port, prior, planned cty.Value, mark providers.Mark) []op {
	name := attr.Text(planned, "name")
	opts := stringMap(planned.GetAttr("options"))
	keysOf(planned, portOptions(), opts)
	if attr.Text(planned, "type") == clientType {
		opts["vhost-server-path"] = attr.Text(planned, "vhost_server_path")
	}
	other := map[string]string{}
	keysOf(planned, queueOptions(), other)
	iface := map[string]any{"ofport_request": optional(portRequest(prior, planned)), "mac": optional(attr.Spelled(planned, "mac", schema.MAC))}
	mtu, _ := number(planned, "mtu")
	iface["mtu_request"] = optional(mtu)
	for _, o := range policing() {
		n, _ := number(planned, o.attr)
		iface[o.key] = n
	}
	cols := map[string]any{"trunks": setOf(ints(planned, "trunks")), "vlan_mode": optional(attr.Text(planned, "vlan_mode")), "tag": []any{"set", []any{}}}
	if n, ok := number(planned, "tag"); ok {
		cols["tag"] = n
	}
	var ops []op
	if policer := planned.GetAttr("egress_policer"); !policer.IsNull() {
		qos := map[string]any{"type": "egress-policer", "external_ids": mapOf(markIDs(mark)), "other_config": mapOf(map[string]string{
			"cir": policer.GetAttr("cir").AsBigFloat().Text('f', 0), "cbs": policer.GetAttr("cbs").AsBigFloat().Text('f', 0)})}
		ops = append(ops, op{"op": "insert", "table": "QoS", "uuid-name": "newqos", "row": qos})
		cols["qos"] = namedRef("newqos")
	} else if p == nil || p.qosOurs {
		cols["qos"] = []any{"set", []any{}}
	}
	if p != nil && p.qosOurs {
		ops = append(ops, op{"op": "delete", "table": "QoS", "where": byUUID(p.qos)})
	}
	typ := attr.Text(planned, "type")
	if p == nil {
		iface["name"], iface["type"] = name, typ
		iface["options"], iface["other_config"] = mapOf(opts), mapOf(other)
		iface["external_ids"], cols["external_ids"] = mapOf(markIDs(mark)), mapOf(markIDs(mark))
		cols["name"], cols["interfaces"] = name, namedRef("newif")
		return append(ops,
			op{"op": "insert", "table": "Interface", "uuid-name": "newif", "row": iface},
			op{"op": "insert", "table": "Port", "uuid-name": "newport", "row": cols},
			op{"op": "mutate", "table": "Bridge", "where": byUUID(b.uuid), "mutations": []any{[]any{"ports", "insert", namedRef("newport")}}})
	}
	var gone, goneOther []string
	if !prior.IsNull() {
		had, hadOther := stringMap(prior.GetAttr("options")), map[string]string{}
		keysOf(prior, portOptions(), had)
		keysOf(prior, queueOptions(), hadOther)
		gone, goneOther = missingKeys(had, opts), missingKeys(hadOther, other)
	}
	changes := append(mapChange("options", opts, gone), mapChange("other_config", other, goneOther)...)
	changes = append(changes, mapChange("external_ids", markIDs(mark), nil)...)
	return append(ops,
		op{"op": "update", "table": "Interface", "where": byUUID(p.ifUUID), "row": iface},
		op{"op": "mutate", "table": "Interface", "where": byUUID(p.ifUUID), "mutations": changes},
		op{"op": "update", "table": "Port", "where": byUUID(p.uuid), "row": cols},
		op{"op": "mutate", "table": "Port", "where": byUUID(p.uuid), "mutations": mapChange("external_ids", markIDs(mark), nil)})
}

// portRequest is the number to ask for: the one planned, which after the first apply is also the one that Open vSwitch chose, so that a
// restart does not shuffle the numbers that flows use.
func portRequest(prior, planned cty.Value) int64 {
	if n, ok := number(planned, "ofport"); ok && n > 0 {
		return n
	}
	if !prior.IsNull() {
		if n, ok := number(prior, "ofport"); ok && n > 0 {
			return n
		}
	}
	return 0
}

func missingKeys(had, want map[string]string) []string {
	var out []string
	for k := range had {
		if _, ok := want[k]; !ok {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// removePort removes our port. When it is gone, there may be another's of that name, which is left alone.
func (s *session) removePort(ctx context.Context, w *world, name string, mark providers.Mark) error {
	p := w.ports[name]
	if p == nil || !ours(p.external, mark) || p.local() {
		return nil
	}
	ops := []op{{"op": "mutate", "table": "Bridge", "where": byUUID(p.bridge.uuid), "mutations": []any{[]any{"ports", "delete", uuidRef(p.uuid)}}}}
	ops = append(ops, dropPolicer(p)...)
	if err := s.commit(ctx, ops...); err != nil {
		return fmt.Errorf("remove port %s: %w", name, err)
	}
	if err := s.detach(ctx, p); err != nil {
		return fmt.Errorf("remove port %s: %w", name, err)
	}
	return nil
}

// detach has ovs-vswitchd let go of the device of a port of type dpdk, which it holds on to when the port is gone: whoever would bind the NIC to another driver then waits for ever
// (Open vSwitch's guide to DPDK physical ports, "Hotplugging"). A device that several ports share, as representors do, goes with the last of them.
func (s *session) detach(ctx context.Context, p *port) error {
	device, arguments, _ := strings.Cut(p.options["dpdk-devargs"], ",")
	if p.typ != dpdkType || arguments != "" || strings.Count(device, ":") != 2 {
		return nil
	}
	pid, err := s.pid(ctx, daemonPid)
	if err != nil || pid == 0 {
		return err
	}
	_, err = s.control(ctx, controlSocket(pid), "netdev-dpdk/detach", device)
	var refused *unixctl.Error
	if errors.As(err, &refused) && (strings.Contains(refused.Error(), "not found") || strings.Contains(refused.Error(), "shared") || strings.Contains(refused.Error(), "not a valid command")) {
		return nil
	}
	return err
}

// dropPolicer removes our QoS row. It is not collected by itself, and the port must let go of it first, even one that goes too.
func dropPolicer(p *port) []op {
	if !p.qosOurs {
		return nil
	}
	return []op{
		{"op": "update", "table": "Port", "where": byUUID(p.uuid), "row": map[string]any{"qos": []any{"set", []any{}}}},
		{"op": "delete", "table": "QoS", "where": byUUID(p.qos)},
	}
}

// tidySocketDir removes the folder of the sockets when it is ours and empty.
func (s *session) tidySocketDir(ctx context.Context, sock string) {
	if path.Dir(sock) == vhostDir { // a folder that still holds sockets refuses, as it should
		_, _ = s.host.Conn().Run(ctx, providers.Cmd{Args: []string{"rmdir", "--parents", "--ignore-fail-on-non-empty", vhostDir}})
	}
}
