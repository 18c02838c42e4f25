package dpdk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"plumb/providers"
	"plumb/providers/internal/marked"
	"plumb/providers/internal/vhostsock"
)

// instance is the testpmd of one mark on one host.
type instance struct{ marked.Process }

func newInstance(h providers.Host, mark providers.Mark) *instance {
	return &instance{marked.Process{Conn: h.Conn(), Mark: mark, Dir: folder(mark.Testbed, mark.Address)}}
}

// running is what is known of a process of ours.
type running struct {
	pid  int
	argv []string
}

const (
	startLimit   = 90 * time.Second // to be ready; a busy machine with two cores has needed 10 s
	connectLimit = 45 * time.Second // for the switch to connect: ovs-vswitchd tries once a second
	quitLimit    = 15 * time.Second // after quit
)

// remains says that the folder of a process is there, whether or not the process is.
func (in *instance) remains(ctx context.Context) (bool, error) {
	files, err := in.Conn.ReadFiles(ctx, path.Join(in.Dir, "pid"), path.Join(in.Dir, "command"), path.Join(in.Dir, "exit"))
	return len(files) > 0, err
}

// find looks for the process: the pid of the folder, if that process has our mark. nil: there is none, or it has ended.
func (in *instance) find(ctx context.Context) (*running, error) {
	pid, err := in.Find(ctx)
	if err != nil || pid == 0 {
		return nil, err
	}
	name := fmt.Sprintf("/proc/%d/cmdline", pid)
	files, err := in.Conn.ReadFiles(ctx, name)
	if err != nil || len(files[name]) == 0 { // it has just ended
		return nil, err
	}
	return &running{pid: pid, argv: fields(files[name])}, nil
}

func fields(nulled []byte) []string {
	return strings.Split(strings.TrimSuffix(string(nulled), "\x00"), "\x00")
}

// start starts what s says and returns when its ports run. When that fails, it is ended and nothing of it is left.
func (in *instance) start(ctx context.Context, s spec, log func(string)) error {
	if err := errors.Join(in.Remove(ctx, 0), in.clear(ctx, s)); err != nil { // what a process that was killed left
		return err
	}
	for _, sock := range s.sockets() {
		if _, err := in.Conn.Run(ctx, providers.Cmd{Args: []string{"mkdir", "-p", path.Dir(sock)}}); err != nil {
			return fmt.Errorf("make the folder of a socket: %w", err)
		}
	}
	// stdbuf makes what testpmd prints reach its log line by line: into a file, the C library would keep 4 KB back.
	err := in.note(ctx, s)
	if err != nil {
		return err
	}
	err = in.Conn.Start(ctx, providers.Process{Dir: in.Dir, Args: append([]string{"stdbuf", "-oL"}, s.argv()...), Env: marked.Environment(in.Mark)})
	if err == nil {
		log("started dpdk-testpmd, its log is " + path.Join(in.Dir, "log"))
		err = in.awaitReady(ctx, s)
	}
	if err == nil {
		return nil
	}
	if undo := in.stop(context.WithoutCancel(ctx), s); undo != nil {
		err = errors.Join(err, fmt.Errorf("clean up: %w", undo))
	}
	return err
}

// note keeps the command line in the folder, so that whoever finds a process that has ended knows what it left.
func (in *instance) note(ctx context.Context, s spec) error {
	if _, err := in.Conn.Run(ctx, providers.Cmd{Args: []string{"mkdir", "-p", in.Dir}}); err != nil {
		return fmt.Errorf("make the folder of a process: %w", err)
	}
	return in.Conn.WriteFile(ctx, path.Join(in.Dir, "command"), []byte(strings.Join(s.argv(), "\x00")), 0o644)
}

// noted is what note has kept; nil without a folder.
func (in *instance) noted(ctx context.Context) ([]string, error) {
	name := path.Join(in.Dir, "command")
	files, err := in.Conn.ReadFiles(ctx, name)
	if err != nil || files[name] == nil {
		return nil, err
	}
	return fields(files[name]), nil
}

