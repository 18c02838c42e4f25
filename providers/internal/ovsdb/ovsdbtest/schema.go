package ovsdbtest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
)

// vswitch.ovsschema of Open vSwitch 3.1.0 (Apache License 2.0), one column a line.
//
//go:embed schema.json
var schemaJSON []byte

// SchemaJSON is the schema as get_schema answers it.
func SchemaJSON() []byte { return append([]byte(nil), schemaJSON...) }

type dbSchema struct {
	Name   string                  `json:"name"`
	Tables map[string]*tableSchema `json:"tables"`
}

type tableSchema struct {
	Columns map[string]*columnSchema `json:"columns"`
	IsRoot  bool                     `json:"isRoot"`
	MaxRows int                      `json:"maxRows"`
	Indexes [][]string               `json:"indexes"`
}

type columnSchema struct {
	Type      columnType `json:"type"`
	Mutable   *bool      `json:"mutable"`
	Ephemeral bool       `json:"ephemeral"`
}

// columnType is <type> of RFC 7047 section 3.2: a scalar, an optional, a set or a map.
type columnType struct {
	Key      baseType
	Value    *baseType
	Min, Max int
}

type baseType struct {
	Type       string
	Enum       []any
	MinInteger *int64
	MaxInteger *int64
	RefTable   string
	RefType    string // "strong" (default), "weak"
}

func (t *columnType) UnmarshalJSON(b []byte) error {
	*t = columnType{Min: 1, Max: 1}
	if b[0] == '"' {
		return json.Unmarshal(b, &t.Key)
	}
	var raw struct {
		Key   baseType  `json:"key"`
		Value *baseType `json:"value"`
		Min   *int      `json:"min"`
		Max   any       `json:"max"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	t.Key, t.Value = raw.Key, raw.Value
	if raw.Min != nil {
		t.Min = *raw.Min
	}
	switch m := raw.Max.(type) {
	case float64:
		t.Max = int(m)
	case string:
		t.Max = math.MaxInt
	}
	return nil
}

func (b *baseType) UnmarshalJSON(in []byte) error {
	if in[0] == '"' {
		return json.Unmarshal(in, &b.Type)
	}
	var raw struct {
		Type       string `json:"type"`
		Enum       []any  `json:"enum"`
		MinInteger *int64 `json:"minInteger"`
		MaxInteger *int64 `json:"maxInteger"`
		RefTable   string `json:"refTable"`
		RefType    string `json:"refType"`
	}
	if err := json.Unmarshal(in, &raw); err != nil {
		return err
	}
	*b = baseType{Type: raw.Type, MinInteger: raw.MinInteger, MaxInteger: raw.MaxInteger, RefTable: raw.RefTable, RefType: raw.RefType}
	if len(raw.Enum) == 2 { // ["set", [...]]
		b.Enum, _ = raw.Enum[1].([]any)
	}
	return nil
}

func parseSchema() (*dbSchema, error) {
	var s dbSchema
	if err := json.Unmarshal(schemaJSON, &s); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	ref := &columnSchema{Type: columnType{Key: baseType{Type: "uuid"}, Min: 1, Max: 1}}
	for _, t := range s.Tables {
		t.Columns["_uuid"], t.Columns["_version"] = ref, ref
	}
	return &s, nil
}
