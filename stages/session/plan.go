package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/schema"
	"plumb/stages/apply"
	"plumb/stages/plan"
)

// PlanArgs are the flags that bend a plan.
type PlanArgs struct {
	Destroy     bool
	Targets     []addrs.Target
	Replace     []addrs.Target
	Refresh     bool
	MaxCost     *schema.Cost
	Parallelism int
}

// Plan plans against a locked state. The caller closes Result.Hosts.
func (s *Session) Plan(ctx context.Context, as *apply.Session, args PlanArgs) (*plan.Result, hcl.Diagnostics) {
	in := plan.Input{
		Config:    s.Config,
		Catalog:   s.Catalog,
		Set:       &s.Providers,
		Variables: s.variables,
		Prior:     as.State,
		Options: plan.Options{
			Destroy: args.Destroy, Targets: args.Targets, Replace: args.Replace, Refresh: args.Refresh, MaxCost: args.MaxCost,
			Parallelism: args.Parallelism, NewID: newID, Now: s.Now, Version: s.Version, Dir: s.Dir,
		},
	}
	if as.Absent {
		in.Prior = nil
	}
	return plan.Make(ctx, in)
}

// newID is 16 random bytes in hexadecimal.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: see crypto/rand
	return hex.EncodeToString(b[:])
}

// ApplyArgs say how a plan is applied.
type ApplyArgs struct {
	Parallelism int
	Events      apply.Events
	Graceful    context.Context  // ends with the first interrupt
	Heartbeat   <-chan time.Time // nil: none
}

// Apply runs a plan on the hosts that planning opened. ctx ends with the second interrupt.
func (s *Session) Apply(ctx context.Context, as *apply.Session, p *plan.Plan, hosts *plan.Hosts, args ApplyArgs) (*apply.Result, hcl.Diagnostics, error) {
	in := apply.Input{
		Plan:      p,
		Config:    s.Config,
		Providers: &s.Providers,
		OpenHost:  hosts.Get,
		Options: apply.Options{
			Parallelism: args.Parallelism, Events: args.Events, Graceful: args.Graceful, Now: s.Now, Heartbeat: args.Heartbeat, Crash: s.Crash,
			PerHost: s.perHost,
		},
	}
	if s.Config != nil {
		in.Evaluator = apply.Evaluating(s.inputs())
	}
	return as.Apply(ctx, in)
}

// perHost is max_parallel of a host block; 0 where it says nothing, or is not known before apply.
func (s *Session) perHost(name string) int {
	config, ok := s.hostConfig(name)
	if !ok || !config.Type().HasAttribute("max_parallel") {
		return 0
	}
	n := config.GetAttr("max_parallel")
	if !n.IsKnown() || n.IsNull() || n.Type() != cty.Number {
		return 0
	}
	i, _ := n.AsBigFloat().Int64()
	return int(i)
}
