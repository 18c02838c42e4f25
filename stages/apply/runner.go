package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/graph"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// runner is one run.
type runner struct {
	in        Input
	lineage   string
	serial    uint64 // of the prior state
	journal   *state.Journal
	steps     map[int]plan.Step
	graph     *graph.Graph[int]
	changes   map[addrs.Instance]*plan.Change // of current instances
	deposed   map[deposedKey]*plan.Change     // of instances that an earlier run deposed
	dataDeps  map[string][]string             // what each data source depends on, by its static address
	resources map[string]providers.Resource
	data      map[string]providers.DataSource
	schemas   map[string]*schema.Resource // of managed types; asked for once, because a provider may make its schema anew each time
	sources   map[string]*schema.Resource // of data sources
	types     map[*schema.Block]cty.Type  // what the schemas imply
	hosts     hosts
	prior     *state.State

	eval Evaluator // nil without a configuration

	mu      sync.Mutex // guards what follows
	draft   *state.Draft
	values  map[addrs.Instance]cty.Value // as references see them: marked; planned, replaced by what was applied
	running map[int]time.Time            // started steps
	results map[int]StepResult
	down    map[string]bool            // hosts that went out of reach in this run
	removed map[string][]state.Outcome // by host: deletes that a reboot is to make effective

	eventMu sync.Mutex // Events are told one at a time
}

type deposedKey struct {
	addr addrs.Instance
	at   uint64
}

func newRunner(ctx context.Context, in Input, prior *state.State, journal *state.Journal) (*runner, hcl.Diagnostics) {
	if in.Options.Events == nil {
		in.Options.Events = noEvents{}
	}
	r := &runner{
		in: in, prior: prior, lineage: prior.Lineage, serial: prior.Serial, journal: journal,
		steps: map[int]plan.Step{}, graph: &graph.Graph[int]{}, changes: map[addrs.Instance]*plan.Change{}, deposed: map[deposedKey]*plan.Change{}, dataDeps: map[string][]string{},
		resources: map[string]providers.Resource{}, data: map[string]providers.DataSource{}, schemas: map[string]*schema.Resource{}, sources: map[string]*schema.Resource{}, types: map[*schema.Block]cty.Type{},
		draft: state.NewDraft(prior), values: map[addrs.Instance]cty.Value{}, running: map[int]time.Time{}, results: map[int]StepResult{}, down: map[string]bool{}, removed: map[string][]state.Outcome{},
	}
	r.hosts = hosts{open: in.OpenHost, entries: map[string]*hostEntry{}}
	if r.hosts.open == nil {
		r.hosts.open, r.hosts.own = in.Providers.OpenHost, true
	}
	for _, t := range in.Providers.Resources {
		s := t.Schema()
		r.resources[s.Type], r.schemas[s.Type], r.types[&s.Block] = t, s, s.Block.ImpliedType()
	}
	for _, d := range in.Providers.Data {
		s := d.Schema()
		r.data[s.Type], r.sources[s.Type], r.types[&s.Block] = d, s, s.Block.ImpliedType()
	}
	for i := range in.Plan.Changes {
		if c := &in.Plan.Changes[i]; c.Deposed {
			r.deposed[deposedKey{c.Addr, c.DeposedAt}] = c
		} else {
			r.changes[c.Addr] = c
			if c.Addr.Resource.Mode == addrs.Data {
				r.dataDeps[c.Addr.Resource.Static().String()] = c.DependsOn
			}
		}
	}
	var diags hcl.Diagnostics
	for _, s := range in.Plan.Steps {
		if problem := r.unknownStep(s); problem != "" {
			diags = append(diags, errorDiag("The plan cannot be run", problem, nil)...)
		}
		r.steps[s.ID] = s
		r.graph.Add(s.ID)
	}
	for _, s := range in.Plan.Steps {
		for _, e := range s.After {
			if _, ok := r.steps[e.Step]; !ok {
				diags = append(diags, errorDiag("The plan cannot be run", fmt.Sprintf("Step %d waits for step %d, which the plan does not have.", s.ID, e.Step), nil)...)
			}
			r.graph.Connect(s.ID, e.Step, e.Reason)
		}
	}
	r.deposedLast()
	if diags.HasErrors() || in.Evaluator == nil {
		return r, diags
	}
	ev, more := in.Evaluator(r.resolve, func(host string) (cty.Value, hcl.Diagnostics) { return r.facts(ctx, host) })
	r.eval = ev
	return r, append(diags, more...)
}

