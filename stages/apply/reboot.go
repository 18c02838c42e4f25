package apply

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// reboot reboots a host, and then reads what needed it: an argument that did not take effect is an error here, and not a surprise in a measurement. It is not in the journal: a
// run that is killed around it leaves what the next plan finds by reading.
func (r *runner) reboot(ctx context.Context, s plan.Step) hcl.Diagnostics {
	host, err := r.host(ctx, s.Host)
	if err == nil {
		// A machine that is going down cannot be told to stay.
		err = r.in.Providers.Reboot(context.WithoutCancel(ctx), host, func(line string) { r.tell(func(e Events) { e.StepProgress(s, line) }) })
	}
	if err != nil {
		r.setDown(s.Host)
		return errorDiag(s.Addr.String()+" was not rebooted", sentence(err), nil)
	}
	var diags hcl.Diagnostics
	for _, step := range r.in.Plan.Steps {
		c := r.changes[step.Addr]
		if c == nil || !c.Reboot || step.Host != s.Host || step.Action == plan.Delete || step.Action == plan.Join {
			continue
		}
		diags = append(diags, r.verify(ctx, step, host)...)
	}
	return diags
}

// verify reads an instance after a reboot and compares it with what was promised.
func (r *runner) verify(ctx context.Context, s plan.Step, host providers.Host) hcl.Diagnostics {
	r.mu.Lock()
	now := r.draft.Current(s.Addr)
	r.mu.Unlock()
	if now == nil {
		return nil
	}
	sch := r.schemas[s.Addr.Resource.Type]
	ty := r.types[&sch.Block]
	promised, err := value.Decode(now.Attributes, ty)
	if err != nil {
		return r.failure(&job{step: s}, "cannot be read after the reboot", err)
	}
	found, err := r.resources[s.Addr.Resource.Type].Read(ctx, providers.ReadRequest{Host: host, Mark: providers.Mark{Testbed: r.lineage, Address: s.Addr.String()}, Prior: promised})
	if err != nil {
		return r.failure(&job{step: s}, "cannot be read after the reboot", err)
	}
	if found.Current.IsNull() {
		return r.failure(&job{step: s}, "did not take effect", fmt.Errorf("it is gone after the reboot"))
	}
	var wrong []string
	for name, a := range sch.Block.Attributes {
		want, got := promised.GetAttr(name), found.Current.GetAttr(name)
		if !a.Sensitive && !want.IsNull() && !value.Same(a, want, got) {
			wrong = append(wrong, fmt.Sprintf("%s should be %s and is %s", name, show(want), show(got)))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	if e, err := value.Encode(found.Current, ty); err == nil {
		i := *now
		i.Attributes, i.Status = e.JSON, state.Incomplete
		r.mu.Lock()
		r.draft.Put(&i)
		r.mu.Unlock()
	}
	return r.failure(&job{step: s}, "did not take effect", fmt.Errorf("after the reboot of %s, %s", s.Host, strings.Join(wrong, "; ")))
}

// show is a value for people, on one line.
func show(v cty.Value) string {
	e, err := value.Encode(v, v.Type())
	if err != nil {
		return "something that cannot be shown"
	}
	return string(e.JSON)
}
