package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
)

// device is one port of a testpmd.
type device struct {
	path   string // of its vhost-user socket; "" for other devices
	server bool   // the socket is its own
}

// devices are the ports that a command line makes: --vdev and -a.
func devices(args []string) []device {
	var out []device
	for i, a := range args {
		if a == "--" {
			break
		}
		v, ok := strings.CutPrefix(a, "--vdev=")
		if !ok && (a == "--vdev" || a == "-a") && i+1 < len(args) {
			v, ok = args[i+1], true
		}
		if !ok {
			continue
		}
		var d device
		for _, part := range strings.Split(v, ",") {
			key, val, _ := strings.Cut(part, "=")
			switch key {
			case "path", "iface":
				d.path = val
			case "server":
				d.server = val == "1"
			}
		}
		out = append(out, d)
	}
	return out
}

// option is the value of an option that is given as "-m 128", "-m=128" or "--name value".
func option(args []string, name string) string {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return v
		}
		if a == name && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// startTestpmd is what dpdk-testpmd logs when it starts, and what it takes.
func (h *host) startTestpmd(p *process) error {
	log := func(s string) error { return h.appendTo(p.Dir+"/log", s) }
	if err := log("EAL: Detected CPU lcores: 8\nEAL: Detected NUMA nodes: 2\n"); err != nil {
		return err
	}
	want := map[int]int{} // MB by node
	if mb, err := strconv.Atoi(option(p.Args, "-m")); err == nil {
		want[-1] = mb
	}
	for node, s := range strings.Split(option(p.Args, "--socket-mem"), ",") {
		if mb, err := strconv.Atoi(s); err == nil {
			want[node] = mb
		}
	}
	for _, node := range slices.Sorted(maps.Keys(want)) {
		if free, ok := h.take(p, node, want[node]); !ok {
			on := ""
			if node >= 0 {
				on = fmt.Sprintf(" on socket %d", node)
			}
			err := log(fmt.Sprintf("EAL: Not enough memory available%s! Requested: %dMB, available: %dMB\nEAL: FATAL: Cannot init memory\nEAL: Cannot init memory\nEAL: Error - exiting with code: 1\n", on, want[node], free))
			if err != nil {
				return err
			}
			return h.end(p, 1)
		}
	}
	if err := h.recount(); err != nil {
		return err
	}
	var sockets []string
	for _, d := range devices(p.Args) {
		if d.server {
			if h.listener(clean(d.path)) != nil || h.exists(d.path) {
				if err := log(fmt.Sprintf("virtio_user_start_server(): failed to bind to %s: Address already in use\nEAL: Error - exiting with code: 1\n", d.path)); err != nil {
					return err
				}
				return h.end(p, 1)
			}
			sockets = append(sockets, d.path)
		}
	}
	if !slices.Contains(p.Args, "--no-telemetry") {
		sockets = append(sockets, telemetrySocket(p.Args))
	}
	for _, s := range sockets {
		p.Sockets = append(p.Sockets, clean(s))
		if err := h.put(s, ""); err != nil {
			return err
		}
	}
	return h.settle() // the switch sees its peer, and this one goes on
}

// proceed lets a testpmd come up as soon as the switch has connected to each of its sockets: until then it waits in the driver's probe.
func (h *host) proceed(p *process) error {
	if p.Data["ready"] != "" {
		return nil
	}
	for _, d := range devices(p.Args) {
		if d.server && !h.switchAt(d.path) {
			if p.Data["waits at"] == d.path {
				return nil
			}
			p.Data["waits at"] = d.path
			return h.appendTo(p.Dir+"/log", fmt.Sprintf("virtio_user_start_server(): (%s) waiting for client connection...\n", d.path))
		}
	}
	p.Data["ready"] = "true"
	text := "testpmd: create a new mbuf pool <mb_pool_0>: n=8192, size=2176, socket=0\n"
	for i, d := range devices(p.Args) {
		text += fmt.Sprintf("Configuring Port %d (socket 0)\n", i)
		if d.path != "" && !slices.Contains(p.Args, "--single-file-segments") && p.memory() > 16 {
			// Each page of 2 MB is a region then, and vhost-user carries 8.
			text += fmt.Sprintf("update_memory_region(): Too many memory regions\nvirtio_user_start_device(): (%s) Failed to start device\nFail to start port %d: Operation not permitted\n", d.path, i)
			p.Data["broken"] = "true"
		}
		text += fmt.Sprintf("Port %d: 52:54:00:00:00:%02X\n", i, i+1)
	}
	if h.settings.Testpmd != "" {
		text += strings.TrimSuffix(h.settings.Testpmd, "\n") + "\n"
	}
	return h.appendTo(p.Dir+"/log", text+"Checking link statuses...\nDone\ntestpmd> ")
}