// deposedLast lets what an earlier run deposed go only after what this run makes at the same address: the two may be one object, which
// remove can tell once it is made.
func (r *runner) deposedLast() {
	made := map[addrs.Instance]int{}
	for id, s := range r.steps {
		if s.Action == plan.Create {
			made[s.Addr] = id
		}
	}
	for _, s := range r.in.Plan.Steps {
		if create, ok := made[s.Addr]; ok && s.Deposed && !r.graph.Reaches(create, s.ID) {
			r.graph.Connect(s.ID, create, "replace order")
		}
	}
}

// unknownStep says what makes a step impossible; "" when nothing does.
func (r *runner) unknownStep(s plan.Step) string {
	_, have := r.resources[s.Addr.Resource.Type]
	if s.Addr.Resource.Mode == addrs.Data {
		_, have = r.data[s.Addr.Resource.Type]
	}
	c := r.changes[s.Addr]
	switch {
	case s.Action == plan.Forget || s.Action == plan.Join:
		return ""
	case s.Action == plan.Reboot:
		if r.in.Providers.Reboot == nil {
			return fmt.Sprintf("The plan reboots %s, and this Plumb cannot do that.", s.Addr)
		}
		return ""
	case !have:
		return fmt.Sprintf("%s is of type %s, which this Plumb does not have.", s.Addr, s.Addr.Resource.Type)
	case c == nil && s.Action != plan.Delete:
		return fmt.Sprintf("The plan has a step for %s and no change of it.", s.Addr)
	}
	switch s.Action {
	case plan.Create, plan.Update, plan.Delete, plan.Reapply, plan.Read:
		return ""
	}
	return fmt.Sprintf("The plan has a step %q for %s, and there is no such step.", s.Action, s.Addr)
}

// visit runs one step and tells of it.
func (r *runner) visit(ctx context.Context, s plan.Step) error {
	if s.Action == plan.Join {
		return nil
	}
	started := r.in.Options.Now()
	if r.isDown(s.Host) {
		r.mu.Lock()
		r.results[s.ID] = StepResult{Step: s.ID, Addr: s.Addr, Host: s.Host, Action: s.Action, Status: Skipped, Because: "host." + s.Host}
		r.mu.Unlock()
		return &stepError{}
	}
	r.mu.Lock()
	r.running[s.ID] = started
	r.mu.Unlock()
	r.tell(func(e Events) { e.StepStarted(s) })

	diags, unfinished := r.step(ctx, s)

	res := StepResult{Step: s.ID, Addr: s.Addr, Host: s.Host, Action: s.Action, Status: Done, Diags: diags, Elapsed: r.in.Options.Now().Sub(started)}
	switch {
	case unfinished:
		res.Status = Unfinished
	case diags.HasErrors():
		res.Status = Failed
	}
	r.mu.Lock()
	delete(r.running, s.ID)
	r.results[s.ID] = res
	r.mu.Unlock()
	r.tell(func(e Events) { e.StepDone(res) })
	if res.Status != Done {
		return &stepError{diags, unfinished}
	}
	return nil
}

func (r *runner) step(ctx context.Context, s plan.Step) (diags hcl.Diagnostics, unfinished bool) {
	switch {
	case s.Action == plan.Forget:
		return r.forget(s), false
	case s.Action == plan.Read:
		return r.read(ctx, s), false
	case s.Action == plan.Delete:
		return r.remove(ctx, s)
	case s.Action == plan.Reboot:
		return r.reboot(ctx, s)
	}
	return r.change(ctx, s)
}

func (r *runner) tell(f func(Events)) {
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	f(r.in.Options.Events)
}

