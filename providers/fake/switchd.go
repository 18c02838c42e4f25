package fake

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"plumb/providers/internal/openflow"
	"plumb/providers/internal/ovsdb"
	"plumb/providers/internal/ovsdb/ovsdbtest"
)

// This file is a model of what ovs-vswitchd does with its database (ovs-vswitchd.conf.db(5)): as much as Plumb looks at.

// initDPDK starts EAL in a new ovs-vswitchd. It returns why the daemon aborts, if it does.
func (h *host) initDPDK(p *process) string {
	db, err := h.getDB(p.Data["db"])
	if err != nil {
		return err.Error()
	}
	cfg := map[string]string{}
	for _, r := range db.Rows("Open_vSwitch") {
		cfg = ovsdb.StringMap(r["other_config"])
	}
	init := cfg["dpdk-init"]
	if init != "true" && init != "try" {
		return ""
	}
	if p.Data["build"] != "dpdk" {
		_ = h.log(p, "00006|dpdk|ERR|DPDK not supported in this copy of Open vSwitch.")
		return ""
	}
	_ = h.log(p, "00006|dpdk|INFO|Using DPDK 22.11.11")
	_ = h.log(p, "00007|dpdk|INFO|DPDK Enabled - initializing...")
	why := h.settings.EAL
	if why == "" {
		why = h.takeSocketMem(p, cfg)
	}
	if why == "" {
		_ = h.log(p, "00012|dpdk|INFO|DPDK Enabled - initialized")
		p.Data["dpdk"] = "true"
		return ""
	}
	_ = h.log(p, "00011|dpdk|ERR|EAL: %s", why)
	if init == "try" {
		_ = h.log(p, "00012|dpdk|ERR|Unable to initialize DPDK: Invalid argument")
		return ""
	}
	_ = h.log(p, "00012|dpdk|EMER|Unable to initialize DPDK: Invalid argument")
	_ = h.log(p, "00002|daemon_unix|ERR|fork child died before signaling startup (killed (Aborted))")
	return "fork child died before signaling startup (killed (Aborted))"
}

func (h *host) takeSocketMem(p *process, cfg map[string]string) string {
	want := map[int]int{}
	if mem, ok := cfg["dpdk-socket-mem"]; ok {
		for node, s := range strings.Split(mem, ",") {
			want[node], _ = strconv.Atoi(s)
		}
	} else if mb, err := strconv.Atoi(cfg["dpdk-alloc-mem"]); err == nil {
		want[-1] = mb
	}
	for _, node := range slices.Sorted(maps.Keys(want)) {
		if node >= nodes && want[node] > 0 {
			return "invalid parameters for --socket-mem"
		}
		if mb := want[node]; mb > 0 {
			if free, ok := h.take(p, node, mb); !ok {
				return fmt.Sprintf("Not enough memory available on socket %d! Requested: %dMB, available: %dMB", max(node, 0), mb, free)
			}
		}
	}
	if err := h.recount(); err != nil {
		return err.Error()
	}
	return ""
}

// settle lets every running ovs-vswitchd take its database over, and then every testpmd go on.
func (h *host) settle() error {
	for _, p := range h.byComm("ovs-vswitchd") {
		if h.databaseOf(p) == nil {
			continue // it is cut off: nothing changes
		}
		db, err := h.getDB(p.Data["db"])
		if err != nil {
			continue // the file is gone under it
		}
		before, err := db.MarshalJSON()
		if err != nil {
			return err
		}
		if err := h.takeOver(p, db); err != nil {
			return fmt.Errorf("the model of ovs-vswitchd: %w", err)
		}
		after, err := db.MarshalJSON()
		if err != nil {
			return err
		}
		if string(before) != string(after) {
			if err := h.putDB(p.Data["db"], db); err != nil {
				return err
			}
			h.changed = append(h.changed, p.Data["db"])
		}
	}
	for _, p := range h.byComm("dpdk-testpmd") {
		if err := h.proceed(p); err != nil {
			return err
		}
	}
	return nil
}

// databaseOf is the server of a daemon's database.
func (h *host) databaseOf(p *process) *process {
	for _, s := range h.byComm("ovsdb-server") {
		if s.Data["db"] == p.Data["db"] {
			return s
		}
	}
	return nil
}

