package eval_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata")

// TestSpec runs every archive of testdata: its files are a configuration, its section "values" gives root variables, and its
// section "want" is what the evaluator says about it. The comment chooses what references to resources see:
//
//	mode: validate  nothing is known of the world, nor variables when there is no section "values"; Validate (the default)
//	mode: plan      computed attributes are unknown
//	mode: apply     computed strings are the address, computed numbers 7, facts {cores = 8}
func TestSpec(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no archives in testdata", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { runSpec(t, name) })
	}
}

func runSpec(t *testing.T, name string) {
	ar, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sources, want := map[string][]byte{}, -1
	var values map[string]cty.Value
	for i, f := range ar.Files {
		switch f.Name {
		case "want":
			want = i
		case "values":
			values = parseValues(t, f.Data)
		default:
			sources[f.Name] = f.Data
		}
	}
	if want < 0 {
		ar.Files = append(ar.Files, txtar.File{Name: "want"})
		want = len(ar.Files) - 1
	}
	mode := "validate"
	for _, m := range []string{"plan", "apply"} {
		if bytes.Contains(ar.Comment, []byte("mode: "+m)) {
			mode = m
		}
	}
	got := describe(sources, values, mode)
	if *update {
		ar.Files[want].Data = []byte(got)
		if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(ar.Files[want].Data), got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func parseValues(t *testing.T, src []byte) map[string]cty.Value {
	f, diags := hclsyntax.ParseConfig(src, "values", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	attrs, _ := f.Body.JustAttributes()
	out := map[string]cty.Value{}
	for name, a := range attrs {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		out[name] = v
	}
	return out
}

// describe evaluates a configuration in full and prints what came out of it.
func describe(sources map[string][]byte, values map[string]cty.Value, mode string) string {
	var b strings.Builder
	cfg, diags := config.LoadSources(sources, ".", "0.1.0")
	if diags.HasErrors() {
		return "not loaded\n" + printDiags(diags)
	}
	in := eval.Inputs{Config: cfg, Catalog: testCatalog(), Variables: values, Dir: "/work", UnknownVariables: mode == "validate" && values == nil}
	var e *eval.Evaluator
	if mode != "validate" {
		in.Resolve = func(i addrs.Instance) (cty.Value, hcl.Diagnostics) {
			inst, diags := e.Evaluate(i)
			if diags.HasErrors() {
				return cty.DynamicVal, diags
			}
			return resolved(inst, mode == "apply"), diags
		}
	}
	if mode == "apply" {
		in.Facts = func(string) (cty.Value, hcl.Diagnostics) {
			return cty.ObjectVal(map[string]cty.Value{"cores": cty.NumberIntVal(8)}), nil
		}
	}
	e, diags = eval.New(in)
	if diags.HasErrors() {
		return "not accepted\n" + printDiags(diags)
	}
	if mode == "validate" {
		if diags = append(diags, e.Validate()...); diags.HasErrors() {
			return "not valid\n" + printDiags(diags)
		}
	}
	all := append(hcl.Diagnostics{}, diags...)
	for _, r := range e.Resources() {
		fmt.Fprintf(&b, "%s\n", r)
		for _, d := range e.Dependencies(r) {
			fmt.Fprintf(&b, "  after %s (%s, %s)\n", d.Resource, d.Reason, d.Range)
		}
		instances, diags := e.Expand(r)
		all = append(all, diags...)
		for _, i := range instances {
			inst, diags := e.Evaluate(i)
			all = append(all, diags...)
			if inst == nil {
				continue
			}
			host := ""
			if inst.Host != "" {
				host = " on " + inst.Host
			}
			fmt.Fprintf(&b, "  %s%s = %s\n", i, host, print(inst.Desired))
			triggers, diags := e.ReplaceTriggers(i)
			all = append(all, diags...)
			for _, t := range triggers {
				key := "[*]"
				if t.Key != nil {
					key = t.Key.String()
				}
				fmt.Fprintf(&b, "    replaced by %s%s %s\n", t.Resource, key, printPath(t.Attr))
			}
			all = append(all, e.Postconditions(i, resolved(inst, mode == "apply"))...)
		}
	}
	hosts, diags := e.Hosts()
	all = append(all, diags...)
	for _, name := range sortedNames(hosts) {
		fmt.Fprintf(&b, "host.%s = %s\n", name, print(hosts[name].Config))
	}
	generators, diags := e.Generators()
	all = append(all, diags...)
	for _, g := range generators {
		fmt.Fprintf(&b, "%s on %q = %s\n", g.Addr, g.Host, print(g.Config))
	}
	benchmarks, diags := e.Benchmarks()
	all = append(all, diags...)
	for _, bm := range benchmarks {
		fmt.Fprintf(&b, "%s by %s along %v\n  %s = %s\n  shared = %s\n", bm.Addr, bm.Generator, bm.Path, bm.Method, print(bm.MethodCfg), print(bm.Config))
		for _, r := range bm.Requires {
			ok, message, diags := e.EvalRequire(bm, r, cty.ObjectVal(map[string]cty.Value{"rx": cty.NumberIntVal(5)}))
			all = append(all, diags...)
			fmt.Fprintf(&b, "  require: %t %s\n", ok, message)
		}
	}
	outputs, diags := e.Outputs()
	all = append(all, diags...)
	for _, name := range sortedNames(outputs) {
		note := ""
		if outputs[name].Sensitive {
			note = " (sensitive)"
		}
		fmt.Fprintf(&b, "output.%s%s = %s\n", name, note, print(outputs[name].Value))
	}
	return b.String() + printDiags(eval.Dedup(all))
}

// resolved stands for the providers: computed attributes are unknown, or known when applied.
func resolved(inst *eval.Instance, applied bool) cty.Value {
	v, paths := inst.Desired.UnmarkDeepWithPaths()
	if !v.IsKnown() {
		return inst.Desired
	}
	vals := v.AsValueMap()
	for name, a := range inst.Schema.Block.Attributes {
		if !a.Computed || !vals[name].IsNull() {
			continue
		}
		switch {
		case !applied:
			vals[name] = cty.UnknownVal(a.Type)
		case name == "output":
			vals[name] = vals["input"]
		case a.Type == cty.String:
			vals[name] = cty.StringVal(inst.Addr.String())
		case a.Type == cty.Number:
			vals[name] = cty.NumberIntVal(7)
		default:
			vals[name] = cty.ListVal([]cty.Value{cty.StringVal("found")})
		}
	}
	return cty.ObjectVal(vals).MarkWithPaths(paths)
}

func sortedNames[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func printDiags(diags hcl.Diagnostics) string {
	var b strings.Builder
	for _, d := range diags {
		severity := "error"
		if d.Severity == hcl.DiagWarning {
			severity = "warning"
		}
		at := "-"
		if d.Subject != nil {
			at = d.Subject.String()
		}
		fmt.Fprintf(&b, "%s at %s: %s\n  %s\n", severity, at, d.Summary, strings.ReplaceAll(d.Detail, "\n", "\n  "))
	}
	return b.String()
}

// print writes a value; ? is unknown, (...) around a value marks it sensitive, and null attributes are left out.
func print(v cty.Value) string {
	if v.IsMarked() {
		u, _ := v.Unmark()
		return "(" + print(u) + ")"
	}
	switch {
	case v == cty.NilVal:
		return "nil"
	case !v.IsKnown():
		return "?"
	case v.IsNull():
		return "null"
	case v.Type() == cty.String:
		return fmt.Sprintf("%q", v.AsString())
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	case v.Type().IsObjectType(), v.Type().IsMapType():
		var parts []string
		for _, k := range sortedNames(v.AsValueMap()) {
			if e := v.AsValueMap()[k]; e.IsMarked() || !e.IsKnown() || !e.IsNull() {
				parts = append(parts, k+" = "+print(e))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	var parts []string
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		parts = append(parts, print(e))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func printPath(path cty.Path) string {
	out := ""
	for _, s := range path {
		switch s := s.(type) {
		case cty.GetAttrStep:
			out += "." + s.Name
		case cty.IndexStep:
			out += "[" + print(s.Key) + "]"
		}
	}
	return out
}
