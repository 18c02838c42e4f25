// Package fake is a host that is only a folder: files below root, processes and daemons that are entries of a state file, commands that
// are Go functions with the semantics of the real ones as far as Plumb uses them. It survives between processes, and everything that
// is done to it is on disk when the call returns, so that a Plumb that is killed in the middle finds the host as it left it.
//
// A model of Open vSwitch (switchd.go, ofctl.go, control.go) and of dpdk-testpmd (testpmd.go) answers as the real ones do; where it is
// found to differ, the conformance suites, which run on both, get the case. Start reading at Conn.
package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"plumb/providers"
	"plumb/providers/internal/ovsdb/ovsdbtest"
)

// Conn is a connection to a fake host.
type Conn struct {
	dir string

	mu      sync.Mutex // held while the folder is locked
	calls   int
	hook    func(Call) error
	servers map[string]*ovsdbtest.Server // by file of the database
	open    map[net.Conn]bool
	serves  map[string]func(net.Conn) // what tests serve, by path
}

var _ providers.Conn = (*Conn)(nil)

// Call is one call of a method of providers.Conn, for fault injection.
type Call struct {
	N      int    // counted from 1 since Open
	Method string // "Run", "ReadFiles", "WriteFile", "Start", "Dial"
	Detail string // the command, the path, the address
}

// Settings is what differs from one fake host to the next. It is read from settings.json in the host's folder before each call, so a test
// can change it at any time. The zero value is a host with root, Open vSwitch and DPDK.
type Settings struct {
	HugepageLimit map[string]int `json:"hugepage_limit"` // pages that a NUMA node grants at most, by size: {"2048kB": 512}
	Unprivileged  bool           `json:"unprivileged"`   // the user is not root
	NoOVS         bool           `json:"no_ovs"`         // Open vSwitch is not installed
	NoDPDK        bool           `json:"no_dpdk"`        // neither is dpdk-testpmd, nor the build of Open vSwitch with DPDK
	NoStress      bool           `json:"no_stress"`      // stress-ng is not installed
	RPM           bool           `json:"rpm"`            // a host of Red Hat's family
	Kernel        bool           `json:"kernel_datapath"`
	EAL           string         `json:"eal"`     // what EAL says when it refuses to start in ovs-vswitchd; "": it starts
	Testpmd       string         `json:"testpmd"` // what dpdk-testpmd logs before it goes on, such as a port that failed
}

// Open opens the host in a folder and makes it the first time.
func Open(dir string) (*Conn, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c := &Conn{dir: dir, servers: map[string]*ovsdbtest.Server{}, open: map[net.Conn]bool{}, serves: map[string]func(net.Conn){}}
	err = c.exclusive(func() error {
		if _, err := os.Stat(c.stateFile()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := seed(dir); err != nil {
			return fmt.Errorf("make the fake host in %s: %w", dir, err)
		}
		h := &host{Conn: c, state: newState()}
		return errors.Join(h.linkAlternative(), h.save())
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Set writes the host's settings.
func (c *Conn) Set(s Settings) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, "settings.json"), b, 0o644)
}

// Hook calls f before each call from now on; its error becomes the call's, which then does nothing. nil ends that.
func (c *Conn) Hook(f func(Call) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = f
}

// Cut cuts all connections that Dial has opened, as a network does.
func (c *Conn) Cut() {
	c.mu.Lock()
	conns := c.open
	c.open = map[net.Conn]bool{}
	c.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
}

// Serve lets a test answer whoever dials a unix socket of the host.
func (c *Conn) Serve(path string, f func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serves[clean(path)] = f
}

// Unknown lists the commands that the fake host does not know and that were asked for, also by earlier processes.
func (c *Conn) Unknown() []string {
	var out []string
	_ = c.locked(func(h *host) error { out = slices.Clone(h.state.Unknown); return nil })
	return out
}

// Root is the folder that stands for "/".
func (c *Conn) Root() string { return filepath.Join(c.dir, "root") }

// Close cuts what is open. The host goes on.
func (c *Conn) Close() error { c.Cut(); return nil }

// begin is at the start of every call.
func (c *Conn) begin(ctx context.Context, method, detail string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	c.calls++
	call, hook := Call{N: c.calls, Method: method, Detail: detail}, c.hook
	c.mu.Unlock()
	if hook != nil {
		return hook(call)
	}
	return nil
}

// host is a fake host while it is locked.
type host struct {
	*Conn
	state    *state
	settings Settings
	changed  []string // databases that were changed
}

// locked gives f the host for itself, against other goroutines and other processes, and saves what f did even when it fails: so does a
// command that fails half-way.
func (c *Conn) locked(f func(*host) error) error {
	var changed []string
	err := c.exclusive(func() error {
		h := &host{Conn: c}
		if err := h.load(); err != nil {
			return err
		}
		err := f(h)
		changed = h.changed
		return errors.Join(err, h.save())
	})
	for _, db := range changed {
		if s := c.server(db, false); s != nil {
			s.Tell()
		}
	}
	return err
}

func (c *Conn) exclusive(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	lock, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the fake host: %w", err)
	}
	return f()
}
