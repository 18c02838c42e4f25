package apply

import (
	"context"
	"errors"

	"github.com/hashicorp/hcl/v2"

	"plumb/stages/internal/value"
	"plumb/stages/plan"
)

// read runs the step of a data source whose configuration was not known while planning.
func (r *runner) read(ctx context.Context, s plan.Step) hcl.Diagnostics {
	j := &job{step: s}
	src := r.data[s.Addr.Resource.Type]
	if src == nil || r.eval == nil {
		return r.failure(j, "cannot be read", errors.New("it is no data source of this configuration: a bug of Plumb"))
	}
	b := &r.sources[s.Addr.Resource.Type].Block
	inst, diags := r.eval.Evaluate(s.Addr)
	if diags.HasErrors() {
		return diags
	}
	config, sensitive := value.Unmark(inst.Desired)
	if !config.IsWhollyKnown() {
		return append(diags, r.failure(j, "cannot be read", errors.New("its arguments are not known although all that they refer to was applied; "+
			"they refer to something that was left out, by -target or because it is not in the plan"))...)
	}
	host, err := r.host(ctx, s.Host)
	if err != nil {
		return append(diags, r.failure(j, "cannot be read", err)...)
	}
	got, err := src.Read(ctx, host, config)
	if err != nil {
		return append(diags, r.failure(j, "was not read", err)...)
	}
	if broken := value.CheckApplied(b, propose(b, config), got); len(broken) > 0 {
		return append(diags, r.bug(&job{step: s, subject: r.rangeOf(s)}, broken)...)
	}
	j.subject = r.rangeOf(s)
	return append(diags, r.accept(j, got, value.Union(sensitive, value.SchemaSensitive(b, got)))...)
}
