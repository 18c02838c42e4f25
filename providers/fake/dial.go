package fake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"plumb/providers/internal/ovsdb/ovsdbtest"
)

// Dial connects to a socket of the host: of ovsdb-server, of a daemon's control, or one that a test serves.
func (c *Conn) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := c.begin(ctx, "Dial", network+" "+addr); err != nil {
		return nil, err
	}
	if network != "unix" && network != "unixpacket" && network != "tcp" {
		return nil, fmt.Errorf("dial %s on the fake host: network %q is none of unix, unixpacket and tcp", addr, network)
	}
	refuse := func(err error) error {
		return fmt.Errorf("on the fake host: %w", &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", err)})
	}
	sock := clean(addr)
	var serve func(net.Conn)
	err := c.locked(func(h *host) error {
		p := h.listener(sock)
		switch {
		case network == "tcp":
			return refuse(syscall.ECONNREFUSED)
		case h.serves[sock] != nil:
			serve = h.serves[sock]
		case h.settings.Unprivileged && p != nil:
			return refuse(syscall.EACCES)
		case p == nil && h.exists(sock):
			return refuse(syscall.ECONNREFUSED)
		case p == nil:
			return refuse(syscall.ENOENT)
		case strings.HasSuffix(sock, "/dpdk_telemetry.v2"):
			if network != "unixpacket" {
				return refuse(syscall.EPROTOTYPE)
			}
			pid := p.PID
			serve = func(conn net.Conn) { c.telemetry(conn, pid) }
		case network != "unix":
			return refuse(syscall.EPROTOTYPE)
		case strings.HasSuffix(sock, ".ctl"):
			pid := p.PID
			serve = func(conn net.Conn) { c.control(conn, pid) }
		case p.Comm == "ovsdb-server":
			serve = c.databaseServer(p.Data["db"]).Serve
		default:
			return refuse(syscall.EPROTOTYPE)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	conn := &connection{Conn: client, forget: func() { c.mu.Lock(); defer c.mu.Unlock(); delete(c.open, client) }}
	c.mu.Lock()
	c.open[client] = true
	c.mu.Unlock()
	go serve(server)
	return conn, nil
}

// connection is one that Cut knows until it is closed.
type connection struct {
	net.Conn
	once   sync.Once
	forget func()
}

func (c *connection) Close() error {
	c.once.Do(c.forget)
	return c.Conn.Close()
}

// server is the one for a database file; nil if there is none and make is false.
func (c *Conn) server(db string, make bool) *ovsdbtest.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !make {
		return c.servers[db]
	}
	return c.databaseServer(db)
}

// databaseServer is server for who holds mu.
func (c *Conn) databaseServer(db string) *ovsdbtest.Server {
	s := c.servers[db]
	if s == nil {
		s = ovsdbtest.NewOn(func(f func(*ovsdbtest.Database) bool) error { return c.withDB(db, f) })
		c.servers[db] = s
	}
	return s
}

// withDB gives f the database while the host is locked. A daemon takes over what f changed before anybody else sees it.
func (c *Conn) withDB(file string, f func(*ovsdbtest.Database) bool) error {
	return c.exclusive(func() error {
		h := &host{Conn: c}
		if err := h.load(); err != nil {
			return err
		}
		db, err := h.getDB(file)
		if err != nil {
			return err
		}
		if !f(db) {
			return nil
		}
		if err := h.putDB(file, db); err != nil {
			return err
		}
		return errors.Join(h.settle(), h.save())
	})
}
