package apply

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/stages/plan"
	"plumb/stages/state"
)

func clock() time.Time { return time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC) }

// rig is a testbed with its world and store on disk.
type rig struct {
	t       testing.TB
	w       *world
	b       *testbed
	store   *state.Store
	options Options
}

func newRig(t testing.TB, items ...item) *rig {
	dir := t.TempDir()
	w := &world{dir: filepath.Join(dir, "world")}
	if err := makeWorld(w); err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, w: w, b: &testbed{items: items, set: w.set()}, store: newStore(dir, nil), options: Options{Now: clock}}
}

func makeWorld(w *world) error {
	err := os.MkdirAll(w.dir, 0o700)
	for name, content := range map[string]string{"knob-k.a": "0", "knob-k.b": "7", "fuse-f.next": "old", "fuse-f.now": "old", "box-foreign": "somebody's"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600))
	}
	return err
}

func newStore(dir string, crash func(string)) *state.Store {
	return state.NewStore(filepath.Join(dir, state.DefaultPath), state.Env{Now: clock, User: "u", Host: "h", PID: os.Getpid(), Version: "0.2.0", Crash: crash})
}

func (r *rig) open() *Session {
	r.t.Helper()
	s, err := Open(r.t.Context(), r.store, "0.2.0", 0, "apply")
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) run(ctx context.Context, s *Session, p *plan.Plan) (*Result, error) {
	r.t.Helper()
	res, diags, err := s.Apply(ctx, Input{Plan: p, Config: r.b.config(), Evaluator: r.b.evaluator, Providers: r.b.set, Options: r.options})
	if diags.HasErrors() {
		r.t.Fatal(diags)
	}
	return res, err
}

// apply plans and applies, or destroys, in a session of its own.
func (r *rig) apply(destroy bool) *Result {
	r.t.Helper()
	s := r.open()
	defer s.Close()
	res, err := r.run(r.t.Context(), s, r.b.plan(r.t, s, destroy))
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// must is apply without any error.
func (r *rig) must(destroy bool) *Result {
	r.t.Helper()
	res := r.apply(destroy)
	if d := res.Diagnostics(); d.HasErrors() || !res.Applied {
		r.t.Fatalf("applied %v: %v", res.Applied, d)
	}
	return res
}

// noChanges wants an empty plan, but for the data sources that this small planner reads each time.
func (r *rig) noChanges(but ...string) {
	r.t.Helper()
	s := r.open()
	defer s.Close()
	for _, step := range r.b.plan(r.t, s, false).Steps {
		if !slices.Contains(but, step.Addr.String()) {
			r.t.Errorf("the next plan has %s of %s", step.Action, step.Addr)
		}
	}
}

func statuses(res *Result) map[string]Status {
	out := map[string]Status{}
	for _, s := range res.Steps {
		out[string(s.Action)+" "+s.Addr.String()] = s.Status
	}
	return out
}

// standard is a small testbed with every kind of reference.
func standard() []item {
	return []item{
		{addr: "knob.k", host: "dut", want: attrs("name", "k", "value", "5")},
		{addr: "box.a", host: "dut", needs: []string{"knob.k"}, want: attrs("name", "a", "content", "A", "secret", "s")},
		{addr: "box.b", host: "dut", needs: []string{"box.a"}, want: func(get func(string) cty.Value) map[string]cty.Value {
			return map[string]cty.Value{"name": cty.StringVal("b"), "content": get("box.a.id"),
				"slot": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"in": get("box.a.id"), "at": cty.NullVal(cty.String)})})}
		}},
		{addr: "note.n", needs: []string{"box.b"}, want: func(get func(string) cty.Value) map[string]cty.Value {
			return map[string]cty.Value{"input": get("box.b.id")}
		}},
		{addr: "data.look.l", host: "dut", needs: []string{"note.n"}, want: func(get func(string) cty.Value) map[string]cty.Value {
			return map[string]cty.Value{"id": get("note.n.output")}
		}},
	}
}

