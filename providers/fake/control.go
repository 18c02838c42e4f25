package fake

import (
	"encoding/json"
	"fmt"
	"net"
	"path"
	"strings"

	"plumb/providers/internal/jsonrpc"
)

// control serves a daemon's control socket.
func (c *Conn) control(conn net.Conn, pid int) {
	jsonrpc.Serve(conn, func(p *jsonrpc.Peer, method string, params json.RawMessage, reply func(result, fault any)) {
		var args []string
		if err := json.Unmarshal(params, &args); err != nil {
			reply(nil, "the arguments are not strings")
			return
		}
		var out, fault string
		err := c.locked(func(h *host) error {
			proc := h.state.Procs[pid]
			if proc == nil {
				p.Close()
				return fmt.Errorf("process %d has ended", pid)
			}
			out, fault = h.command(proc, method, args)
			return nil
		})
		switch {
		case err != nil:
			reply(nil, err.Error())
		case fault != "":
			reply(nil, fault+"\n")
		default:
			reply(out, nil)
		}
		if method == "exit" {
			p.Close()
		}
	})
}

// command runs a command of ovs-appctl.
func (h *host) command(p *process, name string, args []string) (out, fault string) {
	switch name {
	case "exit":
		if err := h.end(p, 0); err != nil {
			return "", err.Error()
		}
		return "", ""
	case "version":
		return p.Comm + " (Open vSwitch) 3.1.0\n", ""
	}
	if p.Comm == "ovs-vswitchd" {
		if out, ok := h.switchCommand(p, name, args); ok {
			return out, ""
		}
	}
	return "", fmt.Sprintf(`"%s" is not a valid command (use "list-commands" to see a list of valid commands)`, name)
}

// appctl is ovs-appctl [-t TARGET] COMMAND.
func appctl(h *host, r *run) int {
	target, args := "ovs-vswitchd", r.args[1:]
	if len(args) > 1 && (args[0] == "-t" || args[0] == "--target") {
		target, args = args[1], args[2:]
	}
	if len(args) == 0 {
		return r.fail(1, "ovs-appctl: at least one non-option argument is required")
	}
	var p *process
	if path.IsAbs(target) {
		p = h.listener(clean(target))
	} else if all := h.byComm(target); len(all) > 0 {
		p = all[0]
	}
	if p == nil {
		return r.fail(1, "ovs-appctl: cannot read pidfile \"%s/%s.pid\" (No such file or directory)", runDir, target)
	}
	out, fault := h.command(p, args[0], args[1:])
	if fault != "" {
		return r.fail(2, "%s\novs-appctl: %s: server returned an error", fault, target)
	}
	r.printf("%s", out)
	if out != "" && !strings.HasSuffix(out, "\n") {
		r.printf("\n")
	}
	return 0
}
