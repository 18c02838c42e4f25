package ovs

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/pcidriver"
)

func (portType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed, Problems: portProblems(req.Desired)}
	name, brName := attr.Text(req.Desired, "name"), attr.Text(req.Desired, "bridge")
	var w *world
	if req.Host != nil {
		s, err := sessionOf(ctx, req.Host)
		if err != nil {
			return res, err
		}
		if w, err = s.look(ctx); err != nil {
			return res, err
		}
	}
	attrs := attrsOf(req.Proposed)
	if req.Desired.GetAttr("vhost_server_path").IsNull() && known(req.Desired, "type") && known(req.Desired, "name") {
		attrs["vhost_server_path"] = cty.NullVal(cty.String)
		if p := socketPath(attr.Text(req.Desired, "type"), name, w); p != "" {
			attrs["vhost_server_path"] = cty.StringVal(p)
		}
	}
	if !req.Prior.IsNull() && req.Desired.GetAttr("ofport").IsNull() {
		if n, ok := number(req.Prior, "ofport"); ok && n < 0 { // it failed since: try again
			attrs["ofport"] = cty.UnknownVal(cty.Number)
		}
	}
	res.Planned = cty.ObjectVal(attrs)
	if w == nil || name == "" {
		return res, nil
	}
	if p := w.ports[name]; p != nil {
		switch {
		case p.local():
			res.Problems = append(res.Problems, providers.Problem{Path: at("name"), Summary: "The name is a bridge's",
				Detail: fmt.Sprintf("%s has a bridge called %s, whose local port has that name. Choose another.", req.Host.Name(), name)})
		case !ours(p.external, req.Mark):
			return res, foreign("port", name, req.Host.Name(), owner(p.external))
		}
	}
	if b := w.bridges[brName]; b != nil {
		typ := attr.Text(req.Desired, "type")
		if b.datapath == "system" && slices.Contains([]string{dpdkType, clientType, serverType, afxdpType}, typ) {
			res.Problems = append(res.Problems, providers.Problem{Warning: true, Path: at("type"), Summary: "The bridge has the kernel datapath",
				Detail: fmt.Sprintf("Bridge %s on %s has datapath \"system\" now; an interface of type %s needs datapath = \"netdev\". Unless the bridge changes in this plan, the apply will fail.", brName, req.Host.Name(), typ)})
		}
	}
	return res, nil
}

// socketPath is the vhost-user socket of a port that names none.
func socketPath(typ, name string, w *world) string {
	switch typ {
	case clientType:
		return vhostDir + "/" + name
	case serverType:
		dir := runDir
		if w != nil {
			if sub := w.root.otherConfig["vhost-sock-dir"]; sub != "" {
				dir += "/" + sub
			}
		}
		return dir + "/" + name
	}
	return ""
}

