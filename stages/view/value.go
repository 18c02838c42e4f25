package view

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// decode reads a JSON document for rendering: numbers keep their spelling. Nothing, or what cannot be read, is nil: a view
// never fails.
func decode(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// hidden stands where a value is not to be shown.
type hidden struct{}

// inline writes a value on one line as HCL would.
func inline(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case hidden:
		return "(sensitive value)"
	case string:
		return quoteHCL(v)
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = inline(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, keyHCL(k)+" = "+inline(v[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return "?"
}

// quoteHCL quotes a string so that HCL reads the same string back.
func quoteHCL(s string) string {
	q := strconv.Quote(s)
	q = strings.ReplaceAll(q, "${", "$${")
	return strings.ReplaceAll(q, "%{", "%%{")
}

// keyHCL writes a map key bare where HCL allows it.
func keyHCL(k string) string {
	for i, r := range k {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return quoteHCL(k)
		}
	}
	if k == "" {
		return `""`
	}
	return k
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// empty says that a value carries nothing that a person needs to see on create.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, e := range v {
			if !empty(e) {
				return false
			}
		}
		return true
	}
	return false
}

// JSONValue writes a JSON document as HCL would, on one line.
func JSONValue(raw json.RawMessage) string { return inline(decode(raw)) }
