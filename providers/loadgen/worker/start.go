package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
	"time"

	"plumb/providers"
	"plumb/providers/internal/marked"
)

const (
	startLimit = 60 * time.Second // until the worker listens
	quitLimit  = 15 * time.Second // for the worker to close its ports and end by itself
	kind       = "loadgen"
	program    = "plumb"
)

// Place says where a worker is to run.
type Place struct {
	Host providers.Host
	Mark providers.Mark // on the process
	// Program is what is to run there: this very program, as a file's content. It must be static.
	Program func() ([]byte, error)
	Log     func(string)
	// Group is the folder that the worker's own is made in; "": that of the testbed, where Sweep looks.
	Group string
}

// Start opens ports on another host. It takes these round trips: what machine it is, the copy of the program, its checksum, the start, and the connection. When
// it fails, nothing is left there.
func Start(ctx context.Context, p Place, o Open) (*Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := remote{Place: p, proc: marked.Process{Conn: p.Host.Conn(), Mark: p.Mark, Dir: path.Join(p.group(), marked.Name(p.Mark.Address))}}
	if n := len(r.socket()); n > sunPath {
		return nil, fmt.Errorf("the path of a socket has at most %d bytes; %s has %d", sunPath, r.socket(), n)
	}
	c, err := r.start(ctx, o)
	if err == nil {
		return c, nil
	}
	if undo := r.proc.Remove(context.WithoutCancel(ctx), quitLimit); undo != nil {
		err = errors.Join(err, fmt.Errorf("clean up: %w", undo))
	}
	return nil, fmt.Errorf("generator on host %s: %w", p.Host.Name(), err)
}

// Sweep ends and removes the workers of a testbed that an earlier Plumb left on a host. Without any, it does nothing.
func Sweep(ctx context.Context, host providers.Host, testbed string) error {
	return sweep(ctx, host, marked.Group(testbed, kind), testbed)
}

func sweep(ctx context.Context, host providers.Host, group, testbed string) error {
	return marked.Sweep(ctx, host.Conn(), group, testbed, stamp)
}

func (p Place) group() string {
	if p.Group != "" {
		return p.Group
	}
	return marked.Group(p.Mark.Testbed, kind)
}

type remote struct {
	Place
	proc marked.Process
}

// stamp is a file that a worker's folder has from the beginning: one that holds no process yet is found by it.
const stamp = "mark"

func (r remote) socket() string  { return path.Join(r.proc.Dir, "socket") }
func (r remote) program() string { return path.Join(r.proc.Dir, program) }

func (r remote) start(ctx context.Context, o Open) (*Client, error) {
	if err := r.install(ctx); err != nil {
		return nil, err
	}
	err := r.proc.Conn.Start(ctx, providers.Process{Dir: r.proc.Dir, Args: []string{r.program(), "loadgen", "-worker", r.socket()}, Env: marked.Environment(r.Mark)})
	if err != nil {
		return nil, err
	}
	conn, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	c, err := Connect(ctx, conn, o)
	if err != nil {
		return nil, r.more(ctx, err)
	}
	c.why = func(err error) error { return r.more(context.WithoutCancel(ctx), err) }
	c.after = func(ctx context.Context) error { return r.proc.Remove(ctx, quitLimit) }
	return c, nil
}

// scriptPrepare makes the folder of a worker, for its user only, and prints the machine's kind. What an earlier worker with the same mark left was
// removed before.
const scriptPrepare = `set -eu; mkdir -p -- "$1"; chmod 700 -- "$1"; : >"$1/` + stamp + `"; uname -m`

// install puts the program on the host and makes sure that it arrived as it is here.
func (r remote) install(ctx context.Context) error {
	if err := r.proc.Remove(ctx, 0); err != nil {
		return err
	}
	content, err := r.Program()
	if err != nil {
		return fmt.Errorf("read the program that is to run there: %w", err)
	}
	machine, err := inspect(content)
	if err != nil {
		return err
	}
	res, err := r.proc.Conn.Run(ctx, providers.Cmd{Args: []string{"sh", "-c", scriptPrepare, "plumb-prepare", r.proc.Dir}})
	if err != nil {
		return fmt.Errorf("make the folder of a worker: %w", err)
	}
	if err := fits(machine, r.Host.Name(), string(res.Stdout)); err != nil {
		return err
	}
	if err := r.proc.Conn.WriteFile(ctx, r.program(), content, 0o700); err != nil {
		return fmt.Errorf("copy the generator: %w", err)
	}
	res, err = r.proc.Conn.Run(ctx, providers.Cmd{Args: []string{"sha256sum", "--", r.program()}})
	if err != nil {
		return fmt.Errorf("check the copy of the generator: %w", err)
	}
	have, _, _ := strings.Cut(string(bytes.TrimPrefix(res.Stdout, []byte(`\`))), " ")
	sum := sha256.Sum256(content)
	if want := hex.EncodeToString(sum[:]); have != want {
		return fmt.Errorf("the copy of the generator is damaged: its SHA-256 is %s, not %s. It was not started", strconv.Quote(have), want)
	}
	if r.Log != nil {
		r.Log(fmt.Sprintf("copied the generator (%d MB) to host %s, its log is %s", len(content)>>20, r.Host.Name(), path.Join(r.proc.Dir, "log")))
	}
	return nil
}

// dial connects as soon as the worker listens.
func (r remote) dial(ctx context.Context) (net.Conn, error) {
	var conn net.Conn
	var last error
	err := marked.Poll(ctx, startLimit, func() (bool, error) {
		if conn, last = r.proc.Conn.Dial(ctx, "unix", r.socket()); last == nil {
			return true, nil
		}
		text, exited, err := r.proc.Log(ctx)
		if err == nil && exited {
			err = fmt.Errorf("the worker ended at once. The last lines of its log:\n%s", lastLines(text))
		}
		return false, err
	})
	if errors.Is(err, marked.ErrLimit) {
		return nil, fmt.Errorf("the worker does not listen after %s: %w", startLimit, last)
	}
	return conn, err
}

// more adds what a worker that has ended had to say. One that was told to end says nothing.
func (r remote) more(ctx context.Context, err error) error {
	text, _, lerr := r.proc.Log(ctx)
	if lerr != nil || strings.TrimSpace(text) == "" {
		return err
	}
	return fmt.Errorf("%w. The last lines of its log:\n%s", err, lastLines(text))
}

func lastLines(s string) string {
	const n = 12
	l := strings.Split(strings.TrimSpace(s), "\n")
	return "  " + strings.Join(l[max(0, len(l)-n):], "\n  ")
}
