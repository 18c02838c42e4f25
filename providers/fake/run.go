package fake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"plumb/providers"
)

// run is one command while it runs.
type run struct {
	args, env []string
	stdin     []byte
	stdout    bytes.Buffer
	stderr    bytes.Buffer
}

func (r *run) printf(format string, args ...any) { fmt.Fprintf(&r.stdout, format, args...) }

// fail prints an error and returns the status.
func (r *run) fail(status int, format string, args ...any) int {
	fmt.Fprintf(&r.stderr, format+"\n", args...)
	return status
}

// program is a command: it returns its exit status.
type program func(h *host, r *run) int

func programs() map[string]program {
	all := map[string]program{
		"cat": cat, "true": func(*host, *run) int { return 0 }, "false": func(*host, *run) int { return 1 }, "printenv": printenv,
		"id": id, "uname": uname, "hostname": hostname, "test": test, "which": which, "kill": (*host).kill, "sync": func(*host, *run) int { return 0 },
		"mkdir": mkdir, "rm": rm, "rmdir": rmdir, "readlink": readlink, "ls": ls, "mountpoint": mountpoint, "touch": touch, "mkfifo": touch,
		"mount": mount, "umount": umount, "tail": tail, "find": find, "dd": dd, "cp": cp, "mv": mv, "pgrep": pgrep,
		"update-alternatives": alternatives, "ovsdb-tool": ovsdbTool, "ovsdb-server": ovsdbServer, "ovs-vswitchd": vswitchd, "ovs-vswitchd-dpdk": vswitchd,
		"ovs-ofctl": ofctl, "ovs-vsctl": vsctl, "ovs-appctl": appctl, "dpdk-testpmd": testpmdOnce, "stress-ng": stressOnce, "sh": sh,
	}
	maps.Copy(all, settingsPrograms())
	maps.Copy(all, nicPrograms())
	maps.Copy(all, bootPrograms())
	maps.Copy(all, loaderPrograms())
	maps.Copy(all, networkPrograms())
	return all
}

// scripts are what Plumb runs as sh -c SCRIPT NAME ARGS..., by NAME. They get NAME and ARGS.
func scripts() map[string]program {
	all := settingsScripts()
	maps.Copy(all, factsScripts())
	maps.Copy(all, nicScripts())
	maps.Copy(all, snapshotScripts())
	maps.Copy(all, networkScripts())
	return all
}

func sh(h *host, r *run) int {
	if len(r.args) < 4 || r.args[1] != "-c" || scripts()[r.args[3]] == nil {
		h.unknown(r.args)
		return r.fail(127, "sh: the fake host does not know this script")
	}
	name := r.args[3]
	r.args = r.args[3:]
	return scripts()[name](h, r)
}

// Run runs a command of the host.
func (c *Conn) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	if len(cmd.Args) == 0 {
		return providers.Result{}, errors.New("run: no command")
	}
	if err := c.begin(ctx, "Run", strings.Join(cmd.Args, " ")); err != nil {
		return providers.Result{}, err
	}
	limit := cmd.Timeout
	if limit == 0 {
		limit = 60 * time.Second
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := &run{args: cmd.Args, env: cmd.Env, stdin: cmd.Stdin}
	status, err := c.dispatch(limited, r)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not done within %s, killed: %w", limit, err)
	}
	res := providers.Result{Stdout: r.stdout.Bytes(), Stderr: r.stderr.Bytes(), Exit: status}
	if err != nil {
		return res, fmt.Errorf("%s on the fake host: %w", cmd.Args[0], err)
	}
	if status != 0 {
		return res, &providers.ExitError{Host: "the fake host", Args: cmd.Args, Result: res}
	}
	return res, nil
}

func (c *Conn) dispatch(ctx context.Context, r *run) (status int, err error) {
	switch {
	case path.Base(r.args[0]) == "sleep":
		<-ctx.Done()
		return 0, ctx.Err()
	case path.Base(r.args[0]) == "tail" && len(r.args) > 1 && strings.HasPrefix(r.args[1], "--pid="):
		return 0, c.awaitEnd(ctx, strings.TrimPrefix(r.args[1], "--pid="))
	}
	err = c.locked(func(h *host) error {
		name := path.Base(r.args[0])
		p := programs()[name]
		if p == nil || !h.installed(name) {
			if p == nil {
				h.unknown(r.args)
			}
			status = r.fail(127, "%s: not found", r.args[0])
			return nil
		}
		status = p(h, r)
		return nil
	})
	return status, err
}

// installed says whether the package of a program is there.
func (h *host) installed(name string) bool {
	switch {
	case name == "dpdk-testpmd" || name == "ovs-vswitchd-dpdk":
		return !h.settings.NoDPDK
	case strings.HasPrefix(name, "ovs"):
		return !h.settings.NoOVS
	case name == "stress-ng":
		return !h.settings.NoStress
	}
	return true
}

func (h *host) unknown(args []string) {
	line := strings.Join(args, " ")
	if !slices.Contains(h.state.Unknown, line) {
		h.state.Unknown = append(h.state.Unknown, line)
	}
}

// awaitEnd waits until a process has ended, which another goroutine or process brings about.
func (c *Conn) awaitEnd(ctx context.Context, pid string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(c.real("/proc/"+pid, false)); err != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