// portProblems is what can be told wrong from the configuration alone.
func portProblems(d cty.Value) []providers.Problem {
	var out []providers.Problem
	add := func(path cty.Path, summary, format string, args ...any) {
		out = append(out, providers.Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	out = append(out, overlaps(d, "options", append(portOptions(), option{attr: "vhost_server_path", key: "vhost-server-path"}), nil)...)
	if !known(d, "type") {
		return out
	}
	typ := attr.Text(d, "type")
	for _, o := range append(portOptions(), queueOptions()...) {
		if !d.GetAttr(o.attr).IsNull() && o.on != nil && !slices.Contains(o.on, typ) {
			add(at(o.attr), "Argument does not fit the type", "%s is an option of interfaces of type %s; this one has type %s. Open vSwitch would ignore it. Remove it, or change the type.",
				o.attr, strings.Join(o.on, ", "), typ)
		}
	}
	requires := map[string]string{dpdkType: "devargs", patchType: "peer", "vxlan": "remote_ip", "geneve": "remote_ip", "gre": "remote_ip"}
	if attr, ok := requires[typ]; ok && d.GetAttr(attr).IsNull() {
		add(at("type"), "Argument is missing", "An interface of type %s needs %s.", typ, attr)
	}
	if typ == serverType && !attr.Truth(d, "allow_deprecated", false) {
		add(at("type"), "Type is deprecated", "With dpdkvhostuser Open vSwitch owns the socket, so after each restart of ovs-vswitchd every guest must be restarted too; it is deprecated since OVS 2.8. Use dpdkvhostuserclient, or say allow_deprecated = true.")
	}
	if !d.GetAttr("vhost_server_path").IsNull() && typ != clientType {
		add(at("vhost_server_path"), "Argument does not fit the type", "vhost_server_path is for type dpdkvhostuserclient; this one has type %s.", typ)
	} else if p := attr.Text(d, "vhost_server_path"); p != "" && (!strings.HasPrefix(p, "/") || len(p) > 107) {
		add(at("vhost_server_path"), "Not a socket path", "%q: want an absolute path of at most 107 bytes (unix(7), sun_path).", p)
	}
	if typ != "internal" && !d.GetAttr("mac").IsNull() {
		add(at("mac"), "Argument does not fit the type", "Open vSwitch sets the MAC address of internal ports only; this one has type %s.", typ)
	}
	for _, a := range []string{"remote_ip", "local_ip"} {
		if s := attr.Text(d, a); s != "" && s != "flow" {
			if _, err := netip.ParseAddr(s); err != nil {
				add(at(a), "Not an IP address", "%q is neither an IP address nor flow.", s)
			}
		}
	}
	if known(d, "tag") && known(d, "trunks") && slices.Contains([]string{"access", "trunk"}, attr.Text(d, "vlan_mode")) {
		add(at("vlan_mode"), "tag or trunks is left over", "vlan_mode %q takes only one of tag and trunks.", attr.Text(d, "vlan_mode"))
	}
	return append(out, affinityProblems(d)...)
}

// affinityProblems compares pinned queues with the queues that there are.
func affinityProblems(d cty.Value) []providers.Problem {
	if !known(d, "affinity") {
		return nil
	}
	rxqs, ok := number(d, "rxqs")
	if !ok {
		if attr.Text(d, "type") != dpdkType || !d.GetAttr("rxqs").IsNull() {
			return nil // a vhost port has as many as its guest says
		}
		rxqs = 1
	}
	pinned := d.GetAttr("affinity").AsValueMap()
	var out []providers.Problem
	for k := range pinned {
		if q, err := strconv.ParseInt(k, 10, 64); err == nil && q >= rxqs {
			out = append(out, providers.Problem{Path: append(at("affinity"), cty.IndexStep{Key: cty.StringVal(k)}), Summary: "No such receive queue",
				Detail: fmt.Sprintf("affinity pins queue %d, but the port has %d (0 to %d). Raise rxqs or remove it.", q, rxqs, rxqs-1)})
		}
	}
	for q := range rxqs {
		if _, ok := pinned[strconv.FormatInt(q, 10)]; !ok {
			out = append(out, providers.Problem{Warning: true, Path: at("affinity"), Summary: "A receive queue is not pinned",
				Detail: fmt.Sprintf("Queue %d is not in affinity. A CPU with a pinned queue polls no other (pmd_rxq_isolate), so when every PMD CPU has one, queue %d is polled by none and all its frames are lost. Pin it, or keep a PMD CPU free.", q, q)})
			break
		}
	}
	return out
}

// pinned lists the cores that affinity gives queues to.
func pinned(planned cty.Value) []int {
	v := planned.GetAttr("affinity")
	if !v.IsWhollyKnown() || v.IsNull() {
		return nil
	}
	var out []int
	for _, e := range v.AsValueMap() {
		if !e.IsNull() {
			n, _ := e.AsBigFloat().Int64()
			out = append(out, int(n))
		}
	}
	return out
}

func (portType) Claims(ctx context.Context, host providers.Host, planned cty.Value) (providers.Claims, error) {
	var c providers.Claims
	name, br, typ := attr.Text(planned, "name"), attr.Text(planned, "bridge"), attr.Text(planned, "type")
	if name != "" {
		c.Unique = append(c.Unique, providers.Unique{Scope: "name in the switch", Value: name, Path: at("name")})
	}
	if dev := attr.Text(planned, "devargs"); dev != "" {
		pci, arguments, _ := strings.Cut(dev, ",")
		if arguments == "" { // representors share the device
			c.Unique = append(c.Unique, providers.Unique{Scope: "device of a DPDK application", Value: dev, Path: at("devargs")})
		} else {
			c.Unique = append(c.Unique, providers.Unique{Scope: "DPDK device of the switch", Value: dev, Path: at("devargs")})
		}
		c.Devices = append(c.Devices, providers.DeviceClaim{PCI: pci, Cores: pinned(planned), Use: "PMD", Crossing: attr.Truth(planned, "allow_cross_numa", false), Path: at("devargs")})
		facts, err := host.Facts(ctx)
		if err != nil {
			return c, err
		}
		if need, ok := pcidriver.Need(facts, host.Name(), pci); ok {
			need.Path = at("devargs")
			c.Needs = append(c.Needs, need)
		}
	}
	if br != "" {
		kind := "port on bridge " + br
		if name != "" {
			c.Provides = append(c.Provides, providers.Named{Kind: kind, Name: name, Path: at("name")})
		}
		if n, ok := number(planned, "ofport"); ok {
			c.Provides = append(c.Provides, providers.Named{Kind: kind, Name: strconv.FormatInt(n, 10), Path: at("ofport")})
			c.Unique = append(c.Unique, providers.Unique{Scope: "ofport on bridge " + br, Value: strconv.FormatInt(n, 10), Path: at("ofport")})
		}
	}
	c.MTU = int(attr.Number(planned, "mtu", 0))
	if c.MTU == 0 && (typ == dpdkType || typ == clientType || typ == serverType) {
		c.MTU = 1500 // what Open vSwitch gives such ports (ovs-vswitchd.conf.db(5), Interface, mtu_request)
	}
	if p := attr.Text(planned, "vhost_server_path"); p != "" {
		c.Sockets = append(c.Sockets, providers.SocketEnd{Socket: p, Server: typ == serverType, Switch: true, Path: at("vhost_server_path")})
	}
	return c, nil
}
