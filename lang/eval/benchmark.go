package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/schema"
)

// wholeBenchmark is the schema of a benchmark's body: what all methods share, and one optional block for each method.
func wholeBenchmark(c *schema.Catalog) *schema.Block {
	whole := &schema.Block{Attributes: map[string]*schema.Attribute{}, Blocks: map[string]*schema.NestedBlock{}}
	if c.Benchmark != nil {
		whole.Attributes = c.Benchmark.Attributes
		for name, b := range c.Benchmark.Blocks {
			whole.Blocks[name] = b
		}
	}
	for name, m := range c.Methods {
		whole.Blocks[name] = &schema.NestedBlock{Block: *m, Nesting: schema.Single}
	}
	return whole
}

// methodOf reports a benchmark that does not have exactly one method block.
func (x *indexer) methodOf(b *config.Benchmark) {
	methods := sortedKeys(x.in.Catalog.Methods)
	sch := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "dynamic", LabelNames: []string{"type"}}}}
	for _, m := range methods {
		sch.Blocks = append(sch.Blocks, hcl.BlockHeaderSchema{Type: m})
	}
	content, _, diags := b.Body.PartialContent(sch)
	var found hcl.Blocks
	for _, blk := range content.Blocks {
		if blk.Type == "dynamic" {
			if slices.Contains(methods, blk.Labels[0]) {
				x.report(errorAt(blk.DefRange, "Invalid dynamic block", "The method of a benchmark is part of its shape: write the %s block out.", blk.Labels[0]))
				return
			}
			continue
		}
		found = append(found, blk)
	}
	switch {
	case len(found) > 1:
		x.report(errorAt(found[1].DefRange, "More than one method", "A benchmark has one method, and this one has %s at %s already. Put %s into a benchmark of its own.", found[0].Type, place(found[0].DefRange), found[1].Type))
	case len(found) == 0 && !diags.HasErrors() && !x.unknownBlock(b):
		x.report(errorAt(b.Range, "Missing method", "A benchmark needs one block that says how to measure: %s.", quoteList(methods)))
	}
}

// unknownBlock reports blocks that are neither methods nor shared: a misspelled method should not be told as a missing one.
func (x *indexer) unknownBlock(b *config.Benchmark) bool {
	bad := false
	_, diags := b.Body.Content(schemaWithDynamic(x.benchmarkBlock))
	for _, d := range diags {
		if d.Summary == "Unsupported block type" {
			x.report(d)
			bad = true
		}
	}
	return bad
}

func schemaWithDynamic(b *schema.Block) *hcl.BodySchema {
	sch := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "dynamic", LabelNames: []string{"type"}}}}
	for _, name := range sortedKeys(b.Attributes) {
		sch.Attributes = append(sch.Attributes, hcl.AttributeSchema{Name: name})
	}
	for _, name := range sortedKeys(b.Blocks) {
		h := hcl.BlockHeaderSchema{Type: name}
		if b.Blocks[name].Nesting == schema.Map {
			h.LabelNames = []string{"name"}
		}
		sch.Blocks = append(sch.Blocks, h)
	}
	return sch
}

// path checks the hops of a benchmark and makes it need them.
func (x *indexer) path(n *node, m *config.Module, b *config.Benchmark) {
	for _, r := range x.checked(m, b.Path, allowance{}) {
		if r.kind != refResource {
			x.report(errorAt(r.rng, "Invalid path", "A hop of a path is a resource of this module. Declare the benchmark in the module that has the resource."))
			continue
		}
		res := m.Resources[r.name]
		switch {
		case len(r.rest) > 0:
			x.report(errorAt(r.rng, "Invalid path", "A hop of a path is a resource, not one of its attributes: write %s.", r.name))
		case !r.keyed && res.Count != nil:
			x.report(errorAt(r.rng, "Missing instance key", "%s has count: name one instance, such as %s[0].", r.name, r.name))
		case !r.keyed && res.ForEach != nil:
			x.report(errorAt(r.rng, "Missing instance key", "%s has for_each: name one instance, such as %s[\"a\"].", r.name, r.name))
		}
		x.edges(n, m, []ref{r}, reference)
	}
}

