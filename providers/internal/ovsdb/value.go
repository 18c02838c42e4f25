package ovsdb

import (
	"encoding/json"
	"slices"
)

// Row is a row, or part of one: columns as RFC 7047 section 5.1 writes them in JSON. What the server answers holds json.Number for
// numbers. The functions of this file make and read the values; the readers are lenient: a column that is missing or has another shape is
// empty.
type Row map[string]any

// Set is a set of atoms: string, bool, int, float, or what UUID and NamedUUID return.
func Set[T any](atoms ...T) any {
	list := make([]any, len(atoms))
	for i, a := range atoms {
		list[i] = a
	}
	return []any{"set", list}
}

// Optional is the atom, or the empty set for its zero value.
func Optional[T comparable](v T) any {
	var zero T
	if v == zero {
		return Set[any]()
	}
	return v
}

// Map is a map of strings, in the order of its keys so that equal maps are equal text.
func Map(m map[string]string) any {
	list := make([]any, 0, len(m))
	for _, k := range sortedKeys(m) {
		list = append(list, []any{k, m[k]})
	}
	return []any{"map", list}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// UUID refers to a row.
func UUID(id string) any { return []any{"uuid", id} }

// NamedUUID refers to a row that another operation of the same transaction inserts under that name.
func NamedUUID(name string) any { return []any{"named-uuid", name} }

// Atoms are the elements of a set; a lone atom stands for a set of one.
func Atoms(v any) []any {
	if v == nil {
		return nil
	}
	if tag, body, ok := tagged(v); ok {
		if tag == "set" {
			list, _ := body.([]any)
			return list
		}
		if tag == "map" {
			return nil
		}
	}
	return []any{v}
}

func tagged(v any) (tag string, body any, ok bool) {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return "", nil, false
	}
	tag, ok = pair[0].(string)
	return tag, pair[1], ok
}

// String is the string, or the first of a set.
func String(v any) string {
	for _, a := range Atoms(v) {
		if s, ok := a.(string); ok {
			return s
		}
	}
	return ""
}

// Strings are the strings of a set, sorted.
func Strings(v any) []string {
	var out []string
	for _, a := range Atoms(v) {
		if s, ok := a.(string); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// Int is the number, or the first of a set; false when there is none.
func Int(v any) (int64, bool) {
	for _, a := range Atoms(v) {
		if n, ok := number(a); ok {
			return n, true
		}
	}
	return 0, false
}

func number(a any) (int64, bool) {
	switch n := a.(type) {
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	case float64:
		return int64(n), n == float64(int64(n))
	case int64:
		return n, true
	case int:
		return int64(n), true
	}
	return 0, false
}

// Ints are the numbers of a set, sorted.
func Ints(v any) []int64 {
	var out []int64
	for _, a := range Atoms(v) {
		if n, ok := number(a); ok {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Bool is the boolean, or the first of a set; false when there is none.
func Bool(v any) bool {
	for _, a := range Atoms(v) {
		if b, ok := a.(bool); ok {
			return b
		}
	}
	return false
}

// ID is the row that v refers to, or the first of a set of references; "" when there is none.
func ID(v any) string {
	if ids := IDs(v); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// IDs are the rows that v refers to, in the order given.
func IDs(v any) []string {
	var out []string
	for _, a := range Atoms(v) {
		if tag, body, ok := tagged(a); ok && tag == "uuid" {
			if id, ok := body.(string); ok {
				out = append(out, id)
			}
		}
	}
	return out
}

// StringMap is a map of strings; never nil.
func StringMap(v any) map[string]string {
	out := map[string]string{}
	for _, kv := range pairs(v) {
		k, ok1 := kv[0].(string)
		s, ok2 := kv[1].(string)
		if ok1 && ok2 {
			out[k] = s
		}
	}
	return out
}

// IntMap is a map from strings to numbers, such as Interface.statistics; never nil.
func IntMap(v any) map[string]int64 {
	out := map[string]int64{}
	for _, kv := range pairs(v) {
		k, ok1 := kv[0].(string)
		n, ok2 := number(kv[1])
		if ok1 && ok2 {
			out[k] = n
		}
	}
	return out
}

func pairs(v any) [][]any {
	tag, body, ok := tagged(v)
	if !ok || tag != "map" {
		return nil
	}
	list, _ := body.([]any)
	var out [][]any
	for _, e := range list {
		if kv, ok := e.([]any); ok && len(kv) == 2 {
			out = append(out, kv)
		}
	}
	return out
}