// clear removes what a testpmd that was killed left: its sockets, which DPDK does not reuse. A socket that somebody listens on is not ours.
func (in *instance) clear(ctx context.Context, s spec) error {
	heard, err := vhostsock.Listening(ctx, in.Conn)
	if err != nil {
		return err
	}
	var orphans []string
	for _, sock := range s.sockets() {
		if heard[sock] || heard[strings.Replace(sock, "/var/run/", "/run/", 1)] {
			return fmt.Errorf("socket %s: another process listens on it: %w. End that process or choose another path", sock, providers.ErrForeign)
		}
		orphans = append(orphans, sock)
	}
	return in.remove(ctx, append(orphans, path.Join(dpdkDir, s.prefix))...)
}

func (in *instance) remove(ctx context.Context, names ...string) error {
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" || n == dpdkDir })
	if len(names) == 0 {
		return nil
	}
	if _, err := in.Conn.Run(ctx, providers.Cmd{Args: append([]string{"rm", "-rf", "--"}, names...)}); err != nil {
		return fmt.Errorf("remove what is left of testpmd: %w", err)
	}
	return nil
}

// awaitReady waits for the console's prompt and then asks whether the ports really run: testpmd goes on without those that could not be started.
func (in *instance) awaitReady(ctx context.Context, s spec) error {
	began := time.Now()
	var text string
	err := marked.Poll(ctx, startLimit, func() (bool, error) {
		var exited bool
		var err error
		if text, exited, err = in.Log(ctx); err != nil {
			return false, err
		}
		if why := failure(text); why != "" || exited {
			return false, startError(why, text)
		}
		if sock := waitingFor(text); sock != "" && time.Since(began) > connectLimit {
			return false, fmt.Errorf("nothing connected to vhost-user socket %s within %s. Is there a port of the switch with that path (ovs_port of type dpdkvhostuserclient, vhost_server_path), and does ovs-vswitchd run with DPDK?", sock, connectLimit)
		}
		return atPrompt(text), nil
	})
	if errors.Is(err, marked.ErrLimit) {
		return startError(fmt.Sprintf("not ready within %s", startLimit), text)
	}
	if err != nil {
		return err
	}
	return in.checkPorts(ctx, s, text)
}

func (in *instance) checkPorts(ctx context.Context, s spec, text string) error {
	t, err := dialTelemetry(ctx, in.Conn, s.prefix)
	if err != nil {
		return startError(err.Error(), text)
	}
	defer t.close()
	ids, err := t.ports(ctx)
	if err != nil {
		return startError(err.Error(), text)
	}
	if len(ids) != len(s.ports) {
		return startError(fmt.Sprintf("it has %d of %d ports", len(ids), len(s.ports)), text)
	}
	for _, id := range ids {
		started, err := t.started(ctx, id)
		if err != nil {
			return startError(err.Error(), text)
		}
		if !started {
			return startError(fmt.Sprintf("port %d was not started", id), text)
		}
	}
	return nil
}

const prompt = "testpmd> "

func atPrompt(log string) bool { return strings.Contains(log, prompt) }

// failure is the first line of a log that says that EAL or a port did not come up.
func failure(log string) string {
	// From DPDK 22.11: lib/eal, drivers/net/virtio/virtio_user, app/test-pmd/testpmd.c.
	bad := regexp.MustCompile(`Too many memory regions|Failed to start device|Fail(ed)? to start port|Start ports failed|Fail to configure port|Not enough memory available|` +
		`Cannot init|Cannot get hugepage|Creation of mbuf pool|No probed ethernet devices|[Ff]ailed to initialize|backend set up fails|failed to bind to|EAL: Error|EAL: FATAL|PANIC|` +
		`Invalid [a-z]+ forwarding mode|unrecognized option|unknown option|bad arguments|exceeds|Failed to prepare memory|lcore \d+ unavailable|cannot attach`)
	for line := range strings.Lines(log) {
		if bad.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// waitingFor is the socket that virtio-user waits at for its switch; "" when it waits at none.
func waitingFor(log string) string {
	last := strings.TrimSpace(log[strings.LastIndexByte(strings.TrimSpace(log), '\n')+1:])
	if m := regexp.MustCompile(`\((\S+)\) waiting for client connection`).FindStringSubmatch(last); m != nil {
		return m[1]
	}
	return ""
}

func startError(why, log string) error {
	if why == "" {
		why = "it ended"
	}
	return fmt.Errorf("dpdk-testpmd did not start: %s. The last lines of its log:\n%s", why, lastLines(log, 8))
}

func lastLines(s string, n int) string {
	l := strings.Split(strings.TrimSpace(s), "\n")
	return "  " + strings.Join(l[max(0, len(l)-n):], "\n  ")
}
