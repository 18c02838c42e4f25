package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// job is a step that changes the world.
type job struct {
	step     plan.Step
	typ      providers.Resource
	schema   *schema.Resource
	ty       cty.Type
	op       state.Op
	req      providers.ApplyRequest
	desired  cty.Value       // NilVal when the configuration was not evaluated again
	promised cty.Value       // Planned as the plan has it, before unknown parts were filled in
	filled   bool            // unknown parts were filled in
	doubt    *state.Instance // what the state holds while the outcome is not known
	prior    *state.Instance // what the state held before; nil for a create
	deposes  bool
	subject  *hcl.Range
}

// change runs a create, update or reapply step. unfinished says that what it left is not known: its intent stays in the journal.
func (r *runner) change(ctx context.Context, s plan.Step) (diags hcl.Diagnostics, unfinished bool) {
	j, diags := r.prepareChange(ctx, s)
	if diags.HasErrors() {
		return diags, false
	}
	if p, ok := j.typ.(providers.Preparer); ok {
		undo, err := p.Prepare(ctx, j.req)
		if err != nil {
			return append(diags, r.failure(j, "cannot be prepared", err)...), false
		}
		j.req.Undo = undo
	}
	j.doubt.Undo = j.req.Undo
	return r.run(ctx, j, diags)
}

// prepareChange gathers what a create, update or reapply needs. It changes nothing.
func (r *runner) prepareChange(ctx context.Context, s plan.Step) (*job, hcl.Diagnostics) {
	c := r.changes[s.Addr]
	j, err := r.newJob(ctx, s, state.OpUpdate)
	if err == nil && s.Action == plan.Create {
		j.op = state.OpCreate
		j.req.Prior = cty.NullVal(j.ty)
		// Whatever is at the address in the state now was not deleted before: the plan wants it deleted after.
		j.deposes = c.CreateBeforeDestroy && c.Action == plan.Replace && j.prior != nil
	} else if err == nil {
		j.req.Prior, err = value.Decode(c.Before, j.ty)
	}
	if err == nil {
		j.promised, err = planned(c, j.ty)
	}
	if err != nil {
		return nil, r.failure(&job{step: s}, "cannot be applied", err)
	}
	j.req.Planned = j.promised
	j.req.Reapply = s.Action == plan.Reapply || c.LostBy != ""
	sensitive := paths(c.Sensitive)

	r.describe(j.doubt, c)
	var diags hcl.Diagnostics
	if r.eval != nil && dependsOnConfig(&j.schema.Block, c.Unknown) {
		var more [][]string
		var evalDiags hcl.Diagnostics
		more, evalDiags = r.fillIn(ctx, j)
		if diags = append(diags, evalDiags...); diags.HasErrors() {
			return nil, diags
		}
		sensitive = value.Union(sensitive, more)
	}
	e, err := value.Encode(j.req.Planned, j.ty)
	if err != nil {
		return nil, append(diags, r.failure(j, "cannot be applied", err)...)
	}
	j.doubt.Attributes, j.doubt.Sensitive = e.JSON, value.Union(sensitive, value.Echoes(j.req.Planned, sensitive, j.req.Planned))
	return j, diags
}

// newJob is the part that all steps have in common.
func (r *runner) newJob(ctx context.Context, s plan.Step, op state.Op) (*job, error) {
	typ := r.resources[s.Addr.Resource.Type]
	sch := r.schemas[s.Addr.Resource.Type]
	host, err := r.host(ctx, s.Host)
	if err != nil {
		return nil, err
	}
	j := &job{step: s, typ: typ, schema: sch, ty: r.types[&sch.Block], op: op, subject: r.rangeOf(s)}
	r.mu.Lock()
	j.prior = r.draft.Current(s.Addr)
	r.mu.Unlock()
	j.req = providers.ApplyRequest{
		Host: host,
		Mark: providers.Mark{Testbed: r.lineage, Address: s.Addr.String()},
		Log:  func(line string) { r.tell(func(e Events) { e.StepProgress(s, line) }) },
	}
	j.doubt = &state.Instance{Addr: s.Addr, Host: s.Host, SchemaVersion: sch.Version}
	if j.prior != nil {
		// Also for a create: it finishes one that was cut off, and what that found first is what has to be put back.
		j.req.Undo = j.prior.Undo
	}
	return j, nil
}