// heartbeat tells of long steps until the returned function is called.
func (r *runner) heartbeat() (stop func()) {
	if r.in.Options.Heartbeat == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-r.in.Options.Heartbeat:
				r.beat()
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (r *runner) beat() {
	now := r.in.Options.Now()
	r.mu.Lock()
	long := map[int]time.Duration{}
	for id, started := range r.running {
		if d := now.Sub(started); d >= HeartbeatAfter {
			long[id] = d
		}
	}
	r.mu.Unlock()
	for _, s := range r.in.Plan.Steps {
		if d, ok := long[s.ID]; ok {
			r.tell(func(e Events) { e.StillRunning(s, d) })
		}
	}
}

// close closes what the run opened itself.
func (r *runner) close() { r.hosts.close() }

// finish makes the result after the walk.
func (r *runner) finish(ctx context.Context, report graph.Report[int]) *Result {
	res := &Result{Cancelled: ctx.Err() != nil}
	for _, s := range r.in.Plan.Steps {
		if s.Action == plan.Join {
			continue
		}
		row, ran := r.results[s.ID]
		if !ran {
			row = StepResult{Step: s.ID, Addr: s.Addr, Host: s.Host, Action: s.Action, Status: NotStarted}
			if cause, ok := report.Skipped[s.ID]; ok {
				row.Status, row.Because = Skipped, r.steps[cause].Addr.String()
				if c := r.results[cause]; c.Status == Skipped {
					row.Because = c.Because
				}
			}
		}
		res.Steps = append(res.Steps, row)
	}
	res.Stopped = res.Count(NotStarted) > 0
	for _, u := range r.in.Plan.Unreachable {
		for _, i := range u.Left {
			res.Steps = append(res.Steps, StepResult{Step: -1, Addr: i.Addr, Host: i.Host, Action: plan.NoOp, Status: Skipped, Because: "host." + u.Host})
		}
	}
	complete := res.Count(Done) == len(res.Steps)
	if !res.Cancelled {
		r.refresh()
		known, diags := r.outputs()
		res.Diags = append(res.Diags, diags...)
		complete = complete && known
	}
	res.Applied = complete && !res.Cancelled && !res.Diags.HasErrors()
	if res.Applied {
		r.draft.Base().AppliedPlan = r.in.Plan.ID
	}
	res.State = r.draft.State()
	if !res.Cancelled {
		r.keepHosts(len(res.State.Instances) == 0)
		res.State.Hosts = maps.Clone(r.draft.Base().Hosts)
	}
	return res
}

// refresh takes over what planning found out about instances that no step concerns: their attributes as read, that they are not in
// doubt any more, and what the configuration says about their destroy.
func (r *runner) refresh() {
	stepped := map[addrs.Instance]bool{}
	for _, s := range r.in.Plan.Steps {
		stepped[s.Addr] = true
	}
	for a, c := range r.changes {
		old := r.draft.Current(a)
		if old == nil || c.Action != plan.NoOp || stepped[a] || !has(c.After) {
			continue
		}
		now := *old
		now.Status, now.Attributes, now.Sensitive = state.Ready, c.After, paths(c.Sensitive)
		if s := r.schemas[a.Resource.Type]; s != nil {
			now.SchemaVersion = s.Version
		}
		r.describe(&now, c)
		r.draft.Put(&now)
	}
}

// describe fills in what the plan says for a later destroy. Data sources are not in the state, so what they depend on stands in their place.
func (r *runner) describe(i *state.Instance, c *plan.Change) {
	i.PreventDestroy, i.CreateBeforeDestroy = c.PreventDestroy, c.CreateBeforeDestroy
	i.DependsOn = nil
	seen := map[string]bool{}
	var add func(list []string)
	add = func(list []string) {
		for _, d := range list {
			if seen[d] {
				continue
			}
			seen[d] = true
			if through, data := r.dataDeps[d]; data {
				add(through)
			} else {
				i.DependsOn = append(i.DependsOn, d)
			}
		}
	}
	add(c.DependsOn)
	slices.Sort(i.DependsOn)
}

// has says whether a document of a plan holds an object.
func has(doc []byte) bool { return len(doc) > 0 && string(doc) != "null" }

func paths(ps []plan.Path) [][]string {
	if len(ps) == 0 {
		return nil
	}
	out := make([][]string, len(ps))
	for i, p := range ps {
		out[i] = slices.Clone(p)
	}
	return out
}