func TestApplyThenDestroy(t *testing.T) {
	r := newRig(t, standard()...)
	r.b.outputs = map[string]string{"files": "data.look.l.files", "secret": "box.a.secret"}
	before := r.w.snapshot()
	res := r.must(false)
	if res.Count(Done) != 5 || !res.Changed || res.State.Serial != 1 || res.State.AppliedPlan == "" {
		t.Errorf("result %+v", res)
	}
	want := `box-a: "{\"Mark\":\"box.a\",\"Content\":\"A\",\"Secret\":\"s\"}"
box-b: "{\"Mark\":\"box.b\",\"Content\":\"id of a\",\"Secret\":\"\"}"
box-foreign: "somebody's"
fuse-f.next: "old"
fuse-f.now: "old"
knob-k.a: "5"
knob-k.b: "5"
`
	if d := cmp.Diff(want, r.w.snapshot()); d != "" {
		t.Error(d)
	}
	st, err := r.store.Read()
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := state.Find(st, parse("box.a"))
	if err != nil {
		t.Fatal(err)
	}
	if a.SchemaVersion != 3 || !slices.Equal(a.DependsOn, []string{"knob.k"}) || len(a.Sensitive) != 1 || a.Sensitive[0][0] != "secret" {
		t.Errorf("box.a is kept as %+v", a)
	}
	b, _, err := state.Find(st, parse("box.b"))
	if err != nil || !strings.Contains(compactJSON(b.Attributes), `"slot":[{"at":"here","in":"id of a"}]`) {
		t.Errorf("box.b is kept as %s", b.Attributes)
	}
	k, _, err := state.Find(st, parse("knob.k"))
	if err != nil || compactJSON(k.Undo) != `["0","7"]` {
		t.Errorf("the knob's undo is %s", k.Undo)
	}
	if o := st.Outputs; string(o["files"].Value) != "7" || !o["secret"].Sensitive || string(o["files"].Type) != `"number"` {
		t.Errorf("outputs %+v", o)
	}
	if h := string(st.Hosts["dut"].Config); !strings.Contains(h, "192.0.2.1") {
		t.Errorf("host is kept as %s", h)
	}
	if _, err := os.Stat(r.store.JournalPath()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the journal is still there: %v", err)
	}

	// Destroy needs no configuration.
	s := r.open()
	defer s.Close()
	p := r.b.plan(t, s, true)
	res, diags, err := s.Apply(t.Context(), Input{Plan: p, Providers: r.b.set, Options: r.options})
	if err != nil || diags.HasErrors() || !res.Applied || res.Diagnostics().HasErrors() {
		t.Fatalf("%v %v %+v", err, diags, res)
	}
	if d := cmp.Diff(before, r.w.snapshot()); d != "" {
		t.Error(d)
	}
	if st := s.State; len(st.Instances)+len(st.Outputs)+len(st.Hosts) > 0 {
		t.Errorf("the state still has %+v", st)
	}
}

func compactJSON(raw []byte) string {
	return strings.NewReplacer("\n", "", "  ", "", "\": ", "\":").Replace(string(raw))
}

func TestNothingToDoWritesNothing(t *testing.T) {
	r := newRig(t, standard()[:3]...)
	r.must(false)
	before, err := os.ReadFile(r.store.Path())
	if err != nil {
		t.Fatal(err)
	}
	r.b.items[0].needs = nil
	if res := r.must(false); res.Changed {
		t.Error("a run without steps has changed something")
	}
	after, err := os.ReadFile(r.store.Path())
	if err != nil || string(before) != string(after) {
		t.Errorf("the state was written (%v)", err)
	}
	// What the configuration says of the destroy is taken over without any step.
	r.b.items[1].needs = nil
	if res := r.must(false); !res.Changed || len(res.Steps) > 0 {
		t.Errorf("changed %v with steps %v", res.Changed, res.Steps)
	}
	st, err := r.store.Read()
	if err != nil {
		t.Fatal(err)
	}
	if a, _, err := state.Find(st, parse("box.a")); err != nil || len(a.DependsOn) > 0 {
		t.Errorf("box.a still depends on %v (%v)", a.DependsOn, err)
	}
}

func TestFailureStopsDependantsOnly(t *testing.T) {
	r := newRig(t, append(standard(), item{addr: "box.c", host: "dut", want: attrs("name", "c")})...)
	r.w.fail = map[string]error{"a": errors.New("no room")}
	res := r.apply(false)
	want := map[string]Status{"create knob.k": Done, "create box.a": Failed, "create box.b": Skipped, "create note.n": Skipped, "read data.look.l": Skipped, "create box.c": Done}
	if d := cmp.Diff(want, statuses(res)); d != "" {
		t.Error(d)
	}
	for _, s := range res.Steps {
		if s.Status == Skipped && s.Because != "box.a" {
			t.Errorf("%s was skipped because of %q", s.Addr, s.Because)
		}
	}
	d := res.Diagnostics()
	if len(d) != 1 || d[0].Summary != "box.a on dut was not created" || d[0].Detail != "No room." || res.Applied {
		t.Errorf("diagnostics %v", d)
	}
	// Whether it was made is not known for sure: the next run finds out.
	if a, _, err := state.Find(res.State, parse("box.a")); err != nil || a.Status != state.InDoubt {
		t.Errorf("box.a is %+v (%v)", a, err)
	}
	r.w.fail = nil
	r.must(false)
	r.noChanges("data.look.l")
}

