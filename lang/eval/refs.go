package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/config"
	"plumb/lang/diagfmt"
)

// refKind says what an expression's traversal begins at.
type refKind uint8

const (
	refVariable refKind = iota
	refLocal
	refModule
	refResource
	refHost
	refGenerator
	refCount
	refEach
	refSelf
	refPath
)

// ref is a traversal taken apart: the object, its instance key where one is written, and what is asked of it.
type ref struct {
	kind  refKind
	name  string        // of the variable, local, call or host; Resource.Local(); "type.name" of a generator; the attribute of count, each and path
	keyed bool          // an index follows the object directly
	key   cty.Value     // that index
	rest  hcl.Traversal // what follows the object and its index
	rng   hcl.Range     // of the whole traversal
}

// output is the module output that a refModule asks for, "" for the whole module.
func (r ref) output() string {
	if len(r.rest) > 0 {
		if a, ok := r.rest[0].(hcl.TraverseAttr); ok {
			return a.Name
		}
	}
	return ""
}

// reserved roots: everything else that begins a traversal is a resource type.
var reservedRoots = []string{"var", "local", "module", "data", "host", "generator", "benchmark", "count", "each", "self", "path"}

// parseRef takes a traversal apart. It looks at its form only; checker.ref says whether the object is there.
func parseRef(tr hcl.Traversal) (ref, *hcl.Diagnostic) {
	r := ref{rng: tr.SourceRange()}
	root := tr.RootName()
	switch root {
	case "var", "local", "module", "host", "count", "each", "path":
		r.kind = map[string]refKind{"var": refVariable, "local": refLocal, "module": refModule, "host": refHost, "count": refCount, "each": refEach, "path": refPath}[root]
		name, ok := attrAt(tr, 1)
		if !ok {
			return r, refError(r.rng, "The %q object cannot be used as a whole: write %s.NAME.", root, root)
		}
		r.name, r.rest = name, tr[2:]
		if r.kind == refModule {
			r.takeKey()
		}
	case "data":
		typ, ok1 := attrAt(tr, 1)
		name, ok2 := attrAt(tr, 2)
		if !ok1 || !ok2 {
			return r, refError(r.rng, "A reference to a data source has its type and its name: data.TYPE.NAME.")
		}
		r.kind, r.name, r.rest = refResource, "data."+typ+"."+name, tr[3:]
		r.takeKey()
	case "generator":
		typ, ok1 := attrAt(tr, 1)
		name, ok2 := attrAt(tr, 2)
		if !ok1 || !ok2 {
			return r, refError(r.rng, "A reference to a generator has its type and its name: generator.TYPE.NAME.")
		}
		r.kind, r.name, r.rest = refGenerator, typ+"."+name, tr[3:]
	case "benchmark":
		return r, refError(r.rng, "Benchmarks have no value that an expression could use: they run when everything else is done.")
	case "self":
		r.kind, r.rest = refSelf, tr[1:]
	default:
		name, ok := attrAt(tr, 1)
		if !ok {
			hint := diagfmt.DidYouMean(root, reservedRoots)
			return r, refError(r.rng, "A reference to a resource has its type and its name: TYPE.NAME. A single name, %q, refers to nothing.%s", root, hint)
		}
		r.kind, r.name, r.rest = refResource, root+"."+name, tr[2:]
		r.takeKey()
	}
	return r, nil
}

func (r *ref) takeKey() {
	if len(r.rest) > 0 {
		if ix, ok := r.rest[0].(hcl.TraverseIndex); ok {
			r.keyed, r.key, r.rest = true, ix.Key, r.rest[1:]
		}
	}
}

func attrAt(tr hcl.Traversal, i int) (string, bool) {
	if i >= len(tr) {
		return "", false
	}
	switch s := tr[i].(type) {
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex: // local["x"]
		if k, _ := s.Key.Unmark(); k.IsKnown() && !k.IsNull() && k.Type() == cty.String {
			return k.AsString(), true
		}
	}
	return "", false
}

