// Package state keeps what Plumb knows of the world: which instances exist, with their attributes, what they depend on and
// what to put back when they go. It is the only package that writes the state file, its lock and its journal.
//
// Start reading at State (the model), then Store (files, lock), then Journal (crash safety).
package state

import (
	"encoding/json"

	"plumb/lang/addrs"
)

// FormatVersion of the state file.
const FormatVersion = 1

// State is the content of a state file.
type State struct {
	Version      int               `json:"version"`
	PlumbVersion string            `json:"plumb_version"`
	Serial       uint64            `json:"serial"`                 // grows by one with each write
	Lineage      string            `json:"lineage"`                // made once; also the testbed's ownership mark
	AppliedPlan  string            `json:"applied_plan,omitempty"` // id of the last plan that was applied
	Hosts        map[string]Host   `json:"hosts"`                  // as last used, so that destroy needs no configuration
	Outputs      map[string]Output `json:"outputs"`
	Instances    []*Instance       `json:"instances"`                 // sorted by address
	Generators   []OpenGenerator   `json:"open_generators,omitempty"` // opened by a bench that has not closed them: to be swept
}

// Host is a host block as last used.
type Host struct {
	Config json.RawMessage `json:"config"`
}

// Output is a root output. The type is cty's JSON form.
type Output struct {
	Value     json.RawMessage `json:"value"`
	Type      json.RawMessage `json:"type"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

// Status of an instance.
type Status string

const (
	Ready      Status = ""           // attributes are as last applied or read
	InDoubt    Status = "in_doubt"   // a step was begun and its outcome not recorded; Read decides
	Incomplete Status = "incomplete" // the last apply of it failed: attributes are what was there then; it is applied again
)

// Instance is one managed resource instance.
type Instance struct {
	Addr                addrs.Instance  `json:"address"`
	Host                string          `json:"host,omitempty"`
	SchemaVersion       int             `json:"schema_version"`
	Status              Status          `json:"status,omitempty"`
	Attributes          json.RawMessage `json:"attributes"`                // ctyjson of the schema's implied type
	Sensitive           [][]string      `json:"sensitive_paths,omitempty"` // each path as rendered steps
	Undo                json.RawMessage `json:"undo,omitempty"`            // what Prepare said: how to put back
	DependsOn           []string        `json:"dependencies,omitempty"`    // resource addresses (all instances), printed form
	PreventDestroy      bool            `json:"prevent_destroy,omitempty"`
	CreateBeforeDestroy bool            `json:"create_before_destroy,omitempty"`
	Deposed             bool            `json:"deposed,omitempty"`    // the old half of a create_before_destroy that still has to go
	DeposedAt           uint64          `json:"deposed_at,omitempty"` // serial that the run began with: tells deposed instances of one address apart
}

// OpenGenerator is a generator that a benchmark opened.
type OpenGenerator struct {
	Type string `json:"type"`
	Host string `json:"host,omitempty"`
}
