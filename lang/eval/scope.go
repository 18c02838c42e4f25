package eval

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
)

// moduleInst is one instance of a module.
type moduleInst struct {
	addr   addrs.Module
	cfg    *config.Module
	parent *moduleInst  // nil for the root
	call   *config.Call // nil for the root
	key    addrs.Key
}

// repetition is what count.index and each.* are in one instance of a repeated block; NilVal: not there.
type repetition struct {
	index, key, value cty.Value
}

// scope is where an expression is evaluated. Contexts are built for one expression or body from what it refers to, never from
// everything there is: with thousands of instances that would be quadratic.
type scope struct {
	e    *Evaluator
	mod  *moduleInst
	rep  repetition
	self cty.Value            // NilVal: not there
	own  map[string]cty.Value // variables that are being validated, seen by their own rules only
}

// eval evaluates an expression. What fails to evaluate is unknown.
func (s scope) eval(expr hcl.Expression) (cty.Value, hcl.Diagnostics) {
	v, _, diags := s.evalRefs(expr, parseRefs(expr.Variables()))
	return v, diags
}

func (s scope) evalRefs(expr hcl.Expression, refs []ref) (cty.Value, *hcl.EvalContext, hcl.Diagnostics) {
	ctx, diags := s.context(refs)
	if diags.HasErrors() {
		return cty.DynamicVal, ctx, diags // its own complaints would only follow from these
	}
	v, more := expr.Value(ctx)
	if more.HasErrors() {
		v = cty.DynamicVal
	}
	return v, ctx, append(diags, redact(more)...)
}

// context is the evaluation context that holds what the references name.
func (s scope) context(refs []ref) (*hcl.EvalContext, hcl.Diagnostics) {
	ctx := &hcl.EvalContext{Functions: s.e.functions(s.mod.cfg.Dir)}
	if len(refs) == 0 {
		return ctx, nil
	}
	var diags hcl.Diagnostics
	t := tree{}
	done := make(map[string]bool, len(refs))
	for _, r := range refs {
		path := r.path()
		id := strings.Join(path, ".")
		if done[id] {
			continue
		}
		done[id] = true
		v, more := s.value(r, refs)
		diags = append(diags, more...)
		if v != cty.NilVal {
			t.put(path, v)
		}
	}
	ctx.Variables = t.values()
	return ctx, diags
}

// path is where the value of r stands in the context.
func (r ref) path() []string {
	switch r.kind {
	case refVariable:
		return []string{"var", r.name}
	case refLocal:
		return []string{"local", r.name}
	case refModule:
		return []string{"module", r.name}
	case refHost:
		return []string{"host", r.name}
	case refGenerator:
		return append([]string{"generator"}, strings.Split(r.name, ".")...)
	case refCount:
		return []string{"count", r.name}
	case refEach:
		return []string{"each", r.name}
	case refPath:
		return []string{"path", r.name}
	case refSelf:
		return []string{"self"}
	}
	return strings.Split(r.name, ".") // a resource
}

// value is what r names. refs are all references of the expression: of a module and a host only what they ask for is computed.
func (s scope) value(r ref, refs []ref) (cty.Value, hcl.Diagnostics) {
	switch r.kind {
	case refVariable:
		if v, ok := s.own[r.name]; ok {
			return v, nil
		}
		return s.e.variable(s.mod, r.name)
	case refLocal:
		return s.e.local(s.mod, r.name)
	case refModule:
		return s.e.moduleValue(s.mod, r.name, outputsOf(r.name, refs))
	case refResource:
		return s.e.resource(s.mod, r.name)
	case refHost:
		return s.e.hostValue(r.name, wantsFacts(r.name, refs))
	case refGenerator:
		return s.e.generatorValue(s.mod, r.name)
	case refCount:
		return s.rep.index, nil
	case refEach:
		if r.name == "key" {
			return s.rep.key, nil
		}
		return s.rep.value, nil
	case refSelf:
		return s.self, nil
	case refPath:
		switch r.name {
		case "module":
			return cty.StringVal(s.mod.cfg.Dir), nil
		case "root":
			return cty.StringVal(s.e.in.Config.Root.Dir), nil
		}
		return cty.StringVal(s.e.in.Dir), nil
	}
	return cty.NilVal, nil
}

// outputsOf are the outputs of the call that the references ask for; nil: all.
func outputsOf(call string, refs []ref) map[string]bool {
	out := map[string]bool{}
	for _, r := range refs {
		if r.kind == refModule && r.name == call {
			name := r.output()
			if name == "" {
				return nil
			}
			out[name] = true
		}
	}
	return out
}

func wantsFacts(host string, refs []ref) bool {
	for _, r := range refs {
		if r.kind == refHost && r.name == host {
			if a, ok := attrAt(r.rest, 0); !ok || a == "facts" {
				return true
			}
		}
	}
	return false
}

// tree collects values by path and turns them into nested objects.
type tree map[string]any

func (t tree) put(path []string, v cty.Value) {
	if len(path) == 1 {
		t[path[0]] = v
		return
	}
	sub, ok := t[path[0]].(tree)
	if !ok {
		sub = tree{}
		t[path[0]] = sub
	}
	sub.put(path[1:], v)
}

func (t tree) values() map[string]cty.Value {
	out := make(map[string]cty.Value, len(t))
	for name, v := range t {
		if sub, ok := v.(tree); ok {
			out[name] = cty.ObjectVal(sub.values())
		} else {
			out[name] = v.(cty.Value)
		}
	}
	return out
}

// EvalExpression evaluates an expression as if it stood in the root module, for a console. count, each and self are not there.
func (e *Evaluator) EvalExpression(expr hcl.Expression) (cty.Value, hcl.Diagnostics) {
	x := indexer{Evaluator: e}
	x.checked(e.in.Config.Root, expr.Variables(), allowance{})
	if x.diags.HasErrors() {
		return cty.DynamicVal, x.diags
	}
	v, diags := e.root().eval(expr)
	return v, Dedup(diags)
}
