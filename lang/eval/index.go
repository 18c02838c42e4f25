package eval

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/diagfmt"
	"plumb/lang/schema"
)

// The index is the static graph: every named object of every module, and what each refers to. It is built once by New, which
// checks each reference on the way, and answers Resources, Dependencies and the search for cycles.

type nodeKind uint8

const (
	nodeVariable nodeKind = iota
	nodeLocal
	nodeOutput
	nodeCall
	nodeResource
	nodeHost
	nodeGenerator
	nodeBenchmark
)

type nodeID struct {
	module *config.Module
	kind   nodeKind
	name   string
}

// String is the address of the object as people write it.
func (id nodeID) String() string {
	prefix := map[nodeKind]string{
		nodeVariable: "var.", nodeLocal: "local.", nodeOutput: "output.", nodeCall: "module.", nodeResource: "",
		nodeHost: "host.", nodeGenerator: "generator.", nodeBenchmark: "benchmark.",
	}[id.kind]
	return id.module.Addr.Prefix(prefix + id.name)
}

type node struct {
	nodeID
	resource *config.Resource
	bodyRefs []ref // of a resource's, host's, generator's or benchmark's body
	edges    []edge
	world    bool // leads to a resource or to facts of a host: not to be evaluated by New
	visit    visit
}

type edge struct {
	to     *node
	reason string
	rng    hcl.Range
}

// Reasons of a Dependency.
const (
	reference = "reference"
	dependsOn = "depends_on"
)

// indexer fills the index of one Evaluator.
type indexer struct {
	*Evaluator
	diags hcl.Diagnostics
}

func (x *indexer) report(d *hcl.Diagnostic) {
	if d != nil {
		x.diags = append(x.diags, d)
	}
}

func (x *indexer) node(m *config.Module, kind nodeKind, name string) *node {
	id := nodeID{module: m, kind: kind, name: name}
	n := x.nodes[id]
	if n == nil {
		n = &node{nodeID: id}
		x.nodes[id] = n
	}
	return n
}

// module indexes m and everything it calls.
func (x *indexer) module(m *config.Module) {
	for _, name := range sortedKeys(m.Variables) {
		x.variable(m, m.Variables[name])
	}
	for _, name := range sortedKeys(m.Locals) {
		x.expr(x.node(m, nodeLocal, name), m, m.Locals[name].Expr, allowance{})
	}
	for _, name := range sortedKeys(m.Outputs) {
		o, n := m.Outputs[name], x.node(m, nodeOutput, name)
		x.expr(n, m, o.Expr, allowance{})
		x.rules(n, m, o.Preconditions, allowance{})
		x.dependsOn(n, m, o.DependsOn)
	}
	for _, name := range sortedKeys(m.Resources) {
		x.resource(m, m.Resources[name])
	}
	for _, name := range sortedKeys(m.Hosts) {
		x.host(m, m.Hosts[name])
	}
	for _, name := range sortedKeys(m.Generators) {
		x.generator(m, m.Generators[name])
	}
	for _, name := range sortedKeys(m.Benchmarks) {
		x.benchmark(m, m.Benchmarks[name])
	}
	for _, name := range sortedKeys(m.Calls) {
		x.call(m, m.Calls[name])
	}
}

// inside makes what a module's block stands for depend on the call that makes the module's instances.
func (x *indexer) inside(n *node, m *config.Module) {
	if m.Parent == nil {
		return
	}
	call := x.callOf(m)
	gate := x.node(m.Parent, nodeCall, call.Name)
	n.edges = append(n.edges, edge{to: gate, reason: reference, rng: call.Range})
}

// callOf is the call that made m, nil for the root.
func (e *Evaluator) callOf(m *config.Module) *config.Call {
	if m.Parent == nil {
		return nil
	}
	steps := m.Addr.Steps()
	return m.Parent.Calls[steps[len(steps)-1].Name]
}

