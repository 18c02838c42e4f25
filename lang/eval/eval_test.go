package eval_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sync/errgroup"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
)

// TestConcurrent evaluates from many goroutines, as apply does: Resolve calls Evaluate again, and the aggregate of a resource is
// the same for all.
func TestConcurrent(t *testing.T) {
	const src = `
locals {
  all = plumb_data.a[*].output
}
resource "plumb_data" "a" {
  count = 20
  input = "a${count.index}"
}
resource "plumb_data" "b" {
  for_each = toset(local.all)
  input    = [each.key, local.all, plumb_data.a[3].output]
}
resource "plumb_data" "c" {
  count = 20
  input = [for k, b in plumb_data.b : b.output[0]]
}
`
	var e *eval.Evaluator
	var asked atomic.Int64
	e, diags := eval.New(eval.Inputs{Config: load(t, src), Catalog: testCatalog(), Resolve: func(i addrs.Instance) (cty.Value, hcl.Diagnostics) {
		asked.Add(1)
		inst, diags := e.Evaluate(i)
		if diags.HasErrors() {
			return cty.DynamicVal, diags
		}
		return resolved(inst, true), nil
	}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	g, _ := errgroup.WithContext(context.Background())
	for range 8 {
		for i := range 20 {
			g.Go(func() error {
				addr := addrs.Resource{Type: "plumb_data", Name: "c"}.Instance(addrs.IntKey(i))
				inst, diags := e.Evaluate(addr)
				if diags.HasErrors() {
					return diags
				}
				if n := inst.Desired.GetAttr("input").LengthInt(); n != 20 {
					return fmt.Errorf("%s has %d elements", addr, n)
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	before := asked.Load()
	if _, diags := e.Evaluate(addrs.Resource{Type: "plumb_data", Name: "c"}.Instance(addrs.IntKey(0))); diags.HasErrors() || asked.Load() != before {
		t.Errorf("asked again for what is kept: %v", diags)
	}
}

func TestUnknownAddresses(t *testing.T) {
	e, diags := eval.New(eval.Inputs{Config: load(t, counted), Catalog: testCatalog()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	a := addrs.Resource{Type: "plumb_data", Name: "a"}
	for _, i := range []addrs.Instance{
		a.Instance(addrs.Key{}), a.Instance(addrs.IntKey(2000)), a.Instance(addrs.StringKey("x")),
		addrs.Resource{Type: "plumb_data", Name: "nothing"}.Instance(addrs.Key{}),
		addrs.Resource{Module: addrs.Root().Child("m", addrs.Key{}), Type: "plumb_data", Name: "a"}.Instance(addrs.Key{}),
	} {
		if inst, diags := e.Evaluate(i); !diags.HasErrors() || inst != nil {
			t.Errorf("%s: got %v, want an error", i, inst)
		}
		if diags := e.Postconditions(i, cty.DynamicVal); !diags.HasErrors() {
			t.Errorf("%s: no error of Postconditions", i)
		}
	}
}

func TestEvalExpression(t *testing.T) {
	cfg := load(t, "locals {\n  a = { b = 2 }\n}\n")
	e, diags := eval.New(eval.Inputs{Config: cfg, Catalog: testCatalog()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for src, want := range map[string]string{
		"local.a.b + 1": "3",
		"local.c":       "error at console:1,1-8: Reference to undeclared local value\n  There is no local value named \"c\" here. Did you mean \"a\"?\n",
		"count.index":   "error at console:1,1-12: Invalid reference\n  count.index is there only in blocks that have a count argument, and not in that argument itself.\n",
		"local.a.x":     "error at console:1,8-10: Unsupported attribute\n  This object does not have an attribute named \"x\".\n",
	} {
		expr, diags := hclsyntax.ParseExpression([]byte(src), "console", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		v, diags := e.EvalExpression(expr)
		got := print(v)
		if diags.HasErrors() {
			got = printDiags(diags)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want - got +\n%s", src, diff)
		}
	}
}

func TestAttributeRange(t *testing.T) {
	cfg := load(t, `
resource "test_switch" "s" {
  name   = "x"
  limits = [1, 2]
  cores  = join(",", ["1"])
  port { name = "a" }
  port { name = "b" }
  option "k" { value = "v" }
  dynamic "dpdk" {
    for_each = [1]
    content { lcores = "1" }
  }
}
`)
	sch := &testCatalog().Resources["test_switch"].Block
	at := func(steps ...any) cty.Path {
		var p cty.Path
		for _, s := range steps {
			switch s := s.(type) {
			case string:
				p = p.GetAttr(s)
			case int:
				p = p.IndexInt(s)
			case cty.Value:
				p = p.Index(s)
			}
		}
		return p
	}
	for _, c := range []struct {
		path cty.Path
		want string
	}{
		{nil, "main.plumb.hcl:2,28-28"},
		{at("name"), "main.plumb.hcl:3,12-15"},
		{at("limits", 1), "main.plumb.hcl:4,16-17"},
		{at("limits", 5), "main.plumb.hcl:4,12-18"},
		{at("cores", 0), "main.plumb.hcl:5,12-28"},
		{at("port", 1, "name"), "main.plumb.hcl:7,17-20"},
		{at("port", 1, "number"), "main.plumb.hcl:7,10-10"},
		{at("port", 2), "main.plumb.hcl:2,28-28"},
		{at("option", cty.StringVal("k"), "value"), "main.plumb.hcl:8,24-27"},
		{at("option", cty.StringVal("l"), "value"), "main.plumb.hcl:2,28-28"},
		{at("dpdk", "lcores"), "main.plumb.hcl:9,18-18"},
		{at("mode"), "main.plumb.hcl:2,28-28"},
		{at("nothing"), "main.plumb.hcl:2,28-28"},
		{cty.Path{cty.IndexStep{Key: cty.NumberIntVal(1)}}, "main.plumb.hcl:2,28-28"},
	} {
		if got := eval.AttributeRange(cfg.Root.Resources["test_switch.s"].Body, sch, c.path).String(); got != c.want {
			t.Errorf("%s is at %s, want %s", printPath(c.path), got, c.want)
		}
	}
}

// FuzzValidate holds that no configuration that loads makes the evaluator panic, in any mode.
func FuzzValidate(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			if file.Name == "main.plumb.hcl" || file.Name == "main.plumb.json" {
				f.Add(file.Data, filepath.Ext(file.Name) == ".json")
			}
		}
	}
	large := regexp.MustCompile(`[0-9]{4}|[0-9][eE]`) // counts that would only take long
	f.Fuzz(func(t *testing.T, src []byte, json bool) {
		if len(src) > 4000 || large.Match(src) {
			return
		}
		name := "main.plumb.hcl"
		if json {
			name = "main.plumb.json"
		}
		for _, mode := range []string{"validate", "plan", "apply"} {
			describe(map[string][]byte{name: src}, nil, mode)
		}
		cfg, _ := config.LoadSources(map[string][]byte{name: src}, ".", "0.1.0") // also what was only half read
		if e, diags := eval.New(eval.Inputs{Config: cfg, Catalog: testCatalog()}); !diags.HasErrors() {
			e.Validate()
		}
	})
}
