package ovsdbtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ref is a row's UUID as an atom.
type ref string

// datum is the value of a column: sorted keys, and values beside them if the column is a map. An atom is a string, int64, float64, bool or
// ref.
type datum struct {
	keys, vals []any
}

// fault is an error of an operation as RFC 7047 names them.
type fault struct{ code, details string }

func (f *fault) Error() string { return f.code + ": " + f.details }

func faultf(code, format string, args ...any) *fault {
	return &fault{code, fmt.Sprintf(format, args...)}
}

// parseDatum reads wire form. names gives the UUIDs of named-uuids.
func parseDatum(t columnType, v any, names map[string]string) (datum, *fault) {
	var d datum
	tag, body, ok := tagged(v)
	switch {
	case ok && tag == "map":
		if t.Value == nil {
			return d, faultf("syntax error", "a map where the column is a set")
		}
		for _, e := range body {
			kv, ok := e.([]any)
			if !ok || len(kv) != 2 {
				return d, faultf("syntax error", "a map element is not a pair")
			}
			k, f := parseAtom(t.Key, kv[0], names)
			if f != nil {
				return d, f
			}
			val, f := parseAtom(*t.Value, kv[1], names)
			if f != nil {
				return d, f
			}
			d = d.with(k, val, true)
		}
	case ok && tag == "set":
		if t.Value != nil && len(body) > 0 {
			return d, faultf("syntax error", "a set where the column is a map")
		}
		for _, e := range body {
			k, f := parseAtom(t.Key, e, names)
			if f != nil {
				return d, f
			}
			d = d.with(k, nil, false)
		}
	default:
		if t.Value != nil {
			return d, faultf("syntax error", "an atom where the column is a map")
		}
		k, f := parseAtom(t.Key, v, names)
		if f != nil {
			return d, f
		}
		d = d.with(k, nil, false)
	}
	return d, nil
}

func (d datum) count(t columnType) *fault {
	if len(d.keys) < t.Min || len(d.keys) > t.Max {
		return faultf("constraint violation", "%d values where the column takes from %d to %d", len(d.keys), t.Min, t.Max)
	}
	return nil
}

func tagged(v any) (string, []any, bool) {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return "", nil, false
	}
	tag, _ := pair[0].(string)
	body, ok := pair[1].([]any)
	return tag, body, ok && (tag == "set" || tag == "map")
}

func parseAtom(b baseType, v any, names map[string]string) (any, *fault) {
	bad := faultf("syntax error", "%v is not a %s", v, b.Type)
	switch b.Type {
	case "string":
		s, ok := v.(string)
		if !ok {
			return nil, bad
		}
		if b.Enum != nil && !slices.Contains(b.Enum, any(s)) {
			return nil, faultf("constraint violation", "%s is not one of the allowed values %v", s, b.Enum)
		}
		return s, nil
	case "integer":
		n, ok := v.(json.Number)
		if !ok {
			return nil, bad
		}
		i, err := n.Int64()
		if err != nil {
			return nil, bad
		}
		if b.MinInteger != nil && i < *b.MinInteger || b.MaxInteger != nil && i > *b.MaxInteger {
			return nil, faultf("constraint violation", "%d is not in the valid range", i)
		}
		return i, nil
	case "real":
		n, ok := v.(json.Number)
		if !ok {
			return nil, bad
		}
		f, err := n.Float64()
		if err != nil {
			return nil, bad
		}
		return f, nil
	case "boolean":
		x, ok := v.(bool)
		if !ok {
			return nil, bad
		}
		return x, nil
	case "uuid":
		pair, ok := v.([]any)
		if !ok || len(pair) != 2 {
			return nil, bad
		}
		id, ok := pair[1].(string)
		switch {
		case !ok:
		case pair[0] == "uuid":
			return ref(id), nil
		case pair[0] == "named-uuid":
			real, known := names[id]
			if !known { // as ovsdb-server: a row that is not there, which the end of the transaction finds
				real = "named " + id
			}
			return ref(real), nil
		}
	}
	return nil, bad
}

// with adds an element; a map keeps the value it has unless replace.
func (d datum) with(k, v any, isMap bool) datum {
	i, found := slices.BinarySearchFunc(d.keys, k, compareAtoms)
	if found {
		return d
	}
	out := datum{keys: slices.Insert(slices.Clone(d.keys), i, k)}
	if isMap {
		out.vals = slices.Insert(slices.Clone(d.vals), i, v)
	}
	return out
}

func (d datum) without(k any) datum {
	i, found := slices.BinarySearchFunc(d.keys, k, compareAtoms)
	if !found {
		return d
	}
	out := datum{keys: slices.Delete(slices.Clone(d.keys), i, i+1)}
	if d.vals != nil {
		out.vals = slices.Delete(slices.Clone(d.vals), i, i+1)
	}
	return out
}

func (d datum) equal(e datum) bool {
	return slices.Equal(d.keys, e.keys) && slices.Equal(d.vals, e.vals)
}

// includes says that d holds all of e.
func (d datum) includes(e datum) bool {
	for i, k := range e.keys {
		j, found := slices.BinarySearchFunc(d.keys, k, compareAtoms)
		if !found || e.vals != nil && d.vals[j] != e.vals[i] {
			return false
		}
	}
	return true
}

// excludes says that d holds nothing of e.
func (d datum) excludes(e datum) bool {
	for i, k := range e.keys {
		j, found := slices.BinarySearchFunc(d.keys, k, compareAtoms)
		if found && (e.vals == nil || d.vals[j] == e.vals[i]) {
			return false
		}
	}
	return true
}

func compareAtoms(a, b any) int {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return int(min(max(x-y, -1), 1))
		}
	case float64:
		if y, ok := b.(float64); ok && x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// wire is the datum in JSON form.
func (d datum) wire(t columnType) any {
	if t.Value != nil {
		list := make([]any, len(d.keys))
		for i := range d.keys {
			list[i] = []any{wireAtom(d.keys[i]), wireAtom(d.vals[i])}
		}
		return []any{"map", list}
	}
	if len(d.keys) == 1 {
		return wireAtom(d.keys[0])
	}
	list := make([]any, len(d.keys))
	for i := range d.keys {
		list[i] = wireAtom(d.keys[i])
	}
	return []any{"set", list}
}

func wireAtom(a any) any {
	if r, ok := a.(ref); ok {
		return []any{"uuid", string(r)}
	}
	return a
}

// zero is the default of a column (RFC 7047 section 5.2.1).
func zero(t columnType) datum {
	if t.Min == 0 {
		return datum{}
	}
	switch t.Key.Type {
	case "string":
		return datum{keys: []any{""}}
	case "integer":
		return datum{keys: []any{int64(0)}}
	case "real":
		return datum{keys: []any{0.0}}
	case "boolean":
		return datum{keys: []any{false}}
	}
	return datum{} // a reference: the row must name one
}
