package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// reboot reboots a host, and then reads what needed it: an argument that did not take effect is an error here, and not a surprise in a measurement.
//
// It has no record of its own in the journal. What was changed for it is found by reading: types tell what the running system has. What was deleted for it keeps its intent without an outcome until the
// reboot has been, so that a run that is killed in between leaves it in doubt, and the next plan asks its type what is left to do.
//
// unfinished says that the wait for the host was cut off.
func (r *runner) reboot(ctx context.Context, s plan.Step) (diags hcl.Diagnostics, unfinished bool) {
	host, err := r.host(ctx, s.Host)
	if err != nil {
		return r.notRebooted(s, err), false
	}
	behind := r.behind(ctx, s.Host)
	r.crashAt("before the reboot of " + s.Host)
	err = r.in.Providers.Reboot(ctx, host, func(line string) { r.tell(func(e Events) { e.StepProgress(s, line) }) })
	r.crashAt("after the reboot of " + s.Host)
	for _, h := range behind {
		_ = h.Forget() // closing what the reboot has cut off may fail, and that is no news
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return errorDiag(s.Addr.String()+" was not waited for", "It was told to reboot, and may still be doing so. The next plan finds out what it has.", nil), true
	case err != nil:
		return r.notRebooted(s, err), false
	}
	diags = r.concludeRemovals(s.Host)
	for _, step := range r.in.Plan.Steps {
		c := r.changes[step.Addr]
		if c == nil || !c.Reboot || step.Host != s.Host || step.Action == plan.Delete || step.Action == plan.Join {
			continue
		}
		diags = append(diags, r.verify(ctx, step, c, host)...)
	}
	return diags, false
}

func (r *runner) notRebooted(s plan.Step, err error) hcl.Diagnostics {
	if errors.Is(err, providers.ErrUnreachable) {
		r.setDown(s.Host)
	}
	return errorDiag(s.Addr.String()+" was not rebooted", sentence(err), nil)
}

// behind gives the hosts of the plan that are reached through another one: what was kept of them is void after its reboot. They are asked for before it, when they can still be opened.
func (r *runner) behind(ctx context.Context, name string) []providers.Host {
	names, used := map[string]bool{}, map[string]bool{}
	for i := range r.in.Plan.Changes {
		used[r.in.Plan.Changes[i].Host] = true
	}
	r.mu.Lock()
	for host := range r.draft.Base().Hosts {
		names[host] = true
	}
	r.mu.Unlock()
	if r.in.Config != nil {
		for host := range r.in.Config.Root.Hosts {
			names[host] = true
		}
	}
	configs := map[string]cty.Value{}
	for host := range names {
		if v, err := r.hostConfig(host); err == nil {
			configs[host] = v
		}
	}
	var out []providers.Host
	for _, other := range plan.Behind(r.in.Providers.HostSchema, configs, name)[1:] {
		if !used[other] {
			continue
		}
		if h, err := r.host(ctx, other); err == nil {
			out = append(out, h)
		}
	}
	return out
}

// awaitsReboot says whether a delete takes effect with a reboot that is still to come.
func (r *runner) awaitsReboot(j *job) bool {
	c := r.changes[j.step.Addr]
	return j.op == state.OpDelete && !j.step.Deposed && c != nil && c.Action == plan.Delete && c.Reboot
}

// postpone keeps the outcome of a delete until its host has been rebooted.
func (r *runner) postpone(j *job, out state.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed[j.step.Host] = append(r.removed[j.step.Host], out)
}

// concludeRemovals records the deletes that a reboot has made effective.
func (r *runner) concludeRemovals(host string) (diags hcl.Diagnostics) {
	r.mu.Lock()
	list := r.removed[host]
	delete(r.removed, host)
	for i := range list {
		r.draft.Conclude(&list[i], r.serial)
	}
	r.mu.Unlock()
	for _, out := range list {
		if r.journal == nil {
			break
		}
		if err := r.journal.Outcome(out, host); err != nil {
			diags = append(diags, r.failure(&job{step: r.steps[out.Step]}, "was destroyed, but that is not in the journal", err)...)
		}
	}
	return diags
}

// verify reads an instance after a reboot, compares it with what was promised, and keeps what is there. What was left open, and the type has found out by itself, promises nothing.
func (r *runner) verify(ctx context.Context, s plan.Step, c *plan.Change, host providers.Host) hcl.Diagnostics {
	r.mu.Lock()
	now := r.draft.Current(s.Addr)
	r.mu.Unlock()
	if now == nil {
		return nil
	}
	j := &job{step: s}
	b := &r.schemas[s.Addr.Resource.Type].Block
	ty := r.types[b]
	applied, err := value.Decode(now.Attributes, ty)
	if err != nil {
		return r.failure(j, "cannot be read after the reboot", err)
	}
	found, err := r.resources[s.Addr.Resource.Type].Read(ctx, providers.ReadRequest{Host: host, Mark: providers.Mark{Testbed: r.lineage, Address: s.Addr.String()}, Prior: applied})
	if err != nil {
		return r.failure(j, "cannot be read after the reboot", err)
	}
	if broken := value.CheckKnown(b, found.Current); len(broken) > 0 {
		return r.bug(j, broken)
	}
	if found.Current.IsNull() {
		r.keepFound(now, nil, state.InDoubt)
		return r.failure(j, "did not take effect", fmt.Errorf("after the reboot of %s it is gone", s.Host))
	}
	var open [][]string
	for _, p := range c.Unknown {
		if a := b.Attributes[p[0]]; a == nil || a.Computed {
			open = append(open, p)
		}
	}
	broken := value.CheckApplied(b, value.Unknown(applied, open), found.Current)
	status := state.Ready
	if len(broken) > 0 {
		status = state.Incomplete
	}
	e, err := value.Encode(found.Current, ty)
	if err != nil {
		return r.failure(j, "was read after the reboot, and that cannot be kept", err)
	}
	r.keepFound(now, e.JSON, status)
	if len(broken) == 0 {
		return nil
	}
	var wrong []string
	for _, w := range broken {
		want, _ := value.At(applied, w.Path)
		got, _ := value.At(found.Current, w.Path)
		at := strings.Join(w.Path, ".")
		if slices.ContainsFunc(now.Sensitive, func(p []string) bool { return value.HasPrefix(p, w.Path) || value.HasPrefix(w.Path, p) }) {
			wrong = append(wrong, at+" is not what was set")
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s is %s, and should be %s", at, show(got), show(want)))
	}
	slices.Sort(wrong)
	return r.failure(j, "did not take effect", fmt.Errorf("after the reboot of %s, %s", s.Host, strings.Join(wrong, "; ")))
}

// keepFound puts into the state what was read; nil: what was there before.
func (r *runner) keepFound(was *state.Instance, attributes []byte, status state.Status) {
	i := *was
	i.Status = status
	if attributes != nil {
		i.Attributes = attributes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draft.Put(&i)
}

// show is a value for people, on one line.
func show(v cty.Value) string {
	if v == cty.NilVal || v.IsNull() {
		return "not set"
	}
	e, err := value.Encode(v, v.Type())
	if err != nil {
		return "something that cannot be shown"
	}
	return string(e.JSON)
}
