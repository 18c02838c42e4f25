package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// resetting is what a reset trial does to the testbed.
type resetting struct {
	in     Input
	kind   string
	target Instance
	typ    providers.Resetter
	host   providers.Host
	// again are the instances that lose their effect by it, in the order that they depend on one another.
	again []Instance
	log   func(format string, args ...any)
}

// findReset finds out what a reset benchmark resets, or says why it cannot. nil: nothing is (a model).
func (r *runner) findReset(ctx context.Context) (*resetting, error) {
	p := r.set.plan
	if !p.needs.outage || p.target == "" {
		return nil, nil
	}
	n := slices.IndexFunc(r.in.Instances, func(i Instance) bool { return i.Addr.String() == p.target })
	if n < 0 {
		return nil, fmt.Errorf("%s, which is to be reset, is not applied; run plumb apply first", p.target)
	}
	x := &resetting{in: r.in, kind: p.kind, target: r.in.Instances[n], log: r.step}
	typ := x.target.Addr.Resource.Type
	var ok bool
	if x.typ, ok = resource(r.in.Set, typ).(providers.Resetter); !ok {
		return nil, fmt.Errorf("%s cannot be reset: a %s does not know how; it can be %s", p.target, typ, resettable(r.in.Set))
	}
	if kinds := x.typ.Resets(); !slices.Contains(kinds, p.kind) {
		return nil, fmt.Errorf("%s cannot be reset by kind = %q; a %s knows %s", p.target, p.kind, typ, strings.Join(kinds, ", "))
	}
	var err error
	if x.host, err = r.bed.host(ctx, r.in, x.target.Host); err != nil {
		return nil, err
	}
	x.again = lostBy(r.in.Set, r.in.Instances, x.target)
	return x, nil
}

func resettable(set *providers.Set) string {
	var out []string
	for _, t := range set.Resources {
		if _, ok := t.(providers.Resetter); ok {
			out = append(out, t.Schema().Type)
		}
	}
	if len(out) == 0 {
		return "nothing that this Plumb knows"
	}
	slices.Sort(out)
	return strings.Join(out, " or ")
}

// lostBy lists the instances on the target's host that a restart of it takes the effect of, and those that lose theirs when these are applied again; each after
// what it depends on, by the state and by the order of their types.
func lostBy(set *providers.Set, all []Instance, target Instance) []Instance {
	lost := map[string]bool{}
	disturbed := map[string]schema.Cost{target.Addr.Resource.Type: schema.ServiceRestart} // by type: how much
	for more := true; more; {
		more = false
		for _, i := range all {
			if i.Host != target.Host || i.Addr == target.Addr || lost[i.Addr.String()] {
				continue
			}
			for _, l := range schemaOf(set, i).LostOn {
				if cost, hit := disturbed[l.Type]; hit && cost >= l.Cost {
					// To be applied again is to be made anew for those who stand on it.
					lost[i.Addr.String()], more = true, true
					disturbed[i.Addr.Resource.Type] = schema.Replace
				}
			}
		}
	}
	var out []Instance
	var add func(i Instance)
	add = func(i Instance) {
		if !lost[i.Addr.String()] {
			return
		}
		delete(lost, i.Addr.String())
		for _, before := range all {
			if before.Host == target.Host && (slices.Contains(i.DependsOn, before.Addr.Resource.String()) ||
				slices.Contains(schemaOf(set, i).After, before.Addr.Resource.Type)) {
				add(before)
			}
		}
		out = append(out, i)
	}
	for _, i := range all {
		add(i)
	}
	return out
}

// schemaOf is an instance's schema, an empty one for a type that is not known here.
func schemaOf(set *providers.Set, i Instance) *schema.Resource {
	if typ := resource(set, i.Addr.Resource.Type); typ != nil {
		return typ.Schema()
	}
	return &schema.Resource{}
}

// disturb resets the target and applies again what lost its effect by it: the interruption is over for a user only then.
func (x *resetting) disturb(ctx context.Context) error {
	x.log("resetting %s (%s)", x.target.Addr, x.kind)
	mark := func(i Instance) providers.Mark {
		return providers.Mark{Testbed: x.in.Testbed, Address: i.Addr.String()}
	}
	err := x.typ.Reset(ctx, x.host, mark(x.target), providers.Subject{Addr: x.target.Addr, Value: plain(x.target.Value)}, x.kind)
	if err != nil {
		return fmt.Errorf("reset %s (%s): %w; run plumb apply to mend the testbed", x.target.Addr, x.kind, err)
	}
	for _, i := range x.again {
		v := plain(i.Value)
		res, err := resource(x.in.Set, i.Addr.Resource.Type).Apply(ctx, providers.ApplyRequest{Host: x.host, Mark: mark(i), Prior: v, Planned: v, Undo: i.Undo, Reapply: true,
			Log: func(line string) { x.log("%s: %s", i.Addr, line) }})
		if err == nil && (res.New == cty.NilVal || res.New.IsNull()) {
			err = fmt.Errorf("it was gone afterwards; this is a bug of that provider")
		}
		if err != nil {
			return fmt.Errorf("apply %s again after the reset of %s: %w; run plumb apply to mend the testbed", i.Addr, x.target.Addr, err)
		}
	}
	return nil
}

// words says what a reset does, for the phases of a trial.
func (x *resetting) words() string {
	s := fmt.Sprintf("Reset: %s of %s", x.kind, x.target.Addr)
	if len(x.again) > 0 {
		var names []string
		for _, i := range x.again {
			names = append(names, i.Addr.String())
		}
		s += "; applied again within the interruption: " + strings.Join(names, ", ")
	}
	return s + "."
}
