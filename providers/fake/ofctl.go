package fake

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"plumb/providers/internal/openflow"
	"plumb/providers/internal/ovsdb"
)

// The flows of a bridge are a file of the host's folder, one a line; they live as long as ovs-vswitchd does.

func (c *Conn) flowDir() string { return filepath.Join(c.dir, "flows") }

func (h *host) flowFile(bridge string) string {
	return filepath.Join(h.flowDir(), filepath.Base(bridge))
}

func (h *host) flows(bridge string) (openflow.Set, error) {
	b, err := os.ReadFile(h.flowFile(bridge))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return openflow.NewParser(nil).ParseDump(string(b), nil)
}

func (h *host) putFlows(bridge string, flows openflow.Set) error {
	if err := os.MkdirAll(h.flowDir(), 0o755); err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range flows.Sorted() {
		b.WriteString(f.String() + "\n")
	}
	return replace(h.flowFile(bridge), []byte(b.String()), 0o644)
}

// firstFlows is what a bridge starts with.
func (h *host) firstFlows(b bridge) error {
	if _, err := os.Stat(h.flowFile(b.name)); err == nil {
		return nil
	}
	set := openflow.Set{}
	if ovsdb.String(b.row["fail_mode"]) != "secure" {
		f, err := openflow.NewParser(nil).Parse("priority=0 actions=NORMAL")
		if err != nil {
			return err
		}
		set[f.Key] = f
	}
	return h.putFlows(b.name, set)
}

