package ovsdbtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// rawOp is any operation of RFC 7047 section 5.2.
type rawOp struct {
	Op        string           `json:"op"`
	Table     string           `json:"table"`
	Where     [][]any          `json:"where"`
	Columns   []string         `json:"columns"`
	Row       map[string]any   `json:"row"`
	Rows      []map[string]any `json:"rows"`
	Mutations [][]any          `json:"mutations"`
	Name      string           `json:"uuid-name"`
	Until     string           `json:"until"`
	Timeout   *int64           `json:"timeout"`
}

// run runs operations on a copy, which it returns with the results. A fault has the index of its operation, len(ops) for one of the
// transaction as a whole. unmet is the wait that is not true yet: the fault is then "timed out".
func (d *Database) run(ops []rawOp) (next *Database, results []any, f *fault, at int, unmet *rawOp) {
	next = d.clone()
	names := map[string]string{}
	for _, o := range ops {
		if o.Op == "insert" && o.Name != "" {
			if _, twice := names[o.Name]; twice {
				return nil, nil, faultf("duplicate uuid-name", "%s", o.Name), slices.IndexFunc(ops, func(x rawOp) bool { return x.Name == o.Name }), nil
			}
			names[o.Name] = next.newID()
		}
	}
	for i, o := range ops {
		res, f, wait := next.one(o, names)
		if wait {
			return nil, nil, faultf("timed out", "the condition of the wait is not met"), i, &ops[i]
		}
		if f != nil {
			return nil, nil, f, i, nil
		}
		results = append(results, res)
	}
	if f := next.commit(d); f != nil {
		return nil, nil, f, len(ops), nil
	}
	return next, results, nil, 0, nil
}

func (d *Database) one(o rawOp, names map[string]string) (res any, f *fault, wait bool) {
	if o.Op == "comment" {
		return map[string]any{}, nil, false
	}
	if o.Op == "abort" {
		return nil, faultf("aborted", "aborted by request"), false
	}
	t := d.schema.Tables[o.Table]
	if t == nil {
		return nil, faultf("unknown table", "No table named %s.", o.Table), false
	}
	for _, c := range o.Columns {
		if t.Columns[c] == nil {
			return nil, faultf("unknown column", "No column %s in table %s.", c, o.Table), false
		}
	}
	if o.Op == "insert" {
		return d.insert(o, t, names)
	}
	ids, f := d.where(o, t, names)
	if f != nil {
		return nil, f, false
	}
	switch o.Op {
	case "select":
		rows := []any{}
		for _, id := range ids {
			rows = append(rows, d.row(o.Table, id, d.tables[o.Table][id], o.Columns))
		}
		return map[string]any{"rows": rows}, nil, false
	case "delete":
		for _, id := range ids {
			delete(d.tables[o.Table], id)
		}
	case "update":
		for _, id := range ids {
			r := maps.Clone(d.tables[o.Table][id])
			if f := setColumns(r, o, t, names, true); f != nil {
				return nil, f, false
			}
			d.tables[o.Table][id] = r
		}
	case "mutate":
		for _, id := range ids {
			r := maps.Clone(d.tables[o.Table][id])
			for _, m := range o.Mutations {
				if f := mutate(r, m, o.Table, t, names); f != nil {
					return nil, f, false
				}
			}
			d.tables[o.Table][id] = r
		}
	case "wait":
		same, f := d.matches(o, t, ids, names)
		return map[string]any{}, f, f == nil && same != (o.Until == "==")
	default:
		return nil, faultf("unknown operation", "No operation %q", o.Op), false
	}
	return map[string]any{"count": len(ids)}, nil, false
}

func (d *Database) insert(o rawOp, t *tableSchema, names map[string]string) (any, *fault, bool) {
	id, named := names[o.Name]
	if !named {
		id = d.newID()
	}
	r := record{}
	for c, s := range t.Columns {
		if !strings.HasPrefix(c, "_") {
			r[c] = zero(s.Type)
		}
	}
	if f := setColumns(r, o, t, names, false); f != nil {
		return nil, f, false
	}
	d.tables[o.Table][id] = r
	return map[string]any{"uuid": []any{"uuid", id}}, nil, false
}

func setColumns(r record, o rawOp, t *tableSchema, names map[string]string, update bool) *fault {
	for _, c := range slices.Sorted(maps.Keys(o.Row)) {
		s := t.Columns[c]
		if s == nil || strings.HasPrefix(c, "_") {
			return faultf("unknown column", "No column %s in table %s.", c, o.Table)
		}
		if update && s.Mutable != nil && !*s.Mutable {
			return faultf("constraint violation", "Cannot update immutable column %s in table %s.", c, o.Table)
		}
		v, f := parseDatum(s.Type, o.Row[c], names)
		if f == nil {
			f = v.count(s.Type)
		}
		if f != nil {
			return faultf(f.code, "column %s of table %s: %s", c, o.Table, f.details)
		}
		r[c] = v
	}
	return nil
}

