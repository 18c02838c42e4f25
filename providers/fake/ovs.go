package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"plumb/providers/internal/ovsdb"
	"plumb/providers/internal/ovsdb/ovsdbtest"
)

const runDir = "/run/openvswitch"

// chosen is the build that /usr/sbin/ovs-vswitchd is now.
func (h *host) chosen() string {
	if h.state.Alternative != "" {
		return h.state.Alternative
	}
	return plainOVS
}

// alternatives is update-alternatives for the one group ovs-vswitchd.
func alternatives(h *host, r *run) int {
	if len(r.args) < 3 || r.args[2] != "ovs-vswitchd" || h.settings.NoOVS {
		return r.fail(2, "update-alternatives: error: no alternatives for %s", r.args[len(r.args)-1])
	}
	switch r.args[1] {
	case "--query":
		status := "manual"
		if h.state.Alternative == "" {
			status = "auto"
		}
		r.printf("Name: ovs-vswitchd\nLink: %s\nStatus: %s\nBest: %s\nValue: %s\n", linkedOVS, status, plainOVS, h.chosen())
		if !h.settings.NoDPDK {
			r.printf("\nAlternative: %s\nPriority: 50\n", dpdkOVS)
		}
		r.printf("\nAlternative: %s\nPriority: 100\n", plainOVS)
		return 0
	case "--set", "--auto":
		if h.settings.Unprivileged {
			return r.fail(2, "update-alternatives: error: unable to create file '/var/lib/dpkg/alternatives/ovs-vswitchd.dpkg-tmp': Permission denied")
		}
		choice := ""
		if r.args[1] == "--set" {
			choice = r.args[len(r.args)-1]
			if choice != plainOVS && (choice != dpdkOVS || h.settings.NoDPDK) {
				return r.fail(2, "update-alternatives: error: alternative %s for ovs-vswitchd not registered; not setting", choice)
			}
		}
		h.state.Alternative = choice
		if err := h.linkAlternative(); err != nil {
			return r.fail(2, "update-alternatives: error: %v", err)
		}
		return 0
	}
	return r.fail(2, "update-alternatives: error: unknown option '%s'", r.args[1])
}

// linkAlternative keeps the files that dpkg keeps.
func (h *host) linkAlternative() error {
	status := "manual"
	if h.state.Alternative == "" {
		status = "auto"
	}
	link := h.real("/etc/alternatives/ovs-vswitchd", false)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(h.chosen(), link); err != nil {
		return err
	}
	return h.put("/var/lib/dpkg/alternatives/ovs-vswitchd", status+"\n"+linkedOVS+"\n")
}

// ovsdbTool is ovsdb-tool create and query.
func ovsdbTool(h *host, r *run) int {
	switch {
	case len(r.args) == 4 && r.args[1] == "create":
		if !h.allowed(r, r.args[2]) {
			return 1
		}
		if !h.exists(r.args[3]) {
			return r.fail(1, "ovsdb-tool: I/O error: %s: open: No such file or directory", r.args[3])
		}
		if h.exists(r.args[2]) {
			return r.fail(1, "ovsdb-tool: I/O error: %s: create failed (File exists)", r.args[2])
		}
		if err := h.putDB(r.args[2], ovsdbtest.NewDatabase()); err != nil {
			return r.fail(1, "ovsdb-tool: I/O error: %s: %s", r.args[2], reason(err))
		}
		return 0
	case len(r.args) == 4 && r.args[1] == "query":
		db, err := h.getDB(r.args[2])
		if err != nil {
			return r.fail(1, "ovsdb-tool: %v", err)
		}
		var parts []json.RawMessage
		var ops []ovsdb.Op
		if err := json.Unmarshal([]byte(r.args[3]), &parts); err != nil || len(parts) == 0 {
			return r.fail(1, "ovsdb-tool: %v", err)
		}
		for _, p := range parts[1:] {
			var o ovsdb.Op
			if err := json.Unmarshal(p, &o); err != nil {
				return r.fail(1, "ovsdb-tool: %v", err)
			}
			ops = append(ops, o)
		}
		res, err := db.Transact(ops...)
		if err != nil {
			return r.fail(1, "ovsdb-tool: %v", err)
		}
		out := make([]any, len(res))
		for i, one := range res {
			rows := one.Rows
			if rows == nil {
				rows = []ovsdb.Row{}
			}
			out[i] = map[string]any{"rows": rows}
		}
		b, err := json.Marshal(out)
		if err != nil {
			return r.fail(1, "ovsdb-tool: %v", err)
		}
		r.printf("%s\n", b)
		return 0
	}
	return r.fail(1, "ovsdb-tool: the fake host knows only create DB SCHEMA and query DB TRANSACTION")
}

func (h *host) getDB(file string) (*ovsdbtest.Database, error) {
	b, err := os.ReadFile(h.real(file, true))
	if err != nil {
		return nil, fmt.Errorf("I/O error: %s: failed to read (%s)", file, reason(err))
	}
	db := ovsdbtest.NewDatabase()
	return db, json.Unmarshal(b, db)
}

func (h *host) putDB(file string, db *ovsdbtest.Database) error {
	b, err := json.Marshal(db)
	if err != nil {
		return err
	}
	return replace(h.real(file, true), b, 0o644)
}

// daemonArgs reads the options that both daemons have.
type daemonArgs struct {
	operand, remote, pidfile, log string
	detach                        bool
}

