// Package ovsdb is a client of OVSDB servers (RFC 7047) on any net.Conn. Start at Client.Transact; operations are made in op.go,
// values made and read in value.go. Client.Apply changes Open vSwitch's configuration and waits until ovs-vswitchd has taken it over.
package ovsdb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"

	"plumb/providers/internal/jsonrpc"
)

// Client is a connection to a server. It is safe for concurrent use. Every method ends when its context does; whether what it asked was done
// is then unknown, and the connection stays usable.
type Client struct {
	rpc *jsonrpc.Conn

	mu       sync.Mutex
	monitors map[string]*monitor
	serial   int
}

// Dial takes over a connection and makes sure that an OVSDB server is at its other end. When it fails the connection is closed.
func Dial(ctx context.Context, conn net.Conn) (*Client, error) {
	c := &Client{monitors: map[string]*monitor{}}
	c.rpc = jsonrpc.New(conn, c.notified)
	if _, err := c.rpc.Call(ctx, "echo"); err != nil {
		_ = c.rpc.Close()
		return nil, fmt.Errorf("greet the OVSDB server: %w", err)
	}
	return c, nil
}

// Close closes the connection. Calls that wait end with net.ErrClosed.
func (c *Client) Close() error { return c.rpc.Close() }

// Done is closed when the connection has ended, from either side.
func (c *Client) Done() <-chan struct{} { return c.rpc.Done() }

// Result is what one operation answered.
type Result struct {
	Rows  []Row  // select
	Count int    // update, mutate, delete: rows concerned
	ID    string // insert: the new row
}

// OpError says that the server refused a transaction: nothing of it was done.
type OpError struct {
	Index   int    // of the operation; -1: the transaction as a whole, at its end (a constraint, a dangling reference)
	Op      Op     // nil when Index is -1
	Code    string // "timed out", "constraint violation", "referential integrity violation", ... (RFC 7047 sections 3.1 and 5.2)
	Details string
}

func (e *OpError) Error() string {
	s := "the database refused the transaction"
	if e.Op != nil {
		s = fmt.Sprintf("the database refused to %v %v (operation %d of the transaction)", e.Op["op"], e.Op["table"], e.Index+1)
	}
	s += ": " + e.Code
	if e.Details != "" {
		s += ": " + e.Details
	}
	return s
}

// Transact runs operations in order as one transaction, all or nothing. The answer has one result for each operation. A refusal is an
// *OpError.
func (c *Client) Transact(ctx context.Context, db string, ops ...Op) ([]Result, error) {
	params := make([]any, 0, len(ops)+1)
	params = append(params, db)
	for _, o := range ops {
		params = append(params, o)
	}
	raw, err := c.rpc.Call(ctx, "transact", params...)
	if err != nil {
		return nil, err
	}
	return parseResults(raw, ops)
}

// rawResult is any of the results of RFC 7047 section 5.2.
type rawResult struct {
	Rows    []Row  `json:"rows"`
	Count   int    `json:"count"`
	UUID    any    `json:"uuid"`
	Error   string `json:"error"`
	Details string `json:"details"`
}

// parseResults reads the answer to a transact request. A failed transaction has a JSON-RPC error of null and its error somewhere in the array,
// with nulls behind it; one that failed only at its end has one element more than there were operations.
func parseResults(raw json.RawMessage, ops []Op) ([]Result, error) {
	var list []*rawResult
	if err := decode(raw, &list); err != nil {
		return nil, fmt.Errorf("the answer to transact: %w", err)
	}
	for i, r := range list {
		if r == nil || r.Error == "" {
			continue
		}
		e := &OpError{Index: -1, Code: r.Error, Details: r.Details}
		if i < len(ops) {
			e.Index, e.Op = i, ops[i]
		}
		return nil, e
	}
	if len(list) != len(ops) {
		return nil, fmt.Errorf("the answer to transact has %d results for %d operations", len(list), len(ops))
	}
	out := make([]Result, len(list))
	for i, r := range list {
		if r == nil {
			return nil, fmt.Errorf("the answer to transact has no result for operation %d and no error", i+1)
		}
		out[i] = Result{Rows: r.Rows, Count: r.Count, ID: ID(r.UUID)}
	}
	return out, nil
}

// decode keeps numbers as they are: an OVSDB integer has 64 bits.
func decode(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// Databases are the names of the server's databases.
func (c *Client) Databases(ctx context.Context) ([]string, error) {
	raw, err := c.rpc.Call(ctx, "list_dbs")
	if err != nil {
		return nil, err
	}
	var names []string
	if err := decode(raw, &names); err != nil {
		return nil, fmt.Errorf("the answer to list_dbs: %w", err)
	}
	return names, nil
}

// Schema says which tables and columns a database has.
type Schema struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Tables  map[string]struct {
		Columns map[string]json.RawMessage `json:"columns"`
	} `json:"tables"`
}

// Has says whether a table has a column: what a newer Open vSwitch knows, an older one may not.
func (s *Schema) Has(table, column string) bool {
	_, ok := s.Tables[table].Columns[column]
	return ok
}

// Schema reads a database's schema.
func (c *Client) Schema(ctx context.Context, db string) (*Schema, error) {
	raw, err := c.rpc.Call(ctx, "get_schema", db)
	if err != nil {
		return nil, err
	}
	var s Schema
	if err := decode(raw, &s); err != nil {
		return nil, fmt.Errorf("the answer to get_schema: %w", err)
	}
	return &s, nil
}
