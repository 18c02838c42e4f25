package plan

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/state"
)

// refresh reads the instances of the state, several at a time. Without Options.Refresh only those that the state is not sure of.
func (p *planner) refresh() {
	before := len(p.diags)
	defer func() { // what is reported first must not hang on which read ended first
		slices.SortStableFunc(p.diags[before:], func(a, b *hcl.Diagnostic) int {
			return cmp.Or(cmp.Compare(a.Summary, b.Summary), cmp.Compare(a.Detail, b.Detail))
		})
	}()
	var g errgroup.Group
	g.SetLimit(p.opt.Parallelism)
	read := func(e *entry) {
		if p.scope.covers(e.inst.Addr) && (p.opt.Refresh || e.inst.Status != state.Ready) {
			g.Go(func() error { p.read(e); return nil })
		}
	}
	// The checks want every host's facts: asked for now, they cost no time of their own. An error comes up where they are used.
	asked := map[string]bool{}
	for _, e := range p.instances() {
		if name := e.inst.Host; p.opt.Refresh && !p.opt.Destroy && name != "" && !asked[name] && p.scope.covers(e.inst.Addr) {
			asked[name] = true
			g.Go(func() error {
				if h := p.host(name); h != nil {
					_, _ = h.Facts(p.ctx)
				}
				return nil
			})
		}
	}
	for _, i := range p.instances() { // in the state's order: what is read first is the same each time
		read(i)
	}
	for _, e := range p.deposed {
		read(e)
	}
	g.Wait()
}

// instances lists the current entries in the state's order.
func (p *planner) instances() []*entry {
	if p.in.Prior == nil {
		return nil
	}
	var out []*entry
	for _, i := range p.in.Prior.Instances {
		if e := p.prior[i.Addr]; e != nil && !i.Deposed {
			out = append(out, e)
		}
	}
	return out
}

func (p *planner) read(e *entry) {
	a := e.inst.Addr
	var host providers.Host
	if e.inst.Host != "" {
		if host = p.host(e.inst.Host); host == nil {
			e.unread = p.bad(e.inst.Host)
			return
		}
	}
	fail := func(diags ...*hcl.Diagnostic) { e.unread = true; p.report(diags...) }
	r, err := e.typ.Read(p.ctx, providers.ReadRequest{Host: host, Mark: p.mark(a), Prior: e.recorded})
	switch {
	case errors.Is(err, context.Canceled):
		e.unread = true // said once, by Make
		return
	case errors.Is(err, providers.ErrUnreachable):
		e.unread = true
		p.hostError(e.inst.Host, err)
		return
	case err != nil:
		fail(providerError(p.rangeOf(a), "read", a, err))
		return
	}
	if broken := value.CheckKnown(&e.schema.Block, r.Current); len(broken) > 0 {
		fail(bugs(p.rangeOf(a), a, broken)...)
		return
	}
	if !e.recorded.RawEquals(r.Current) {
		e.current, e.differs = keepSpelling(&e.schema.Block, e.recorded, r.Current), true
	}
}

// drift is how the world differs from the state. Instances whose last step was cut off are not in it: nobody knows what they should be.
func (p *planner) drift() ([]Change, error) {
	var out []Change
	for _, e := range p.instances() {
		if e.unread || !e.differs && !e.gone() || e.inst.Status != state.Ready || !p.scope.covers(e.inst.Addr) {
			continue
		}
		changed := diff(&e.schema.Block, e.recorded, e.current, e.recorded)
		if !e.gone() && len(changed) == 0 {
			continue
		}
		c := Change{Addr: e.inst.Addr, Host: e.inst.Host, Action: Update, Changed: changed, Cost: costOf(changed)}
		if e.gone() {
			c.Action = Delete
		}
		if err := p.encode(&c, &e.schema.Block, e.recorded, e.current, e.sensitive); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}