// forgetFlows drops the flows of bridges that are gone.
func (h *host) forgetFlows(bridges map[string]ovsdb.Row) error {
	entries, err := os.ReadDir(h.flowDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var names []string
	for _, b := range bridges {
		names = append(names, ovsdb.String(b["name"]))
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			if err := os.Remove(h.flowFile(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofctl is ovs-ofctl [-O VERSION] [--bundle] [--no-stats] [--no-names] COMMAND BRIDGE [FLOWS].
func ofctl(h *host, r *run) int {
	var words []string
	version := "OpenFlow10"
	for i := 1; i < len(r.args); i++ {
		switch a := r.args[i]; {
		case a == "-O" && i+1 < len(r.args):
			i++
			version = r.args[i]
		case strings.HasPrefix(a, "--"):
		default:
			words = append(words, a)
		}
	}
	if len(words) < 2 {
		return r.fail(1, "ovs-ofctl: missing command name or bridge; use --help for help")
	}
	command, name := words[0], words[1]
	ports, row, up := h.ports(name)
	if !up {
		return r.fail(1, "ovs-ofctl: %s is not a bridge or a socket", name)
	}
	protocols := ovsdb.Strings(row["protocols"])
	for v := range strings.SplitSeq(version, ",") {
		if len(protocols) > 0 && !slices.Contains(protocols, v) {
			return r.fail(1, "ovs-ofctl: %s: failed to connect to socket (Protocol error)", name)
		}
	}
	have, err := h.flows(name)
	if err != nil {
		return r.fail(1, "ovs-ofctl: %v", err)
	}
	switch command {
	case "dump-flows":
		for _, f := range have.Sorted() {
			if len(words) > 2 && strings.HasPrefix(words[2], "cookie=") && !strings.Contains(words[2], fmt.Sprintf("cookie=0x%x/", f.Cookie)) {
				continue
			}
			r.printf(" %s\n", f)
		}
		return 0
	case "dump-ports":
		return dumpPorts(r, ports, name, version)
	case "show":
		r.printf("OFPT_FEATURES_REPLY (xid=0x2): dpid:%s\n", ovsdb.String(row["datapath_id"]))
		for p, n := range ports {
			r.printf(" %d(%s): addr:00:00:00:00:00:00\n", n, p)
		}
		return 0
	case "del-flows":
		if len(words) == 2 {
			return h.flowStatus(r, name, openflow.Set{})
		}
		p := openflow.NewParser(ports)
		for _, f := range have {
			if cookie, ok := strings.CutPrefix(words[2], "cookie="); ok {
				want, _, _ := strings.Cut(cookie, "/")
				if n, err := strconv.ParseUint(want, 0, 64); err == nil && f.Cookie == n {
					delete(have, f.Key)
				}
			} else if one, err := p.Parse(words[2] + " actions=drop"); err != nil {
				return r.fail(1, "ovs-ofctl: %v", err)
			} else if one.Match == "" || one.Match == f.Match {
				delete(have, f.Key)
			}
		}
		return h.flowStatus(r, name, have)
	case "replace-flows", "add-flows", "add-flow", "diff-flows":
		return h.setFlows(r, command, name, words[2:], ports, have)
	}
	return r.fail(1, "ovs-ofctl: unknown command '%s'; use --help for help", command)
}

func (h *host) flowStatus(r *run, name string, flows openflow.Set) int {
	if err := h.putFlows(name, flows); err != nil {
		return r.fail(1, "ovs-ofctl: %v", err)
	}
	return 0
}

// setFlows takes flows as one bundle: one that cannot be read leaves all as it was.
func (h *host) setFlows(r *run, command, name string, args []string, ports openflow.Ports, have openflow.Set) int {
	if len(args) != 1 {
		return r.fail(1, "ovs-ofctl: '%s' command requires 2 arguments", command)
	}
	text := string(r.stdin)
	switch {
	case command == "add-flow":
		text = args[0]
	case args[0] != "-":
		text = h.get(args[0])
	}
	next := openflow.Set{}
	if command == "add-flows" || command == "add-flow" {
		next = have
	}
	p := openflow.NewParser(ports)
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		verb := "add"
		for _, v := range []string{"add", "delete_strict", "delete", "modify_strict", "modify"} {
			if rest, ok := strings.CutPrefix(line, v+" "); ok && !strings.Contains(strings.SplitN(line, "actions", 2)[0], v+"=") {
				verb, line = v, rest
				break
			}
		}
		deletes := strings.HasPrefix(verb, "delete")
		if deletes {
			line += " actions=drop"
		}
		f, err := p.Parse(line)
		if err == nil {
			for _, ref := range openflow.PortRefs(line) {
				if _, known := ports[ref]; !known && !reserved(ref) {
					err = fmt.Errorf("%s: invalid or unknown port for in_port or output", ref)
				}
			}
		}
		if err != nil {
			return r.fail(1, "ovs-ofctl: %s:%d: %v", args[0], number, err)
		}
		if deletes {
			delete(next, f.Key)
		} else {
			next[f.Key] = f
		}
	}
	if command == "diff-flows" {
		missing, extra := openflow.Diff(next, have)
		for _, f := range extra {
			r.printf("-%s\n", f)
		}
		for _, f := range missing {
			r.printf("+%s\n", f)
		}
		if len(missing)+len(extra) > 0 {
			return 2
		}
		return 0
	}
	return h.flowStatus(r, name, next)
}

// reserved are port names of OpenFlow itself, and numbers.
func reserved(ref string) bool {
	if _, err := strconv.ParseUint(ref, 0, 32); err == nil {
		return true
	}
	return slices.Contains([]string{"in_port", "normal", "flood", "all", "controller", "local", "table", "none", "any", "drop"}, strings.ToLower(ref))
}

func dumpPorts(r *run, ports openflow.Ports, bridge, version string) int {
	r.printf("OFPST_PORT reply (OF1.%s) (xid=0x2): %d ports\n", strings.TrimPrefix(version, "OpenFlow1"), len(ports))
	for name, n := range ports {
		number := strconv.Itoa(n)
		if name == bridge {
			number = "LOCAL"
		}
		r.printf("  port %2s: rx pkts=0, bytes=0, drop=0, errs=0, frame=?, over=?, crc=?\n           tx pkts=0, bytes=0, drop=0, errs=0, coll=?\n           duration=1.000s\n", number)
	}
	return 0
}