func (x *indexer) variable(m *config.Module, v *config.Variable) {
	n := x.node(m, nodeVariable, v.Name)
	x.inside(n, m)
	if call := x.callOf(m); call != nil {
		if in := x.inputs(call)[v.Name]; in != nil {
			x.expr(n, m.Parent, in.Expr, repeats(call.Count, call.ForEach))
		}
	}
	for _, r := range v.Validations {
		for _, expr := range []hcl.Expression{r.Condition, r.ErrorMessage} {
			refs := x.checked(m, expr.Variables(), allowance{})
			x.ruleRefs[expr] = refs
			// A validation looks at its own variable before anybody else sees it.
			x.edges(n, m, slices.DeleteFunc(slices.Clone(refs), func(r ref) bool { return r.kind == refVariable && r.name == v.Name }), reference)
		}
	}
}

func (x *indexer) resource(m *config.Module, r *config.Resource) {
	n := x.node(m, nodeResource, r.Addr.Local())
	n.resource, n.world = r, true
	x.exprs(n, m, allowance{}, r.Count, r.ForEach)
	sch := x.schemaOf(r.Addr)
	if sch == nil {
		x.unknownType(r)
	} else {
		x.body(n, m, r.Body, &sch.Block, repeats(r.Count, r.ForEach))
		x.hostArgument(n, r.Host, sch.Hostless, r.Addr.Local(), r.Range)
		x.ignoreChanges(r, sch)
	}
	x.rules(n, m, r.Lifecycle.Preconditions, repeats(r.Count, r.ForEach))
	post := repeats(r.Count, r.ForEach)
	post.self = true
	x.rules(n, m, r.Lifecycle.Postconditions, post)
	for _, t := range r.Lifecycle.ReplaceTriggeredBy {
		x.expr(n, m, t, repeats(r.Count, r.ForEach))
	}
	x.dependsOn(n, m, r.DependsOn)
	x.inside(n, m)
}

func (x *indexer) unknownType(r *config.Resource) {
	what, types := "resource type", sortedKeys(x.in.Catalog.Resources)
	if r.Addr.Mode == addrs.Data {
		what, types = "data source", sortedKeys(x.in.Catalog.Data)
	}
	x.report(errorAt(r.Range, "Unknown "+what, "There is no %s %q.%s", what, r.Addr.Type, diagfmt.DidYouMean(r.Addr.Type, types)))
}

func (x *indexer) ignoreChanges(r *config.Resource, sch *schema.Resource) {
	for _, tr := range r.Lifecycle.IgnoreChanges {
		name, _ := attrAt(tr, 0)
		if sch.Block.Attributes[name] == nil && sch.Block.Blocks[name] == nil {
			names := slices.Concat(sortedKeys(sch.Block.Attributes), sortedKeys(sch.Block.Blocks))
			x.report(errorAt(tr.SourceRange(), "Unsupported attribute", "ignore_changes names %q, but %s has no such argument.%s", name, sch.Type, diagfmt.DidYouMean(name, names)))
		}
	}
}

// hostArgument checks the host argument, or that it may be left out, and adds the edge to the host.
func (x *indexer) hostArgument(n *node, tr hcl.Traversal, hostless bool, what string, block hcl.Range) {
	hosts := x.in.Config.Root.Hosts
	if hostless {
		if tr != nil {
			x.report(errorAt(tr.SourceRange(), "Unsupported argument", "%s does not live on a host: remove the host argument.", what))
		}
		return
	}
	if tr != nil {
		refs := x.checked(n.module, []hcl.Traversal{tr}, allowance{})
		x.edges(n, n.module, refs, reference)
		return
	}
	if name, ok := x.onlyHost(); ok {
		n.edges = append(n.edges, edge{to: x.node(x.in.Config.Root, nodeHost, name), reason: reference, rng: block})
		return
	}
	if len(hosts) == 0 {
		x.report(errorAt(block, "Missing host", "%s lives on a host, and no host is declared. Declare this machine with host \"dut\" {}.", what))
		return
	}
	x.report(errorAt(block, "Missing required argument", "%s lives on a host, and there are %d of them: say which with host = host.%s.", what, len(hosts), sortedKeys(hosts)[0]))
}

