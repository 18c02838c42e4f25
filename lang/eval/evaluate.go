package eval

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
)

// Evaluate evaluates the body and the preconditions of one instance; the result is kept. It is nil when there is no such instance,
// and of unknown value when the body has errors. Safe for concurrent use.
func (e *Evaluator) Evaluate(i addrs.Instance) (*Instance, hcl.Diagnostics) {
	mod, r, exp, diags := e.find(i)
	if diags.HasErrors() {
		return nil, diags
	}
	inst, more := e.evaluate(mod, r, exp, i.Key)
	return inst, Dedup(append(diags, more...))
}

// find looks an instance up; an error says that there is none.
func (e *Evaluator) find(i addrs.Instance) (*moduleInst, *config.Resource, expansion, hcl.Diagnostics) {
	mod, diags := e.moduleInstance(i.Resource.Module)
	if diags.HasErrors() {
		return nil, nil, single, diags
	}
	r := mod.cfg.Resources[i.Resource.Local()]
	if r == nil || e.schemaOf(r.Addr) == nil {
		return nil, nil, single, append(diags, noSuch(i))
	}
	exp, more := e.expansion(mod, r)
	diags = append(diags, more...)
	if !diags.HasErrors() && !exp.has(i.Key) {
		diags = append(diags, noSuch(i))
	}
	return mod, r, exp, diags
}

type instanceKey struct {
	named
	key addrs.Key
}

func (e *Evaluator) evaluate(mod *moduleInst, r *config.Resource, exp expansion, k addrs.Key) (*Instance, hcl.Diagnostics) {
	id := instanceKey{named{mod, r.Addr.Local()}, k}
	return e.instances.get(id, func() (*Instance, hcl.Diagnostics) {
		sch := e.schemaOf(r.Addr)
		info := e.block(&sch.Block)
		inst := &Instance{
			Addr: addressIn(mod, r).Instance(k), Config: r, Schema: sch,
			Host:    e.hostName(r.Host, sch.Hostless),
			Desired: cty.UnknownVal(info.ty),
		}
		s := e.scopeOf(mod)
		s.rep = exp.repetition(k)
		diags := s.rules(r.Lifecycle.Preconditions, fmt.Sprintf("Precondition of %s is not met", shown(inst.Addr)))
		if diags.HasErrors() {
			return inst, diags
		}
		n := e.nodes[nodeID{module: mod.cfg, kind: nodeResource, name: r.Addr.Local()}]
		var more hcl.Diagnostics
		if exp.isSingle() || perInstance(n.bodyRefs) {
			inst.Desired, more = s.decode(r.Body, info, n.bodyRefs)
		} else {
			// The same for every instance: decoded once in a module instance.
			inst.Desired, more = e.bodies.get(id.named, func() (cty.Value, hcl.Diagnostics) { return s.decode(r.Body, info, n.bodyRefs) })
		}
		return inst, append(diags, more...)
	})
}

// shown is the address for a message: instances whose keys are not known while validating are [*].
func shown(i addrs.Instance) string { return strings.ReplaceAll(i.String(), anyKey.String(), "[*]") }

// perInstance says whether a body differs between the instances of its block.
func perInstance(refs []ref) bool {
	for _, r := range refs {
		if r.kind == refCount || r.kind == refEach {
			return true
		}
	}
	return false
}

// Postconditions checks the postconditions of an instance, with self as it is after planning or applying. Conditions that are
// not known yet are passed over.
func (e *Evaluator) Postconditions(i addrs.Instance, self cty.Value) hcl.Diagnostics {
	mod, r, exp, diags := e.find(i)
	if diags.HasErrors() {
		return diags
	}
	if len(r.Lifecycle.Postconditions) == 0 {
		return diags
	}
	s := e.scopeOf(mod)
	s.rep = exp.repetition(i.Key)
	s.self = e.mark(self, e.block(&e.schemaOf(r.Addr).Block))
	diags = append(diags, s.rules(r.Lifecycle.Postconditions, fmt.Sprintf("Postcondition of %s is not met", shown(i)))...)
	return Dedup(diags)
}
