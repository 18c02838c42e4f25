// Package apply runs a plan. It decides nothing: which steps there are, in which order and with which values is in the plan.
//
// Each step goes Prepare, intent in the journal (durable), Apply, check of the answer, outcome in the journal, so that a run that is
// killed anywhere can be gone on with. A step that fails stops those that wait for it and nothing else.
//
// Start reading at Session (what a command does around a run), then Run, then runner.change (one step).
package apply

import (
	"context"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/providers"
	"plumb/stages/graph"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// Input is what a run needs.
type Input struct {
	Plan   *plan.Plan
	Config *config.Config // nil: a destroy that needs none
	// Evaluator makes the evaluator for this run; nil without a Config.
	Evaluator NewEvaluator
	Providers *providers.Set
	// OpenHost opens a host, or gives one that planning has opened (plan.Hosts.Get). It is called once for each host that a step needs, and
	// whoever gave it closes what it opened. nil: Providers.OpenHost, and the run closes its hosts itself.
	OpenHost func(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Host, error)
	Options  Options
}

// Options say how to run.
type Options struct {
	Parallelism int                   // steps at a time; less than 1: 10
	PerHost     func(host string) int // steps at a time on one host; nil, or less than 1 returned: no limit of its own
	Events      Events                // nil: nobody watches
	// Graceful ends when the run shall come to a halt: nothing new starts, running steps finish, the state is saved. The context of
	// Run itself ends when running steps shall stop too. nil: only that one.
	Graceful  context.Context
	Now       func() time.Time
	Heartbeat <-chan time.Time // each tick reports the steps that have run for HeartbeatAfter; nil: none
	// Crash, for tests only, is told before and after each Apply of a provider and each reboot. nil: nobody.
	Crash func(point string)
}

// HeartbeatAfter is how long a step runs before StillRunning is told, and how often ticks should come.
const HeartbeatAfter = 10 * time.Second

// Evaluator is what a run asks of the configuration: an *eval.Evaluator. It is safe for concurrent use.
type Evaluator interface {
	Evaluate(addrs.Instance) (*eval.Instance, hcl.Diagnostics)
	Postconditions(a addrs.Instance, self cty.Value) hcl.Diagnostics
	Host(name string) (*eval.Host, hcl.Diagnostics)
	Outputs() (map[string]eval.Output, hcl.Diagnostics)
}

var _ Evaluator = (*eval.Evaluator)(nil)

// NewEvaluator makes the Evaluator of a run, which sees resources as resolve says and hosts as facts does.
type NewEvaluator func(resolve func(addrs.Instance) (cty.Value, hcl.Diagnostics), facts func(host string) (cty.Value, hcl.Diagnostics)) (Evaluator, hcl.Diagnostics)

// Evaluating is the NewEvaluator for the inputs that the plan was made with; their Resolve and Facts are not used.
func Evaluating(in eval.Inputs) NewEvaluator {
	return func(resolve func(addrs.Instance) (cty.Value, hcl.Diagnostics), facts func(host string) (cty.Value, hcl.Diagnostics)) (Evaluator, hcl.Diagnostics) {
		in.Resolve, in.Facts = resolve, facts
		return eval.New(in)
	}
}

const defaultParallelism = 10

// Run runs the steps of the plan against prior and records them in the journal. Result.State is the state after it, serial as
// prior's; it is not written yet (Session.Apply does). Diagnostics of steps are in the Result, those returned concern the run as a
// whole, and then nothing was begun.
//
// When the context ends, running steps are cancelled; those that do not say what they left are in doubt, their intents stay in the journal, and
// Result.Cancelled is set.
func Run(ctx context.Context, in Input, prior *state.State, journal *state.Journal) (*Result, hcl.Diagnostics) {
	r, diags := newRunner(ctx, in, prior, journal)
	if diags.HasErrors() {
		return nil, diags
	}
	defer r.close()
	stopHeartbeat := r.heartbeat()
	defer stopHeartbeat()

	walk, stop := context.WithCancel(ctx)
	defer stop()
	if g := in.Options.Graceful; g != nil {
		defer context.AfterFunc(g, stop)()
		if g.Err() != nil {
			stop()
		}
	}
	limits := graph.Limits[int]{
		Parallelism: in.Options.Parallelism,
		Group:       func(id int) string { return r.steps[id].Host },
		PerGroup:    in.Options.PerHost,
	}
	if limits.Parallelism < 1 {
		limits.Parallelism = defaultParallelism
	}
	report, err := r.graph.Walk(walk, limits, func(id int) error { return r.visit(ctx, r.steps[id]) })
	if err != nil {
		return nil, errorDiag("The plan cannot be run", "Its steps wait for one another: "+err.Error()+". This is a bug of Plumb.", nil)
	}
	return r.finish(ctx, report), nil
}