func readDaemonArgs(r *run, name string) daemonArgs {
	var a daemonArgs
	for _, arg := range r.args[1:] {
		key, val, _ := strings.Cut(arg, "=")
		switch key {
		case "--detach":
			a.detach = true
		case "--pidfile":
			a.pidfile = val
			if val == "" {
				a.pidfile = runDir + "/" + name + ".pid"
			}
		case "--log-file":
			a.log = val
			if val == "" {
				a.log = "/var/log/openvswitch/" + name + ".log"
			}
		case "--remote":
			if sock, ok := strings.CutPrefix(val, "punix:"); ok {
				a.remote = sock
			}
		default:
			if !strings.HasPrefix(arg, "-") {
				a.operand = arg
			}
		}
	}
	return a
}

// startDaemon makes a daemon run: process, pid file, log, control socket.
func (h *host) startDaemon(r *run, name string, a daemonArgs, sockets ...string) (*process, int) {
	if h.settings.Unprivileged {
		return nil, r.fail(1, "%s: could not open pidfile: Permission denied", name)
	}
	if !a.detach {
		return nil, r.fail(1, "%s: the fake host runs daemons only with --detach", name)
	}
	if h.get(a.pidfile) != "" && len(h.byComm(name)) > 0 {
		return nil, r.fail(1, "%s: %s: already running as pid %s, aborting", name, a.pidfile, strings.TrimSpace(h.get(a.pidfile)))
	}
	for _, f := range append([]string{a.pidfile, a.log}, sockets...) {
		if f != "" && !h.exists(path.Dir(f)) {
			return nil, r.fail(1, "%s: %s: open: No such file or directory", name, f)
		}
	}
	p, err := h.spawn(append([]string{name}, r.args[1:]...), r.env)
	if err != nil {
		return nil, r.fail(1, "%v", err)
	}
	p.Sockets = append(p.Sockets, fmt.Sprintf("%s/%s.%d.ctl", runDir, name, p.PID))
	for _, s := range sockets {
		p.Sockets = append(p.Sockets, clean(s))
	}
	for _, s := range p.Sockets {
		err = errors.Join(err, h.put(s, ""))
	}
	if a.pidfile != "" {
		p.Files = append(p.Files, clean(a.pidfile))
		err = errors.Join(err, h.put(a.pidfile, strconv.Itoa(p.PID)+"\n"))
	}
	p.Data["log"] = a.log
	err = errors.Join(err, h.log(p, "00001|vlog|INFO|opened log file %s", a.log))
	if err != nil {
		return nil, r.fail(1, "%s: %v", name, err)
	}
	return p, 0
}

func (h *host) log(p *process, format string, args ...any) error {
	if p.Data["log"] == "" {
		return nil
	}
	return h.appendTo(p.Data["log"], "2026-01-01T00:00:00.000Z|"+fmt.Sprintf(format, args...)+"\n")
}

func ovsdbServer(h *host, r *run) int {
	if len(r.args) == 2 && r.args[1] == "--version" {
		r.printf("ovsdb-server (Open vSwitch) 3.1.0\n")
		return 0
	}
	a := readDaemonArgs(r, "ovsdb-server")
	if _, err := h.getDB(a.operand); err != nil {
		return r.fail(1, "ovsdb-server: %v", err)
	}
	p, status := h.startDaemon(r, "ovsdb-server", a, a.remote)
	if p != nil {
		p.Data["db"] = h.resolve(a.operand, true)
		lock := path.Join(path.Dir(p.Data["db"]), "."+path.Base(p.Data["db"])+".~lock~")
		if err := h.put(lock, ""); err != nil { // stays when the server ends, as the real one's does
			return r.fail(1, "ovsdb-server: %v", err)
		}
	}
	return status
}

// vswitchd is both builds of ovs-vswitchd.
func vswitchd(h *host, r *run) int {
	withDPDK := strings.HasSuffix(r.args[0], "-dpdk") || h.chosen() == dpdkOVS && path.Base(r.args[0]) == "ovs-vswitchd" && r.args[0] != plainOVS
	if len(r.args) == 2 && r.args[1] == "--version" {
		r.printf("ovs-vswitchd (Open vSwitch) 3.1.0\n")
		if withDPDK {
			r.printf("DPDK 22.11.11\n")
		}
		return 0
	}
	a := readDaemonArgs(r, "ovs-vswitchd")
	p, status := h.startDaemon(r, "ovs-vswitchd", a)
	if p == nil {
		return status
	}
	server := h.listener(clean(strings.TrimPrefix(a.operand, "unix:")))
	if server == nil { // it waits for the database for ever; the fake one is not that patient
		_ = h.end(p, 1)
		return r.fail(1, "ovs-vswitchd: %s: database connection failed (No such file or directory)", a.operand)
	}
	p.Data["db"] = server.Data["db"]
	if withDPDK {
		p.Data["build"] = "dpdk"
	}
	if err := h.dropAllFlows(); err != nil {
		return r.fail(1, "ovs-vswitchd: %v", err)
	}
	if why := h.initDPDK(p); why != "" {
		_ = h.end(p, 134)
		return r.fail(1, "ovs-vswitchd: could not initiate process monitoring: %s", why)
	}
	if err := h.settle(); err != nil {
		return r.fail(1, "ovs-vswitchd: %v", err)
	}
	return 0
}

// listener is the process that listens on a socket.
func (h *host) listener(sock string) *process {
	for _, p := range h.state.Procs {
		for _, s := range p.Sockets {
			if s == sock {
				return p
			}
		}
	}
	return nil
}

func (h *host) dropAllFlows() error {
	err := os.RemoveAll(h.flowDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
