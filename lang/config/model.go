// Package config reads the files of a configuration into a Config: every block found, its labels and
// meta-arguments decoded, its body kept for lang/eval. It evaluates nothing that depends on a variable and does
// no I/O but reading the files of the module folders (Load).
//
// Start reading at Module.
package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
)

// Config is a root module with everything it calls.
type Config struct {
	Root    *Module
	Sources map[string][]byte // by file name as in the ranges: what a diagnostic quotes, and what a saved plan carries
}

// Module is the content of one folder at one place in the tree of calls.
type Module struct {
	Addr       addrs.Module // static path: without instance keys
	Dir        string
	Parent     *Module
	Settings   Settings
	Variables  map[string]*Variable
	Locals     map[string]*Local
	Outputs    map[string]*Output
	Calls      map[string]*Call
	Resources  map[string]*Resource  // by Resource.Addr.Local(): "ovs_port.p0", "data.host_facts.h"
	Hosts      map[string]*Host      // root module only
	Generators map[string]*Generator // by "type.name"
	Benchmarks map[string]*Benchmark // by name
}

// Settings is the plumb block.
type Settings struct {
	RequiredVersion   []Constraint // checked while loading, before anything else is decoded
	RequiredProviders map[string]Constraint
	Backend           *Backend
}

// Constraint is a version constraint with its place.
type Constraint struct {
	Text  string
	Range hcl.Range
}

// Backend says where the state is kept: type "local" with its arguments.
type Backend struct {
	Type  string
	Body  hcl.Body
	Range hcl.Range
}

// Variable is an input of a module.
type Variable struct {
	Name        string
	Description string
	Type        cty.Type  // cty.DynamicPseudoType when not given; with optional() attributes, as convert.Convert takes it
	Optional    any       // *typeexpr.Defaults of optional() attributes; nil for none
	Default     cty.Value // cty.NilVal: required
	Sensitive   bool
	Nullable    bool // true unless nullable = false
	Validations []*CheckRule
	Range       hcl.Range
}

// CheckRule is a condition with the message that is shown when it is false: validation, precondition, postcondition, require.
type CheckRule struct {
	Condition    hcl.Expression
	ErrorMessage hcl.Expression
	Range        hcl.Range
}

// Local is one entry of a locals block.
type Local struct {
	Name  string
	Expr  hcl.Expression
	Range hcl.Range
}

// Output is an output block.
type Output struct {
	Name          string
	Description   string
	Expr          hcl.Expression
	Sensitive     bool
	DependsOn     []hcl.Traversal
	Preconditions []*CheckRule
	Range         hcl.Range
}

// Call is a module block.
type Call struct {
	Name      string
	Source    string // a local path: ./x or ../x
	SourceAt  hcl.Range
	Module    *Module
	Count     hcl.Expression // nil for none
	ForEach   hcl.Expression // nil for none
	DependsOn []hcl.Traversal
	Inputs    hcl.Body // arguments that are not meta-arguments
	Range     hcl.Range
}

// Resource is a resource or data block.
type Resource struct {
	Addr      addrs.Resource // Module is the static path
	Host      hcl.Traversal  // host = host.x; nil when left out
	Count     hcl.Expression
	ForEach   hcl.Expression
	DependsOn []hcl.Traversal
	Lifecycle Lifecycle
	Body      hcl.Body  // without the meta-arguments
	Range     hcl.Range // of the header
}

// Lifecycle is the lifecycle block of a resource.
type Lifecycle struct {
	CreateBeforeDestroy bool
	PreventDestroy      bool
	IgnoreAll           bool
	IgnoreChanges       []hcl.Traversal // relative: the first step is a TraverseAttr
	ReplaceTriggeredBy  []hcl.Expression
	Preconditions       []*CheckRule
	Postconditions      []*CheckRule
	Range               hcl.Range
}

// Host is a host block.
type Host struct {
	Name  string
	Body  hcl.Body
	Range hcl.Range
}

// Generator is a generator block.
type Generator struct {
	Addr  addrs.Object
	Host  hcl.Traversal
	Body  hcl.Body
	Range hcl.Range
}

// Benchmark is a benchmark block.
type Benchmark struct {
	Addr      addrs.Object
	Generator hcl.Traversal   // generator = generator.testpmd.tg
	Path      []hcl.Traversal // path = [ovs_port.p0, ...]
	PathRange hcl.Range
	DependsOn []hcl.Traversal
	Requires  []*CheckRule // require blocks
	Body      hcl.Body     // the rest: traffic, method block, repeat, ...
	Range     hcl.Range
}
