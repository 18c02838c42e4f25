package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// item is one instance of a test's configuration. want may refer to others through resolve.
type item struct {
	addr  string
	host  string
	needs []string // addresses of other items
	cbd   bool
	want  func(get func(string) cty.Value) map[string]cty.Value
	post  func(self cty.Value) hcl.Diagnostics
}

func attrs(kv ...string) func(func(string) cty.Value) map[string]cty.Value {
	return func(func(string) cty.Value) map[string]cty.Value {
		out := map[string]cty.Value{}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i]] = cty.StringVal(kv[i+1])
		}
		return out
	}
}

// testbed is a configuration, a small planner and an evaluator for it: just enough to run plans before real ones.
type testbed struct {
	items   []item
	outputs map[string]string // output to "address.attribute"
	set     *providers.Set
}

func parse(s string) addrs.Instance {
	a, err := addrs.ParseInstance(s)
	if err != nil {
		panic(err)
	}
	return a
}

func (b *testbed) schema(a addrs.Instance) *schema.Resource {
	for _, d := range b.set.Data {
		if a.Resource.Mode == addrs.Data && d.Schema().Type == a.Resource.Type {
			return d.Schema()
		}
	}
	for _, r := range b.set.Resources {
		if a.Resource.Mode == addrs.Managed && r.Schema().Type == a.Resource.Type {
			return r.Schema()
		}
	}
	return nil
}

func (b *testbed) resource(a addrs.Instance) providers.Resource {
	for _, r := range b.set.Resources {
		if r.Schema().Type == a.Resource.Type {
			return r
		}
	}
	return nil
}

func (b *testbed) find(a addrs.Instance) *item {
	for i := range b.items {
		if b.items[i].addr == a.String() {
			return &b.items[i]
		}
	}
	return nil
}

func (b *testbed) desired(i *item, get func(string) cty.Value) cty.Value {
	s := b.schema(parse(i.addr))
	out := map[string]cty.Value{}
	set := i.want(get)
	for name, a := range s.Block.Attributes {
		out[name] = cty.NullVal(a.Type)
		if v, ok := set[name]; ok {
			out[name] = v
		}
	}
	for name, n := range s.Block.Blocks {
		out[name] = cty.ListValEmpty(n.ImpliedType())
		if v, ok := set[name]; ok {
			out[name] = v
		}
	}
	return cty.ObjectVal(out)
}

// evaluator evaluates the testbed.
type evaluator struct {
	b       *testbed
	resolve func(addrs.Instance) (cty.Value, hcl.Diagnostics)
}

func (b *testbed) evaluator(resolve func(addrs.Instance) (cty.Value, hcl.Diagnostics), _ func(string) (cty.Value, hcl.Diagnostics)) (Evaluator, hcl.Diagnostics) {
	return &evaluator{b, resolve}, nil
}

func (e *evaluator) get(ref string) cty.Value {
	dot := strings.LastIndex(ref, ".")
	v, diags := e.resolve(parse(ref[:dot]))
	if diags.HasErrors() {
		panic(diags)
	}
	return v.GetAttr(ref[dot+1:])
}

func (e *evaluator) Evaluate(a addrs.Instance) (*eval.Instance, hcl.Diagnostics) {
	return &eval.Instance{Desired: e.b.desired(e.b.find(a), e.get)}, nil
}

func (e *evaluator) Postconditions(a addrs.Instance, self cty.Value) hcl.Diagnostics {
	if i := e.b.find(a); i.post != nil {
		return i.post(self)
	}
	return nil
}

func (e *evaluator) Host(string) (*eval.Host, hcl.Diagnostics) {
	return &eval.Host{Config: cty.ObjectVal(map[string]cty.Value{"address": cty.StringVal("192.0.2.1"), "jump": cty.NullVal(cty.String)})}, nil
}

func (e *evaluator) Outputs() (map[string]eval.Output, hcl.Diagnostics) {
	out := map[string]eval.Output{}
	for name, ref := range e.b.outputs {
		out[name] = eval.Output{Value: e.get(ref)}
	}
	return out, nil
}

// config has the host that every test uses.
func (b *testbed) config() *config.Config {
	return &config.Config{Root: &config.Module{Hosts: map[string]*config.Host{"dut": {Name: "dut"}}}}
}

// plan compares the testbed with the world and the state.
func (b *testbed) plan(t testing.TB, s *Session, destroy bool) *plan.Plan {
	t.Helper()
	p, err := b.makePlan(s, destroy)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *testbed) makePlan(s *Session, destroy bool) (*plan.Plan, error) {
	m := &maker{b: b, p: &plan.Plan{ID: fmt.Sprintf("plan-%d", s.State.Serial), Destroy: destroy, Prior: s.Prior()},
		d: state.NewDraft(s.State), lineage: s.State.Lineage, values: map[addrs.Instance]cty.Value{}, creates: map[string]int{}, deletes: map[string]int{}}
	for _, i := range slices.Backward(s.State.Instances) { // dependants are added after what they need
		wanted := b.find(i.Addr) != nil && !destroy && !i.Deposed
		if wanted {
			continue
		}
		if err := m.gone(i); err != nil {
			return nil, err
		}
	}
	if !destroy {
		for n := range b.items {
			if err := m.item(&b.items[n]); err != nil {
				return nil, err
			}
		}
	}
	m.order()
	return m.p, nil
}

type maker struct {
	b                *testbed
	p                *plan.Plan
	d                *state.Draft
	lineage          string
	values           map[addrs.Instance]cty.Value
	creates, deletes map[string]int // address to step
}

func (m *maker) step(s plan.Step) int {
	s.ID = len(m.p.Steps)
	m.p.Steps = append(m.p.Steps, s)
	return s.ID
}

