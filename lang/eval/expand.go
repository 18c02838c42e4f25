package eval

import (
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"plumb/lang/addrs"
	"plumb/lang/config"
)

// expansion is the set of instances that a block has in one module instance.
type expansion struct {
	keys    []addrs.Key
	count   bool
	each    map[string]cty.Value // for_each; nil for count and single blocks
	unknown bool                 // while validating only: how many there are is not known; keys is anyKey alone
}

// anyKey stands for the unknown instances of a block while validating, so that its body is checked too.
var anyKey = addrs.IntKey(math.MaxInt)

var single = expansion{keys: []addrs.Key{{}}}

func (x expansion) isSingle() bool { return !x.count && x.each == nil && !x.unknown }

func (x expansion) has(k addrs.Key) bool {
	switch {
	case x.unknown:
		return k == anyKey
	case x.each != nil:
		s, ok := k.Str()
		_, in := x.each[s]
		return ok && in
	case x.count:
		i, ok := k.Int()
		return ok && i < len(x.keys)
	}
	return k.IsNone()
}

// repetition is what count.index and each.* are for the instance k.
func (x expansion) repetition(k addrs.Key) repetition {
	switch {
	case x.unknown:
		return repetition{index: cty.UnknownVal(cty.Number).RefineNotNull(), key: cty.UnknownVal(cty.String).RefineNotNull(), value: cty.DynamicVal}
	case x.each != nil:
		s, _ := k.Str()
		return repetition{key: cty.StringVal(s), value: x.each[s]}
	case x.count:
		return repetition{index: k.Value()}
	}
	return repetition{}
}

// collect makes the value of the whole block from those of its instances.
func (x expansion) collect(one func(addrs.Key) (cty.Value, hcl.Diagnostics)) (cty.Value, hcl.Diagnostics) {
	if x.unknown {
		_, diags := one(anyKey)
		return cty.DynamicVal, diags
	}
	if x.isSingle() {
		return one(addrs.Key{})
	}
	var diags hcl.Diagnostics
	vals := make([]cty.Value, len(x.keys))
	for i, k := range x.keys {
		v, more := one(k)
		vals[i], diags = v, append(diags, more...)
	}
	if x.count {
		return cty.TupleVal(vals), diags
	}
	attrs := make(map[string]cty.Value, len(vals))
	for i, k := range x.keys {
		s, _ := k.Str()
		attrs[s] = vals[i]
	}
	return cty.ObjectVal(attrs), diags
}

// Expand lists the instances of a resource over all instances of its module, sorted. A count or for_each that is not known, or
// sensitive, is an error.
func (e *Evaluator) Expand(r addrs.Resource) ([]addrs.Instance, hcl.Diagnostics) {
	mods, diags := e.moduleInstances(r.Module.Static())
	var out []addrs.Instance
	for _, mod := range mods {
		cfg := mod.cfg.Resources[r.Local()]
		if cfg == nil {
			return nil, append(diags, noSuch(r))
		}
		exp, more := e.expansion(mod, cfg)
		diags = append(diags, more...)
		if exp.unknown {
			diags = append(diags, unknownRepetition(cfg.Count, cfg.ForEach))
			continue
		}
		addr := addressIn(mod, cfg)
		for _, k := range exp.keys {
			out = append(out, addr.Instance(k))
		}
	}
	return out, Dedup(diags)
}

func noSuch(what interface{ String() string }) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "No such object", Detail: what.String() + " is not in the configuration."}
}

// moduleInstances lists the instances of a module by its static address.
func (e *Evaluator) moduleInstances(static addrs.Module) ([]*moduleInst, hcl.Diagnostics) {
	mods := []*moduleInst{e.rootInst}
	var diags hcl.Diagnostics
	for _, step := range static.Steps() {
		var next []*moduleInst
		for _, mod := range mods {
			c := mod.cfg.Calls[step.Name]
			if c == nil {
				return nil, append(diags, noSuch(static))
			}
			exp, more := e.callExpansion(mod, c)
			diags = append(diags, more...)
			for _, k := range exp.keys {
				next = append(next, e.child(mod, c, k))
			}
		}
		mods = next
	}
	return mods, diags
}

