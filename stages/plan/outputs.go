package plan

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"plumb/lang/addrs"
	"plumb/stages/internal/value"
	"plumb/stages/state"
)

// outputs compares the root module's outputs with those of the state.
func (ps *pass) outputs() map[string]OutputChange {
	prior := map[string]state.Output{}
	if ps.in.Prior != nil {
		prior = ps.in.Prior.Outputs
	}
	out := map[string]OutputChange{}
	if ps.ev != nil && !ps.opt.Destroy {
		values, diags := ps.ev.Outputs()
		ps.report(diags...)
		if diags.HasErrors() {
			return nil
		}
		for name, o := range values {
			old, had := prior[name]
			c, err := outputChange(old, had, o.Value)
			if err != nil {
				ps.report(errorAt(nil, "Output cannot be kept", "Output %s: %s.", name, err))
				continue
			}
			c.Sensitive = o.Sensitive || had && old.Sensitive
			out[name] = c
		}
	}
	for name, old := range prior {
		if _, ok := out[name]; !ok {
			out[name] = OutputChange{Action: Delete, Before: old.Value, Sensitive: old.Sensitive}
		}
	}
	return out
}

func outputChange(old state.Output, had bool, v cty.Value) (OutputChange, error) {
	v, _ = v.UnmarkDeep()
	c := OutputChange{Action: Create}
	if had {
		c.Action, c.Before = Update, old.Value
	}
	if !v.IsWhollyKnown() {
		c.Unknown = true
		return c, nil
	}
	e, err := value.Encode(v, v.Type())
	if err != nil {
		return c, err
	}
	c.After = e.JSON
	ty, err := ctyjson.MarshalType(v.Type())
	if err != nil {
		return c, err
	}
	if had && sameJSON(old.Value, c.After) && sameJSON(old.Type, ty) {
		c.Action = NoOp
	}
	return c, nil
}

// sameJSON compares documents whatever their white space: the state file is indented.
func sameJSON(a, b json.RawMessage) bool {
	var ca, cb bytes.Buffer
	return json.Compact(&ca, a) == nil && json.Compact(&cb, b) == nil && bytes.Equal(ca.Bytes(), cb.Bytes())
}

// benchmarks are the addresses of those that apply would run, in the order of the configuration.
func (ps *pass) benchmarks() []string {
	if ps.ev == nil || ps.opt.Destroy {
		return nil
	}
	list, diags := ps.ev.Benchmarks()
	ps.report(diags...)
	var out []string
	for _, b := range list {
		out = append(out, b.Addr.String())
	}
	return out
}

// limitCost refuses what costs more than -max-cost allows.
func (p *planner) limitCost(changes []Change, ps *pass) {
	if p.opt.MaxCost == nil {
		return
	}
	for i := range changes {
		c := &changes[i]
		if c.Cost <= *p.opt.MaxCost || c.Action == NoOp || c.Action == Read {
			continue
		}
		d := errorAt(p.rangeOf(c.Addr), "Change costs more than -max-cost allows", "%s: this change costs %s, and -max-cost=%s allows no more than %s.", c.Addr, c.Cost, *p.opt.MaxCost, *p.opt.MaxCost)
		for _, a := range c.Changed {
			if a.Cost == c.Cost {
				d.Detail += " It is " + pathText(a.Path) + " that costs so much."
				d.Subject = ps.rangeOfPath(c, a.Path)
				break
			}
		}
		p.report(d)
	}
}

// rangeOfPath is the place of an argument of a change in the configuration, or of its block.
func (ps *pass) rangeOfPath(c *Change, path Path) *hcl.Range {
	if n := ps.nodes[c.Addr]; n != nil && n.inst != nil {
		if p, err := value.ToCty(path, ps.typeOf(&n.schema.Block)); err == nil {
			return ps.argument(n)(p)
		}
	}
	return ps.rangeOf(c.Addr)
}

// rangeOf is the header of an instance's block; nil when it is not configured.
func (p *planner) rangeOf(a addrs.Instance) *hcl.Range {
	if cfg := configOf(p.in.Config, a.Resource); cfg != nil {
		return cfg.Range.Ptr()
	}
	return nil
}

// triggered says whether replace_triggered_by of an instance asks for it.
func (ps *pass) triggered(n *node) bool {
	if len(n.inst.Config.Lifecycle.ReplaceTriggeredBy) == 0 {
		return false
	}
	triggers, diags := ps.ev.ReplaceTriggers(n.addr)
	ps.diags = append(ps.diags, diags...)
	for _, t := range triggers {
		for _, a := range ps.expand(t.Resource) {
			if a.Resource != t.Resource || t.Key != nil && a.Key != *t.Key || a == n.addr {
				continue
			}
			if pulls(ps.plan(a), t.Attr) {
				return true
			}
		}
	}
	return false
}

// pulls says whether a change is one that the trigger means: of anything, or of what lies at or around attr.
func pulls(n *node, attr cty.Path) bool {
	c := &n.change
	switch {
	case n.failed || c.Action == NoOp || c.Action == Read:
		return false
	case len(attr) == 0:
		return true
	case c.Action == Create || c.Action == Reapply:
		return c.Action == Create
	}
	want := value.PathOf(attr)
	return slices.ContainsFunc(c.Changed, func(a AttrChange) bool {
		return value.HasPrefix(a.Path, want) || value.HasPrefix(want, a.Path)
	})
}
