package apply

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"plumb/lang/addrs"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// Status is what became of a step.
type Status string

const (
	Done       Status = "done"
	Failed     Status = "failed"
	Skipped    Status = "skipped"     // a step that it waits for failed: StepResult.Because
	NotStarted Status = "not_started" // the run was stopped before its turn
	Unfinished Status = "unfinished"  // the run was cut off while it ran: what it left is not known; the next apply or destroy finds out
)

// StepResult is one row of the table that a failed apply ends with.
type StepResult struct {
	Step    int             `json:"step"` // -1: not in the plan, because its host could not be reached
	Addr    addrs.Instance  `json:"address"`
	Host    string          `json:"host,omitempty"`
	Action  plan.Action     `json:"action"`
	Status  Status          `json:"status"`
	Because string          `json:"because,omitempty"` // Skipped: address of the step that failed, or host.NAME of a host that cannot be reached
	Diags   hcl.Diagnostics `json:"-"`                 // of this step, warnings too
	Elapsed time.Duration   `json:"elapsed_ns"`
}

// Result is what a run did.
type Result struct {
	Steps     []StepResult // in the order of the plan
	State     *state.State // after the run
	Changed   bool         // State differs from the prior one in more than the plan's id
	Applied   bool         // every step was done and every output is known
	Stopped   bool         // it was asked to come to a halt before the end
	Cancelled bool         // it was cut off: the journal stays, and State was not written
	Diags     hcl.Diagnostics
}

// Count counts the steps with a status.
func (r *Result) Count(s Status) int {
	n := 0
	for i := range r.Steps {
		if r.Steps[i].Status == s {
			n++
		}
	}
	return n
}

// Diagnostics are those of all steps in the order of the plan, then the others.
func (r *Result) Diagnostics() hcl.Diagnostics {
	var out hcl.Diagnostics
	for i := range r.Steps {
		out = append(out, r.Steps[i].Diags...)
	}
	return append(out, r.Diags...)
}

// Events is told how a run goes on. Its methods are called one at a time, from several goroutines.
type Events interface {
	StepStarted(plan.Step)
	// StepProgress is a line that the provider has for people.
	StepProgress(s plan.Step, line string)
	// StillRunning is told every HeartbeatAfter of each step that runs so long.
	StillRunning(s plan.Step, elapsed time.Duration)
	// StepDone is told of steps that were started: Done, Failed or Unfinished.
	StepDone(StepResult)
}

// noEvents is told and says nothing.
type noEvents struct{}

func (noEvents) StepStarted(plan.Step)                 {}
func (noEvents) StepProgress(plan.Step, string)        {}
func (noEvents) StillRunning(plan.Step, time.Duration) {}
func (noEvents) StepDone(StepResult)                   {}

func errorDiag(summary, detail string, subject *hcl.Range) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: subject}}
}

// stepError carries a step's diagnostics through graph.Walk.
type stepError struct {
	diags      hcl.Diagnostics
	unfinished bool
}

func (e *stepError) Error() string { return fmt.Sprint(e.diags) }
