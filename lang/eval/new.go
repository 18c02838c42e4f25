package eval

import (
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/funcs"
	"plumb/lang/schema"
)

// Evaluator evaluates one configuration with one set of variables. Its methods are safe for concurrent use, and everything that
// was computed once is kept: an Evaluator lives for one plan or one apply. A value that hangs on a resource must not be asked for
// before Inputs.Resolve can answer finally.
type Evaluator struct {
	in       Inputs
	rootInst *moduleInst

	// Filled by New, constant afterwards.
	nodes          map[nodeID]*node
	order          []*node // dependencies first
	callInputs     map[*config.Call]hcl.Attributes
	ruleRefs       map[hcl.Expression][]ref
	benchmarkBlock *schema.Block
	sharedType     cty.Type // of the arguments that all methods share

	blocksMu sync.Mutex
	blocks   map[*schema.Block]*blockInfo // guarded by blocksMu

	tables     memo[string, map[string]function.Function]
	variables  memo[named, cty.Value]
	validated  memo[named, struct{}]
	locals     memo[named, cty.Value]
	outputs    memo[named, cty.Value]
	resources  memo[named, cty.Value] // what references see
	bodies     memo[named, cty.Value] // bodies that are the same for all instances
	instances  memo[instanceKey, *Instance]
	expansions memo[named, expansion]
	children   memo[childKey, *moduleInst]
	byAddress  memo[addrs.Module, *moduleInst]
	hosts      memo[string, *Host]
	facts      memo[string, cty.Value]
	generators memo[named, *Generator]
}

// New checks everything about a configuration that can be told without evaluating resources: that references name something,
// that they do not go in circles, that types and methods are known, and that the variables are given, of their type and valid. The
// Evaluator is nil when there are errors. in.Config must have been loaded without errors.
func New(in Inputs) (*Evaluator, hcl.Diagnostics) {
	e := &Evaluator{
		in: in, rootInst: &moduleInst{cfg: in.Config.Root},
		nodes: map[nodeID]*node{}, callInputs: map[*config.Call]hcl.Attributes{}, ruleRefs: map[hcl.Expression][]ref{},
		blocks: map[*schema.Block]*blockInfo{}, sharedType: cty.EmptyObject,
	}
	if in.Catalog.Host == nil {
		catalog := *in.Catalog
		catalog.Host = &schema.Block{}
		e.in.Catalog = &catalog
	}
	e.benchmarkBlock = wholeBenchmark(e.in.Catalog)
	if b := e.in.Catalog.Benchmark; b != nil {
		e.sharedType = b.ImpliedType()
	}
	x := &indexer{Evaluator: e}
	x.module(in.Config.Root)
	order, cycles := sortNodes(e.nodes)
	diags := append(x.diags, cycles...)
	e.order = order
	if !diags.HasErrors() {
		diags = append(diags, e.rootVariables()...)
	}
	if !diags.HasErrors() {
		diags = append(diags, e.earlyVariables()...)
	}
	diags = sorted(Dedup(diags))
	if diags.HasErrors() {
		return nil, diags
	}
	return e, diags
}

// functions is the table of functions for a module's folder, which relative file names in it start from.
func (e *Evaluator) functions(dir string) map[string]function.Function {
	t, _ := e.tables.get(dir, func() (map[string]function.Function, hcl.Diagnostics) { return funcs.Table(dir, Sensitive), nil })
	return t
}
