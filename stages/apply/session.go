package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"plumb/stages/plan"
	"plumb/stages/state"
)

// Session is a locked state, with what an earlier, cut-off run has done folded in. Every command that plans or changes anything works in
// one: Open, plan, Apply, Close.
type Session struct {
	Store  *state.Store
	State  *state.State     // never nil; as on disk, or a new one
	Absent bool             // there was none on disk
	Folded state.FoldReport // what of an earlier run was found
}

// Open locks the state and reads it. What the journal of a cut-off run says is written into the state first. version is Plumb's. On an error
// nothing stays locked.
func Open(ctx context.Context, store *state.Store, version string, lockTimeout time.Duration, operation string) (*Session, error) {
	if err := store.Lock(ctx, lockTimeout, operation); err != nil {
		return nil, err
	}
	st, report, err := store.Settle()
	if err != nil {
		return nil, errors.Join(err, store.Unlock())
	}
	s := &Session{Store: store, State: st, Folded: report}
	if st == nil {
		s.State, s.Absent = state.New(version), true
	}
	return s, nil
}

// Close unlocks the state, whatever happened. It takes no context: a cancelled run unlocks too.
func (s *Session) Close() error { return s.Store.Unlock() }

// Prior says for a plan which state it is made for.
func (s *Session) Prior() plan.Prior {
	return plan.Prior{Lineage: s.State.Lineage, Serial: s.State.Serial, Absent: s.Absent}
}

// Check refuses a plan that is not for the state as it is now, or that did not come to its end.
func (s *Session) Check(p *plan.Plan) error {
	switch {
	case p.Errored:
		return errors.New("the plan is of a planning that failed; it cannot be applied. Plan again")
	case p.Prior.Absent && s.Absent:
		// A new testbed gets its lineage with its first plan.
		if p.Prior.Lineage != "" {
			s.State.Lineage = p.Prior.Lineage
		}
		return nil
	case p.Prior.Absent:
		return fmt.Errorf("the plan was made when there was no state, and now there is one (serial %d). Plan again", s.State.Serial)
	case s.Absent:
		return fmt.Errorf("the plan was made for the state with serial %d, and there is none any more. Plan again", p.Prior.Serial)
	case p.Prior.Lineage != s.State.Lineage:
		return fmt.Errorf("the plan was made for another testbed: its lineage is %s, that of the state is %s", p.Prior.Lineage, s.State.Lineage)
	case p.Prior.Serial != s.State.Serial:
		return fmt.Errorf("the plan was made for the state with serial %d, and the state has moved on to serial %d. Plan again", p.Prior.Serial, s.State.Serial)
	}
	return nil
}

// Apply runs the plan and saves the state. The Result is there whenever steps were run, also beside an error; diagnostics of steps are in it.
// A run that was cut off (Result.Cancelled) leaves its journal and the state as it was: the next Open takes over what it did. A
// state that cannot be saved is a *state.LostWrite, and its journal stays.
func (s *Session) Apply(ctx context.Context, in Input) (*Result, hcl.Diagnostics, error) {
	if err := s.Check(in.Plan); err != nil {
		return nil, nil, err
	}
	var journal *state.Journal
	if len(in.Plan.Steps) > 0 {
		var err error
		journal, err = s.Store.StartJournal(state.Begin{Plan: in.Plan.ID, Lineage: s.State.Lineage, Serial: s.State.Serial, Hosts: s.State.Hosts})
		if err != nil {
			return nil, nil, err
		}
	}
	res, diags := Run(ctx, in, s.State, journal)
	if res == nil {
		return nil, diags, errors.Join(closeJournal(journal), s.Store.RemoveJournal())
	}
	if res.Cancelled {
		return res, diags, closeJournal(journal)
	}
	if journal != nil {
		// Without its end the journal still has every step.
		if err := errors.Join(journal.End(state.End{Outputs: res.State.Outputs, Applied: res.Applied}), journal.Close()); err != nil {
			res.Diags = append(res.Diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "The journal was not kept to its end", Detail: sentence(err)})
		}
	}
	changed, err := differs(s.State, res.State)
	if err != nil {
		return res, diags, err
	}
	res.Changed = changed
	if !changed && journal == nil {
		return res, diags, nil
	}
	saved, err := s.Store.Save(res.State)
	if err != nil {
		return res, diags, err
	}
	s.State, s.Absent, res.State = saved, false, saved
	return res, diags, s.Store.RemoveJournal()
}

// Save writes a state that was changed outside of a run: a removed instance, an open generator. st must come from s.State.
func (s *Session) Save(st *state.State) error {
	saved, err := s.Store.Save(st)
	if err != nil {
		return err
	}
	s.State, s.Absent = saved, false
	return nil
}

func closeJournal(j *state.Journal) error {
	if j == nil {
		return nil
	}
	return j.Close()
}

// differs says whether two states differ in more than which plan was applied last.
func differs(a, b *state.State) (bool, error) {
	if len(a.Instances) != len(b.Instances) {
		return true, nil // without writing out two states
	}
	x, y := *a, *b
	y.AppliedPlan = x.AppliedPlan
	before, err := state.Encode(&x)
	if err != nil {
		return false, err
	}
	after, err := state.Encode(&y)
	if err != nil {
		return false, err
	}
	return !bytes.Equal(before, after), nil
}