func (h *host) takeOver(p *process, db *ovsdbtest.Database) error {
	ifaceTypes := []string{"afxdp", "erspan", "geneve", "gre", "internal", "lisp", "patch", "stt", "system", "tap", "vxlan"}
	dpdkVersion := "none"
	if p.Data["build"] == "dpdk" {
		dpdkVersion = "DPDK 22.11.11"
		ifaceTypes = append(ifaceTypes, "dpdk", "dpdkvhostuser", "dpdkvhostuserclient")
	}
	var ops []ovsdb.Op
	for _, r := range db.Rows("Open_vSwitch") {
		ops = append(ops, ovsdb.Update("Open_vSwitch", ovsdb.Row{"cur_cfg": r["next_cfg"], "ovs_version": "3.1.0", "dpdk_version": dpdkVersion,
			"dpdk_initialized": p.Data["dpdk"] == "true", "datapath_types": ovsdb.Set("netdev", "system"), "iface_types": ovsdb.Set(ifaceTypes...)}))
	}
	ports, ifaces := db.Rows("Port"), db.Rows("Interface")
	bridges := db.Rows("Bridge")
	for _, id := range slices.Sorted(maps.Keys(bridges)) {
		b := bridge{row: bridges[id], name: ovsdb.String(bridges[id]["name"]), taken: map[int64]string{}}
		b.works = h.settings.Kernel || ovsdb.String(b.row["datapath_type"]) == "netdev"
		// Another datapath is another switch: it begins without flows.
		if was := p.Data["datapath of "+b.name]; was != "" && was != ovsdb.String(b.row["datapath_type"]) {
			if err := os.Remove(h.flowFile(b.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		p.Data["datapath of "+b.name] = ovsdb.String(b.row["datapath_type"])
		if b.works {
			ops = append(ops, ovsdb.Update("Bridge", ovsdb.Row{"datapath_id": fmt.Sprintf("%016x", macOf(b.name)), "datapath_version": "<built-in>"}, ovsdb.ByID(id)))
			if err := h.firstFlows(b); err != nil {
				return err
			}
		}
		var list []string
		for _, port := range ovsdb.IDs(b.row["ports"]) {
			list = append(list, ovsdb.IDs(ports[port]["interfaces"])...)
		}
		// Numbers that are asked for come first, then those that are held.
		for _, by := range []string{"ofport_request", "ofport"} {
			for _, i := range list {
				if n, ok := ovsdb.Int(ifaces[i][by]); ok && n > 0 && b.taken[n] == "" && !b.holds(i) && h.refusal(p, b, ifaces[i]) == "" {
					b.taken[n] = i
				}
			}
		}
		for _, i := range list {
			ops = append(ops, ovsdb.Update("Interface", h.iface(p, b, i, ifaces[i]), ovsdb.ByID(i)))
		}
	}
	if err := h.forgetFlows(bridges); err != nil {
		return err
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := db.Transact(ops...)
	return err
}

type bridge struct {
	name  string
	row   ovsdb.Row
	works bool
	taken map[int64]string // port numbers, and whose they are
}

func (b bridge) holds(iface string) bool {
	for _, i := range b.taken {
		if i == iface {
			return true
		}
	}
	return false
}

// number is the interface's port number; the next free one if it holds none.
func (b bridge) number(iface string) int64 {
	for n, i := range b.taken {
		if i == iface {
			return n
		}
	}
	for n := int64(1); ; n++ {
		if b.taken[n] == "" {
			b.taken[n] = iface
			return n
		}
	}
}

func macOf(name string) uint64 {
	f := fnv.New64a()
	_, _ = f.Write([]byte(name))
	return f.Sum64()>>16&^(0xff<<40) | 0x02<<40
}

// iface is what ovs-vswitchd writes into the row of an interface.
func (h *host) iface(p *process, b bridge, id string, row ovsdb.Row) ovsdb.Row {
	name, typ := ovsdb.String(row["name"]), ovsdb.String(row["type"])
	if why := h.refusal(p, b, row); why != "" {
		out := ovsdb.Row{"ofport": -1, "error": why, "mac_in_use": ovsdb.Optional(""), "mtu": ovsdb.Optional(0), "link_state": ovsdb.Optional(""),
			"admin_state": ovsdb.Optional(""), "status": ovsdb.Map(nil)}
		if !b.works {
			out["ofport"], out["error"] = ovsdb.Optional(0), ovsdb.Optional("")
		}
		return out
	}
	out := ovsdb.Row{"error": ovsdb.Optional(""), "admin_state": "up", "link_state": "up", "link_speed": 10_000_000_000, "link_resets": 0, "status": ovsdb.Map(nil)}
	if name == b.name {
		out["ofport"] = 65534
	} else {
		out["ofport"] = b.number(id)
	}
	mac := ovsdb.String(row["mac"])
	if mac == "" {
		m := macOf(name)
		mac = fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", byte(m>>40), byte(m>>32), byte(m>>24), byte(m>>16), byte(m>>8), byte(m))
	}
	out["mac_in_use"] = mac
	mtu, ok := ovsdb.Int(row["mtu_request"])
	if !ok {
		mtu = 1500
	}
	switch typ {
	case "dpdkvhostuserclient", "dpdkvhostuser":
		status := map[string]string{"mode": "client", "status": "disconnected"}
		sock := ovsdb.StringMap(row["options"])["vhost-server-path"]
		if typ == "dpdkvhostuser" {
			sock = "/var/run/openvswitch/" + name
			status = map[string]string{"mode": "server", "status": "disconnected"}
		}
		status["socket"] = sock
		if h.vhostPeer(sock) {
			status["status"] = "connected"
			status["num_of_vrings"] = "2"
		} else {
			out["link_state"] = "down"
		}
		out["status"] = ovsdb.Map(status)
	case "patch", "vxlan", "geneve", "gre":
		out["mtu"] = ovsdb.Optional(0)
		return out
	}
	out["mtu"] = mtu
	return out
}

// refusal is why an interface cannot be had; "" if it can.
func (h *host) refusal(p *process, b bridge, row ovsdb.Row) string {
	name, typ, opts := ovsdb.String(row["name"]), ovsdb.String(row["type"]), ovsdb.StringMap(row["options"])
	noDPDK := fmt.Sprintf("could not open network device %s (Address family not supported by protocol)", name)
	badConfig := fmt.Sprintf("%s: could not set configuration (Invalid argument)", name)
	switch {
	case !b.works:
		return "no datapath"
	case name == b.name:
		return ""
	}
	switch typ {
	case "internal", "tap":
		return ""
	case "", "system", "afxdp":
		if !h.exists("/sys/class/net/" + name) {
			return fmt.Sprintf("could not open network device %s (No such device)", name)
		}
	case "patch":
		if opts["peer"] == "" || opts["peer"] == name {
			return badConfig
		}
	case "vxlan", "geneve", "gre":
		if opts["remote_ip"] == "" {
			return badConfig
		}
	case "dpdk":
		args := opts["dpdk-devargs"]
		switch {
		case p.Data["dpdk"] != "true":
			return noDPDK
		case args == "":
			return fmt.Sprintf("'%s' is missing 'options:dpdk-devargs'. The old 'dpdk<port_id>' names are not supported", name)
		case !strings.HasPrefix(args, "net_") && !strings.HasPrefix(args, "eth_") && !h.exists("/sys/bus/pci/devices/"+strings.Split(args, ",")[0]):
			return fmt.Sprintf("Error attaching device '%s' to DPDK", args)
		}
	case "dpdkvhostuser", "dpdkvhostuserclient":
		if p.Data["dpdk"] != "true" {
			return noDPDK
		}
		if typ == "dpdkvhostuserclient" && opts["vhost-server-path"] == "" {
			return badConfig
		}
	default:
		return noDPDK
	}
	return ""
}

// vhostPeer says whether a testpmd is at the other end of a vhost-user socket.
func (h *host) vhostPeer(sock string) bool {
	for _, p := range h.byComm("dpdk-testpmd") {
		for _, d := range devices(p.Args) {
			if d.path != "" && clean(d.path) == clean(sock) {
				return true
			}
		}
	}
	return false
}

// switchAt says whether a port of a running switch is at the other end of a vhost-user socket.
func (h *host) switchAt(sock string) bool {
	for _, p := range h.byComm("ovs-vswitchd") {
		db, err := h.getDB(p.Data["db"])
		if err != nil {
			continue
		}
		for _, row := range db.Rows("Interface") {
			if ovsdb.String(row["error"]) == "" && clean(ovsdb.StringMap(row["status"])["socket"]) == clean(sock) {
				return true
			}
		}
	}
	return false
}

// ports are the bridge's ports by name, for ovs-ofctl.
func (h *host) ports(name string) (openflow.Ports, ovsdb.Row, bool) {
	for _, p := range h.byComm("ovs-vswitchd") {
		db, err := h.getDB(p.Data["db"])
		if err != nil {
			continue
		}
		ports, ifaces := db.Rows("Port"), db.Rows("Interface")
		for _, b := range db.Rows("Bridge") {
			if ovsdb.String(b["name"]) != name {
				continue
			}
			out := openflow.Ports{}
			for _, port := range ovsdb.IDs(b["ports"]) {
				for _, i := range ovsdb.IDs(ports[port]["interfaces"]) {
					if n, ok := ovsdb.Int(ifaces[i]["ofport"]); ok && n > 0 {
						out[ovsdb.String(ifaces[i]["name"])] = int(n)
					}
				}
			}
			return out, b, ovsdb.String(b["datapath_id"]) != ""
		}
	}
	return nil, nil, false
}

// switchCommand runs the commands of ovs-vswitchd that show what its threads do: nothing, since no frame ever comes.
func (h *host) switchCommand(p *process, name string, args []string) (string, bool) {
	cores := []int{0}
	var ports []string
	if db, err := h.getDB(p.Data["db"]); err == nil {
		for _, r := range db.Rows("Open_vSwitch") {
			mask, err := strconv.ParseUint(strings.TrimPrefix(ovsdb.StringMap(r["other_config"])["pmd-cpu-mask"], "0x"), 16, 64)
			if err == nil && mask != 0 {
				cores = cores[:0]
				for c := range 64 {
					if mask>>c&1 == 1 {
						cores = append(cores, c)
					}
				}
			}
		}
		for _, i := range db.Rows("Interface") {
			if strings.HasPrefix(ovsdb.String(i["type"]), "dpdk") && ovsdb.String(i["error"]) == "" {
				ports = append(ports, ovsdb.String(i["name"]))
			}
		}
	}
	slices.Sort(ports)
	var b strings.Builder
	switch name {
	case "dpif-netdev/pmd-stats-show", "dpif-netdev/pmd-perf-show":
		for _, c := range cores {
			fmt.Fprintf(&b, "pmd thread numa_id %d core_id %d:\n  packets received: 0\n  packet recirculations: 0\n  avg. datapath passes per packet: 0.00\n  phwol hits: 0\n  mfex opt hits: 0\n"+
				"  simple match hits: 0\n  emc hits: 0\n  smc hits: 0\n  megaflow hits: 0\n  miss with success upcall: 0\n  miss with failed upcall: 0\n  idle cycles: 1000 (100.00%%)\n  processing cycles: 0 (0.00%%)\n", c/cpusPerNode, c)
		}
	case "dpif-netdev/pmd-rxq-show":
		b.WriteString("Displaying last 60 seconds pmd usage %\n")
		for i, c := range cores {
			fmt.Fprintf(&b, "pmd thread numa_id %d core_id %d:\n  isolated : false\n", c/cpusPerNode, c)
			for j, port := range ports {
				if j%len(cores) == i {
					fmt.Fprintf(&b, "  port: %-16s  queue-id:  0 (enabled)   pmd usage:  0 %%\n", port)
				}
			}
			b.WriteString("  overhead:  0 %\n")
		}
	case "dpctl/show":
		b.WriteString("netdev@ovs-netdev:\n  lookups: hit:0 missed:0 lost:0\n  flows: 0\n")
		for i, port := range ports {
			fmt.Fprintf(&b, "  port %d: %s (dpdk)\n    RX packets:0 errors:0 dropped:0 overruns:? frame:?\n    TX packets:0 errors:0 dropped:0 aborted:? carrier:?\n", i+1, port)
		}
	case "coverage/show":
		b.WriteString("Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=00000000:\n0 events never hit\n")
	default:
		return "", false
	}
	return b.String(), true
}
