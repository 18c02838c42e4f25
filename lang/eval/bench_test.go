package eval_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
)

// counted is 2,000 instances of one block and 2,000 that refer to them.
const counted = `
resource "plumb_data" "a" {
  count = 2000
  input = "value ${count.index}"
}
resource "plumb_data" "b" {
  count = 2000
  input = plumb_data.a[count.index].output
}
`

// separate is the same as 4,000 blocks.
func separate() string {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "resource \"plumb_data\" \"a%d\" {\n  input = \"value %d\"\n}\nresource \"plumb_data\" \"b%d\" {\n  input = plumb_data.a%d.output\n}\n", i, i, i, i)
	}
	return b.String()
}

func load(t testing.TB, src string) *config.Config {
	t.Helper()
	cfg, diags := config.LoadSources(map[string][]byte{"main.plumb.hcl": []byte(src)}, ".", "0.1.0")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return cfg
}

// evaluateAll does what a plan asks of an evaluator, and returns how many instances there were.
func evaluateAll(t testing.TB, cfg *config.Config) int {
	t.Helper()
	var e *eval.Evaluator
	e, diags := eval.New(eval.Inputs{Config: cfg, Catalog: testCatalog(), Resolve: func(i addrs.Instance) (cty.Value, hcl.Diagnostics) {
		inst, diags := e.Evaluate(i)
		return resolved(inst, true), diags
	}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	n := 0
	for _, r := range e.Resources() {
		e.Dependencies(r)
		instances, diags := e.Expand(r)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, i := range instances {
			inst, diags := e.Evaluate(i)
			if diags.HasErrors() || !inst.Desired.GetAttr("input").IsWhollyKnown() {
				t.Fatal(i, diags, inst)
			}
			n++
		}
	}
	return n
}

func TestEvaluateMany(t *testing.T) {
	for name, src := range map[string]string{"counted": counted, "separate": separate()} {
		if n := evaluateAll(t, load(t, src)); n != 4000 {
			t.Errorf("%s: %d instances, want 4000", name, n)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	for name, src := range map[string]string{"counted": counted, "separate": separate()} {
		b.Run(name, func(b *testing.B) {
			cfg := load(b, src)
			b.ReportAllocs()
			for b.Loop() {
				evaluateAll(b, cfg)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	src := separate()
	b.ReportAllocs()
	for b.Loop() {
		load(b, src)
	}
}
