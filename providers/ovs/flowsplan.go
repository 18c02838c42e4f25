package ovs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/openflow"
)

func (flowsType) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	for i, g := range list(req.Desired, "generate") {
		p := append(at("generate"), cty.IndexStep{Key: cty.NumberIntVal(int64(i))})
		if err := templateOf(g).Check(); err != nil {
			res.Problems = append(res.Problems, providers.Problem{Path: p, Summary: "The template makes no flows", Detail: "generate: " + err.Error() + "."})
		} else if _, err := openflow.NewParser(nil).Parse("actions=" + attr.Text(g, "actions")); err != nil {
			res.Problems = append(res.Problems, providers.Problem{Path: append(p, cty.GetAttrStep{Name: "actions"}), Summary: "Actions cannot be read", Detail: err.Error() + "."})
		}
	}
	res.Problems = append(res.Problems, sameFlowTwice(req.Desired)...)
	attrs := attrsOf(req.Proposed)
	whole := req.Desired.IsWhollyKnown() || known(req.Desired, "flows") && known(req.Desired, "generate")
	switch {
	case len(res.Problems) > 0:
	case whole || req.Desired.GetAttr("flows").IsNull() && known(req.Desired, "generate"):
		count, digest, err := summaryFor(ctx, req.Host, wantedOf(req.Desired))
		if err != nil {
			return res, err
		}
		attrs["flow_count"], attrs["digest"] = cty.NumberIntVal(count), cty.StringVal(digest)
	default:
		attrs["flow_count"], attrs["digest"] = cty.UnknownVal(cty.Number), cty.UnknownVal(cty.String)
	}
	res.Planned = cty.ObjectVal(attrs)
	name := attr.Text(req.Desired, "bridge")
	if req.Host == nil || name == "" || !req.Desired.GetAttr("cookie").IsNull() {
		return res, nil
	}
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return res, err
	}
	if b := w.bridges[name]; b != nil && !ours(b.external, req.Mark) {
		res.Problems = append(res.Problems, providers.Problem{Path: at("bridge"), Summary: "All flows of a bridge that is not ours",
			Detail: fmt.Sprintf("Bridge %s on %s is not of this testbed, and without cookie all its flows would be replaced. Set cookie, so that only flows with that cookie are managed.", name, req.Host.Name())})
	}
	return res, nil
}

// summaryFor is the summary of a run's session where there is a host.
func summaryFor(ctx context.Context, host providers.Host, w wanted) (int64, string, error) {
	if host == nil {
		count, digest := summary(w)
		return count, digest, nil
	}
	s, err := sessionOf(ctx, host)
	if err != nil {
		return 0, "", err
	}
	count, digest := s.summary(w)
	return count, digest, nil
}

// sameFlowTwice finds flows of which one would overwrite another.
func sameFlowTwice(d cty.Value) []providers.Problem {
	seen := map[openflow.Key]string{}
	p := openflow.NewParser(nil)
	var out []providers.Problem
	for i, line := range texts(d, "flows") {
		f, err := p.Parse(line)
		if err != nil {
			continue // Validate has said so
		}
		path := append(at("flows"), cty.IndexStep{Key: cty.NumberIntVal(int64(i))})
		if first, ok := seen[f.Key]; ok {
			out = append(out, providers.Problem{Path: path, Summary: "Two flows for one entry",
				Detail: fmt.Sprintf("%q and %q have the same table, priority and match, so the second would overwrite the first. Remove one, or give it another priority.", first, line)})
		}
		seen[f.Key] = line
		if !d.GetAttr("cookie").IsNull() && f.Cookie != 0 {
			out = append(out, providers.Problem{Path: path, Summary: "A flow has a cookie of its own",
				Detail: fmt.Sprintf("%q names a cookie, but the cookie argument gives one to all flows. Remove it from the flow.", line)})
		}
	}
	return out
}

func (flowsType) Claims(ctx context.Context, host providers.Host, planned cty.Value) (providers.Claims, error) {
	var c providers.Claims
	want := wantedOf(planned)
	if want.bridge == "" {
		return c, nil
	}
	scope := "flows of bridge " + want.bridge
	c.Unique = append(c.Unique, providers.Unique{Scope: scope, Value: fmt.Sprintf("cookie 0x%x", want.cookie), Path: at("bridge")})
	live := map[string]bool{}
	if host != nil {
		s, err := sessionOf(ctx, host)
		if err != nil {
			return c, err
		}
		w, err := s.look(ctx)
		if err != nil {
			return c, err
		}
		if b := w.bridges[want.bridge]; b != nil {
			for _, p := range b.ports {
				live[p.name], live[strconv.FormatInt(p.ofport, 10)] = true, true
			}
		}
	}
	seen := map[string]bool{}
	need := func(line string, path cty.Path) {
		for _, ref := range openflow.PortRefs(line) {
			if !live[ref] && !seen[ref] {
				seen[ref] = true
				c.Needs = append(c.Needs, providers.Named{Kind: "port on bridge " + want.bridge, Name: ref, Path: path})
			}
		}
	}
	for i, l := range want.lines {
		need(l, append(at("flows"), cty.IndexStep{Key: cty.NumberIntVal(int64(i))}))
	}
	for i, g := range want.gens {
		path := append(at("generate"), cty.IndexStep{Key: cty.NumberIntVal(int64(i))})
		for l := range g.Lines() { // ports are the same in all of them
			need(l, path)
			break
		}
	}
	return c, nil
}