type childKey struct {
	parent *moduleInst
	call   *config.Call
	key    addrs.Key
}

// child is the instance k of a call; always the same pointer for the same instance.
func (e *Evaluator) child(parent *moduleInst, c *config.Call, k addrs.Key) *moduleInst {
	m, _ := e.children.get(childKey{parent, c, k}, func() (*moduleInst, hcl.Diagnostics) {
		return &moduleInst{addr: parent.addr.Child(c.Name, k), cfg: c.Module, parent: parent, call: c, key: k}, nil
	})
	return m
}

// moduleInstance finds a module instance by its address; nil when there is none.
func (e *Evaluator) moduleInstance(addr addrs.Module) (*moduleInst, hcl.Diagnostics) {
	if addr.IsRoot() {
		return e.rootInst, nil
	}
	return e.byAddress.get(addr, func() (*moduleInst, hcl.Diagnostics) {
		mod := e.rootInst
		var diags hcl.Diagnostics
		for _, step := range addr.Steps() {
			c := mod.cfg.Calls[step.Name]
			if c == nil {
				return nil, append(diags, noSuch(addr))
			}
			exp, more := e.callExpansion(mod, c)
			diags = append(diags, more...)
			if diags.HasErrors() {
				return nil, diags
			}
			if !exp.has(step.Key) {
				return nil, append(diags, noSuch(addr))
			}
			mod = e.child(mod, c, step.Key)
		}
		return mod, diags
	})
}

// staticModule finds a module of the configuration; nil when there is none.
func (e *Evaluator) staticModule(addr addrs.Module) *config.Module {
	m := e.in.Config.Root
	if addr.IsRoot() {
		return m
	}
	for _, step := range addr.Steps() {
		c := m.Calls[step.Name]
		if c == nil {
			return nil
		}
		m = c.Module
	}
	return m
}

func (e *Evaluator) callExpansion(mod *moduleInst, c *config.Call) (expansion, hcl.Diagnostics) {
	return e.expand(named{mod, "module." + c.Name}, c.Count, c.ForEach)
}

func (e *Evaluator) expansion(mod *moduleInst, r *config.Resource) (expansion, hcl.Diagnostics) {
	if r.Count == nil && r.ForEach == nil {
		return single, nil
	}
	return e.expand(named{mod, r.Addr.Local()}, r.Count, r.ForEach)
}

func (e *Evaluator) expand(id named, count, forEach hcl.Expression) (expansion, hcl.Diagnostics) {
	if count == nil && forEach == nil {
		return single, nil
	}
	return e.expansions.get(id, func() (expansion, hcl.Diagnostics) {
		s := e.scopeOf(id.mod)
		if count != nil {
			return s.expandCount(count)
		}
		return s.expandForEach(forEach)
	})
}

func (s scope) expandCount(expr hcl.Expression) (expansion, hcl.Diagnostics) {
	v, ctx, diags := s.evalRefs(expr, parseRefs(expr.Variables()))
	fail := func(format string, args ...any) (expansion, hcl.Diagnostics) {
		d := errorAt(expr.Range(), "Invalid count", format, args...)
		d.Expression, d.EvalContext = expr, ctx
		return expansion{count: true}, append(diags, d)
	}
	if diags.HasErrors() {
		return expansion{count: true}, diags
	}
	if isSensitive(v) {
		return fail("The value is sensitive, but the number of instances cannot be hidden. Use nonsensitive() if the value may be shown here.")
	}
	v, err := convert.Convert(v, cty.Number)
	switch {
	case err != nil:
		return fail("count must be a whole number: %s.", conversionError(err))
	case !v.IsKnown():
		return s.notKnown(expr, nil, ctx, diags)
	case v.IsNull():
		return fail("count is null. It must be a whole number, 0 or greater.")
	}
	n, acc := v.AsBigFloat().Int64()
	if acc != big.Exact || n < 0 {
		return fail("count is %s. It must be a whole number, 0 or greater.", v.AsBigFloat().Text('g', 10))
	}
	if n > maxInstances {
		return fail("count is %d; at most %d instances of one block are possible.", n, maxInstances)
	}
	x := expansion{count: true, keys: make([]addrs.Key, n)}
	for i := range x.keys {
		x.keys[i] = addrs.IntKey(i)
	}
	return x, diags
}

