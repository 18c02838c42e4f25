package providers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"
)

// Conn carries commands, files and connections to one host. Implementations are safe for concurrent use. Every method
// ends when its context does; none leaves a process behind but Start.
type Conn interface {
	// Run runs a command to its end. A non-zero exit is an *ExitError with the Result beside it: 127 for a command that is not there,
	// 128+N for one that signal N ended.
	Run(ctx context.Context, cmd Cmd) (Result, error)
	// ReadFiles reads files in one round trip, by path or glob pattern (path.Match syntax). Files that do not exist are
	// left out of the result, as are folders that a pattern matches; one that cannot be read is an error, and what could be
	// read is returned beside it (root in a container may not look at every /proc/*/environ: fs.ErrPermission).
	ReadFiles(ctx context.Context, patterns ...string) (map[string][]byte, error)
	// WriteFile replaces a file atomically (temporary file, fsync, rename). Below /proc and /sys it is a single write.
	WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error
	// Start starts a process that outlives the connection. See Process for what it leaves in its folder.
	Start(ctx context.Context, p Process) error
	// Dial connects to a socket of the host: "unix", "unixpacket" (one Read is one message) or "tcp".
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
	Close() error
}

// Local is a Conn that may lead to the very machine that Plumb runs on, so that what can be done here needs no process there.
type Local interface {
	ThisMachine() bool
}

// ThisMachine says whether a connection leads to the machine that Plumb runs on, in the same namespaces.
func ThisMachine(c Conn) bool {
	l, ok := c.(Local)
	return ok && l.ThisMachine()
}

// Managed is a Conn that comes in by one of the host's own interfaces, which nothing may take down.
type Managed interface {
	// ManagementAddress is the host's IP address that the connection ends at; "" as long as it is not known, which is before the first command.
	ManagementAddress() string
}

// Cmd is a command: argv, never a shell line.
type Cmd struct {
	Args    []string
	Env     []string // added to the host's
	Stdin   []byte
	Timeout time.Duration // 0: 60 s
}

// Result is what a command printed.
type Result struct {
	Stdout, Stderr []byte
	Exit           int
}

// Process is a supervised process with a folder of its own on the host. In Dir, which is made, it keeps: pid (of the
// process itself, written before it runs), log (stdout and stderr), stdin (a FIFO that never reports end of file), exit (its
// exit status, written when it ends, "128+N" for a signal). A Dir that holds a live process is an error.
type Process struct {
	Dir  string
	Args []string
	Env  []string
}

// ExitError says that a command ended with a non-zero status.
type ExitError struct {
	Host string
	Args []string
	Result
}

// Error is one line: the command, its status and the last line it printed.
func (e *ExitError) Error() string {
	last := strings.TrimSpace(string(e.Stderr))
	if i := strings.LastIndexByte(last, '\n'); i >= 0 {
		last = last[i+1:]
	}
	s := fmt.Sprintf("%s on %s: exit status %d", e.Args[0], e.Host, e.Exit)
	if last != "" {
		s += ": " + last
	}
	return s
}

// Host is a machine that resources live on, for the length of one run.
type Host interface {
	Name() string // as in the configuration: "dut"
	Conn() Conn
	// Facts is gathered once per run, in one round trip.
	Facts(context.Context) (*Facts, error)
	// Shared returns the value kept under key for this host and run, made by open the first time; concurrent callers wait for
	// one open. A value that is an io.Closer is closed with the host. An error is returned to all who wait and not kept.
	Shared(ctx context.Context, key any, open func(context.Context) (any, error)) (any, error)
	// Reads counts what was asked of the host so far.
	Reads() Reads
	// Count adds to the counters that Conn cannot see, such as OVSDB transactions.
	Count(Reads)
	// Forget drops all that was kept of the host, facts too: shared values are closed and opened anew when they are asked for. It is
	// called when the host has been rebooted; whoever still uses a shared value finds it closed.
	Forget() error
	Close() error
}

// Hosts finds the other hosts of a run, which are opened when they are first asked for. A host that leads through another one does not own it.
type Hosts func(ctx context.Context, name string) (Host, error)

// ErrUnreachable is wrapped by an error that says that a host could not be connected to, or that the connection to it is gone and could not be made
// again: nothing is known of what is on it. The other hosts of a run are not concerned.
var ErrUnreachable = errors.New("cannot be reached")

// Reads counts round trips.
type Reads struct {
	// Rounds is the length of the longest chain of round trips of which each began after the one before had ended: what latency is paid for.
	// It is counted by the host; Host.Count ignores it.
	Rounds      int `json:"rounds"`
	Connections int `json:"connections"` // made to the host, reconnections included; 0: this machine
	Commands    int `json:"commands"`    // Conn.Run and Conn.Start
	Files       int `json:"file_reads"`  // calls of ReadFiles
	Writes      int `json:"file_writes"`
	Dials       int `json:"dials"`
	OVSDB       int `json:"ovsdb_transactions"`
	Unixctl     int `json:"unixctl_commands"`
}
