package eval

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/config"
)

// Hosts evaluates all host blocks, by name. A host that refers to resources asks Inputs.Resolve for them: while applying use Host
// for each when it is needed.
func (e *Evaluator) Hosts() (map[string]*Host, hcl.Diagnostics) {
	out := map[string]*Host{}
	var diags hcl.Diagnostics
	for _, name := range sortedKeys(e.in.Config.Root.Hosts) {
		h, more := e.Host(name)
		out[name], diags = h, append(diags, more...)
	}
	return out, Dedup(diags)
}

// Host evaluates one host block; nil when there is none of that name.
func (e *Evaluator) Host(name string) (*Host, hcl.Diagnostics) {
	cfg := e.in.Config.Root.Hosts[name]
	if cfg == nil {
		return nil, nil
	}
	return e.hosts.get(name, func() (*Host, hcl.Diagnostics) {
		n := e.nodes[nodeID{module: e.in.Config.Root, kind: nodeHost, name: name}]
		v, diags := e.root().decode(cfg.Body, e.block(e.in.Catalog.Host), n.bodyRefs)
		return &Host{Name: name, Config: v, Range: cfg.Range}, diags
	})
}

// hostValue is what host.NAME is in an expression: the block's arguments, its name, and its facts where they are asked for.
func (e *Evaluator) hostValue(name string, facts bool) (cty.Value, hcl.Diagnostics) {
	h, diags := e.Host(name)
	if h == nil || diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	vals := maps.Clone(e.mark(h.Config, e.block(e.in.Catalog.Host)).AsValueMap())
	if vals == nil {
		vals = map[string]cty.Value{}
	}
	vals["name"] = cty.StringVal(name)
	if facts {
		v, more := e.facts.get(name, func() (cty.Value, hcl.Diagnostics) {
			if e.in.Facts == nil {
				return cty.DynamicVal, nil
			}
			v, diags := e.in.Facts(name)
			if v == cty.NilVal {
				v = cty.DynamicVal
			}
			return v, diags
		})
		vals["facts"], diags = v, append(diags[:len(diags):len(diags)], more...)
	}
	return cty.ObjectVal(vals), diags
}

// Generators evaluates the generator blocks of all module instances.
func (e *Evaluator) Generators() ([]*Generator, hcl.Diagnostics) {
	var out []*Generator
	diags := e.eachModule(func(mod *moduleInst) hcl.Diagnostics {
		var diags hcl.Diagnostics
		for _, name := range sortedKeys(mod.cfg.Generators) {
			g, more := e.generator(mod, mod.cfg.Generators[name])
			out, diags = append(out, g), append(diags, more...)
		}
		return diags
	})
	return out, Dedup(diags)
}

func (e *Evaluator) generator(mod *moduleInst, cfg *config.Generator) (*Generator, hcl.Diagnostics) {
	name := cfg.Addr.Type + "." + cfg.Addr.Name
	return e.generators.get(named{mod, name}, func() (*Generator, hcl.Diagnostics) {
		sch := e.in.Catalog.Generators[cfg.Addr.Type]
		n := e.nodes[nodeID{module: mod.cfg, kind: nodeGenerator, name: name}]
		v, diags := e.scopeOf(mod).decode(cfg.Body, e.block(&sch.Block), n.bodyRefs)
		addr := cfg.Addr
		addr.Module = mod.addr
		return &Generator{Addr: addr, Host: e.hostName(cfg.Host, sch.Hostless), Config: v, Range: cfg.Range}, diags
	})
}

func (e *Evaluator) generatorValue(mod *moduleInst, name string) (cty.Value, hcl.Diagnostics) {
	cfg := mod.cfg.Generators[name]
	if cfg == nil {
		return cty.DynamicVal, nil
	}
	g, diags := e.generator(mod, cfg)
	return g.Config, diags
}

// eachModule calls f for every module instance, callers first.
func (e *Evaluator) eachModule(f func(*moduleInst) hcl.Diagnostics) hcl.Diagnostics {
	var diags hcl.Diagnostics
	var walk func(*moduleInst)
	walk = func(mod *moduleInst) {
		diags = append(diags, f(mod)...)
		for _, name := range sortedKeys(mod.cfg.Calls) {
			c := mod.cfg.Calls[name]
			exp, more := e.callExpansion(mod, c)
			diags = append(diags, more...)
			for _, k := range exp.keys {
				walk(e.child(mod, c, k))
			}
		}
	}
	walk(e.rootInst)
	return diags
}
