package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/state"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata/*.txtar")

func load(t testing.TB, src string) *config.Config {
	t.Helper()
	cfg, diags := config.LoadSources(map[string][]byte{"t/main.plumb.hcl": []byte(src)}, "t", "0.1.0")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return cfg
}

func testInput(t testing.TB, w *world, src string) Input {
	set := fakeSet(w)
	in := Input{Catalog: fakeCatalog(set), Set: set, Options: Options{
		Refresh: true, NewID: func() string { return "id" }, Version: "0.1.0", Dir: "t",
		Now: func() time.Time { return time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC) },
	}}
	if src != "" {
		in.Config = load(t, src)
	}
	return in
}

// applied is the state after an apply of a configuration to nothing.
func applied(t testing.TB, src string) *state.State {
	t.Helper()
	if src == "" {
		return nil
	}
	r, diags := Make(t.Context(), testInput(t, &world{free: 1024}, src))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	st := &state.State{Version: state.FormatVersion, Serial: 3, Lineage: "lineage", Hosts: map[string]state.Host{"dut": {Config: json.RawMessage(`{"address":null,"reboot":true,"jump":null}`)}}, Outputs: map[string]state.Output{}}
	for _, c := range r.Plan.Changes {
		if c.Addr.Resource.Mode == addrs.Data {
			continue
		}
		i := &state.Instance{Addr: c.Addr, Host: c.Host, Attributes: fill(c.After, c.Unknown, c.Addr.String(), map[string]bool{"input": true, "output": true}), DependsOn: c.DependsOn,
			PreventDestroy: c.PreventDestroy, CreateBeforeDestroy: c.CreateBeforeDestroy}
		for _, p := range c.Sensitive {
			i.Sensitive = append(i.Sensitive, p)
		}
		st.Instances = append(st.Instances, i)
	}
	for name, o := range r.Plan.Outputs {
		if !o.Unknown {
			v, _ := ctyjson.ImpliedType(o.After)
			ty, _ := ctyjson.MarshalType(v)
			st.Outputs[name] = state.Output{Value: o.After, Type: ty, Sensitive: o.Sensitive}
		}
	}
	return st
}

// TestPlans runs testdata/*.txtar: before.hcl has been applied, main.hcl is planned. The options, one a line:
//
//	destroy, refresh false, target A, replace A, max-cost C
//	status A S     the state's instance A has status S
//	deposed A      the state has also a deposed instance A
//	gone A         A is gone from the world
//	found A JSON   attributes of A differ in the world
//	error A TEXT   reading A fails
//	lost A         the connection is cut when A is read
//	cut H          H cannot be reached
//	unreachable H  H cannot be used for another reason
//	free N         hugepages
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, file) })
	}
}

func runCase(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string) string {
		for _, f := range ar.Files {
			if f.Name == name {
				return string(f.Data)
			}
		}
		return ""
	}
	w := &world{objects: map[string]cty.Value{}, errs: map[string]error{}, unreachable: map[string]bool{}, cut: map[string]bool{}, free: 1024}
	in := testInput(t, w, part("main.hcl"))
	in.Prior = applied(t, part("before.hcl"))
	for line := range strings.Lines(part("options")) {
		option(t, strings.TrimSpace(line), &in, w)
	}
	r, diags := Make(t.Context(), in)
	defer r.Hosts.Close()
	got := map[string]string{"plan.json": planText(t, r.Plan), "diags": diagText(diags), "unreachable": diagText(r.Unreachable)}
	for _, name := range []string{"plan.json", "diags", "unreachable"} {
		if *update {
			setPart(ar, name, got[name])
		} else if d := cmp.Diff(part(name), got[name]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checkSteps(t, r.Plan)
}

// planText is the plan without what is the same in all tests, one line for each change and step.
func planText(t *testing.T, p *Plan) string {
	var out bytes.Buffer
	line := func(v any) {
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	section := func(name string, n int) {
		if n > 0 {
			out.WriteString("# " + name + "\n")
		}
	}
	section("drift", len(p.Drift))
	for _, c := range p.Drift {
		line(c)
	}
	section("changes", len(p.Changes))
	for _, c := range p.Changes {
		line(c)
	}
	section("steps", len(p.Steps))
	for _, s := range p.Steps {
		line(s)
	}
	section("outputs", len(p.Outputs))
	if len(p.Outputs) > 0 {
		line(p.Outputs)
	}
	section("benchmarks", len(p.Benchmarks))
	for _, b := range p.Benchmarks {
		line(b)
	}
	section("notes", len(p.Notes))
	for _, n := range p.Notes {
		line(n)
	}
	section("unreachable", len(p.Unreachable))
	for _, u := range p.Unreachable {
		line(u)
	}
	section("summary", 1)
	line(p.Summary())
	return out.String()
}

func diagText(diags hcl.Diagnostics) string {
	var out strings.Builder
	for _, d := range diags {
		kind := "error"
		if d.Severity == hcl.DiagWarning {
			kind = "warning"
		}
		at := "-"
		if d.Subject != nil {
			at = d.Subject.String()
		}
		fmt.Fprintf(&out, "%s %s: %s\n  %s\n", kind, at, d.Summary, d.Detail)
	}
	return out.String()
}

func setPart(ar *txtar.Archive, name, text string) {
	i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == name })
	switch {
	case i >= 0 && text == "":
		ar.Files = slices.Delete(ar.Files, i, i+1)
	case i >= 0:
		ar.Files[i].Data = []byte(text)
	case text != "":
		ar.Files = append(ar.Files, txtar.File{Name: name, Data: []byte(text)})
	}
}

