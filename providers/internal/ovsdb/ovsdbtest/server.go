// Package ovsdbtest is an OVSDB server in memory, for tests: enough of RFC 7047 to stand in for ovsdb-server with Open vSwitch's
// database. The client's suite runs on it and on the real one, so that both answer alike.
package ovsdbtest

import (
	"encoding/json"
	"maps"
	"net"
	"reflect"
	"sync"
	"time"

	"plumb/providers/internal/jsonrpc"
	"plumb/providers/internal/ovsdb"
)

// Server serves one database to any number of connections.
type Server struct {
	// update gives its function the database for itself; when that returns true the database has changed and is kept.
	update func(func(*Database) bool) error

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced after each change
	monitors map[*watch]bool
}

// watch is one monitor of one connection.
type watch struct {
	peer    *jsonrpc.Peer
	id      json.RawMessage
	columns map[string][]string // by table
	last    map[string]map[string]ovsdb.Row
}

// New serves a database that lives as long as the server. after, if not nil, is called after each transaction that changed something, with
// the database, and may change it further: the model of a daemon.
func New(db *Database, after func(*Database)) *Server {
	var mu sync.Mutex
	return NewOn(func(f func(*Database) bool) error {
		mu.Lock()
		defer mu.Unlock()
		if f(db) && after != nil {
			after(db)
		}
		return nil
	})
}

// NewOn serves a database that is kept elsewhere. update gives f the database for itself and keeps it when f returns true.
func NewOn(update func(f func(*Database) bool) error) *Server {
	return &Server{update: update, changed: make(chan struct{}), monitors: map[*watch]bool{}}
}

// Update changes the database from outside of any connection; those that watch are told.
func (s *Server) Update(f func(*Database)) error {
	err := s.update(func(d *Database) bool { f(d); return true })
	s.tell()
	return err
}

// Tell makes those that watch look at the database again, after it was changed elsewhere.
func (s *Server) Tell() { s.tell() }

// Dial returns a new connection to the server.
func (s *Server) Dial() net.Conn {
	client, server := net.Pipe()
	go s.Serve(server)
	return client
}