func (m *maker) read(i *state.Instance) (cty.Value, error) {
	r := m.b.resource(i.Addr)
	prior, err := value.Decode(i.Attributes, r.Schema().Block.ImpliedType())
	if err != nil {
		return cty.NilVal, err
	}
	res, err := r.Read(context.Background(), providers.ReadRequest{Mark: providers.Mark{Testbed: m.lineage, Address: i.Addr.String()}, Prior: prior})
	return res.Current, err
}

func (m *maker) gone(i *state.Instance) error {
	current, err := m.read(i)
	if err != nil {
		return err
	}
	s := plan.Step{Addr: i.Addr, Host: i.Host, Action: plan.Delete, Deposed: i.Deposed, DeposedAt: i.DeposedAt}
	c := plan.Change{Addr: i.Addr, Host: i.Host, Action: plan.Delete, After: []byte("null")}
	if current.IsNull() {
		s.Action, c.Action = plan.Forget, plan.Forget
	}
	e, err := value.Encode(current, current.Type())
	if err != nil {
		return err
	}
	c.Before = e.JSON
	c.Deposed, c.DeposedAt = i.Deposed, i.DeposedAt
	m.p.Changes = append(m.p.Changes, c)
	id := m.step(s)
	if !i.Deposed {
		m.deletes[i.Addr.String()] = id
	}
	return nil
}

func (m *maker) get(ref string) cty.Value {
	dot := strings.LastIndex(ref, ".")
	return m.values[parse(ref[:dot])].GetAttr(ref[dot+1:])
}

func (m *maker) item(i *item) error {
	a := parse(i.addr)
	sch := m.b.schema(a)
	ty := sch.Block.ImpliedType()
	desired := m.b.desired(i, m.get)
	planned := propose(&sch.Block, desired)
	c := plan.Change{Addr: a, Host: i.host, Action: plan.Create, CreateBeforeDestroy: i.cbd}
	for _, n := range i.needs {
		c.DependsOn = append(c.DependsOn, parse(n).Resource.String())
	}
	before := cty.NullVal(ty)
	old := m.d.Current(a)
	if a.Resource.Mode == addrs.Data {
		c.Action = plan.Read
	} else if old != nil {
		var err error
		if before, err = m.read(old); err != nil {
			return err
		}
		if !before.IsNull() {
			c.Action = m.compare(sch, old, desired, before, &planned)
		}
	}
	e, err := value.Encode(planned, ty)
	if err != nil {
		return err
	}
	c.After = e.JSON
	for _, p := range e.Unknown {
		c.Unknown = append(c.Unknown, p)
	}
	for _, p := range value.Union(e.Sensitive, value.SchemaSensitive(&sch.Block, planned)) {
		c.Sensitive = append(c.Sensitive, p)
	}
	if e, err = value.Encode(before, ty); err != nil {
		return err
	}
	c.Before = e.JSON
	m.values[a] = planned
	m.p.Changes = append(m.p.Changes, c)
	m.steps(a, i, c.Action)
	return nil
}

// compare decides between no-op, update and replace, and keeps computed values where it can.
func (m *maker) compare(sch *schema.Resource, old *state.Instance, desired, before cty.Value, planned *cty.Value) plan.Action {
	action := plan.NoOp
	out := planned.AsValueMap()
	for name, a := range sch.Block.Attributes {
		switch want := desired.GetAttr(name); {
		case want.IsNull() && a.Computed && !a.Volatile:
			out[name] = before.GetAttr(name)
		case want.IsNull() && a.Computed:
		case !want.RawEquals(before.GetAttr(name)) && a.Cost == schema.Replace:
			return plan.Replace
		case !want.RawEquals(before.GetAttr(name)):
			action = plan.Update
		}
	}
	if old.Status != state.Ready {
		action = plan.Update
	}
	if action == plan.NoOp {
		*planned = before
		return action
	}
	*planned = cty.ObjectVal(out)
	return action
}

func (m *maker) steps(a addrs.Instance, i *item, action plan.Action) {
	s := plan.Step{Addr: a, Host: i.host, Action: action}
	remove := plan.Step{Addr: a, Host: i.host, Action: plan.Delete}
	switch {
	case action == plan.NoOp:
	case action == plan.Replace && i.cbd:
		s.Action = plan.Create
		m.creates[i.addr] = m.step(s)
		remove.Deposed = true
		remove.After = []plan.Edge{{Step: m.creates[i.addr], Reason: "replace order"}}
		m.step(remove)
	case action == plan.Replace:
		s.Action = plan.Create
		m.deletes[i.addr] = m.step(remove)
		s.After = []plan.Edge{{Step: m.deletes[i.addr], Reason: "replace order"}}
		m.creates[i.addr] = m.step(s)
	default:
		m.creates[i.addr] = m.step(s)
	}
}

// order adds the edges: creates after what they need, deletes before it.
func (m *maker) order() {
	for n := range m.p.Steps {
		s := &m.p.Steps[n]
		if i := m.b.find(s.Addr); i != nil && s.Action != plan.Delete && s.Action != plan.Forget {
			for _, need := range i.needs {
				if id, ok := m.creates[need]; ok {
					s.After = append(s.After, plan.Edge{Step: id, Reason: "reference"})
				}
			}
		}
		if s.Action != plan.Delete || s.Deposed {
			continue
		}
		for addr, id := range m.deletes {
			if cur := m.d.Current(parse(addr)); cur != nil && slices.Contains(cur.DependsOn, s.Addr.Resource.String()) {
				s.After = append(s.After, plan.Edge{Step: id, Reason: "reference"})
			}
		}
	}
}
