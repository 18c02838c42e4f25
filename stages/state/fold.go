package state

import (
	"errors"
	"fmt"
	"slices"

	"plumb/lang/addrs"
)

// Errors that Fold wraps.
var (
	ErrOtherLineage = errors.New("belongs to another testbed")
	ErrStateTooOld  = errors.New("is newer than the state")
)

// FoldReport says what folding a journal found.
type FoldReport struct {
	Plan    string           // id of the plan whose run was cut off; "" when there was no journal
	Stale   bool             // the state has it all already; only the journal has to go
	Ended   bool             // the run came to its end, but its state was not written
	Steps   int              // outcomes taken over
	InDoubt []addrs.Instance // steps that were begun and whose outcome is not known, sorted
}

// Fold adds to a state what a cut-off run has done after it. Both may be nil: no state, no journal. It changes neither, and the
// result keeps the serial of st. Steps with an intent and without an outcome become InDoubt instances that keep their Undo.
//
// It is idempotent through the serial: a run's state is written once, with a greater serial than the run began with, so a journal
// that began before the serial of st is in st already (Stale).
func Fold(st *State, log *Log) (*State, FoldReport, error) {
	if log == nil {
		return st, FoldReport{}, nil
	}
	b := log.Begin
	report := FoldReport{Plan: b.Plan}
	switch {
	case st == nil && b.Serial > 0:
		return nil, report, fmt.Errorf("the journal of plan %s %w: it began with serial %d, and there is no state", b.Plan, ErrStateTooOld, b.Serial)
	case st == nil:
		st = New(b.PlumbVersion)
		st.Lineage = b.Lineage
	case st.Lineage != b.Lineage:
		return nil, report, fmt.Errorf("the journal %w: its lineage is %s, that of the state is %s", ErrOtherLineage, b.Lineage, st.Lineage)
	case st.Serial < b.Serial:
		return nil, report, fmt.Errorf("the journal of plan %s %w: it began with serial %d, and the state has serial %d", b.Plan, ErrStateTooOld, b.Serial, st.Serial)
	case st.Serial > b.Serial:
		report.Stale = true
		return st, report, nil
	}

	d := NewDraft(st)
	for name, h := range b.Hosts {
		d.Base().Hosts[name] = h
	}
	open := map[int]addrs.Instance{}
	for i := range log.Records {
		r := &log.Records[i]
		switch {
		case r.Host != nil:
			d.Base().Hosts[r.Host.Name] = Host{Config: r.Host.Config}
		case r.Intent != nil:
			d.Intend(r.Intent, b.Serial)
			open[r.Intent.Step] = r.Intent.Instance.Addr
		case r.Outcome != nil:
			d.Conclude(r.Outcome, b.Serial)
			delete(open, r.Outcome.Step)
			report.Steps++
		case r.End != nil:
			report.Ended = true
			d.Finish(r.End, b.Plan)
		}
	}
	for _, a := range open {
		report.InDoubt = append(report.InDoubt, a)
	}
	slices.SortFunc(report.InDoubt, addrs.Instance.Compare)
	return d.State(), report, nil
}

// Intend puts an intent's instance into the draft, in doubt. serial is the one that the run began with.
func (d *Draft) Intend(i *Intent, serial uint64) {
	if i.Deposes {
		d.Depose(i.Instance.Addr, serial)
	}
	doubt := *i.Instance
	doubt.Status = InDoubt
	d.Put(&doubt)
}

// Conclude puts an outcome's instance into the draft, or takes it out.
func (d *Draft) Conclude(o *Outcome, serial uint64) {
	if o.Deposes {
		d.Depose(o.Addr, serial)
	}
	if o.Instance != nil {
		d.Put(o.Instance)
		return
	}
	gone := Instance{Addr: o.Addr, Deposed: o.Deposed, DeposedAt: o.DeposedAt}
	d.Remove(&gone)
	if !o.Restores {
		return
	}
	if old := d.instances[instanceKey{o.Addr, true, serial}]; old != nil {
		d.Remove(old)
		current := *old
		current.Deposed, current.DeposedAt = false, 0
		d.Put(&current)
	}
}

// Finish takes over what is known at the end of a run.
func (d *Draft) Finish(e *End, plan string) {
	d.base.Outputs = e.Outputs
	if d.base.Outputs == nil {
		d.base.Outputs = map[string]Output{}
	}
	if e.Applied {
		d.base.AppliedPlan = plan
	}
}
