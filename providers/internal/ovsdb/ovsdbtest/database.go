package ovsdbtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"plumb/providers/internal/ovsdb"
)

// Database is the content of an Open_vSwitch database in memory. It is not safe for concurrent use: Server is.
type Database struct {
	schema *dbSchema
	tables map[string]map[string]record
	serial uint64 // last UUID given out
}

// record is a row, without _uuid and _version.
type record map[string]datum

// NewDatabase is what ovsdb-tool create makes: no rows at all.
func NewDatabase() *Database {
	s, err := parseSchema()
	if err != nil {
		panic(err) // the schema is embedded: a test finds this
	}
	d := &Database{schema: s, tables: map[string]map[string]record{}}
	for t := range s.Tables {
		d.tables[t] = map[string]record{}
	}
	return d
}

// stored is a database as JSON.
type stored struct {
	Serial uint64                          `json:"serial"`
	Tables map[string]map[string]ovsdb.Row `json:"tables"`
}

// MarshalJSON writes all rows, in the values' wire form.
func (d *Database) MarshalJSON() ([]byte, error) {
	out := stored{Serial: d.serial, Tables: map[string]map[string]ovsdb.Row{}}
	for t, rows := range d.tables {
		out.Tables[t] = map[string]ovsdb.Row{}
		for id, r := range rows {
			out.Tables[t][id] = d.row(t, id, r, nil)
			delete(out.Tables[t][id], "_uuid")
			delete(out.Tables[t][id], "_version")
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote into a database made by NewDatabase.
func (d *Database) UnmarshalJSON(b []byte) error {
	*d = *NewDatabase()
	var in stored
	if err := decode(b, &in); err != nil {
		return err
	}
	d.serial = in.Serial
	for t, rows := range in.Tables {
		schema := d.schema.Tables[t]
		if schema == nil {
			return fmt.Errorf("no table %s", t)
		}
		for id, row := range rows {
			r := record{}
			for c, v := range row {
				col := schema.Columns[c]
				if col == nil {
					return fmt.Errorf("table %s has no column %s", t, c)
				}
				value, f := parseDatum(col.Type, v, nil)
				if f != nil {
					return f
				}
				r[c] = value
			}
			d.tables[t][id] = r
		}
	}
	return nil
}

func decode(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return dec.Decode(into)
}

// clone is cheap: records are never changed in place.
func (d *Database) clone() *Database {
	c := &Database{schema: d.schema, serial: d.serial, tables: map[string]map[string]record{}}
	for t, rows := range d.tables {
		c.tables[t] = maps.Clone(rows)
	}
	return c
}

// row is a record in wire form; columns nil: all.
func (d *Database) row(table, id string, r record, columns []string) ovsdb.Row {
	out := ovsdb.Row{}
	schema := d.schema.Tables[table]
	if columns == nil {
		columns = slices.Collect(maps.Keys(schema.Columns))
	}
	for _, c := range columns {
		switch c {
		case "_uuid", "_version":
			out[c] = ovsdb.UUID(id)
		default:
			v, ok := r[c]
			if !ok {
				v = zero(schema.Columns[c].Type)
			}
			out[c] = v.wire(schema.Columns[c].Type)
		}
	}
	return out
}

// Rows are a table's rows in wire form, by UUID.
func (d *Database) Rows(table string) map[string]ovsdb.Row {
	out := map[string]ovsdb.Row{}
	for id, r := range d.tables[table] {
		// Through JSON, so that numbers are json.Number as a client sees them.
		b, err := json.Marshal(d.row(table, id, r, nil))
		var row ovsdb.Row
		if err != nil || decode(b, &row) != nil {
			panic(fmt.Sprintf("row %s of %s is no JSON", id, table))
		}
		out[id] = row
	}
	return out
}

// Transact runs operations, all or nothing, as a client would. The error of a refusal is an *ovsdb.OpError. A wait that is not true now is
// refused at once.
func (d *Database) Transact(ops ...ovsdb.Op) ([]ovsdb.Result, error) {
	b, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	var raw []rawOp
	if err := decode(b, &raw); err != nil {
		return nil, err
	}
	next, results, f, at, _ := d.run(raw)
	if f != nil {
		e := &ovsdb.OpError{Index: -1, Code: f.code, Details: f.details}
		if at < len(ops) {
			e.Index, e.Op = at, ops[at]
		}
		return nil, e
	}
	*d = *next
	out := make([]ovsdb.Result, len(results))
	for i, r := range results {
		b, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		var one struct {
			Rows  []ovsdb.Row `json:"rows"`
			Count int         `json:"count"`
			UUID  any         `json:"uuid"`
		}
		if err := decode(b, &one); err != nil {
			return nil, err
		}
		out[i] = ovsdb.Result{Rows: one.Rows, Count: one.Count, ID: ovsdb.ID(one.UUID)}
	}
	return out, nil
}

// newID is a UUID that the same history gives again: tests are repeatable.
func (d *Database) newID() string {
	d.serial++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", d.serial)
}