func TestForeignIsNotTakenOver(t *testing.T) {
	r := newRig(t, item{addr: "box.f", host: "dut", want: attrs("name", "f")})
	r.w.fail = map[string]error{"f": providers.ErrForeign}
	if res := r.apply(false); len(res.State.Instances) > 0 {
		t.Errorf("what is not ours is in the state: %+v", res.State.Instances[0])
	}
}

func TestFailedUpdateAndDeleteKeepWhatIsThere(t *testing.T) {
	r := newRig(t, item{addr: "knob.k", host: "dut", want: attrs("name", "k", "value", "5")}, item{addr: "box.a", host: "dut", want: attrs("name", "a")})
	r.must(false)
	r.w.fail = map[string]error{"k": errors.New("stuck"), "a": errors.New("busy")}
	r.b.items = []item{{addr: "knob.k", host: "dut", want: attrs("name", "k", "value", "6")}}
	res := r.apply(false)
	for _, i := range res.State.Instances {
		if i.Status != state.Incomplete || i.Addr.Resource.Type == "knob" && (!strings.Contains(string(i.Attributes), `"5"`) || compactJSON(i.Undo) != `["0","7"]`) {
			t.Errorf("%s is %q with %s", i.Addr, i.Status, i.Attributes)
		}
	}
	if len(res.State.Instances) != 2 {
		t.Errorf("%d instances are left", len(res.State.Instances))
	}
}

func TestReplace(t *testing.T) {
	for _, cbd := range []bool{false, true} {
		r := newRig(t, item{addr: "box.a", host: "dut", cbd: cbd, want: attrs("name", "a1")})
		before := r.w.snapshot()
		r.must(false)
		r.b.items[0].want = attrs("name", "a2")
		var order []string
		r.w.during = func(_ context.Context, name string) { order = append(order, name) }
		res := r.must(false)
		want := []string{"a1", "a2"}
		if cbd {
			want = []string{"a2", "a1"}
		}
		if d := cmp.Diff(want, order); d != "" || len(res.State.Instances) != 1 {
			t.Errorf("create_before_destroy %v: order %v, %d instances", cbd, order, len(res.State.Instances))
		}
		r.noChanges()
		r.must(true)
		if d := cmp.Diff(before, r.w.snapshot()); d != "" {
			t.Error(d)
		}
	}
}

func TestDeposedThatCannotGoIsTriedAgain(t *testing.T) {
	r := newRig(t, item{addr: "box.a", host: "dut", cbd: true, want: attrs("name", "a1")})
	r.must(false)
	r.w.fail = map[string]error{"a1": errors.New("busy")}
	r.b.items[0].want = attrs("name", "a2")
	r.apply(false)
	r.b.items[0].want = attrs("name", "a3")
	res := r.apply(false)
	if len(res.State.Instances) != 2 {
		t.Fatalf("%d instances, want the current one and a1", len(res.State.Instances))
	}
	if i := res.State.Instances[1]; !i.Deposed || !strings.Contains(string(i.Attributes), "a1") {
		t.Errorf("deposed is %s", i.Attributes)
	}
	r.w.fail = nil
	if res := r.must(false); len(res.State.Instances) != 1 {
		t.Errorf("%d instances, want 1", len(res.State.Instances))
	}
	// A new one that cannot be made leaves the old one in its place.
	r.w.fail = map[string]error{"a4": providers.ErrForeign}
	r.b.items[0].want = attrs("name", "a4")
	res = r.apply(false)
	if i := res.State.Instances; len(i) != 1 || i[0].Deposed || !strings.Contains(string(i[0].Attributes), "a3") {
		t.Errorf("instances %+v", i)
	}
}

func TestDeposedThatIsTheNewOneStays(t *testing.T) {
	r := newRig(t, item{addr: "box.a", host: "dut", cbd: true, want: attrs("name", "a1")})
	r.must(false)
	r.w.fail = map[string]error{"a1": errors.New("busy")}
	r.b.items[0].want = attrs("name", "a2")
	r.apply(false)
	// Back: what is deposed has the name of what is made, and the create takes it over.
	r.w.fail = nil
	r.b.items[0].want = attrs("name", "a1")
	res := r.must(false)
	if _, err := os.Stat(filepath.Join(r.w.dir, "box-a1")); err != nil || len(res.State.Instances) != 1 {
		t.Errorf("%v, %d instances", err, len(res.State.Instances))
	}
	r.noChanges()
}

