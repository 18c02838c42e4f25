package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
)

// reference turns what an argument refers to into its name: the address of an instance, or a host. v is the expression, or null
// where the argument was left out; unknown where its block is.
func (f *finisher) reference(v cty.Value, name string, a *schema.Attribute, report reporter) cty.Value {
	bad := func(summary, format string, args ...any) cty.Value {
		report(hcl.DiagError, nil, summary, format, args...)
		return cty.UnknownVal(cty.String)
	}
	if !v.IsKnown() {
		return cty.UnknownVal(cty.String)
	}
	if v.IsNull() {
		if a.Reference != schema.RefHost { // RefOtherHost: none is meant
			return cty.NullVal(cty.String) // hcldec has reported it where it is required
		}
		if only, ok := f.scope.e.onlyHost(); ok {
			return cty.StringVal(only)
		}
		return bad("Missing required argument", "There are %d hosts: say which is meant with %s = host.NAME.", len(f.scope.e.in.Config.Root.Hosts), name)
	}
	form := map[string]string{schema.RefResource: "TYPE.NAME, with the instance's key where it has one", schema.RefHost: "host.NAME", schema.RefOtherHost: "host.NAME"}[a.Reference]
	tr, diags := hcl.AbsTraversalForExpr(customdecode.ExpressionFromVal(v))
	if diags.HasErrors() {
		return bad("Invalid reference", "%s is a reference, written out: %s. It cannot be computed.", name, form)
	}
	r, problem := parseRef(tr)
	if problem == nil {
		problem = f.scope.e.check(f.scope.mod.cfg, r, allowance{})
	}
	if problem != nil {
		f.diags = append(f.diags, problem)
		return cty.UnknownVal(cty.String)
	}
	want := map[string]refKind{schema.RefResource: refResource, schema.RefHost: refHost, schema.RefOtherHost: refHost}[a.Reference]
	if r.kind != want || len(r.rest) > 0 {
		return bad("Invalid reference", "%s is a reference to a %s as a whole: %s.", name, a.Reference, form)
	}
	if r.kind == refHost {
		return cty.StringVal(r.name)
	}
	res := f.scope.mod.cfg.Resources[r.name]
	exp, more := f.scope.e.expansion(f.scope.mod, res)
	f.diags = append(f.diags, more...)
	if more.HasErrors() || exp.unknown {
		return cty.UnknownVal(cty.String)
	}
	if !r.keyed && !exp.isSingle() {
		return bad("Missing instance key", "%s has several instances: name one. %s", r.name, instancesText(r.name, exp.keys))
	}
	key := keyOf(r.key)
	if !exp.has(key) {
		return bad("No such instance", "%s%s does not exist. %s", r.name, key, instancesText(r.name, exp.keys))
	}
	return cty.StringVal(addressIn(f.scope.mod, res).Instance(key).String())
}
