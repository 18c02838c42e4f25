package ovs

import (
	"plumb/providers"
	"plumb/providers/internal/ovsdb"
)

// world is a snapshot of the database, and of whether the daemons run. It is not changed once made.
type world struct {
	server, daemon bool // ovsdb-server answers, ovs-vswitchd answers
	root           root
	bridges        map[string]*bridge
	ports          map[string]*port // by name, which is unique in one database
}

type root struct {
	uuid                   string
	otherConfig, external  map[string]string
	ovsVersion             string
	dpdkVersion            string
	dpdk                   bool
	datapathTypes, ifTypes []string
	nextCfg, curCfg        int64
}

type bridge struct {
	uuid, name, datapath, failMode string
	protocols                      []string
	otherConfig, external          map[string]string
	mcastSnooping, stp, rstp       bool
	ports                          []*port
}

type port struct {
	uuid, name, ifUUID, typ string
	bridge                  *bridge
	interfaces              int // more than one: a bond
	external, ifExternal    map[string]string
	options, otherConfig    map[string]string
	status                  map[string]string
	tag                     int64 // -1: none
	trunks                  []int64
	vlanMode, qos           string
	qosType                 string
	qosConfig               map[string]string
	qosOurs                 bool
	ofport, mtu, mtuRequest int64 // 0: not there
	ofportRequest           int64
	policing                [4]int64 // rate, burst, kpkts_rate, kpkts_burst
	mac, macInUse, failure  string
}

// local says that the port is the bridge's own.
func (p *port) local() bool { return p.bridge != nil && p.name == p.bridge.name }

// waitsForGuest says that it is a vhost port nobody is connected to: such a port has no MTU and no queues yet.
func (p *port) waitsForGuest() bool {
	return (p.typ == clientType || p.typ == serverType) && p.status["status"] != "connected"
}

// owner reads our mark.
func owner(external map[string]string) providers.Mark {
	return providers.Mark{Testbed: external[keyTestbed], Address: external[keyAddress]}
}

// ours says that the object carries the mark's testbed. The address may be another one: it was renamed in the configuration.
func ours(external map[string]string, m providers.Mark) bool {
	return m.Testbed != "" && external[keyTestbed] == m.Testbed
}

func markIDs(m providers.Mark) map[string]string {
	return map[string]string{keyTestbed: m.Testbed, keyAddress: m.Address}
}

// worldSelects are the operations whose results newWorld takes, in that order.
func worldSelects() []op {
	sel := func(table string, cols ...string) op {
		return op{"op": "select", "table": table, "where": []any{}, "columns": append(cols, "_uuid")}
	}
	return []op{
		sel("Open_vSwitch", "other_config", "external_ids", "dpdk_version", "dpdk_initialized", "datapath_types",
			"iface_types", "next_cfg", "cur_cfg"),
		sel("Bridge", "name", "datapath_type", "fail_mode", "protocols", "other_config", "external_ids", "ports",
			"mcast_snooping_enable", "stp_enable", "rstp_enable"),
		sel("Port", "name", "interfaces", "tag", "trunks", "vlan_mode", "qos", "external_ids"),
		sel("Interface", "name", "type", "options", "other_config", "external_ids", "status", "ofport", "ofport_request", "mtu",
			"mtu_request", "mac", "mac_in_use", "error", "ingress_policing_rate", "ingress_policing_burst",
			"ingress_policing_kpkts_rate", "ingress_policing_kpkts_burst"),
		sel("QoS", "type", "other_config", "external_ids"),
	}
}

func newWorld(res [][]row) *world {
	w := &world{server: true, bridges: map[string]*bridge{}, ports: map[string]*port{}}
	for _, r := range res[0] {
		w.root = root{uuid: id(r), otherConfig: r.dict("other_config"), external: r.dict("external_ids"),
			dpdkVersion: r.str("dpdk_version"), dpdk: r.boolean("dpdk_initialized"),
			datapathTypes: r.strs("datapath_types"), ifTypes: r.strs("iface_types")}
		w.root.nextCfg, _ = r.num("next_cfg")
		w.root.curCfg, _ = r.num("cur_cfg")
	}
	ports, ifaces, qos := map[string]row{}, map[string]row{}, map[string]row{}
	for i, into := range []map[string]row{ports, ifaces, qos} {
		for _, r := range res[2+i] {
			into[id(r)] = r
		}
	}
	for _, r := range res[1] {
		b := &bridge{uuid: id(r), name: r.str("name"), datapath: r.str("datapath_type"), failMode: r.str("fail_mode"),
			protocols: r.strs("protocols"), otherConfig: r.dict("other_config"), external: r.dict("external_ids"),
			mcastSnooping: r.boolean("mcast_snooping_enable"), stp: r.boolean("stp_enable"), rstp: r.boolean("rstp_enable")}
		if b.datapath == "" {
			b.datapath = "system"
		}
		w.bridges[b.name] = b
		for _, pid := range r.uuids("ports") {
			if p := newPort(pid, ports[pid], ifaces, qos); p != nil {
				p.bridge = b
				b.ports = append(b.ports, p)
				w.ports[p.name] = p
			}
		}
	}
	return w
}

func id(r row) string { return ovsdb.ID(r["_uuid"]) }

func newPort(uuid string, r row, ifaces, qos map[string]row) *port {
	if r == nil {
		return nil
	}
	p := &port{uuid: uuid, name: r.str("name"), external: r.dict("external_ids"), trunks: r.nums("trunks"),
		vlanMode: r.str("vlan_mode"), tag: -1}
	if n, ok := r.num("tag"); ok {
		p.tag = n
	}
	if ids := r.uuids("qos"); len(ids) > 0 {
		p.qos = ids[0]
		q := qos[p.qos]
		p.qosType, p.qosConfig = q.str("type"), q.dict("other_config")
		p.qosOurs = q.dict("external_ids")[keyTestbed] != ""
	}
	ids := r.uuids("interfaces")
	p.interfaces = len(ids)
	if len(ids) == 0 {
		return p
	}
	p.ifUUID = ids[0]
	f := ifaces[p.ifUUID]
	p.typ, p.options, p.otherConfig, p.status = f.str("type"), f.dict("options"), f.dict("other_config"), f.dict("status")
	p.ifExternal = f.dict("external_ids")
	p.mac, p.macInUse, p.failure = f.str("mac"), f.str("mac_in_use"), f.str("error")
	for col, into := range map[string]*int64{"ofport": &p.ofport, "ofport_request": &p.ofportRequest, "mtu": &p.mtu,
		"mtu_request": &p.mtuRequest, "ingress_policing_rate": &p.policing[0], "ingress_policing_burst": &p.policing[1],
		"ingress_policing_kpkts_rate": &p.policing[2], "ingress_policing_kpkts_burst": &p.policing[3]} {
		*into, _ = f.num(col)
	}
	if p.typ == "" {
		p.typ = "system"
	}
	return p
}