// where lists the rows that meet all conditions, in the order of their UUIDs.
func (d *Database) where(o rawOp, t *tableSchema, names map[string]string) ([]string, *fault) {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(d.tables[o.Table])) {
		all := true
		for _, c := range o.Where {
			ok, f := d.meets(o.Table, t, id, c, names)
			if f != nil {
				return nil, f
			}
			all = all && ok
		}
		if all {
			out = append(out, id)
		}
	}
	return out, nil
}

func (d *Database) meets(table string, t *tableSchema, id string, cond []any, names map[string]string) (bool, *fault) {
	if len(cond) != 3 {
		return false, faultf("syntax error", "a condition has three parts")
	}
	name, _ := cond[0].(string)
	fn, _ := cond[1].(string)
	col := t.Columns[name]
	if col == nil {
		return false, faultf("unknown column", "No column %s in table %s.", name, table)
	}
	want, f := parseDatum(col.Type, cond[2], names)
	if f != nil {
		return false, f
	}
	have := d.tables[table][id][name]
	if name == "_uuid" || name == "_version" {
		have = datum{keys: []any{ref(id)}}
	}
	switch fn {
	case "==":
		return have.equal(want), nil
	case "!=":
		return !have.equal(want), nil
	case "includes":
		return have.includes(want), nil
	case "excludes":
		return have.excludes(want), nil
	case "<", "<=", ">", ">=":
		if len(have.keys) != 1 || len(want.keys) != 1 {
			return false, nil
		}
		c := compareAtoms(have.keys[0], want.keys[0])
		return c < 0 && fn[0] == '<' || c > 0 && fn[0] == '>' || c == 0 && len(fn) == 2, nil
	}
	return false, faultf("syntax error", "unknown function %q", fn)
}

func mutate(r record, m []any, table string, t *tableSchema, names map[string]string) *fault {
	if len(m) != 3 {
		return faultf("syntax error", "a mutation has three parts")
	}
	name, _ := m[0].(string)
	how, _ := m[1].(string)
	col := t.Columns[name]
	if col == nil || strings.HasPrefix(name, "_") {
		return faultf("unknown column", "No column %s in table %s.", name, table)
	}
	typ := col.Type
	if how == "delete" && typ.Value != nil { // keys alone may be named
		if tag, _, ok := tagged(m[2]); !ok || tag == "set" {
			typ.Value = nil
		}
	}
	arg, f := parseDatum(typ, m[2], names)
	if f != nil {
		return f
	}
	have := r[name]
	switch how {
	case "insert":
		for i, k := range arg.keys {
			if arg.vals != nil {
				have = have.with(k, arg.vals[i], true)
			} else {
				have = have.with(k, nil, false)
			}
		}
	case "delete":
		for i, k := range arg.keys {
			if arg.vals == nil || have.includes(datum{keys: arg.keys[i : i+1], vals: arg.vals[i : i+1]}) {
				have = have.without(k)
			}
		}
	case "+=", "-=", "*=":
		if len(arg.keys) != 1 || typ.Key.Type != "integer" {
			return faultf("domain error", "%s on column %s", how, name)
		}
		n := arg.keys[0].(int64)
		out := datum{}
		for _, k := range have.keys {
			x := k.(int64)
			switch how {
			case "+=":
				x += n
			case "-=":
				x -= n
			case "*=":
				x *= n
			}
			out = out.with(x, nil, false)
		}
		have = out
	default:
		return faultf("unknown mutator", "%q", how)
	}
	if f := have.count(col.Type); f != nil {
		return faultf(f.code, "column %s of table %s: %s", name, table, f.details)
	}
	r[name] = have
	return nil
}

// matches compares rows with those of a wait operation, as sets.
func (d *Database) matches(o rawOp, t *tableSchema, ids []string, names map[string]string) (bool, *fault) {
	columns := o.Columns
	if columns == nil {
		for c := range t.Columns {
			if c != "_version" {
				columns = append(columns, c)
			}
		}
	}
	slices.Sort(columns)
	text := func(r record) string {
		var b strings.Builder
		for _, c := range columns {
			v, _ := json.Marshal(r[c].wire(t.Columns[c].Type))
			fmt.Fprintf(&b, "%s=%s;", c, v)
		}
		return b.String()
	}
	have, want := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		r := maps.Clone(d.tables[o.Table][id])
		r["_uuid"] = datum{keys: []any{ref(id)}}
		have[text(r)] = true
	}
	for _, row := range o.Rows {
		r := record{}
		for _, c := range columns {
			v, given := row[c]
			if !given {
				r[c] = zero(t.Columns[c].Type)
				continue
			}
			parsed, f := parseDatum(t.Columns[c].Type, v, names)
			if f != nil {
				return false, f
			}
			r[c] = parsed
		}
		want[text(r)] = true
	}
	return maps.Equal(have, want), nil
}
