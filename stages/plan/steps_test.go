package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/stages/state"
)

// stepLines writes steps as "3 create a <- 1 2".
func stepLines(steps []Step) string {
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&out, "%d %s %s", s.ID, s.Action, s.Addr)
		for i, e := range s.After {
			if i == 0 {
				out.WriteString(" <-")
			}
			fmt.Fprintf(&out, " %d (%s)", e.Step, e.Reason)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// 2,000 users of 2,000 instances must not take 4,000,000 edges, neither on the way up nor on the way down.
func TestEdgesStayFew(t *testing.T) {
	up, diags := Make(t.Context(), testInput(t, &world{}, twoLayers))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	in := testInput(t, &world{}, "")
	in.Prior, in.Options.Destroy = applied(t, twoLayers), true
	down, diags := Make(t.Context(), in)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for name, p := range map[string]*Plan{"create": up.Plan, "destroy": down.Plan} {
		edges := 0
		for _, s := range p.Steps {
			edges += len(s.After)
		}
		if len(p.Steps) != 4001 || edges != 4000 {
			t.Errorf("%s: %d steps with %d edges", name, len(p.Steps), edges)
		}
		checkSteps(t, p)
	}
}

func moduleInput(t *testing.T, root, child string) Input {
	cfg, diags := config.LoadSources(map[string][]byte{"t/main.plumb.hcl": []byte(root), "t/m/main.plumb.hcl": []byte(child)}, "t", "0.1.0")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	in := testInput(t, &world{}, "")
	in.Config = cfg
	return in
}

// Dependencies inside a module stay inside one instance of it; what leaves through an output waits for that instance's alone only where
// that can be told, and here it cannot.
func TestModuleInstancesDoNotWaitForOneAnother(t *testing.T) {
	in := moduleInput(t, `
module "m" {
  source   = "./m"
  for_each = toset(["x", "y"])
}
resource "store" "z" {
  input = module.m["x"].id
}
`, `
resource "store" "a" {
}
resource "store" "b" {
  input = store.a.id
}
output "id" {
  value = store.b.id
}
`)
	r, diags := Make(t.Context(), in)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := `0 create module.m["x"].store.a
1 create module.m["x"].store.b <- 0 (reference)
2 create module.m["y"].store.a
3 create module.m["y"].store.b <- 2 (reference)
4 create store.z <- 1 (reference) 3 (reference)
`
	if d := cmp.Diff(want, stepLines(r.Plan.Steps)); d != "" {
		t.Fatal(d)
	}
	// What is recorded leads to the same order back.
	var st state.State
	for _, c := range r.Plan.Changes {
		st.Instances = append(st.Instances, &state.Instance{Addr: c.Addr, Attributes: fill(c.After, c.Unknown, "", map[string]bool{"input": true, "output": true}), DependsOn: c.DependsOn})
	}
	down := testInput(t, &world{}, "")
	down.Prior, down.Options.Destroy = &st, true
	r, diags = Make(t.Context(), down)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want = `0 delete store.z
1 delete module.m["x"].store.b <- 0 (reference)
2 delete module.m["x"].store.a <- 1 (reference)
3 delete module.m["y"].store.b <- 0 (reference)
4 delete module.m["y"].store.a <- 3 (reference)
`
	if d := cmp.Diff(want, stepLines(r.Plan.Steps)); d != "" {
		t.Fatal(d)
	}
}

func TestCallRemovedIsNoModule(t *testing.T) {
	a, err := addrs.ParseInstance("module.gone.store.a")
	if err != nil {
		t.Fatal(err)
	}
	in := testInput(t, &world{}, "resource \"store\" \"s\" {\n}\n")
	in.Prior = &state.State{Instances: []*state.Instance{{Addr: a, Attributes: []byte(`{"id":"x","input":null,"output":null,"secret":null,"trigger":null}`)}}}
	r, diags := Make(t.Context(), in)
	if diags.HasErrors() || r.Plan.Changes[1].Reason != NoModule {
		t.Fatal(diags, r.Plan.Changes)
	}
}

// What changes nothing passes the order on: c waits for a although b, between them, stays.
func TestOrderPassesThroughWhatStays(t *testing.T) {
	src := func(n string) string {
		return `
resource "store" "a" {
  input = ` + n + `
}
resource "store" "b" {
  depends_on = [store.a]
}
resource "store" "c" {
  input      = ` + n + `
  depends_on = [store.b]
}
`
	}
	in := testInput(t, &world{}, src("2"))
	in.Prior = applied(t, src("1"))
	r, diags := Make(t.Context(), in)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := "0 update store.a\n1 update store.c <- 0 (depends_on)\n"
	if d := cmp.Diff(want, stepLines(r.Plan.Steps)); d != "" {
		t.Fatal(d)
	}
}

func TestCovers(t *testing.T) {
	res := func(s string) addrs.Resource {
		i, err := addrs.ParseInstance(s)
		if err != nil {
			t.Fatal(err)
		}
		return i.Resource
	}
	for _, tc := range []struct {
		dep, r, user string
		want         bool
	}{
		{"a.b", "a.b", "x.y", true},
		{"a.b", "a.c", "x.y", false},
		{"module.m.a.b", `module.m["k"].a.b`, "x.y", true},
		{"module.m.a.b", `module.m["k"].a.b`, `module.m["k"].x.y`, true},
		{"module.m.a.b", `module.m["k"].a.b`, `module.m["l"].x.y`, false},
		{"module.m.a.b", `module.m["k"].a.b`, `module.n["l"].x.y`, true},
		{`module.m["k"].a.b`, `module.m["l"].a.b`, "x.y", false},
		{`module.m["k"].a.b`, `module.m["k"].a.b`, "x.y", true},
	} {
		if got := covers(res(tc.dep), res(tc.r), res(tc.user).Module); got != tc.want {
			t.Errorf("covers(%s, %s, in the module of %s) = %t", tc.dep, tc.r, tc.user, got)
		}
	}
}
