package fake

import (
	"encoding/json"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
)

// vdevPaths are the sockets of the virtio-user and vhost devices of a testpmd.
func vdevPaths(args []string) []string {
	var out []string
	for i, a := range args {
		v, ok := strings.CutPrefix(a, "--vdev=")
		if !ok && a == "--vdev" && i+1 < len(args) {
			v, ok = args[i+1], true
		}
		if !ok {
			continue
		}
		for _, part := range strings.Split(v, ",") {
			if p, ok := strings.CutPrefix(part, "path="); ok {
				out = append(out, p)
			} else if p, ok := strings.CutPrefix(part, "iface="); ok {
				out = append(out, p)
			}
		}
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
	mb, _ := strconv.Atoi(option(p.Args, "-m"))
	for _, s := range strings.Split(option(p.Args, "--socket-mem"), ",") {
		n, _ := strconv.Atoi(s)
		mb += n
	}
	if mb > 0 {
		if free, ok := h.take(p, -1, mb); !ok {
			if err := log("EAL: Not enough memory available! Requested: " + strconv.Itoa(mb) + "MB, available: " + strconv.Itoa(free) + "MB\nEAL: FATAL: Cannot init memory\nEAL: Error - exiting with code: 1\n"); err != nil {
				return err
			}
			return h.end(p, 1)
		}
		if err := h.recount(); err != nil {
			return err
		}
	}
	text := "testpmd: create a new mbuf pool <mb_pool_0>: n=8192, size=2176, socket=0\n"
	for i := range vdevPaths(p.Args) {
		text += "Configuring Port " + strconv.Itoa(i) + " (socket 0)\nPort " + strconv.Itoa(i) + ": 52:54:00:00:00:0" + strconv.Itoa(i+1) + "\n"
	}
	if h.settings.Testpmd != "" {
		text += strings.TrimSuffix(h.settings.Testpmd, "\n") + "\n"
	}
	text += "Checking link statuses...\nDone\ntestpmd> "
	sockets := vdevPaths(p.Args)
	if !slices.Contains(p.Args, "--no-telemetry") {
		sockets = append(sockets, telemetrySocket(p.Args))
	}
	for _, s := range sockets {
		p.Sockets = append(p.Sockets, clean(s))
		if err := h.put(s, ""); err != nil {
			return err
		}
	}
	if err := log(text); err != nil {
		return err
	}
	return h.settle() // the switch sees its peer
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
	ports := len(vdevPaths(p.Args))
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
		return map[string]any{"name": "net_virtio_user" + arg, "state": 1, "nb_rx_queues": 1, "nb_tx_queues": 1, "port_id": port, "mtu": 1500,
			"mac_addr": fmt.Sprintf("52:54:00:00:00:%02X", port+1), "promiscuous": 0, "dev_started": 1}
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
	default:
		answer = "Command not found\n"
	}
	return h.appendTo(p.Dir+"/log", line+"\n"+answer+"testpmd> ")
}
