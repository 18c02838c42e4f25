package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/stages/apply"
	"plumb/stages/plan"
	"plumb/stages/session"
	"plumb/stages/state"
	"plumb/stages/view"
)

// work is what the verbs that hold the state's lock have at hand.
type work struct {
	c          *cli.Command
	p          *printer
	s          *session.Session
	as         *apply.Session
	soft, hard context.Context // end with the first and the second interrupt
	stop       func()
}

// begin opens the configuration and locks its state. emptyOK: the state is enough (destroy). With an error everything has been said and
// nothing stays open.
func (e *env) begin(c *cli.Command, vars *[]config.ValueArg, emptyOK bool, operation string) (*work, error) {
	w := &work{c: c, p: e.printer(c)}
	s, diags := e.open(vars, session.Emptiness(emptyOK))
	w.s = s
	if err := w.p.show(w.s, diags); err != nil {
		return nil, err
	}
	return w, w.lock(operation)
}

// beginSaved is begin with the configuration of a plan file.
func (e *env) beginSaved(c *cli.Command, path, operation string) (*work, *plan.Plan, error) {
	w := &work{c: c, p: e.printer(c)}
	s, p, diags := session.OpenSaved(e.sessionEnv(), path)
	w.s = s
	if err := w.p.show(w.s, diags); err != nil {
		return nil, nil, err
	}
	return w, p, w.lock(operation)
}

func (w *work) lock(operation string) error {
	var err error
	w.soft, w.hard, w.stop = w.p.signal(w.p.stderr)
	if w.as, err = w.s.Lock(w.soft, w.c.Duration("lock-timeout"), operation); err != nil {
		w.stop()
		return w.p.show(w.s, errorDiags("The state cannot be used", err))
	}
	if f := w.as.Folded; f.Plan != "" && !f.Stale {
		w.p.text("An earlier run was cut off. Taken over from its journal: %d finished steps, %d in doubt.\n", f.Steps, len(f.InDoubt))
	}
	return nil
}

func (w *work) end() {
	if err := w.as.Close(); err != nil {
		w.p.show(w.s, errorDiags("The state cannot be unlocked", err))
	}
	w.stop()
}

// apply runs a plan, says what it came to, and returns an error when it is not complete; everything has been said then.
func (w *work) apply(p *plan.Plan, hosts *plan.Hosts) error {
	ticker := time.NewTicker(apply.HeartbeatAfter)
	defer ticker.Stop()
	var events apply.Events = view.NewProgress(w.p.stdout, w.p.style())
	if w.p.events != nil {
		events = w.p.events
	}
	res, diags, err := w.s.Apply(w.hard, w.as, p, hosts, session.ApplyArgs{
		Parallelism: w.c.Int("parallelism"), Events: events, Graceful: w.soft, Heartbeat: ticker.C,
	})
	if res != nil {
		diags = append(diags, res.Diagnostics()...)
	}
	if err != nil {
		summary := "The plan was not applied"
		var lost *state.LostWrite
		if errors.As(err, &lost) {
			summary = "The state could not be written in its place"
		}
		diags = append(diags, errorDiags(summary, err)...)
	}
	failed := w.p.show(w.s, diags)
	if res == nil {
		return failed
	}
	complete := len(res.Steps) == res.Count(apply.Done)
	switch {
	case w.p.events != nil:
		w.p.events.Event("apply_summary", map[string]any{"complete": complete && failed == nil, "steps": res.Steps})
	case complete && failed == nil:
		w.p.text("\n%s", view.ApplySummary(res, p.Destroy, w.p.style()))
	default:
		w.p.text("\n%s", view.FailureTable(res, w.p.style()))
	}
	if res.Stopped || res.Cancelled {
		return status(exitInterrupted)
	}
	if failed == nil && !complete {
		return status(exitError)
	}
	return failed
}

// sweep ends what generators an earlier run has left when it was killed. It writes the state, so that it comes before a plan is made, or after a
// saved one was applied.
func (w *work) sweep() error {
	if err := w.s.SweepAll(w.soft, w.as); err != nil {
		return w.p.show(w.s, errorDiags("A generator of an earlier run cannot be ended", err))
	}
	return nil
}

func (w *work) showOutputs() {
	if len(w.as.State.Outputs) > 0 {
		w.p.text("\nOutputs:\n\n%s", view.Outputs(w.as.State.Outputs))
	}
}
