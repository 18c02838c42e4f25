package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/lang/addrs"
)

func TestFold(t *testing.T) {
	old := instance(t, "a.x", `{"v":1}`)
	planned := instance(t, "a.x", `{"v":2,"id":null}`)
	ready := with(planned, func(i *Instance) { i.Attributes = []byte(`{"v":2,"id":"7"}`) })
	doubt := with(planned, func(i *Instance) { i.Status = InDoubt })
	deposed := with(old, func(i *Instance) { i.Deposed, i.DeposedAt = true, 3 })
	intent := func(op Op, i *Instance, deposes bool) Record {
		return Record{Intent: &Intent{Step: 1, Op: op, Instance: i, Deposes: deposes}}
	}
	outcome := func(o Outcome) Record { o.Step, o.Addr = 1, old.Addr; return Record{Outcome: &o} }
	for name, c := range map[string]struct {
		have    []*Instance
		records []Record
		want    []*Instance
		doubt   int
	}{
		"begun and nothing else":        {have: []*Instance{old}, want: []*Instance{old}},
		"create in doubt":               {records: []Record{intent(OpCreate, planned, false)}, want: []*Instance{doubt}, doubt: 1},
		"create done":                   {records: []Record{intent(OpCreate, planned, false), outcome(Outcome{Instance: ready})}, want: []*Instance{ready}},
		"create failed without a trace": {records: []Record{intent(OpCreate, planned, false), outcome(Outcome{Error: "no"})}},
		"hostless create":               {records: []Record{outcome(Outcome{Instance: ready})}, want: []*Instance{ready}},
		"update in doubt":               {have: []*Instance{old}, records: []Record{intent(OpUpdate, planned, false)}, want: []*Instance{doubt}, doubt: 1},
		"update done":                   {have: []*Instance{old}, records: []Record{intent(OpUpdate, planned, false), outcome(Outcome{Instance: ready})}, want: []*Instance{ready}},
		"delete in doubt": {have: []*Instance{old}, records: []Record{intent(OpDelete, old, false)},
			want: []*Instance{with(old, func(i *Instance) { i.Status = InDoubt })}, doubt: 1},
		"delete done": {have: []*Instance{old}, records: []Record{intent(OpDelete, old, false), outcome(Outcome{})}},
		"replaced, create in doubt": {have: []*Instance{old}, doubt: 1, want: []*Instance{doubt},
			records: []Record{intent(OpDelete, old, false), outcome(Outcome{}), intent(OpCreate, planned, false)}},
		"deposing create in doubt": {have: []*Instance{old}, records: []Record{intent(OpCreate, planned, true)}, want: []*Instance{doubt, deposed}, doubt: 1},
		"deposing create done":     {have: []*Instance{old}, records: []Record{intent(OpCreate, planned, true), outcome(Outcome{Instance: ready})}, want: []*Instance{ready, deposed}},
		"deposing create came to nothing": {have: []*Instance{old}, want: []*Instance{old},
			records: []Record{intent(OpCreate, planned, true), outcome(Outcome{Restores: true, Error: "no"})}},
		"deposed is deleted": {have: []*Instance{old}, want: []*Instance{ready},
			records: []Record{intent(OpCreate, planned, true), outcome(Outcome{Instance: ready}), intent(OpDelete, deposed, false), outcome(Outcome{Deposed: true, DeposedAt: 3})}},
	} {
		t.Run(name, func(t *testing.T) {
			st := &State{Version: 1, Lineage: "l", Serial: 3, AppliedPlan: "p0", Instances: c.have}
			log := &Log{Begin: Begin{Plan: "p1", Lineage: "l", Serial: 3}, Records: c.records}
			for range 2 { // what is folded once more is the same
				got, report, err := Fold(st, log)
				if err != nil {
					t.Fatal(err)
				}
				want := c.want
				if want == nil {
					want = []*Instance{}
				}
				byKey := cmp.Comparer(func(a, b addrs.Instance) bool { return a == b })
				if d := cmp.Diff(want, got.Instances, byKey); d != "" {
					t.Error(d)
				}
				if len(report.InDoubt) != c.doubt || got.Serial != 3 || got.AppliedPlan != "p0" {
					t.Errorf("report %+v, serial %d, applied %s", report, got.Serial, got.AppliedPlan)
				}
				if d := cmp.Diff(c.have, st.Instances, byKey); d != "" {
					t.Errorf("the state itself was changed: %s", d)
				}
				st = got
				c.have = got.Instances
			}
		})
	}
}

func TestRemoveAndSelect(t *testing.T) {
	st := &State{Lineage: "l", Instances: []*Instance{
		instance(t, "a.x[0]", `{}`), instance(t, "a.x[1]", `{}`), instance(t, "b.y", `{}`), instance(t, `module.m["k"].a.x`, `{}`),
	}}
	for in, want := range map[string]int{"a.x": 2, "a.x[1]": 1, "module.m": 1, `module.m["k"].a.x`: 1, "c.z": 0} {
		target, err := addrs.ParseTarget(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(Select(st, target)); got != want {
			t.Errorf("%s: %d instances, want %d", in, got, want)
		}
		rest, gone, err := Remove(st, target)
		if want == 0 {
			if err == nil {
				t.Errorf("%s: removing nothing is fine", in)
			}
			continue
		}
		if err != nil || len(gone) != want || len(rest.Instances) != 4-want || len(st.Instances) != 4 {
			t.Errorf("%s: removed %d of %d, %v", in, len(gone), len(st.Instances), err)
		}
	}
	if _, _, err := Find(st, addr(t, "a.x[0]")); err != nil {
		t.Error(err)
	}
	if _, _, err := Find(st, addr(t, "a.x")); err == nil {
		t.Error("a.x is found")
	}
	if _, _, err := Find(nil, addr(t, "a.x")); err == nil || Select(nil) != nil {
		t.Error("found without a state")
	}
}
