package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// line is the whole way of a configuration: files, evaluation, plan, apply, with the providers of the tests. Without a source it destroys.
type line struct {
	set       *providers.Set
	source    string
	variables map[string]cty.Value
}

func newLine(set *providers.Set, source string, variables map[string]cty.Value) *line {
	return &line{set: set, source: source, variables: variables}
}

func (l *line) catalog() *schema.Catalog {
	c := &schema.Catalog{Resources: map[string]*schema.Resource{}, Data: map[string]*schema.Resource{}, Host: l.set.HostSchema}
	for _, r := range l.set.Resources {
		c.Resources[r.Schema().Type] = r.Schema()
	}
	for _, d := range l.set.Data {
		c.Data[d.Schema().Type] = d.Schema()
	}
	return c
}

// plan makes the plan and what apply needs beside it.
func (l *line) plan(ctx context.Context, s *Session) (Input, error) {
	in := plan.Input{Catalog: l.catalog(), Set: l.set, Variables: l.variables, Options: plan.Options{
		Destroy: l.source == "", Refresh: true, Now: clock, Version: "0.2.0", Dir: ".",
		NewID: func() string { return fmt.Sprintf("plan-%d", s.State.Serial) },
	}}
	if !s.Absent {
		in.Prior = s.State
	}
	out := Input{Providers: l.set, Options: Options{Now: clock}}
	if l.source != "" {
		cfg, diags := config.LoadSources(map[string][]byte{"main.plumb.hcl": []byte(l.source)}, ".", "0.2.0")
		if diags.HasErrors() {
			return out, diags
		}
		in.Config, out.Config = cfg, cfg
		out.Evaluator = Evaluating(eval.Inputs{Config: cfg, Catalog: in.Catalog, Variables: l.variables, Dir: "."})
	}
	res, diags := plan.Make(ctx, in)
	out.Plan = res.Plan
	err := res.Hosts.Close()
	if diags.HasErrors() {
		err = errors.Join(err, diags)
	}
	return out, err
}

func (l *line) apply(t testing.TB, r *rig) *Result {
	t.Helper()
	s := r.open()
	defer s.Close()
	in, err := l.plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	res, diags, err := s.Apply(t.Context(), in)
	if err != nil || diags.HasErrors() || res.Diagnostics().HasErrors() || !res.Applied {
		t.Fatalf("%v, %v, %+v", err, diags, res)
	}
	return res
}

func TestFromFilesToTheWorldAndBack(t *testing.T) {
	r := newRig(t)
	before := r.w.snapshot()
	source := `
host "dut" { address = "192.0.2.7" }

variable "secret" {
  sensitive = true
  default   = "s3"
}

resource "knob" "k" {
  name  = "k"
  value = "5"
}

resource "box" "many" {
  count      = 3
  name       = "m${count.index}"
  content    = var.secret
  depends_on = [knob.k]

  lifecycle {
    postcondition {
      condition     = self.id == "id of ${self.name}"
      error_message = "wrong id"
    }
  }
}

data "look" "l" {
  id = join(" ", box.many[*].id)
}

resource "box" "last" {
  name    = "last"
  content = "${data.look.l.id}: ${box.many[1].content}"

  dynamic "slot" {
    for_each = box.many[*].id
    content { in = slot.value }
  }
}

resource "note" "n" {
  input = box.last.content
}

output "files" { value = data.look.l.files }
`
	l := newLine(r.b.set, source, nil)
	res := l.apply(t, r)
	st := res.State
	last, _, err := state.Find(st, parse("box.last"))
	if err != nil {
		t.Fatal(err)
	}
	got := compactJSON(last.Attributes)
	if !strings.Contains(got, `"content":"id of m0 id of m1 id of m2: s3"`) || !strings.Contains(got, `{"at":"here","in":"id of m2"}`) {
		t.Errorf("box.last is %s", got)
	}
	// Through the data source: it is not in the state.
	if d := cmp.Diff([]string{"box.many"}, last.DependsOn); d != "" {
		t.Error(d)
	}
	secret := false
	for _, p := range last.Sensitive {
		secret = secret || p[0] == "content"
	}
	if !secret {
		t.Errorf("that the content of box.last is sensitive got lost: %v", last.Sensitive)
	}
	if h := string(st.Hosts["dut"].Config); !strings.Contains(h, "192.0.2.7") {
		t.Errorf("host is kept as %s", h)
	}
	s := r.open()
	in, err := l.plan(t.Context(), s)
	if err != nil || len(in.Plan.Steps) > 0 {
		t.Errorf("the second plan is not empty: %+v, %v", in.Plan.Steps, err)
	}
	s.Close()
	if res := newLine(r.b.set, "", nil).apply(t, r); len(res.State.Instances)+len(res.State.Hosts)+len(res.State.Outputs) > 0 {
		t.Errorf("the state still has %+v", res.State)
	}
	if d := cmp.Diff(before, r.w.snapshot()); d != "" {
		t.Error(d)
	}
}

func BenchmarkApply(b *testing.B) {
	source := `
resource "note" "first" {
  count = 2000
  input = "n${count.index}"
}

resource "note" "second" {
  count = 2000
  input = note.first[count.index].output
}
`
	for _, destroy := range []bool{false, true} {
		name := "apply"
		if destroy {
			name = "destroy"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				r := newRig(b)
				l := newLine(r.b.set, source, nil)
				if destroy {
					l.apply(b, r)
					l = newLine(r.b.set, "", nil)
				}
				s := r.open()
				in, err := l.plan(b.Context(), s)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				res, diags, err := s.Apply(b.Context(), in)
				if err != nil || diags.HasErrors() || !res.Applied || len(in.Plan.Steps) < 4000 {
					b.Fatalf("%v %v %d steps", err, diags, len(in.Plan.Steps))
				}
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