func (e *Evaluator) onlyHost() (string, bool) {
	hosts := e.in.Config.Root.Hosts
	if len(hosts) != 1 {
		return "", false
	}
	return sortedKeys(hosts)[0], true
}

// hostName is the host of a block that passed hostArgument.
func (e *Evaluator) hostName(tr hcl.Traversal, hostless bool) string {
	if hostless {
		return ""
	}
	if name, ok := attrAt(tr, 1); ok {
		return name
	}
	name, _ := e.onlyHost()
	return name
}

func (x *indexer) host(m *config.Module, h *config.Host) {
	x.body(x.node(m, nodeHost, h.Name), m, h.Body, x.in.Catalog.Host, allowance{})
}

func (x *indexer) generator(m *config.Module, g *config.Generator) {
	n := x.node(m, nodeGenerator, g.Addr.Type+"."+g.Addr.Name)
	sch := x.in.Catalog.Generators[g.Addr.Type]
	if sch == nil {
		x.report(errorAt(g.Range, "Unknown generator type", "There is no generator type %q.%s", g.Addr.Type, diagfmt.DidYouMean(g.Addr.Type, sortedKeys(x.in.Catalog.Generators))))
		return
	}
	x.body(n, m, g.Body, &sch.Block, allowance{})
	x.hostArgument(n, g.Host, sch.Hostless, "generator."+n.name, g.Range)
	x.inside(n, m)
}

func (x *indexer) benchmark(m *config.Module, b *config.Benchmark) {
	n := x.node(m, nodeBenchmark, b.Addr.Name)
	x.methodOf(b)
	x.body(n, m, b.Body, x.benchmarkBlock, allowance{})
	if b.Generator != nil {
		x.edges(n, m, x.checked(m, []hcl.Traversal{b.Generator}, allowance{}), reference)
	}
	x.path(n, m, b)
	x.rules(n, m, b.Requires, allowance{self: true})
	x.dependsOn(n, m, b.DependsOn)
	x.inside(n, m)
}

func (x *indexer) call(m *config.Module, c *config.Call) {
	n := x.node(m, nodeCall, c.Name)
	x.exprs(n, m, allowance{}, c.Count, c.ForEach)
	x.dependsOn(n, m, c.DependsOn)
	x.inside(n, m)
	inputs := x.inputs(c)
	for _, name := range sortedKeys(inputs) {
		if c.Module.Variables[name] == nil {
			x.report(errorAt(inputs[name].NameRange, "Unsupported argument", "Module %q has no variable named %q.%s", c.Name, name, diagfmt.DidYouMean(name, sortedKeys(c.Module.Variables))))
			x.checked(m, inputs[name].Expr.Variables(), repeats(c.Count, c.ForEach))
		}
	}
	for _, name := range sortedKeys(c.Module.Variables) {
		if v := c.Module.Variables[name]; inputs[name] == nil && v.Default == cty.NilVal {
			x.report(errorAt(c.Range, "Missing required argument", "Module %q needs a value for its variable %q, which has no default.", c.Name, name))
		}
	}
	x.module(c.Module)
}

// inputs are the arguments of a call that are not meta-arguments.
func (x *indexer) inputs(c *config.Call) hcl.Attributes {
	attrs, ok := x.callInputs[c]
	if !ok {
		var diags hcl.Diagnostics
		attrs, diags = c.Inputs.JustAttributes()
		x.diags = append(x.diags, diags...)
		x.callInputs[c] = attrs
	}
	return attrs
}

// body adds what the body refers to and keeps it for evaluation.
func (x *indexer) body(n *node, m *config.Module, body hcl.Body, b *schema.Block, a allowance) {
	info := x.block(b)
	var trs []hcl.Traversal
	if info.nested {
		trs = dynblock.VariablesHCLDec(body, info.spec)
		a.dynamic = firstDynamic(body)
	} else {
		trs = hcldec.Variables(body, info.spec)
	}
	slices.SortFunc(trs, func(a, b hcl.Traversal) int { // they come in no order
		x, y := a.SourceRange(), b.SourceRange()
		return cmp.Or(cmp.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Byte, y.Start.Byte))
	})
	n.bodyRefs = x.checked(m, trs, a)
	x.edges(n, m, n.bodyRefs, reference)
}

