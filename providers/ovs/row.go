package ovs

import (
	"slices"

	"plumb/providers/internal/ovsdb"
)

// row is a row of a table, read leniently: a column that is missing is empty.
type row map[string]any

// op is one operation of a transaction, as RFC 7047 section 5.2 writes it.
type op map[string]any

func (r row) str(col string) string           { return ovsdb.String(r[col]) }
func (r row) strs(col string) []string        { return ovsdb.Strings(r[col]) }
func (r row) num(col string) (int64, bool)    { return ovsdb.Int(r[col]) }
func (r row) nums(col string) []int64         { return ovsdb.Ints(r[col]) }
func (r row) boolean(col string) bool         { return ovsdb.Bool(r[col]) }
func (r row) uuids(col string) []string       { return ovsdb.IDs(r[col]) }
func (r row) dict(c string) map[string]string { return ovsdb.StringMap(r[c]) }

func uuidRef(id string) any          { return ovsdb.UUID(id) }
func namedRef(id string) any         { return ovsdb.NamedUUID(id) }
func setOf[T any](list []T) any      { return ovsdb.Set(list...) }
func optional[T comparable](v T) any { return ovsdb.Optional(v) }
func mapOf(m map[string]string) any  { return ovsdb.Map(m) }

// byUUID is the where clause for one row.
func byUUID(id string) []any { return []any{ovsdb.ByID(id)} }

// mapChange is the mutations that set and remove keys of a map column.
func mapChange(col string, set map[string]string, remove []string) []any {
	gone := slices.Clone(remove)
	for k := range set {
		if !slices.Contains(gone, k) {
			gone = append(gone, k)
		}
	}
	slices.Sort(gone)
	out := []any{[]any{col, "delete", setOf(gone)}}
	if len(set) > 0 {
		out = append(out, []any{col, "insert", mapOf(set)})
	}
	return out
}
