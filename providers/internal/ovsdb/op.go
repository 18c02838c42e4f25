package ovsdb

import "time"

// Op is one operation of a transaction, as RFC 7047 section 5.2 writes it. The constructors below fill it; one written by hand is as good.
type Op map[string]any

// Cond is one condition of a where clause: column, function, value (RFC 7047 section 5.1).
type Cond []any

// Where is a condition: Where("name", "==", "br0"), Where("external_ids", "includes", Map(...)).
func Where(column, function string, value any) Cond { return Cond{column, function, value} }

// ByID is the condition that picks one row.
func ByID(id string) Cond { return Where("_uuid", "==", UUID(id)) }

// Mutation changes a column in place: {"ports", "insert", Set(UUID(id))}, {"next_cfg", "+=", 1}.
type Mutation []any

// Mutator is a mutation: column, mutator, value.
func Mutator(column, mutator string, value any) Mutation { return Mutation{column, mutator, value} }

// Select reads the rows that meet all conditions, every column; see Op.Columns.
func Select(table string, where ...Cond) Op {
	return Op{"op": "select", "table": table, "where": conds(where)}
}

// Columns limits a select to some columns; _uuid is one of them only if it is named.
func (o Op) Columns(names ...string) Op { o["columns"] = names; return o }

// Insert adds a row; see Op.Named.
func Insert(table string, row Row) Op { return Op{"op": "insert", "table": table, "row": row} }

// Named lets other operations of the transaction refer to an inserted row with NamedUUID(name). A name is an identifier.
func (o Op) Named(name string) Op { o["uuid-name"] = name; return o }

// Update sets columns of the rows that meet all conditions.
func Update(table string, row Row, where ...Cond) Op {
	return Op{"op": "update", "table": table, "row": row, "where": conds(where)}
}

// Mutate changes columns of the rows that meet all conditions.
func Mutate(table string, mutations []Mutation, where ...Cond) Op {
	return Op{"op": "mutate", "table": table, "mutations": mutations, "where": conds(where)}
}

// Delete removes the rows that meet all conditions. Rows that nothing refers to any more go by themselves, if the schema says so.
func Delete(table string, where ...Cond) Op {
	return Op{"op": "delete", "table": table, "where": conds(where)}
}

// Wait holds the transaction until the rows that meet all conditions are (until "==") or are not ("!=") the given ones in the given
// columns. When they are not within the limit the transaction fails with Code "timed out"; a limit of 0 does not wait, a negative
// one has no end.
func Wait(table string, limit time.Duration, columns []string, until string, rows []Row, where ...Cond) Op {
	o := Op{"op": "wait", "table": table, "columns": columns, "until": until, "rows": rows, "where": conds(where)}
	if rows == nil {
		o["rows"] = []Row{}
	}
	if limit >= 0 {
		o["timeout"] = limit.Milliseconds()
	}
	return o
}

// Comment is written to the server's log with the transaction.
func Comment(text string) Op { return Op{"op": "comment", "comment": text} }

func conds(where []Cond) []Cond {
	if where == nil {
		return []Cond{}
	}
	return where
}