// memory is what a process holds, in MB.
func (p *process) memory() int {
	mb := 0
	for _, n := range p.Pages {
		mb += 2 * n
	}
	return mb
}

// testpmdOnce is dpdk-testpmd --version.
func testpmdOnce(_ *host, r *run) int {
	for _, a := range r.args[1:] {
		if a == "--version" || a == "-v" {
			r.printf("EAL: RTE Version: 'DPDK 22.11.11'\n")
			return 0
		}
	}
	return r.fail(1, "dpdk-testpmd: the fake host runs it only through Start")
}

// telemetrySocket is where DPDK's telemetry listens (DPDK 22.11, lib/telemetry; the runtime folder is root's).
func telemetrySocket(args []string) string {
	prefix := option(args, "--file-prefix")
	if prefix == "" {
		prefix = "rte"
	}
	return "/var/run/dpdk/" + prefix + "/dpdk_telemetry.v2"
}

// telemetry serves the socket: a greeting, then an answer to each message. No frame ever comes.
func (c *Conn) telemetry(conn net.Conn, pid int) {
	defer conn.Close()
	send := func(v any) bool {
		b, err := json.Marshal(v)
		if err == nil {
			_, err = conn.Write(b)
		}
		return err == nil
	}
	if !send(map[string]any{"version": "DPDK 22.11.11", "pid": pid, "max_output_len": 16384}) {
		return
	}
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		name, arg, _ := strings.Cut(string(buf[:n]), ",")
		var answer any
		err = c.locked(func(h *host) error {
			p := h.state.Procs[pid]
			if p == nil {
				return fmt.Errorf("process %d has ended", pid)
			}
			answer = telemetryAnswer(p, name, arg)
			return nil
		})
		if err != nil || !send(map[string]any{name: answer}) {
			return
		}
	}
}

func telemetryAnswer(p *process, name, arg string) any {
	ports := len(devices(p.Args))
	port, err := strconv.Atoi(arg)
	if name == "/ethdev/list" {
		list := make([]int, ports)
		for i := range list {
			list[i] = i
		}
		return list
	}
	if err != nil || port < 0 || port >= ports {
		return nil
	}
	switch name {
	case "/ethdev/stats":
		stats := map[string]any{}
		for _, k := range []string{"ipackets", "opackets", "ibytes", "obytes", "imissed", "ierrors", "oerrors", "rx_nombuf"} {
			stats[k] = 0
		}
		return stats
	case "/ethdev/xstats":
		return map[string]any{"rx_good_packets": 0, "tx_good_packets": 0, "rx_missed_errors": 0, "rx_errors": 0, "tx_errors": 0}
	case "/ethdev/link_status":
		return map[string]any{"status": "UP", "speed": 4294967295, "duplex": "full-duplex"}
	case "/ethdev/info":
		started := 1
		if p.Data["broken"] != "" {
			started = 0
		}
		return map[string]any{"name": "net_virtio_user" + arg, "state": 1, "nb_rx_queues": 1, "nb_tx_queues": 1, "port_id": port, "mtu": 1500,
			"mac_addr": fmt.Sprintf("52:54:00:00:00:%02X", port+1), "promiscuous": 0, "dev_started": started}
	}
	return nil
}

// dd is dd of=FIFO: a line for the console of a process.
func dd(h *host, r *run) int {
	to := option(r.args, "of")
	if to == "" || option(r.args, "if") != "" {
		return r.fail(1, "dd: the fake host writes only its input to a console")
	}
	for _, p := range h.state.Procs {
		if p.Dir == "" || clean(p.Dir+"/stdin") != clean(to) {
			continue
		}
		for line := range strings.Lines(string(r.stdin)) {
			if err := h.console(p, strings.TrimSpace(line)); err != nil {
				return r.fail(1, "dd: %v", err)
			}
		}
		return 0
	}
	if !h.exists(path.Dir(to)) || !h.exists(to) {
		return r.fail(1, "dd: failed to open '%s': No such file or directory", to)
	}
	return r.fail(1, "dd: failed to open '%s': No such device or address", to)
}

// console is what testpmd does with a line.
func (h *host) console(p *process, line string) error {
	answer := ""
	switch verb, _, _ := strings.Cut(line, " "); verb {
	case "quit":
		if err := h.appendTo(p.Dir+"/log", line+"\n\nBye...\n"); err != nil {
			return err
		}
		return h.end(p, 0)
	case "start", "stop", "set", "clear", "port", "show":
		if line == "show fwd stats all" {
			answer = "\n  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++\n" +
				"  RX-packets: 0              RX-dropped: 0             RX-total: 0\n  TX-packets: 0              TX-dropped: 0             TX-total: 0\n" +
				"  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++\n"
		}
	default:
		answer = "Command not found\n"
	}
	return h.appendTo(p.Dir+"/log", line+"\n"+answer+"testpmd> ")
}
