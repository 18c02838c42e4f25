package fake

import (
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
	for _, s := range vdevPaths(p.Args) {
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