// fillIn evaluates the configuration again, now that what it refers to is known, and asks the provider to plan what was unknown.
func (r *runner) fillIn(ctx context.Context, j *job) (sensitive [][]string, diags hcl.Diagnostics) {
	b := &j.schema.Block
	inst, diags := r.eval.Evaluate(j.step.Addr)
	if diags.HasErrors() {
		return nil, diags
	}
	j.desired, sensitive = value.Unmark(inst.Desired)
	j.req.Planned, j.filled = fill(b, j.promised, j.desired), true
	if at := stillUnknown(b, j.req.Planned); len(at) > 0 {
		return nil, append(diags, errorDiag("Value is still unknown", fmt.Sprintf("%s of %s is not known although all that it refers to was applied. "+
			"It refers to something that was left out, by -target or because it is not in the plan.", strings.Join(at[0], "."), j.step.Addr), j.subject)...)
	}
	p, ok := j.typ.(providers.Planner)
	if !ok {
		return sensitive, diags
	}
	res, err := p.Plan(ctx, providers.PlanRequest{Host: j.req.Host, Mark: j.req.Mark, Prior: j.req.Prior, Desired: j.desired, Proposed: j.req.Planned})
	if err != nil {
		return nil, append(diags, r.failure(j, "cannot be planned with the values known now", err)...)
	}
	for _, problem := range res.Problems {
		diags = append(diags, problemDiag(problem, j))
	}
	if diags.HasErrors() {
		return nil, diags
	}
	if broken := value.CheckPlanned(b, j.desired, res.Planned); len(broken) > 0 {
		return nil, append(diags, r.bug(j, broken)...)
	}
	j.req.Planned = res.Planned
	return sensitive, diags
}

// remove runs a delete step.
func (r *runner) remove(ctx context.Context, s plan.Step) (diags hcl.Diagnostics, unfinished bool) {
	j, err := r.newJob(ctx, s, state.OpDelete)
	if err != nil {
		return r.failure(&job{step: s}, "cannot be destroyed", err), false
	}
	if s.Deposed {
		j.prior = r.deposedIn(s, r.deposedAt(s))
	}
	if j.prior == nil {
		return diags, false // an earlier run has done it
	}
	j.req.Prior, err = value.Decode(j.prior.Attributes, j.ty)
	c := r.changes[s.Addr]
	if s.DeposedAt > 0 {
		c = r.deposed[deposedKey{s.Addr, s.DeposedAt}]
	}
	if err == nil && c != nil && has(c.Before) { // as read, rather than as recorded
		j.req.Prior, err = value.Decode(c.Before, j.ty)
	}
	if err != nil {
		return r.failure(j, "cannot be destroyed", err), false
	}
	if s.Deposed {
		one, err := r.oneObject(j)
		if err != nil {
			return r.failure(j, "cannot be destroyed", err), false
		}
		if one {
			diags = r.forget(s)
			if s.DeposedAt == 0 {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: s.Addr.String() + " was not replaced",
					Detail: "It has create_before_destroy, and the new object is the old one: nothing that tells objects apart differs. Change its name, or leave create_before_destroy out.", Subject: j.subject})
			}
			return diags, false
		}
	}
	j.req.Planned, j.promised = cty.NullVal(j.ty), cty.NullVal(j.ty)
	j.req.Undo = j.prior.Undo
	doubt := *j.prior
	j.doubt = &doubt
	return r.run(ctx, j, nil)
}

// deposedAt is the serial of the run that deposed what the step is about; 0 for a current instance.
func (r *runner) deposedAt(s plan.Step) uint64 {
	if s.Deposed && s.DeposedAt == 0 {
		return r.serial
	}
	return s.DeposedAt
}

func (r *runner) deposedIn(s plan.Step, at uint64) *state.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.draft.Deposed(s.Addr) {
		if i.DeposedAt == at {
			return i
		}
	}
	return nil
}

// oneObject says whether a deposed object and the current one of the same address are one in the world: nothing differs that cannot be
// changed, nor what the provider computed. A create adopts what carries our mark, so destroying the old one would destroy the new.
func (r *runner) oneObject(j *job) (bool, error) {
	r.mu.Lock()
	current := r.draft.Current(j.step.Addr)
	r.mu.Unlock()
	if current == nil {
		return false, nil
	}
	now, err := value.Decode(current.Attributes, j.ty)
	if err != nil {
		return false, err
	}
	for name, a := range j.schema.Block.Attributes {
		old, now := j.req.Prior.GetAttr(name), now.GetAttr(name)
		identifies := a.Cost == schema.Replace || a.Computed && !a.Volatile && !old.IsNull() && !now.IsNull()
		if identifies && !value.Same(a, old, now) && !(old.IsNull() && now.IsNull()) {
			return false, nil
		}
	}
	return true, nil
}

