package fake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"plumb/providers"
)

// process is a process that runs on the host.
type process struct {
	PID     int               `json:"pid"`
	Args    []string          `json:"args"`
	Env     []string          `json:"env"`
	Dir     string            `json:"dir,omitempty"`     // of providers.Process
	Comm    string            `json:"comm"`              // name of its program
	Sockets []string          `json:"sockets,omitempty"` // it listens on these
	Files   []string          `json:"files,omitempty"`   // it removes these when it ends well
	Pages   map[int]int       `json:"pages,omitempty"`   // of 2 MB, by NUMA node
	Data    map[string]string `json:"data,omitempty"`    // what its model wants to keep

	Children []int `json:"children,omitempty"` // which end with it, unless it is killed
}

func procStat(pid int, comm string) string { return childStat(pid, 1, pid, comm) }

func childStat(pid, parent, session int, comm string) string {
	return fmt.Sprintf("%d (%s) S %d %d %d 0 -1 4194560 100 0 0 0 1 1 0 0 20 0 1 0 %d 100000000 1000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		pid, comm, parent, session, session, 100+pid)
}

// spawn makes a process run.
func (h *host) spawn(args, env []string) (*process, error) {
	h.state.NextPID++
	comm := path.Base(args[0])
	p := &process{PID: h.state.NextPID, Args: args, Env: env, Comm: comm[:min(len(comm), 15)], Data: map[string]string{}}
	h.state.Procs[p.PID] = p
	dir := fmt.Sprintf("/proc/%d/", p.PID)
	for name, text := range map[string]string{
		"cmdline":                          strings.Join(args, "\x00") + "\x00",
		"environ":                          strings.Join(append([]string{"PATH=/usr/sbin:/usr/bin"}, env...), "\x00") + "\x00",
		"comm":                             p.Comm + "\n",
		"stat":                             procStat(p.PID, p.Comm),
		"status":                           fmt.Sprintf("Name:\t%s\nState:\tS (sleeping)\nPid:\t%d\nPPid:\t1\nCpus_allowed_list:\t0-%d\n", p.Comm, p.PID, nodes*cpusPerNode-1),
		fmt.Sprintf("task/%d/comm", p.PID): p.Comm + "\n",
		fmt.Sprintf("task/%d/stat", p.PID): procStat(p.PID, p.Comm),
	} {
		if err := h.put(dir+name, text); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// end makes a process end. A signal that cannot be caught leaves its files behind.
func (h *host) end(p *process, status int) error {
	delete(h.state.Procs, p.PID)
	if err := os.RemoveAll(h.real(fmt.Sprintf("/proc/%d", p.PID), false)); err != nil {
		return err
	}
	if status != 128+9 {
		for _, c := range p.Children {
			if child := h.state.Procs[c]; child != nil {
				if err := h.end(child, status); err != nil {
					return err
				}
			}
		}
		for _, f := range append(slices.Clone(p.Sockets), p.Files...) {
			if err := os.Remove(h.real(f, false)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if p.Dir != "" && h.exists(p.Dir) {
		if err := h.put(p.Dir+"/exit", strconv.Itoa(status)+"\n"); err != nil {
			return err
		}
	}
	if err := h.recount(); err != nil {
		return err
	}
	return h.settle()
}

// Start starts a supervised process. Known programs have models; sleep and any other known command just runs on.
func (c *Conn) Start(ctx context.Context, p providers.Process) error {
	detail := ""
	if len(p.Args) > 0 {
		detail = strings.Join(p.Args, " ")
	}
	if err := c.begin(ctx, "Start", detail); err != nil {
		return err
	}
	if !path.IsAbs(p.Dir) {
		return fmt.Errorf("start a process in %q: the folder must be an absolute path", p.Dir)
	}
	if len(p.Args) == 0 {
		return fmt.Errorf("start a process in %s: no command", p.Dir)
	}
	return c.locked(func(h *host) error {
		if old := strings.TrimSpace(h.get(p.Dir + "/pid")); old != "" && !h.exists(p.Dir+"/exit") {
			pid, _ := strconv.Atoi(old)
			if h.state.Procs[pid] != nil {
				return fmt.Errorf("start %s on the fake host: %s holds a live process, %d", p.Args[0], p.Dir, pid)
			}
		}
		for _, f := range []string{"pid", "exit"} {
			if err := os.Remove(h.real(p.Dir+"/"+f, false)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		args := p.Args
		if path.Base(args[0]) == "stdbuf" && len(args) > 2 { // it becomes what it runs
			args = args[2:]
		}
		proc, err := h.spawn(args, p.Env)
		if err != nil {
			return err
		}
		proc.Dir = clean(p.Dir)
		for name, text := range map[string]string{"pid": strconv.Itoa(proc.PID) + "\n", "log": "", "stdin": ""} {
			if err := h.put(p.Dir+"/"+name, text); err != nil {
				return err
			}
		}
		switch name := path.Base(args[0]); {
		case name == "sleep":
			return nil
		case name == "dpdk-testpmd" && !h.settings.NoDPDK:
			return h.startTestpmd(proc)
		case name == "stress-ng" && !h.settings.NoStress:
			return h.startStress(proc)
		default:
			if programs()[name] == nil {
				h.unknown(p.Args)
			}
			if err := h.appendTo(p.Dir+"/log", args[0]+": not found\n"); err != nil {
				return err
			}
			return h.end(proc, 127)
		}
	})
}

// byComm lists processes of a program in the order of their pids.
func (h *host) byComm(comm string) []*process {
	var out []*process
	for _, pid := range slices.Sorted(maps.Keys(h.state.Procs)) {
		if h.state.Procs[pid].Comm == comm {
			out = append(out, h.state.Procs[pid])
		}
	}
	return out
}

func signals() map[string]int {
	return map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10, "USR2": 12, "TERM": 15, "CONT": 18, "STOP": 19}
}

// kill is kill(1).
func (h *host) kill(r *run) int {
	sig, args := 15, r.args[1:]
	if len(args) > 1 && (args[0] == "-s" || args[0] == "-n") {
		args = append([]string{"-" + args[1]}, args[2:]...)
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		name := strings.TrimPrefix(strings.TrimPrefix(args[0], "-"), "SIG")
		n, err := strconv.Atoi(name)
		if err != nil {
			var known bool
			if n, known = signals()[name]; !known {
				return r.fail(1, "kill: unknown signal %s", args[0])
			}
		}
		sig, args = n, args[1:]
	}
	status := 0
	for _, a := range args {
		if a == "--" {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimPrefix(a, "-"))
		p := h.state.Procs[pid]
		switch {
		case err != nil:
			return r.fail(1, "kill: illegal pid %s", a)
		case p == nil:
			status = r.fail(1, "kill: (%s): No such process", a)
		case sig == 0:
		case sig == 9 || sig == 15 || sig == 2 || sig == 1 || sig == 3:
			if err := h.end(p, statusOf(p, sig)); err != nil {
				return r.fail(1, "kill: %v", err)
			}
		}
	}
	return status
}

// statusOf is the exit status that a signal makes: the daemons catch the polite ones and leave with 0; testpmd cleans up and then lets the
// signal end it.
func statusOf(p *process, sig int) int {
	if sig != 9 && strings.HasPrefix(p.Comm, "ovs") {
		return 0
	}
	return 128 + sig
}