// Serve serves one connection until it ends.
func (s *Server) Serve(c net.Conn) {
	end := make(chan struct{})
	defer close(end)
	var mine []*watch
	jsonrpc.Serve(c, func(p *jsonrpc.Peer, method string, params json.RawMessage, reply func(result, fault any)) {
		var list []json.RawMessage
		if err := json.Unmarshal(params, &list); err != nil {
			reply(nil, map[string]any{"error": "syntax error", "details": err.Error()})
			return
		}
		switch method {
		case "list_dbs":
			reply([]string{ovsdb.DB}, nil)
			return
		case "monitor_cancel":
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, w := range mine {
				if len(list) == 1 && string(w.id) == string(list[0]) && s.monitors[w] {
					delete(s.monitors, w)
					reply(map[string]any{}, nil)
					return
				}
			}
			reply(nil, map[string]any{"error": "unknown monitor"})
			return
		case "get_schema", "transact", "monitor":
		default:
			reply(nil, "unknown method")
			return
		}
		var db string
		if len(list) == 0 || json.Unmarshal(list[0], &db) != nil || db != ovsdb.DB {
			reply(nil, map[string]any{"error": "unknown database", "details": "get_schema request specifies unknown database " + db})
			return
		}
		switch method {
		case "get_schema":
			reply(json.RawMessage(schemaJSON), nil)
		case "transact":
			s.transact(list[1:], reply, end)
		case "monitor":
			if w := s.monitor(p, list[1:], reply); w != nil {
				mine = append(mine, w)
			}
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range mine {
		delete(s.monitors, w)
	}
}

func (s *Server) transact(list []json.RawMessage, reply func(result, fault any), end chan struct{}) {
	ops := make([]rawOp, len(list))
	for i, raw := range list {
		if err := decode(raw, &ops[i]); err != nil {
			reply(nil, map[string]any{"error": "syntax error", "details": err.Error()})
			return
		}
	}
	if done := s.try(ops, reply, false); done {
		return
	}
	go s.retry(ops, reply, end)
}

// retry runs a transaction again after each change until its wait is met or its time is up.
func (s *Server) retry(ops []rawOp, reply func(result, fault any), end chan struct{}) {
	var limit <-chan time.Time
	for _, o := range ops {
		if o.Op == "wait" && o.Timeout != nil {
			t := time.NewTimer(time.Duration(*o.Timeout) * time.Millisecond)
			defer t.Stop()
			limit = t.C
			break
		}
	}
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if s.try(ops, reply, false) {
			return
		}
		select {
		case <-changed:
		case <-limit:
			s.try(ops, reply, true)
			return
		case <-end:
			return
		}
	}
}

// try runs a transaction and replies, unless a wait is not met and more time is left.
func (s *Server) try(ops []rawOp, reply func(result, fault any), last bool) (done bool) {
	var answer []any
	changed, waits := false, false
	err := s.update(func(d *Database) bool {
		next, results, f, at, unmet := d.run(ops)
		if unmet != nil && !last && (unmet.Timeout == nil || *unmet.Timeout > 0) {
			waits = true
			return false
		}
		if f != nil {
			answer = failed(f, at, len(ops))
			return false
		}
		answer = results
		if answer == nil {
			answer = []any{}
		}
		changed = !reflect.DeepEqual(d.tables, next.tables)
		*d = *next
		return changed
	})
	if waits {
		return false
	}
	if err != nil {
		reply(nil, map[string]any{"error": "I/O error", "details": err.Error()})
		return true
	}
	if changed {
		s.tell()
	}
	reply(answer, nil)
	return true
}

// failed is the result array of a transaction that failed at an operation, or behind the last one.
func failed(f *fault, at, n int) []any {
	out := make([]any, max(n, at+1))
	for i := range at {
		out[i] = map[string]any{}
	}
	out[at] = map[string]any{"error": f.code, "details": f.details}
	return out
}

func (s *Server) monitor(p *jsonrpc.Peer, list []json.RawMessage, reply func(result, fault any)) *watch {
	w := &watch{peer: p, columns: map[string][]string{}, last: map[string]map[string]ovsdb.Row{}}
	var tables map[string]json.RawMessage
	if len(list) != 2 || json.Unmarshal(list[1], &tables) != nil {
		reply(nil, map[string]any{"error": "syntax error"})
		return nil
	}
	w.id = list[0]
	for t, raw := range tables {
		var one struct {
			Columns []string `json:"columns"`
		}
		var many []struct {
			Columns []string `json:"columns"`
		}
		if json.Unmarshal(raw, &one) != nil {
			if json.Unmarshal(raw, &many) != nil {
				reply(nil, map[string]any{"error": "syntax error"})
				return nil
			}
			for _, m := range many {
				one.Columns = append(one.Columns, m.Columns...)
			}
		}
		w.columns[t] = one.Columns
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var first map[string]any
	var bad *fault
	err := s.update(func(d *Database) bool {
		for t, cols := range w.columns {
			schema := d.schema.Tables[t]
			if schema == nil {
				bad = faultf("syntax error", "no table named %s", t)
				return false
			}
			for _, c := range cols {
				if schema.Columns[c] == nil {
					bad = faultf("syntax error", "no column %s in table %s", c, t)
					return false
				}
			}
		}
		first = w.diff(d)
		return false
	})
	switch {
	case err != nil:
		reply(nil, map[string]any{"error": "I/O error", "details": err.Error()})
		return nil
	case bad != nil:
		reply(nil, map[string]any{"error": bad.code, "details": bad.details})
		return nil
	}
	if first == nil {
		first = map[string]any{}
	}
	s.monitors[w] = true
	reply(first, nil)
	return w
}

// diff is the table updates since the last call.
func (w *watch) diff(d *Database) map[string]any {
	var out map[string]any
	for t, cols := range w.columns {
		now := map[string]ovsdb.Row{}
		for id, r := range d.tables[t] {
			now[id] = d.row(t, id, r, cols)
		}
		rows := map[string]any{}
		for id, r := range now {
			old, there := w.last[t][id]
			switch {
			case !there:
				rows[id] = map[string]any{"new": r}
			case !reflect.DeepEqual(old, r):
				was := ovsdb.Row{}
				maps.Copy(was, old)
				maps.DeleteFunc(was, func(c string, v any) bool { return reflect.DeepEqual(v, r[c]) })
				rows[id] = map[string]any{"old": was, "new": r}
			}
		}
		for id, old := range w.last[t] {
			if _, there := now[id]; !there {
				rows[id] = map[string]any{"old": old}
			}
		}
		w.last[t] = now
		if len(rows) > 0 {
			if out == nil {
				out = map[string]any{}
			}
			out[t] = rows
		}
	}
	return out
}

// tell wakes waits and sends updates to monitors.
func (s *Server) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	if len(s.monitors) == 0 {
		return
	}
	_ = s.update(func(d *Database) bool { // a database that cannot be read has told so to the one who asked
		for w := range s.monitors {
			if u := w.diff(d); u != nil {
				w.peer.Notify("update", w.id, u)
			}
		}
		return false
	})
}
