package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
)

// DB is the name of Open vSwitch's database.
const DB = "Open_vSwitch"

// Apply runs a transaction on Open vSwitch's database and waits until ovs-vswitchd has taken it over, as ovs-vsctl does: next_cfg is
// raised in the same transaction, and cur_cfg reaches it when the daemon is done (ovs-vswitchd.conf.db(5), "Configuring"). Results are those
// of ops. When ctx ends during the wait the results come with an error that wraps ErrNotApplied: the change is in the database. It waits for
// ever if no ovs-vswitchd runs: give ctx a limit.
func (c *Client) Apply(ctx context.Context, ops ...Op) ([]Result, error) {
	all := append(append([]Op{}, ops...),
		Mutate(DB, []Mutation{Mutator("next_cfg", "+=", 1)}),
		Select(DB).Columns("next_cfg"))
	res, err := c.Transact(ctx, DB, all...)
	if err != nil {
		return nil, err
	}
	mine := res[:len(ops)]
	last := res[len(all)-1].Rows
	if len(last) != 1 {
		return mine, fmt.Errorf("the database has %d rows in table %s where one is needed: run ovs-vsctl --no-wait init", len(last), DB)
	}
	want, _ := Int(last[0]["next_cfg"])
	err = c.Watch(ctx, DB, DB, []string{"cur_cfg"}, func(rows map[string]Row) bool {
		for _, r := range rows {
			if cur, ok := Int(r["cur_cfg"]); ok && cur >= want {
				return true
			}
		}
		return false
	})
	if err != nil {
		return mine, fmt.Errorf("%w: %w", ErrNotApplied, err)
	}
	return mine, nil
}

// WaitApplied waits until ovs-vswitchd has taken over all that is in the database now. See Apply.
func (c *Client) WaitApplied(ctx context.Context) error {
	_, err := c.Apply(ctx)
	return err
}

// ErrNotApplied says that a change is in the database but ovs-vswitchd has not said that it took it over.
var ErrNotApplied = errors.New("ovs-vswitchd has not taken the change over")

// Watch returns nil as soon as until says so of the table's rows by UUID, of which it sees the given columns: now, and after each
// change. It is told by the server (RFC 7047 section 4.1.5, monitor) and does not poll. until is called from this goroutine and must not
// keep the map.
func (c *Client) Watch(ctx context.Context, db, table string, columns []string, until func(rows map[string]Row) bool) error {
	c.mu.Lock()
	c.serial++
	id := "watch" + strconv.Itoa(c.serial)
	m := &monitor{changed: make(chan struct{}, 1), rows: map[string]Row{}, seen: map[string]bool{}}
	c.monitors[id] = m
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.monitors, id)
		c.mu.Unlock()
	}()

	raw, err := c.rpc.Call(ctx, "monitor", db, id, map[string]any{table: map[string]any{"columns": columns}})
	if err != nil {
		return err
	}
	// Updates that came between the answer and this line are newer than the answer.
	if err := m.initial(table, raw); err != nil {
		return err
	}
	for !until(m.snapshot()) {
		select {
		case <-m.changed:
		case <-ctx.Done():
			// The server goes on to send updates, which are dropped, until the connection ends.
			return ctx.Err()
		case <-c.rpc.Done():
			return errors.New("the connection to the database ended")
		}
	}
	_, err = c.rpc.Call(ctx, "monitor_cancel", id)
	return err
}

// monitor holds what a server has told about one table.
type monitor struct {
	changed chan struct{} // has room for one: "look again"

	mu   sync.Mutex
	rows map[string]Row
	seen map[string]bool // rows that updates told about before the initial contents were read
}

// tableUpdates is <table-updates> of RFC 7047 section 4.1.6: table, row, old and new.
type tableUpdates map[string]map[string]struct {
	New *Row `json:"new"`
}

func (m *monitor) initial(table string, raw json.RawMessage) error {
	var u tableUpdates
	if err := decode(raw, &u); err != nil {
		return fmt.Errorf("the answer to monitor: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, r := range u[table] {
		if !m.seen[id] && r.New != nil {
			m.rows[id] = *r.New
		}
	}
	return nil
}

func (m *monitor) update(u tableUpdates) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, rows := range u {
		for id, r := range rows {
			m.seen[id] = true
			if r.New == nil {
				delete(m.rows, id)
			} else {
				m.rows[id] = *r.New
			}
		}
	}
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *monitor) snapshot() map[string]Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.rows)
}

func (c *Client) notified(method string, params json.RawMessage) {
	if method != "update" {
		return
	}
	var list []json.RawMessage
	var id string
	var u tableUpdates
	if decode(params, &list) != nil || len(list) != 2 || decode(list[0], &id) != nil || decode(list[1], &u) != nil {
		return // not an update of ours
	}
	c.mu.Lock()
	m := c.monitors[id]
	c.mu.Unlock()
	if m != nil {
		m.update(u)
	}
}
