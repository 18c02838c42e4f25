// Package eval turns a Config and variable values into evaluated instances. It is pure: what resources look
// like in the world comes in through Inputs.Resolve, what hosts look like through Inputs.Facts.
//
// Evaluation is by demand: a value is computed when something refers to it and kept. Reference cycles are found
// statically by New, so that demand always ends. Unknown values and marks go through as in Terraform.
//
// Start reading at New (new.go), then refs.go (what a reference is), index.go (the static graph), scope.go (how an expression gets
// its context), values.go and evaluate.go (the demand). testdata says by example what the language does.
package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/schema"
)

// Sensitive is the cty mark of sensitive values.
const Sensitive = mark("sensitive")

type mark string

// Inputs is what an evaluation needs.
type Inputs struct {
	Config    *config.Config
	Catalog   *schema.Catalog
	Variables map[string]cty.Value // root variables that were given, not yet converted or validated
	Dir       string               // path.cwd
	// UnknownVariables makes a required root variable that was not given unknown instead of an error: validating without values.
	UnknownVariables bool
	// Facts gives host.NAME.facts. nil, or cty.NilVal returned: unknown.
	Facts func(host string) (cty.Value, hcl.Diagnostics)
	// Resolve gives the object that a reference to the instance sees: planned while planning, new while applying,
	// of the schema's implied type (marks allowed). It may call Evaluate and Expand of the same Evaluator. nil:
	// every resource is as its configuration says, with computed attributes unknown (what validate wants).
	Resolve func(addrs.Instance) (cty.Value, hcl.Diagnostics)
}

// Instance is one evaluated resource instance.
type Instance struct {
	Addr    addrs.Instance
	Config  *config.Resource
	Schema  *schema.Resource
	Host    string    // "" for a hostless resource
	Desired cty.Value // of the schema's implied type, defaults applied, unset computed attributes null; may be unknown in parts, and marked
}

// Dependency is something an instance needs, directly or through locals, variables, outputs and modules.
type Dependency struct {
	Resource addrs.Resource // in its module instance where that is known, else static
	Reason   string         // "reference" or "depends_on"
	Range    hcl.Range
}

// Host is an evaluated host block.
type Host struct {
	Name   string
	Config cty.Value // of Catalog.Host's implied type
	Range  hcl.Range
}

// Generator is an evaluated generator block.
type Generator struct {
	Addr   addrs.Object
	Host   string
	Config cty.Value
	Range  hcl.Range
}

// Benchmark is an evaluated benchmark block.
type Benchmark struct {
	Addr      addrs.Object
	Generator addrs.Object
	Path      []addrs.Instance
	Method    string    // name of the method block
	MethodCfg cty.Value // its value
	Config    cty.Value // the shared arguments: Catalog.Benchmark's implied type
	Requires  []*config.CheckRule
	Range     hcl.Range
}
