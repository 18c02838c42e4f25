package ovs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"plumb/providers"
	"plumb/providers/internal/ovsdb"
	"plumb/providers/internal/unixctl"
)

// client is the database of a session on a real connection.
type client struct{ *ovsdb.Client }

func openDatabase(ctx context.Context, h providers.Host) (database, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := h.Conn().Dial(ctx, "unix", dbSocket)
	if err != nil {
		return nil, err
	}
	c, err := ovsdb.Dial(ctx, conn)
	if err != nil {
		return nil, err
	}
	return client{c}, nil
}

func (c client) transact(ctx context.Context, ops []op) ([][]row, error) {
	list := make([]ovsdb.Op, len(ops))
	for i, o := range ops {
		list[i] = ovsdb.Op(o)
	}
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	res, err := c.Transact(ctx, ovsdb.DB, list...)
	if err != nil {
		return nil, err
	}
	out := make([][]row, len(res))
	for i, r := range res {
		for _, one := range r.Rows {
			out[i] = append(out[i], row(one))
		}
	}
	return out, nil
}

// timedOut says that a wait of the transaction did not come true within its limit.
func timedOut(err error) bool {
	var refused *ovsdb.OpError
	return errors.As(err, &refused) && refused.Code == "timed out"
}

// control runs a command of a daemon on its control socket. A daemon that ends by it is no error.
func (s *session) control(ctx context.Context, socket string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	conn, err := s.host.Conn().Dial(ctx, "unix", socket)
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", socket, err)
	}
	c := unixctl.New(conn)
	defer c.Close()
	s.host.Count(providers.Reads{Unixctl: 1})
	out, err := c.Run(ctx, args[0], args[1:]...)
	if args[0] == "exit" && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return out, nil
	}
	return out, err
}

// appctl runs commands of ovs-vswitchd on one connection, result by result. A command that is refused (*unixctl.Error) leaves its result
// empty and does not keep the others from running.
func (s *session) appctl(ctx context.Context, commands ...[]string) ([]string, error) {
	pid, err := s.pid(ctx, daemonPid)
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, fmt.Errorf("%w on %s", errStopped, s.host.Name())
	}
	conn, err := s.host.Conn().Dial(ctx, "unix", controlSocket(pid))
	if err != nil {
		return nil, fmt.Errorf("connect to ovs-vswitchd on %s: %w", s.host.Name(), err)
	}
	c := unixctl.New(conn)
	defer c.Close()
	out, refusals := make([]string, len(commands)), []error(nil)
	for i, cmd := range commands {
		s.host.Count(providers.Reads{Unixctl: 1})
		var refused *unixctl.Error
		out[i], err = c.Run(ctx, cmd[0], cmd[1:]...)
		switch {
		case errors.As(err, &refused):
			refusals = append(refusals, err)
		case err != nil:
			return out, err
		}
	}
	return out, errors.Join(refusals...)
}
