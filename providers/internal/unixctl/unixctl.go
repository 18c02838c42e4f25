// Package unixctl runs the commands that ovs-appctl runs, on the control socket of a daemon of Open vSwitch:
// RUNDIR/DAEMON.PID.ctl (ovs-appctl(8)). The protocol is JSON-RPC with the command as method and its arguments as strings.
package unixctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"plumb/providers/internal/jsonrpc"
)

// Client is a connection to one daemon. It is safe for concurrent use; the daemon runs commands one after another.
type Client struct{ rpc *jsonrpc.Conn }

// New takes over a connection.
func New(conn net.Conn) *Client { return &Client{jsonrpc.New(conn, nil)} }

// Error says that the daemon refused a command.
type Error struct{ Command, Text string }

func (e *Error) Error() string { return e.Command + ": " + e.Text }

// Run runs a command and returns what it printed. A refusal is an *Error. A daemon that ends because of the command ("exit") may do so
// before it answers: then the error wraps io.EOF or io.ErrUnexpectedEOF.
func (c *Client) Run(ctx context.Context, command string, args ...string) (string, error) {
	params := make([]any, len(args))
	for i, a := range args {
		params[i] = a
	}
	raw, err := c.rpc.Call(ctx, command, params...)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return "", &Error{Command: command, Text: refused.Text()}
	}
	if err != nil {
		return "", err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", fmt.Errorf("%s: the daemon answered with %.40q instead of text", command, raw)
	}
	return text, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.rpc.Close() }