// parseRefs takes all traversals apart and leaves out those of a wrong form, which New has reported.
func parseRefs(trs []hcl.Traversal) []ref {
	out := make([]ref, 0, len(trs))
	for _, tr := range trs {
		if r, bad := parseRef(tr); bad == nil {
			out = append(out, r)
		}
	}
	return out
}

func refError(at hcl.Range, format string, args ...any) *hcl.Diagnostic {
	return errorAt(at, "Invalid reference", format, args...)
}

func errorAt(at hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()}
}

// allowance says which objects that depend on the place an expression may use.
type allowance struct {
	count, each, self bool
	dynamic           string // a dynamic block that stands in the body, whose element is NAME.value
}

func repeats(count, forEach hcl.Expression) allowance {
	return allowance{count: count != nil, each: forEach != nil}
}

// undeclared says that a name is not there, with a near one if there is one, else how to declare it.
func undeclared[V any](r ref, what, name string, have map[string]V, declare string) *hcl.Diagnostic {
	hint := diagfmt.DidYouMean(name, sortedKeys(have))
	if hint == "" && declare != "" {
		hint = " It could be declared with " + declare + "."
	}
	return errorAt(r.rng, "Reference to undeclared "+what, "There is no %s named %q here.%s", what, name, hint)
}

// check says whether what r refers to is there and may be used in this place of module m. nil: it is.
func (e *Evaluator) check(m *config.Module, r ref, a allowance) *hcl.Diagnostic {
	switch r.kind {
	case refVariable:
		if m.Variables[r.name] == nil {
			return undeclared(r, "variable", r.name, m.Variables, fmt.Sprintf("a variable %q block", r.name))
		}
	case refLocal:
		if m.Locals[r.name] == nil {
			return undeclared(r, "local value", r.name, m.Locals, "a locals block")
		}
	case refModule:
		return e.checkModuleRef(m, r)
	case refResource:
		return e.checkResourceRef(m, r)
	case refHost:
		return e.checkHostRef(r)
	case refGenerator:
		if m.Generators[r.name] == nil {
			return undeclared(r, "generator", r.name, m.Generators, "")
		}
	case refCount:
		if r.name != "index" {
			return refError(r.rng, "The count object has one attribute only: count.index.")
		}
		if !a.count {
			return refError(r.rng, "count.index is there only in blocks that have a count argument, and not in that argument itself.")
		}
	case refEach:
		if r.name != "key" && r.name != "value" {
			return refError(r.rng, "The each object has the attributes each.key and each.value only.")
		}
		if !a.each {
			if a.dynamic != "" {
				return refError(r.rng, "each.%s is there only in blocks that have a for_each argument of their own. In the content of a dynamic block the element has the block's name: %s.%s.",
					r.name, a.dynamic, r.name)
			}
			return refError(r.rng, "each.%s is there only in blocks that have a for_each argument, and not in that argument itself.", r.name)
		}
	case refSelf:
		if !a.self {
			return refError(r.rng, "self is there only in postconditions, where it is the resource instance, and in require blocks, where it is the benchmark's results.")
		}
	case refPath:
		names := []string{"module", "root", "cwd"}
		if !slices.Contains(names, r.name) {
			return refError(r.rng, "The path object has the attributes module, root and cwd.%s", diagfmt.DidYouMean(r.name, names))
		}
	}
	return nil
}

func (e *Evaluator) checkModuleRef(m *config.Module, r ref) *hcl.Diagnostic {
	c := m.Calls[r.name]
	if c == nil {
		return undeclared(r, "module", r.name, m.Calls, fmt.Sprintf("a module %q block", r.name))
	}
	if d := checkKey("module", "module."+r.name, c.Count, c.ForEach, r); d != nil {
		return d
	}
	if out := r.output(); out != "" && c.Module.Outputs[out] == nil {
		return errorAt(r.rng, "Unsupported attribute", "Module %q has no output named %q.%s", r.name, out, diagfmt.DidYouMean(out, sortedKeys(c.Module.Outputs)))
	}
	return nil
}