// Benchmarks evaluates the benchmark blocks of all module instances.
func (e *Evaluator) Benchmarks() ([]*Benchmark, hcl.Diagnostics) {
	var out []*Benchmark
	diags := e.eachModule(func(mod *moduleInst) hcl.Diagnostics {
		var diags hcl.Diagnostics
		for _, name := range sortedKeys(mod.cfg.Benchmarks) {
			b, more := e.benchmark(mod, mod.cfg.Benchmarks[name])
			out, diags = append(out, b), append(diags, more...)
		}
		return diags
	})
	return out, Dedup(diags)
}

func (e *Evaluator) benchmark(mod *moduleInst, cfg *config.Benchmark) (*Benchmark, hcl.Diagnostics) {
	b := &Benchmark{Addr: cfg.Addr, Requires: cfg.Requires, Range: cfg.Range}
	b.Addr.Module = mod.addr
	if typ, ok := attrAt(cfg.Generator, 1); ok {
		name, _ := attrAt(cfg.Generator, 2)
		b.Generator = addrs.Object{Module: mod.addr, Kind: "generator", Type: typ, Name: name}
	}
	diags := e.hops(mod, cfg, b)
	n := e.nodes[nodeID{module: mod.cfg, kind: nodeBenchmark, name: cfg.Addr.Name}]
	v, more := e.scopeOf(mod).decode(cfg.Body, e.block(e.benchmarkBlock), n.bodyRefs)
	diags = append(diags, more...)
	b.Config, b.MethodCfg = cty.UnknownVal(e.sharedType), cty.DynamicVal
	if more.HasErrors() {
		return b, diags
	}
	vals := v.AsValueMap()
	for name := range e.in.Catalog.Methods {
		if mv := vals[name]; !mv.IsNull() {
			b.Method, b.MethodCfg = name, mv
		}
		delete(vals, name)
	}
	b.Config = cty.ObjectVal(vals)
	return b, diags
}

// hops resolves the path to instances.
func (e *Evaluator) hops(mod *moduleInst, cfg *config.Benchmark, b *Benchmark) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, tr := range cfg.Path {
		r, bad := parseRef(tr)
		res := mod.cfg.Resources[r.name]
		if bad != nil || r.kind != refResource || res == nil {
			continue // New has reported it
		}
		exp, more := e.expansion(mod, res)
		diags = append(diags, more...)
		if more.HasErrors() || exp.unknown {
			continue
		}
		key := keyOf(r.key)
		if !exp.has(key) {
			diags = append(diags, errorAt(r.rng, "No such instance", "%s%s does not exist. %s", r.name, key, instancesText(r.name, exp.keys)))
			continue
		}
		b.Path = append(b.Path, addressIn(mod, res).Instance(key))
	}
	return diags
}

// keyOf is the instance key that a written index means.
func keyOf(v cty.Value) addrs.Key {
	if v == cty.NilVal || v.IsMarked() || !v.IsKnown() || v.IsNull() {
		return addrs.Key{}
	}
	switch v.Type() {
	case cty.String:
		return addrs.StringKey(v.AsString())
	case cty.Number:
		if i, acc := v.AsBigFloat().Int64(); acc == 0 && i >= 0 {
			return addrs.IntKey(int(i))
		}
		return addrs.IntKey(-1) // no instance has it
	}
	return addrs.Key{}
}

// EvalRequire evaluates one require block of a benchmark, with self as the benchmark's results. ok says whether the condition
// holds, message why not. A condition that is not known, null or no bool is an error.
func (e *Evaluator) EvalRequire(b *Benchmark, rule *config.CheckRule, self cty.Value) (ok bool, message string, diags hcl.Diagnostics) {
	mod, diags := e.moduleInstance(b.Addr.Module)
	if diags.HasErrors() {
		return false, "", diags
	}
	s := e.scopeOf(mod)
	s.self = self
	result, text, ctx, more := s.rule(rule)
	diags = append(diags, more...)
	if result == unsure {
		diags = append(diags, conditionError(rule, ctx, "The condition refers to a value that is not known, so it cannot be told whether it holds."))
	}
	return result == holds, text, Dedup(diags)
}

// instancesText says which instances there are, as long as they are few.
func instancesText(name string, keys []addrs.Key) string {
	const few = 8
	var out []string
	for _, k := range keys[:min(len(keys), few)] {
		out = append(out, name+k.String())
	}
	switch {
	case len(keys) == 0:
		return "There is no instance of " + name + "."
	case len(keys) > few:
		return fmt.Sprintf("There are %d instances of %s, such as %s.", len(keys), name, out[0])
	}
	return "There is " + strings.Join(out, ", ") + "."
}
