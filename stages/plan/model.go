// Package plan compares what the configuration wants with what the world is and says which steps lead from one to the
// other. It reads hosts and changes nothing. Its result is data: the human view, JSON output and saved plan files are all
// made from Plan, and stages/apply runs it without deciding anything.
//
// Start reading at Plan (the model), then Make.
package plan

import (
	"encoding/json"
	"time"

	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/providers"
)

// FormatVersion of the JSON form: "major.minor"; a minor adds only.
const FormatVersion = "1.0"

// Action is what happens to an instance.
type Action string

const (
	NoOp    Action = "no-op"
	Create  Action = "create"
	Update  Action = "update"
	Delete  Action = "delete"
	Replace Action = "replace" // delete, then create; create, then delete where Change.CreateBeforeDestroy
	Read    Action = "read"    // a data source whose configuration is known only after apply
	Reapply Action = "reapply" // nothing to change, but another change takes its effect away
	Forget  Action = "forget"  // gone from the world: only the state forgets it
	Reboot  Action = "reboot"  // of a host, whose address is host.NAME. Steps only
	// Join is the action of a step that does nothing: it waits for all steps of one resource, and others wait for it, so that
	// n users of m instances take n+m edges. Steps only; its address is the resource's, without a key.
	Join Action = "join"
)

// Reason says why, as data; the renderer writes the prose.
type Reason string

const (
	NoReason          Reason = ""
	Requested         Reason = "replace_requested" // -replace
	CannotUpdate      Reason = "cannot_update"     // an attribute with cost replace changes
	Triggered         Reason = "replace_triggered_by"
	NotInConfig       Reason = "not_in_configuration"
	CountIndex        Reason = "count_index" // beyond count
	EachKey           Reason = "each_key"    // not in for_each
	NoModule          Reason = "no_module"
	Destroying        Reason = "destroy"
	WasInDoubt        Reason = "in_doubt" // a killed or failed apply has to be finished
	LostBy            Reason = "lost_by"  // Change.LostBy says by what
	UnknownConfig     Reason = "unknown_configuration"
	PendingDependency Reason = "pending_dependency"
)

// Plan is a whole plan.
type Plan struct {
	FormatVersion string                     `json:"format_version"`
	PlumbVersion  string                     `json:"plumb_version"`
	ID            string                     `json:"id"`
	Created       time.Time                  `json:"created"`
	Destroy       bool                       `json:"destroy,omitempty"`
	Targets       []string                   `json:"targets,omitempty"` // -target: everything else, and the outputs, stay as they are
	Prior         Prior                      `json:"prior_state"`
	Drift         []Change                   `json:"drift,omitempty"` // the world against the state: Before as recorded, After as found
	Changes       []Change                   `json:"changes"`         // sorted by address; no-ops included (the view hides them)
	Steps         []Step                     `json:"steps"`           // what apply runs
	Outputs       map[string]OutputChange    `json:"outputs,omitempty"`
	Benchmarks    []string                   `json:"benchmarks,omitempty"` // that apply would run
	Reads         map[string]providers.Reads `json:"reads"`                // what reading the world cost, by host
	Notes         []Note                     `json:"notes,omitempty"`      // warnings
	Unreachable   []Unreachable              `json:"unreachable,omitempty"`
	Errored       bool                       `json:"errored,omitempty"`
}

// Prior says which state the plan is for. A plan is refused when the state has another lineage or serial, or when the state
// was absent and is not any more.
type Prior struct {
	Lineage string `json:"lineage"`
	Serial  uint64 `json:"serial"`
	Absent  bool   `json:"absent,omitempty"`
}

// Change is one instance's change. Before and After are ctyjson of the schema's implied type; unknown parts of After are null
// and listed in Unknown. Sensitive lists the paths that no view shows.
type Change struct {
	Addr                addrs.Instance  `json:"address"`
	Host                string          `json:"host,omitempty"`
	Action              Action          `json:"action"`
	Reason              Reason          `json:"reason,omitempty"`
	Before              json.RawMessage `json:"before,omitempty"`
	After               json.RawMessage `json:"after,omitempty"`
	Unknown             []Path          `json:"after_unknown,omitempty"`
	Sensitive           []Path          `json:"sensitive,omitempty"`
	Changed             []AttrChange    `json:"changed,omitempty"` // the paths that differ, each with its cost
	Cost                schema.Cost     `json:"cost"`
	Reboot              bool            `json:"reboot,omitempty"` // takes effect with a reboot of the host, which is a step of its own
	Effects             []string        `json:"effects,omitempty"`
	LostBy              string          `json:"lost_by,omitempty"`  // address of the change that takes the effect away; also beside an update or in-doubt: then it is applied with Reapply
	LostWhy             string          `json:"lost_why,omitempty"` // schema.Loss.Why
	CreateBeforeDestroy bool            `json:"create_before_destroy,omitempty"`
	PreventDestroy      bool            `json:"prevent_destroy,omitempty"`
	DependsOn           []string        `json:"dependencies,omitempty"` // resource addresses that the state records for a later destroy
	Deposed             bool            `json:"deposed,omitempty"`      // the old half of an earlier create_before_destroy
	DeposedAt           uint64          `json:"deposed_at,omitempty"`   // as in the state
}

// Path is a path into a value: attribute names, map keys and decimal indices.
type Path []string

// AttrChange is one differing attribute.
type AttrChange struct {
	Path Path        `json:"path"`
	Cost schema.Cost `json:"cost"`
}

// Step is one thing that apply does. Steps with the same Addr occur for a replace (delete and create).
type Step struct {
	ID     int            `json:"id"` // its index in Plan.Steps
	Addr   addrs.Instance `json:"address"`
	Host   string         `json:"host,omitempty"`
	Action Action         `json:"action"` // create, update, delete, reapply, read, forget, reboot, join
	// Deposed says that a delete is of a deposed instance: of the one with DeposedAt, or, where that is 0, of the one that this very
	// run's create has deposed (create_before_destroy).
	Deposed   bool   `json:"deposed,omitempty"`
	DeposedAt uint64 `json:"deposed_at,omitempty"`
	After     []Edge `json:"after,omitempty"`
}

// Edge says that a step waits for another, and why: "reference", "depends_on", "host order", "replace order", "reboot order".
type Edge struct {
	Step   int    `json:"step"`
	Reason string `json:"reason"`
}

// OutputChange is a root output's change.
type OutputChange struct {
	Action    Action          `json:"action"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Unknown   bool            `json:"after_unknown,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

// Unreachable is a host that cannot be reached. Nothing is planned for what is on it, nor for what needs a value from there that nobody knows.
type Unreachable struct {
	Host  string     `json:"host"`
	Error string     `json:"error"`
	Left  []Instance `json:"left"` // as they are, on this host and on others
}

// Instance is an address with its host.
type Instance struct {
	Addr addrs.Instance `json:"address"`
	Host string         `json:"host"`
}

// Note is a warning in the plan.
type Note struct {
	Addr    string `json:"address,omitempty"`
	Summary string `json:"summary"`
	Detail  string `json:"detail"`
}