// maxInstances ends a count that is a mistake before it takes all memory.
const maxInstances = 100_000

func (s scope) expandForEach(expr hcl.Expression) (expansion, hcl.Diagnostics) {
	v, ctx, diags := s.evalRefs(expr, parseRefs(expr.Variables()))
	none := expansion{each: map[string]cty.Value{}}
	fail := func(format string, args ...any) (expansion, hcl.Diagnostics) {
		d := errorAt(expr.Range(), "Invalid for_each", format, args...)
		d.Expression, d.EvalContext = expr, ctx
		return none, append(diags, d)
	}
	if diags.HasErrors() {
		return none, diags
	}
	ty := v.Type()
	if v.IsMarked() || ty.IsSetType() && v.ContainsMarked() {
		return fail("The value is sensitive, but the keys of instances are shown in every address. Use nonsensitive(), or a map with keys that are not sensitive and sensitive values.")
	}
	switch {
	case v.IsNull():
		return fail("for_each is null. It must be a map, or a set of strings; an empty one makes no instances.")
	case ty == cty.DynamicPseudoType:
		return s.notKnown(nil, expr, ctx, diags)
	case ty.IsListType() || ty.IsTupleType():
		return fail("for_each must be a map or a set of strings, and this is a list, whose elements have no lasting names. Use toset(), or a for expression that makes a map: { for x in LIST : KEY => x }.")
	case !ty.IsMapType() && !ty.IsObjectType() && !ty.IsSetType():
		return fail("for_each must be a map or a set of strings, not %s.", ty.FriendlyName())
	case ty.IsSetType() && ty.ElementType() != cty.String && ty.ElementType() != cty.DynamicPseudoType:
		return fail("for_each must be a map or a set of strings, and this is a set of %s.", ty.ElementType().FriendlyName())
	case !v.IsKnown() || ty.IsSetType() && !v.IsWhollyKnown():
		return s.notKnown(nil, expr, ctx, diags)
	}
	x := none
	for it := v.ElementIterator(); it.Next(); {
		k, ev := it.Element()
		if ty.IsSetType() {
			if ev.IsNull() {
				return fail("The set has a null element. Each element must be a string.")
			}
			k = ev
		}
		x.each[k.AsString()] = ev
	}
	for _, k := range slices.Sorted(maps.Keys(x.each)) {
		x.keys = append(x.keys, addrs.StringKey(k))
	}
	return x, diags
}

// notKnown is an error, but while validating it is only how far one can see.
func (s scope) notKnown(count, forEach hcl.Expression, ctx *hcl.EvalContext, diags hcl.Diagnostics) (expansion, hcl.Diagnostics) {
	if s.e.in.Resolve == nil {
		return expansion{keys: []addrs.Key{anyKey}, unknown: true}, diags
	}
	d := unknownRepetition(count, forEach)
	d.EvalContext = ctx
	if count != nil {
		return expansion{count: true}, append(diags, d)
	}
	return expansion{each: map[string]cty.Value{}}, append(diags, d)
}

func unknownRepetition(count, forEach hcl.Expression) *hcl.Diagnostic {
	if count != nil {
		d := errorAt(count.Range(), "Invalid count", "The value is known only after apply, so planning cannot say how many instances there will be. Compute count from variables and locals alone, such as count = length(var.ports), or apply first only what it depends on with -target.")
		d.Expression = count
		return d
	}
	d := errorAt(forEach.Range(), "Invalid for_each", "The keys are known only after apply, so planning cannot say which instances there will be. Use a map with keys written out and put what is known later in its values, such as { for name in var.names : name => ovs_port.p[name].ofport }, or apply first only what it depends on with -target.")
	d.Expression = forEach
	return d
}