// run is intent, Apply, check, outcome.
func (r *runner) run(ctx context.Context, j *job, diags hcl.Diagnostics) (hcl.Diagnostics, bool) {
	if err := r.intend(j); err != nil {
		return append(diags, r.failure(j, "was not begun", err)...), false
	}
	r.crash(j, "before")
	res, err := j.typ.Apply(ctx, j.req)
	r.crash(j, "after")
	if err != nil && ctx.Err() != nil && res.New == cty.NilVal {
		// Cut off without a word of what is there: no outcome, so that the next run finds out.
		return append(diags, r.failure(j, "was cut off", err)...), true
	}
	out, more := r.outcome(j, res.New, err)
	diags = append(diags, more...)
	if !diags.HasErrors() && r.awaitsReboot(j) {
		r.postpone(j, out)
		return diags, false
	}
	r.mu.Lock()
	r.draft.Conclude(&out, r.serial)
	r.mu.Unlock()
	if r.journal != nil {
		if err := r.journal.Outcome(out, j.step.Host); err != nil {
			return append(diags, r.failure(j, "was done, but is not in the journal", err)...), false
		}
	}
	if diags.HasErrors() || j.op == state.OpDelete {
		return diags, false
	}
	return append(diags, r.accept(j, res.New, out.Instance.Sensitive)...), false
}

