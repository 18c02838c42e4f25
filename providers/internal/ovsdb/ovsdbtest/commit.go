package ovsdbtest

import (
	"fmt"
	"maps"
	"slices"
)

// commit checks the transaction as a whole and takes away what nothing refers to any more (RFC 7047 section 3.2).
func (d *Database) commit(before *Database) *fault {
	if f := d.strongReferences(); f != nil {
		return f
	}
	d.collect()
	d.dropWeak()
	for _, name := range slices.Sorted(maps.Keys(d.schema.Tables)) {
		t := d.schema.Tables[name]
		if t.MaxRows > 0 && len(d.tables[name]) > t.MaxRows && len(d.tables[name]) > len(before.tables[name]) {
			return faultf("constraint violation", "transaction causes \"%s\" table to contain %d rows, greater than the schema-defined limit of %d row(s)",
				name, len(d.tables[name]), t.MaxRows)
		}
		for _, index := range t.Indexes {
			seen := map[string]bool{}
			for _, r := range d.tables[name] {
				key := ""
				for _, c := range index {
					key += fmt.Sprintf("%q;", r[c].keys)
				}
				if seen[key] {
					return faultf("constraint violation", "Transaction causes multiple rows in \"%s\" table to have identical values (%s) for index on column \"%s\".",
						name, key, index[0])
				}
				seen[key] = true
			}
		}
	}
	return nil
}

// references calls visit for each reference that a record holds.
func references(t *tableSchema, r record, visit func(col string, b baseType, to string)) {
	for c, s := range t.Columns {
		v := r[c]
		for i, k := range v.keys {
			if id, ok := k.(ref); ok && s.Type.Key.RefTable != "" {
				visit(c, s.Type.Key, string(id))
			}
			if s.Type.Value != nil && s.Type.Value.RefTable != "" {
				if id, ok := v.vals[i].(ref); ok {
					visit(c, *s.Type.Value, string(id))
				}
			}
		}
	}
}

func (d *Database) strongReferences() *fault {
	var bad *fault
	for name, rows := range d.tables {
		for id, r := range rows {
			references(d.schema.Tables[name], r, func(c string, b baseType, to string) {
				if _, there := d.tables[b.RefTable][to]; !there && b.RefType != "weak" {
					bad = faultf("referential integrity violation", "Table %s column %s row %s references nonexistent row %s in table %s.", name, c, id, to, b.RefTable)
				}
			})
		}
	}
	return bad
}

// collect removes rows of tables that are not roots and that no row refers to, until there are none.
func (d *Database) collect() {
	for {
		used := map[string]bool{}
		for name, rows := range d.tables {
			for id, r := range rows {
				references(d.schema.Tables[name], r, func(_ string, b baseType, to string) {
					if b.RefType != "weak" && to != id {
						used[to] = true
					}
				})
			}
		}
		removed := false
		for name, rows := range d.tables {
			if d.schema.Tables[name].IsRoot {
				continue
			}
			for id := range rows {
				if !used[id] {
					delete(rows, id)
					removed = true
				}
			}
		}
		if !removed {
			return
		}
	}
}

// dropWeak takes weak references to rows that are gone out of sets.
func (d *Database) dropWeak() {
	for name, rows := range d.tables {
		t := d.schema.Tables[name]
		for id, r := range rows {
			for c, s := range t.Columns {
				if s.Type.Key.RefType != "weak" {
					continue
				}
				for _, k := range r[c].keys {
					if to, ok := k.(ref); ok {
						if _, there := d.tables[s.Type.Key.RefTable][string(to)]; !there {
							r = maps.Clone(r)
							r[c] = r[c].without(k)
						}
					}
				}
			}
			rows[id] = r
		}
	}
}