func (e *Evaluator) checkResourceRef(m *config.Module, r ref) *hcl.Diagnostic {
	res := m.Resources[r.name]
	if res == nil {
		return e.undeclaredResource(m, r)
	}
	if d := checkKey("resource", r.name, res.Count, res.ForEach, r); d != nil {
		return d
	}
	sch := e.schemaOf(res.Addr)
	if sch == nil {
		return nil // reported at the resource
	}
	if len(r.rest) > 0 {
		if a, ok := r.rest[0].(hcl.TraverseAttr); ok && sch.Block.Attributes[a.Name] == nil && sch.Block.Blocks[a.Name] == nil {
			names := slices.Concat(sortedKeys(sch.Block.Attributes), sortedKeys(sch.Block.Blocks))
			return errorAt(r.rng, "Unsupported attribute", "%s has no attribute named %q.%s", sch.Type, a.Name, diagfmt.DidYouMean(a.Name, names))
		}
	}
	return nil
}

func (e *Evaluator) undeclaredResource(m *config.Module, r ref) *hcl.Diagnostic {
	typ, name, _ := strings.Cut(strings.TrimPrefix(r.name, "data."), ".")
	if strings.HasPrefix(r.name, "data.") {
		return undeclared(r, "data source", r.name, m.Resources, "")
	}
	if e.in.Catalog.Resources[typ] == nil {
		var types []string
		for _, res := range m.Resources {
			types = append(types, res.Addr.Type)
		}
		types = append(types, reservedRoots...)
		if hint := diagfmt.DidYouMean(typ, types); hint != "" {
			return errorAt(r.rng, "Reference to undeclared resource", "There is no resource %q here, and no resource type %q.%s", typ+"."+name, typ, hint)
		}
	}
	return undeclared(r, "resource", r.name, m.Resources, fmt.Sprintf("a resource %q %q block", typ, name))
}

// checkKey compares the written index with what makes the instances.
func checkKey(what, addr string, count, forEach hcl.Expression, r ref) *hcl.Diagnostic {
	_, attr := r.rest, false
	if len(r.rest) > 0 {
		_, attr = r.rest[0].(hcl.TraverseAttr)
	}
	switch {
	case r.keyed && count == nil && forEach == nil:
		return errorAt(r.rng, "Unexpected instance key", "%s has neither count nor for_each: it is one object, without an index.", addr)
	case !r.keyed && attr && count != nil:
		return errorAt(r.rng, "Missing instance key", "%s has count: its attributes are those of one instance, such as %s[0] or %s[count.index].", addr, addr, addr)
	case !r.keyed && attr && forEach != nil:
		return errorAt(r.rng, "Missing instance key", "%s has for_each: its attributes are those of one instance, such as %s[each.key].", addr, addr)
	}
	return nil
}

func (e *Evaluator) checkHostRef(r ref) *hcl.Diagnostic {
	hosts := e.in.Config.Root.Hosts
	if hosts[r.name] == nil {
		return undeclared(r, "host", r.name, hosts, fmt.Sprintf("a host %q block in the root module", r.name))
	}
	if a, ok := attrAt(r.rest, 0); ok && a != "name" && a != "facts" && e.in.Catalog.Host.Attributes[a] == nil && e.in.Catalog.Host.Blocks[a] == nil {
		names := append(slices.Concat(sortedKeys(e.in.Catalog.Host.Attributes), sortedKeys(e.in.Catalog.Host.Blocks)), "name", "facts")
		return errorAt(r.rng, "Unsupported attribute", "A host has no attribute named %q.%s", a, diagfmt.DidYouMean(a, names))
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