func TestPostcondition(t *testing.T) {
	items := standard()[:3]
	items[1].post = func(self cty.Value) hcl.Diagnostics {
		if self.GetAttr("id").AsString() != "id of a" {
			return nil
		}
		return errorDiag("Postcondition failed", "It is a.", nil)
	}
	r := newRig(t, items...)
	res := r.apply(false)
	if a, _, err := state.Find(res.State, parse("box.a")); err != nil || a.Status != state.Ready {
		t.Errorf("box.a is %+v (%v)", a, err)
	}
	if s := statuses(res); s["create box.a"] != Failed || s["create box.b"] != Skipped {
		t.Errorf("statuses %v", s)
	}
}

// liar answers what it may not.
type liar struct {
	note
	answer func(planned cty.Value) cty.Value
}

func (l liar) Apply(_ context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	return providers.ApplyResult{New: l.answer(req.Planned)}, nil
}

func TestProvidersAreNotBelieved(t *testing.T) {
	object := func(in, out cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"input": in, "output": out})
	}
	for name, c := range map[string]struct {
		answer func(cty.Value) cty.Value
		want   string
		status state.Status
	}{
		"another value":  {func(cty.Value) cty.Value { return object(cty.StringVal("y"), cty.StringVal("y")) }, "input: planned", state.Incomplete},
		"still unknown":  {func(p cty.Value) cty.Value { return p }, "output: is still unknown", state.Incomplete},
		"nothing at all": {func(cty.Value) cty.Value { return cty.NilVal }, "no object at all", state.InDoubt},
		"another type":   {func(cty.Value) cty.Value { return cty.StringVal("x") }, "another type", state.InDoubt},
		"marked":         {func(cty.Value) cty.Value { return object(cty.StringVal("x"), cty.StringVal("x").Mark(1)) }, "marked", state.InDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, item{addr: "note.n", want: attrs("input", "x")})
			r.b.set.Resources = []providers.Resource{liar{answer: c.answer}}
			res := r.apply(false)
			d := res.Diagnostics()
			if len(d) != 1 || d[0].Summary != "Bug of provider note" || !strings.Contains(d[0].Detail, c.want) {
				t.Fatalf("diagnostics %v", d)
			}
			if i := res.State.Instances; len(i) != 1 || i[0].Status != c.status {
				t.Errorf("kept as %+v", i)
			}
		})
	}
}

func TestStalePlanIsRefused(t *testing.T) {
	r := newRig(t, standard()[:2]...)
	s := r.open()
	p := r.b.plan(t, s, false)
	lineage := s.State.Lineage
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = r.open()
	if _, err := r.run(t.Context(), s, p); err != nil {
		t.Fatalf("the plan of a new testbed is refused: %v", err)
	}
	if s.State.Lineage != lineage {
		t.Error("the plan's lineage was not taken")
	}
	for name, change := range map[string]func(*plan.Plan){
		"was absent":      func(*plan.Plan) {},
		"another serial":  func(p *plan.Plan) { p.Prior = s.Prior(); p.Prior.Serial-- },
		"another lineage": func(p *plan.Plan) { p.Prior = s.Prior(); p.Prior.Lineage = "x" },
		"errored":         func(p *plan.Plan) { p.Prior = s.Prior(); p.Errored = true },
	} {
		q := *p
		change(&q)
		if err := s.Check(&q); err == nil {
			t.Errorf("%s: the plan is taken", name)
		}
	}
	s.Close()
}

func TestStateThatCannotBeWritten(t *testing.T) {
	r := newRig(t, standard()...)
	before := r.w.snapshot()
	block := r.store.Path() + ".tmp"
	if err := os.MkdirAll(filepath.Join(block, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := r.open()
	_, err := r.run(t.Context(), s, r.b.plan(t, s, false))
	var lost *state.LostWrite
	if !errors.As(err, &lost) || lost.Saved == "" {
		t.Fatalf("error %v", err)
	}
	s.Close()
	if err := os.RemoveAll(block); err != nil {
		t.Fatal(err)
	}
	r.noChanges("data.look.l")
	r.must(true)
	if d := cmp.Diff(before, r.w.snapshot()); d != "" {
		t.Error(d)
	}
}
