package plan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/providers"
	"plumb/stages/state"
)

func TestSaveLoad(t *testing.T) {
	in := testInput(t, &world{}, "variable \"v\" {\n}\nresource \"store\" \"s\" {\n  input = var.v\n}\n")
	in.Variables = map[string]cty.Value{"v": cty.ListVal([]cty.Value{cty.NumberIntVal(1)})}
	r, diags := Make(t.Context(), in)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	file := filepath.Join(t.TempDir(), "plan")
	saved := Saved{Plan: r.Plan, Sources: in.Config.Sources, ConfigDir: "t", Dir: "t", Variables: map[string]cty.Value{"v": in.Variables["v"].Mark(eval.Sensitive)}}
	if err := Save(file, saved); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Error(fi.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) > 0 {
		t.Error("left behind: ", left)
	}
	back, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(planText(t, r.Plan), planText(t, back.Plan)); d != "" {
		t.Error(d)
	}
	if !back.Variables["v"].RawEquals(in.Variables["v"]) {
		t.Errorf("%#v", back.Variables)
	}
	cfg, diags := config.LoadSources(back.Sources, back.ConfigDir, "0.1.0")
	if diags.HasErrors() || cfg.Root.Resources["store.s"] == nil {
		t.Error(diags)
	}
}

func TestSaveRefusesErrors(t *testing.T) {
	if err := Save(filepath.Join(t.TempDir(), "plan"), Saved{Plan: &Plan{Errored: true}}); err == nil {
		t.Fatal("saved")
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, p *Plan) string {
		file := filepath.Join(dir, name)
		if err := Save(file, Saved{Plan: p}); err != nil {
			t.Fatal(err)
		}
		return file
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := write("cut", &Plan{FormatVersion: FormatVersion})
	if err := os.Truncate(cut, 40); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		text:                       "not a plan file",
		cut:                        "damaged",
		write("newer", &Plan{FormatVersion: "2.0", PlumbVersion: "9"}): "another format",
	} {
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	p := &Plan{ID: "id", Prior: Prior{Lineage: "l", Serial: 3}}
	absent := &Plan{ID: "id", Prior: Prior{Absent: true}}
	for _, tc := range []struct {
		name string
		plan *Plan
		st   *state.State
		want string
	}{
		{"same", p, &state.State{Lineage: "l", Serial: 3}, ""},
		{"moved on", p, &state.State{Lineage: "l", Serial: 4}, "serial 3 of the state, and the state now has serial 4"},
		{"other testbed", p, &state.State{Lineage: "m", Serial: 3}, "lineage l, and this one has m"},
		{"gone", p, nil, "serial 3, and there is no state now"},
		{"absent", absent, nil, ""},
		{"not absent any more", absent, &state.State{Lineage: "l", Serial: 1}, "now there is one with serial 1"},
		{"applied", p, &state.State{Lineage: "l", Serial: 3, AppliedPlan: "id"}, "has been applied already"},
	} {
		err := tc.plan.Check(tc.st)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want != "" && (!errors.Is(err, ErrStale) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestHostsOpenOnce(t *testing.T) {
	var opened atomic.Int32
	h := NewHosts(func(context.Context, string, cty.Value, providers.Hosts) (providers.Host, error) {
		opened.Add(1)
		return nil, errors.New("refused")
	})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := h.Get(t.Context(), "dut", cty.EmptyObjectVal, nil); err == nil || err.Error() != "refused" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if opened.Load() != 1 {
		t.Errorf("opened %d times", opened.Load())
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, diags := Make(ctx, testInput(t, &world{}, "resource \"store\" \"s\" {\n}\n"))
	if !diags.HasErrors() || !r.Plan.Errored || len(r.Plan.Steps) > 0 || diags[0].Summary != "Planning was interrupted" {
		t.Fatal(diags)
	}
}

func TestNoConfiguration(t *testing.T) {
	in := testInput(t, &world{}, "")
	if _, diags := Make(t.Context(), in); !diags.HasErrors() {
		t.Error("planned nothing at all")
	}
	in.Options.Destroy = true
	r, diags := Make(t.Context(), in)
	if diags.HasErrors() || r.Plan.HasChanges() {
		t.Error(diags)
	}
}

// Every provider mistake in a read is a bug report, and the facts of a host that is asked for are what expressions see.
func TestReadIsChecked(t *testing.T) {
	src := "resource \"store\" \"s\" {\n}\n"
	w := &world{objects: map[string]cty.Value{"store.s": cty.StringVal("nonsense")}}
	in := testInput(t, w, src)
	in.Prior = applied(t, src)
	_, diags := Make(t.Context(), in)
	if len(diags) == 0 || diags[0].Summary != "Bug of provider store" || diags[0].Severity != hcl.DiagError {
		t.Fatal(diags)
	}
}

func TestFacts(t *testing.T) {
	r, diags := Make(t.Context(), testInput(t, &world{}, "host \"dut\" {}\nresource \"store\" \"s\" {\n  count = host.dut.facts.cores\n}\n"))
	if diags.HasErrors() || len(r.Plan.Changes) != 4 {
		t.Fatal(diags, len(r.Plan.Changes))
	}
	if r.Plan.Reads["dut"].Commands != 1 {
		t.Error(r.Plan.Reads)
	}
}
