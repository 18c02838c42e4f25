package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"plumb/providers"
)

// Netns is a network namespace of a host, made by `ip netns add`: commands run in it by ip-netns(8), which gives them the namespace's /sys too. Files are read and written there,
// so that /sys/class/net and /proc/sys/net are the namespace's. Sockets of type unix are the host's: a namespace does not part them.
type Netns struct {
	parent providers.Conn
	ns     string
	label  string
	files  *files
}

var _ providers.Conn = (*Netns)(nil)

// NewNetns makes the connection. The parent is not closed with it.
func NewNetns(label, ns string, parent providers.Conn) *Netns {
	n := &Netns{parent: parent, ns: ns, label: label}
	n.files = &files{name: label, run: n.Run}
	return n
}

// ValidNetns says whether a name can be a namespace's: it is a file below /run/netns and a word of ip(8).
func ValidNetns(ns string) error {
	if ns == "" || ns == "." || ns == ".." || len(ns) > 255 || strings.ContainsAny(ns, "/ \t\n\x00") || ns[0] == '-' {
		return fmt.Errorf("%q cannot be the name of a network namespace", ns)
	}
	return nil
}

func (n *Netns) within(args []string) []string {
	return append([]string{"ip", "netns", "exec", n.ns}, args...)
}

// Run runs a command in the namespace. That the namespace is not there is an error of its own.
func (n *Netns) Run(ctx context.Context, cmd providers.Cmd) (providers.Result, error) {
	if len(cmd.Args) == 0 {
		return providers.Result{}, errors.New("run: no command")
	}
	inner := cmd
	inner.Args = n.within(cmd.Args)
	res, err := n.parent.Run(ctx, inner)
	var exit *providers.ExitError
	if !errors.As(err, &exit) {
		return res, err
	}
	switch text := string(res.Stderr); {
	case strings.HasPrefix(text, "Cannot open network namespace"):
		return res, fmt.Errorf("%s %w: there is no network namespace %s", n.label, providers.ErrUnreachable, n.ns)
	case strings.HasPrefix(text, "exec of "): // ip says it, with a status of its own
		res.Exit, res.Stderr = 127, []byte(cmd.Args[0]+": not found\n")
	}
	return res, &providers.ExitError{Host: n.label, Args: cmd.Args, Result: res}
}

// ReadFiles reads files as the namespace has them.
func (n *Netns) ReadFiles(ctx context.Context, patterns ...string) (map[string][]byte, error) {
	return n.files.read(ctx, patterns)
}

// WriteFile replaces a file, as the namespace has it.
func (n *Netns) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	return n.files.write(ctx, path, data, mode)
}

// Start starts a supervised process in the namespace.
func (n *Netns) Start(ctx context.Context, p providers.Process) error {
	cmd, err := startCommand(p)
	if err != nil {
		return err
	}
	_, err = n.Run(ctx, cmd)
	return startError(err, p)
}

// Dial connects to a socket. TCP is dialled within the namespace: on this machine by a thread that enters it, elsewhere by a process.
func (n *Netns) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if network != "tcp" {
		return n.parent.Dial(ctx, network, addr)
	}
	if _, err := netip.ParseAddrPort(addr); err != nil { // a name would be looked up outside
		return nil, fmt.Errorf("dial %s on %s: in a network namespace it has to be an IP address and a port", addr, n.label)
	}
	if !providers.ThisMachine(n.parent) {
		s, ok := n.parent.(relayer)
		if !ok {
			return nil, fmt.Errorf("dial %s on %s: its host cannot pass bytes on", addr, n.label)
		}
		return s.relay(ctx, network, addr, "ip", "netns", "exec", n.ns)
	}
	conn, err := dialIn(ctx, "/run/netns/"+n.ns, addr)
	if err != nil {
		return nil, fmt.Errorf("on %s: %w", n.label, err)
	}
	return conn, nil
}

// relayer can dial through a process on the host.
type relayer interface {
	relay(ctx context.Context, network, addr string, wrapper ...string) (net.Conn, error)
}

// dialIn dials from a namespace of this machine. The thread that enters it ends with the dial: it is never used for anything else.
func dialIn(ctx context.Context, ns, addr string) (net.Conn, error) {
	type answer struct {
		conn net.Conn
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the runtime ends the thread with the goroutine
		f, err := os.Open(ns)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if err != nil {
			answers <- answer{err: fmt.Errorf("enter %s: %w", ns, err)}
			return
		}
		d := net.Dialer{FallbackDelay: -1} // one address, no other goroutine: that would dial outside
		conn, err := d.DialContext(ctx, "tcp", addr)
		answers <- answer{conn, err}
	}()
	a := <-answers
	return a.conn, a.err
}

// Close does nothing: the parent is closed by its own host.
func (n *Netns) Close() error { return nil }

// ManagementAddress is the parent's: a namespace has none of its own.
func (n *Netns) ManagementAddress() string {
	if m, ok := n.parent.(providers.Managed); ok {
		return m.ManagementAddress()
	}
	return ""
}
