package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

func commandCases(dir string) map[string]attrs {
	file := dir + "/-made by 'a' command"
	return map[string]attrs{
		"check":   {"check": strs("test", "-e", file), "do": strs("touch", "--", file), "undo": strs("rm", "-f", "--", file)},
		"creates": {"creates": str(file), "do": strs("touch", "--", file), "undo": strs("rm", "-f", "--", file)},
		"neither": {"do": strs("touch", "--", file), "undo": strs("rm", "-f", "--", file), "triggers": cty.MapVal(attrs{"a": str("b")})},
	}
}

func TestCommand(t *testing.T) {
	for name, config := range commandCases("/etc") {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := conformance.Case{Type: Command{}, Open: w.open, Config: config, Update: attrs{}, Snapshot: w.snapshot}
			for k, v := range config {
				c.Update[k] = v
			}
			c.Update["triggers"] = cty.MapVal(attrs{"a": str("c")})
			c.Update["timeout"] = num(7)
			if name != "neither" {
				c.Drift = map[string]func(*testing.T, providers.Host){"undone": func(t *testing.T, h providers.Host) { do(t, h, "rm", "-f", "--", "/etc/-made by 'a' command") }}
			}
			conformance.Run(t, c)
		})
	}
}

func TestRealCommand(t *testing.T) {
	real(t)
	dir := t.TempDir()
	for name, config := range commandCases(dir) {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Case{Type: Command{}, Open: local, Config: config, Snapshot: files(dir + "/*")})
		})
	}
}

// runs counts how often do has run on this machine: it needs no root.
type runs struct {
	dir string
	typ Command
	req providers.ApplyRequest
}

func (r *runs) given(trigger string) attrs {
	return attrs{
		"shell": cty.True, "check": strs(`test -e "$1/done"`, r.dir), "do": strs(`echo run >>"$1/log"; cat >"$1/stdin"; echo "$A$B" >"$1/env"; touch "$1/done"`, r.dir), "undo": strs(`rm -f "$1/done"`, r.dir),
		"triggers": cty.MapVal(attrs{"a": str(trigger)}), "stdin": str("in"), "environment": cty.MapVal(attrs{"A": str("a $(id) `id`")}), "sensitive_environment": cty.MapVal(attrs{"B": str("'b\"")}),
	}
}

func (r *runs) count(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "run")
}

// apply is a run of Plumb; one that is killed ends after Prepare, and its state has null where the plan was unknown.
func (r *runs) apply(t *testing.T, trigger string, killed bool) {
	t.Helper()
	h := local(t)
	defer h.Close()
	r.req.Host = h
	want := conformance.Desired(&r.typ.Schema().Block, r.given(trigger))
	res, err := r.typ.Plan(t.Context(), providers.PlanRequest{Host: h, Prior: r.req.Prior, Desired: want, Proposed: want})
	if err != nil {
		t.Fatal(err)
	}
	r.req.Planned = res.Planned
	if r.req.Undo, err = r.typ.Prepare(t.Context(), r.req); err != nil {
		t.Fatal(err)
	}
	if killed {
		r.req.Prior, err = cty.Transform(res.Planned, func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if !v.IsKnown() {
				return cty.NullVal(v.Type()), nil
			}
			return v, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := r.typ.Apply(t.Context(), r.req)
	if err != nil {
		t.Fatal(err)
	}
	r.req.Prior = got.New
}

func TestCommandRunsWhenItHasTo(t *testing.T) {
	r := &runs{dir: t.TempDir()}
	r.req = providers.ApplyRequest{Prior: cty.NullVal(r.typ.Schema().Block.ImpliedType()), Log: func(s string) { t.Log(s) }}
	for i, step := range []struct {
		trigger string
		killed  bool
		want    int
		why     string
	}{
		{"a", true, 0, "killed before it ran"},
		{"a", false, 1, "created"},
		{"a", false, 1, "nothing changed"},
		{"b", false, 2, "a trigger changed"},
		{"c", true, 2, "killed when a trigger had changed"},
		{"c", false, 3, "what was cut off is made up for"},
		{"c", false, 3, "and not again"},
	} {
		r.apply(t, step.trigger, step.killed)
		if got := r.count(t); got != step.want {
			t.Errorf("step %d, %s: it ran %d times, want %d", i, step.why, got, step.want)
		}
	}
	for name, want := range map[string]string{"stdin": "in", "env": "a $(id) `id`'b\"\n"} {
		if b, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// What was done before is not taken back.
func TestCommandThatWasDoneBefore(t *testing.T) {
	r := &runs{dir: t.TempDir()}
	r.req = providers.ApplyRequest{Prior: cty.NullVal(r.typ.Schema().Block.ImpliedType()), Log: func(s string) { t.Log(s) }}
	done := filepath.Join(r.dir, "done")
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.apply(t, "a", false)
	if r.count(t) != 0 {
		t.Error("do ran")
	}
	h := local(t)
	defer h.Close()
	r.req.Host, r.req.Planned = h, cty.NullVal(r.req.Prior.Type())
	if _, err := r.typ.Apply(t.Context(), r.req); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(done); err != nil {
		t.Error("undo ran")
	}
}

func TestCommandFailures(t *testing.T) {
	h := local(t)
	defer h.Close()
	_, err := create(t, Command{}, h, attrs{"shell": cty.True, "do": strs(`i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo "line $i"; done; echo bad >&2; exit 3`)})
	wantError(t, err, "do failed", "exit status 3", "line 30", "bad")
	if strings.Contains(err.Error(), "line 9\n") {
		t.Error("more than the last lines")
	}
	_, err = create(t, Command{}, h, attrs{"do": strs("true"), "check": strs("false")})
	wantError(t, err, "check says that it is not done")
	_, err = create(t, Command{}, h, attrs{"do": strs("sleep", "100"), "timeout": num(1)})
	wantError(t, err, "not done within 1s")

	res := planOf(t, Command{}, h, attrs{"do": strs("true")})
	wantProblem(t, res, "Will not be taken back", "undo")
	if slices.ContainsFunc(res.Problems, func(p providers.Problem) bool { return !p.Warning }) {
		t.Error("it is more than a warning")
	}
	wantProblem(t, planOf(t, Command{}, h, attrs{"do": strs("true"), "check": strs("true"), "creates": str("/x")}), "check and creates")
	for _, bad := range []cty.Value{strs(""), strs("a\x00b"), cty.ListValEmpty(cty.String)} {
		if err := validArgv(bad); err == nil {
			t.Errorf("%#v was taken", bad)
		}
	}
}