func (r *runner) intend(j *job) error {
	// Nothing of a hostless instance is in the world, so there is nothing to be in doubt about.
	if j.step.Host != "" && r.journal != nil {
		i := state.Intent{Step: j.step.ID, Op: j.op, Instance: j.doubt, Deposes: j.deposes}
		if !j.req.Prior.IsNull() {
			e, err := value.Encode(j.req.Prior, j.ty)
			if err != nil {
				return err
			}
			i.Prior = e.JSON
		}
		if err := r.journal.Intent(i); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.step.Host != "" {
		r.draft.Intend(&state.Intent{Instance: j.doubt, Deposes: j.deposes}, r.serial)
	}
	return nil
}

// outcome decides what the state says after Apply, and whether the answer keeps the contract.
func (r *runner) outcome(j *job, got cty.Value, err error) (state.Outcome, hcl.Diagnostics) {
	out := state.Outcome{Step: j.step.ID, Op: j.op, Addr: j.step.Addr, Deposes: j.deposes && j.step.Host == "", Deposed: j.doubt.Deposed, DeposedAt: j.doubt.DeposedAt}
	var diags hcl.Diagnostics
	b := &j.schema.Block
	if err != nil {
		out.Error = err.Error()
		diags = r.failure(j, verbs[j.op].failed, err)
		if got == cty.NilVal {
			out.Instance = j.unchanged(err)
			out.Restores = out.Instance == nil && j.deposes
			return out, diags
		}
	} else {
		broken := value.CheckApplied(b, j.req.Planned, got)
		if len(broken) == 0 && j.filled && j.promised.IsKnown() && !j.promised.IsNull() {
			broken = value.CheckApplied(b, j.promised, got)
		}
		if diags = r.bug(j, broken); len(broken) > 0 {
			out.Error = broken[0].String()
		}
	}
	i := *j.doubt
	i.Status = state.Ready
	if diags.HasErrors() {
		i.Status = state.Incomplete
	}
	if got == cty.NilVal || len(got.Type().TestConformance(j.ty)) > 0 || got.ContainsMarked() {
		// An answer that is no object of the type: what is there has to be read.
		i.Status = state.InDoubt
		out.Instance = &i
		return out, append(diags, r.notOfType(j, got, err)...)
	}
	if got.IsNull() {
		out.Restores = j.deposes
		return out, diags
	}
	e, encErr := value.Encode(got, j.ty)
	if encErr != nil {
		i.Status = state.InDoubt
		out.Instance = &i
		return out, append(diags, r.failure(j, "returned a value that cannot be kept", encErr)...)
	}
	i.Attributes, i.Sensitive = e.JSON, value.Union(j.doubt.Sensitive, value.SchemaSensitive(b, got), value.Echoes(j.req.Planned, j.doubt.Sensitive, got))
	out.Instance = &i
	return out, diags
}

// notOfType reports a bad answer of a failed Apply; of one that did not fail CheckApplied has.
func (r *runner) notOfType(j *job, got cty.Value, err error) hcl.Diagnostics {
	if err == nil {
		return nil
	}
	return r.bug(j, value.CheckApplied(&j.schema.Block, got, got))
}

// unchanged is what the state says after a failure that left things as they were, as far as the provider knows. nil: nothing is there.
func (j *job) unchanged(err error) *state.Instance {
	switch {
	case j.prior != nil && !j.deposes && j.op != state.OpCreate:
		i := *j.prior
		i.Status = state.Incomplete
		i.Undo = j.doubt.Undo
		return &i
	case j.step.Host == "" || errors.Is(err, providers.ErrForeign) && (j.prior == nil || j.deposes):
		return nil
	}
	// A create that failed may have been cut off from its host half-way: it is in doubt until it is read. Its Undo is kept.
	i := *j.doubt
	i.Status = state.InDoubt
	return &i
}

// accept makes the new object visible to references and checks the postconditions.
func (r *runner) accept(j *job, got cty.Value, sensitive [][]string) hcl.Diagnostics {
	v := value.Mark(got, sensitive)
	r.mu.Lock()
	r.values[j.step.Addr] = v
	r.mu.Unlock()
	if r.eval == nil {
		return nil
	}
	return r.eval.Postconditions(j.step.Addr, v)
}

// forget takes an instance out of the state alone.
func (r *runner) forget(s plan.Step) hcl.Diagnostics {
	out := state.Outcome{Step: s.ID, Op: state.OpForget, Addr: s.Addr, Deposed: s.Deposed, DeposedAt: r.deposedAt(s)}
	r.mu.Lock()
	r.draft.Conclude(&out, r.serial)
	r.mu.Unlock()
	if r.journal != nil {
		if err := r.journal.Outcome(out, ""); err != nil {
			return r.failure(&job{step: s}, "cannot be forgotten", err)
		}
	}
	return nil
}

func (r *runner) crash(j *job, when string) {
	r.crashAt(when + " " + string(j.op) + " of " + j.step.Addr.String())
}

func (r *runner) crashAt(point string) {
	if f := r.in.Options.Crash; f != nil {
		f(point)
	}
}

var verbs = map[state.Op]struct{ failed string }{
	state.OpCreate: {"was not created"}, state.OpUpdate: {"was not changed"}, state.OpDelete: {"was not destroyed"},
}

// failure is the diagnostic of a failed step: the error of the provider is its detail.
func (r *runner) failure(j *job, what string, err error) hcl.Diagnostics {
	if j.subject == nil {
		j.subject = r.rangeOf(j.step)
	}
	where := ""
	if j.step.Host != "" {
		where = " on " + j.step.Host
	}
	if errors.Is(err, providers.ErrUnreachable) {
		r.setDown(j.step.Host)
	}
	var diags hcl.Diagnostics
	if errors.As(err, &diags) {
		return diags
	}
	return errorDiag(fmt.Sprintf("%s%s %s", j.step.Addr, where, what), sentence(err), j.subject)
}

// bug blames a provider that broke the contract; nothing for none.
func (r *runner) bug(j *job, broken []value.Broken) hcl.Diagnostics {
	if len(broken) == 0 {
		return nil
	}
	lines := make([]string, len(broken))
	for i, b := range broken {
		lines[i] = b.String()
	}
	typ := j.step.Addr.Resource.Type
	return errorDiag("Bug of provider "+typ, fmt.Sprintf("%s gave an answer for %s that it may not give. Nothing is wrong with the configuration. Please report it:\n  %s",
		typ, j.step.Addr, strings.Join(lines, "\n  ")), j.subject)
}

func (r *runner) rangeOf(s plan.Step) *hcl.Range {
	if r.in.Config == nil {
		return nil
	}
	m := r.in.Config.Root
	for _, step := range s.Addr.Resource.Module.Steps() {
		call := m.Calls[step.Name]
		if call == nil || call.Module == nil {
			return nil
		}
		m = call.Module
	}
	if c := m.Resources[s.Addr.Resource.Local()]; c != nil {
		return c.Range.Ptr()
	}
	return nil
}

func problemDiag(p providers.Problem, j *job) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: p.Summary, Detail: p.Detail, Subject: j.subject}
	if p.Warning {
		d.Severity = hcl.DiagWarning
	}
	if len(p.Path) > 0 {
		d.Detail = strings.Join(value.PathOf(p.Path), ".") + " of " + j.step.Addr.String() + ": " + d.Detail
	}
	return d
}