// checkSteps holds the steps of any plan against what always must be so.
func checkSteps(t *testing.T, p *Plan) {
	t.Helper()
	steps := map[string]int{}
	for i, s := range p.Steps {
		if s.ID != i {
			t.Errorf("step %d has id %d", i, s.ID)
		}
		for _, e := range s.After {
			if e.Step >= i {
				t.Errorf("step %d waits for %d, which comes later", i, e.Step)
			}
		}
		if s.Action != Join && s.Action != Reboot {
			steps[s.Addr.String()]++
		}
	}
	if p.Errored {
		if len(p.Steps) > 0 {
			t.Error("an errored plan has steps")
		}
		return
	}
	want := map[string]int{}
	for _, c := range p.Changes {
		switch c.Action {
		case NoOp:
		case Replace:
			want[c.Addr.String()] += 2
		default:
			want[c.Addr.String()]++
		}
	}
	if d := cmp.Diff(want, steps); d != "" {
		t.Errorf("steps of changes: %s", d)
	}
}

func option(t *testing.T, line string, in *Input, w *world) {
	word, rest, _ := strings.Cut(line, " ")
	target := func() addrs.Target {
		x, err := addrs.ParseTarget(rest)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	find := func(a string) *state.Instance {
		for _, i := range in.Prior.Instances {
			if i.Addr.String() == a {
				return i
			}
		}
		t.Fatalf("the state has no %s", a)
		return nil
	}
	first, more, _ := strings.Cut(rest, " ")
	switch word {
	case "":
	case "destroy":
		in.Options.Destroy = true
	case "refresh":
		in.Options.Refresh = false
	case "target":
		in.Options.Targets = append(in.Options.Targets, target())
	case "replace":
		in.Options.Replace = append(in.Options.Replace, target())
	case "max-cost":
		c, err := schema.ParseCost(rest)
		if err != nil {
			t.Fatal(err)
		}
		in.Options.MaxCost = &c
	case "status":
		find(first).Status = state.Status(more)
	case "deposed":
		old := *find(first)
		old.Deposed, old.DeposedAt = true, 2
		in.Prior.Instances = append(in.Prior.Instances, &old)
	case "gone":
		w.objects[rest] = cty.NullVal(cty.DynamicPseudoType)
	case "error":
		w.errs[first] = errors.New(more)
	case "foreign":
		w.errs[first] = fmt.Errorf("bridge %s %w", more, providers.ErrForeign)
	case "found":
		i := find(first)
		var v map[string]any
		if err := json.Unmarshal(i.Attributes, &v); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(more), &v); err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(v)
		var ty cty.Type
		for _, r := range in.Set.Resources {
			if r.Schema().Type == i.Addr.Resource.Type {
				ty = r.Schema().Block.ImpliedType()
			}
		}
		val, err := ctyjson.Unmarshal(raw, ty)
		if err != nil {
			t.Fatal(err)
		}
		w.objects[first] = val
	case "lost":
		w.errs[rest] = fmt.Errorf("read /sys: connection %w", providers.ErrUnreachable)
	case "cut":
		w.cut[rest] = true
	case "unreachable":
		w.unreachable[rest] = true
	case "free":
		fmt.Sscan(rest, &w.free)
	default:
		t.Fatalf("unknown option %q", line)
	}
}
