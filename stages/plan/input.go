package plan

import (
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/state"
)

// Input is what a plan is made from.
type Input struct {
	Config    *config.Config // nil: nothing is configured; allowed with Options.Destroy only
	Catalog   *schema.Catalog
	Set       *providers.Set
	Variables map[string]cty.Value // root variables that were given
	Prior     *state.State         // with the journal folded in; nil: absent
	Hosts     *Hosts               // hosts opened earlier in this process; nil: Make opens its own
	Options   Options
}

// Options say what kind of plan is wanted.
type Options struct {
	Destroy     bool
	Targets     []addrs.Target
	Replace     []addrs.Target
	Refresh     bool         // read the world; otherwise the state is believed, except for instances in doubt
	MaxCost     *schema.Cost // refuse changes that cost more; nil: no limit
	Parallelism int          // reads at a time; less than 1: 10
	NewID       func() string
	Now         func() time.Time
	Version     string // of Plumb
	Dir         string // path.cwd
}

// Result is a plan, and what an apply in the same process can go on with.
type Result struct {
	Plan      *Plan
	Evaluator *eval.Evaluator // nil where nothing is configured
	Hosts     *Hosts          // open; the caller closes them. Never nil.
	// Unreachable are errors about hosts that cannot be reached, while others can: the plan is good for the others (Plan.Unreachable), and whoever applies it
	// ends with an error. Where no host can be reached they are among the diagnostics.
	Unreachable hcl.Diagnostics
}