// firstDynamic is the type of the first dynamic block in a body; "" when there is none.
func firstDynamic(body hcl.Body) string {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "dynamic", LabelNames: []string{"type"}}}})
	if content == nil || len(content.Blocks) == 0 {
		return ""
	}
	return content.Blocks[0].Labels[0]
}

func (x *indexer) exprs(n *node, m *config.Module, a allowance, exprs ...hcl.Expression) {
	for _, expr := range exprs {
		if expr != nil {
			x.expr(n, m, expr, a)
		}
	}
}

func (x *indexer) expr(n *node, m *config.Module, expr hcl.Expression, a allowance) {
	x.edges(n, m, x.checked(m, expr.Variables(), a), reference)
}

func (x *indexer) rules(n *node, m *config.Module, rules []*config.CheckRule, a allowance) {
	for _, r := range rules {
		for _, expr := range []hcl.Expression{r.Condition, r.ErrorMessage} {
			refs := x.checked(m, expr.Variables(), a)
			x.ruleRefs[expr] = refs
			x.edges(n, m, refs, reference)
		}
	}
}

func (x *indexer) dependsOn(n *node, m *config.Module, trs []hcl.Traversal) {
	refs := x.checked(m, trs, allowance{})
	for _, r := range refs {
		if r.kind != refResource && r.kind != refModule {
			x.report(errorAt(r.rng, "Invalid depends_on", "depends_on takes resources, data sources and modules; everything else is not made but evaluated."))
		}
	}
	x.edges(n, m, refs, dependsOn)
}

// checked takes traversals apart, reports those that refer to nothing, and returns the others.
func (x *indexer) checked(m *config.Module, trs []hcl.Traversal, a allowance) []ref {
	refs := make([]ref, 0, len(trs))
	for _, tr := range trs {
		r, bad := parseRef(tr)
		if bad == nil {
			bad = x.check(m, r, a)
		}
		if bad != nil {
			x.report(bad)
			continue
		}
		refs = append(refs, r)
	}
	return refs
}

// edges makes n need what the references name.
func (x *indexer) edges(n *node, m *config.Module, refs []ref, reason string) {
	add := func(to *node, rng hcl.Range) { n.edges = append(n.edges, edge{to: to, reason: reason, rng: rng}) }
	for _, r := range refs {
		switch r.kind {
		case refVariable:
			add(x.node(m, nodeVariable, r.name), r.rng)
		case refLocal:
			add(x.node(m, nodeLocal, r.name), r.rng)
		case refResource:
			add(x.node(m, nodeResource, r.name), r.rng)
		case refHost:
			if a, ok := attrAt(r.rest, 0); (!ok && reason == reference) || a == "facts" {
				n.world = true
			}
			add(x.node(x.in.Config.Root, nodeHost, r.name), r.rng)
		case refGenerator:
			add(x.node(m, nodeGenerator, r.name), r.rng)
		case refModule:
			call := m.Calls[r.name]
			add(x.node(m, nodeCall, r.name), r.rng)
			for _, name := range sortedKeys(call.Module.Outputs) {
				if out := r.output(); out == "" || out == name {
					add(x.node(call.Module, nodeOutput, name), r.rng)
				}
			}
			if reason == dependsOn {
				x.wholeModule(call.Module, func(to *node) { add(to, r.rng) })
			}
		}
	}
}

// wholeModule calls add for every resource of m and of what m calls: depends_on a module means all of it.
func (x *indexer) wholeModule(m *config.Module, add func(*node)) {
	for _, name := range sortedKeys(m.Resources) {
		add(x.node(m, nodeResource, name))
	}
	for _, name := range sortedKeys(m.Calls) {
		x.wholeModule(m.Calls[name].Module, add)
	}
}
