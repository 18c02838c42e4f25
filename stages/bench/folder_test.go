package bench

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
	"plumb/providers"
)

func TestSaveLoadList(t *testing.T) {
	m := newModel(true)
	in, _ := bench(t, m, map[string]cty.Value{"frame_sizes": numbers(64, 128)}, nil, nil)
	in.Results = filepath.Join(t.TempDir(), "results")
	in.Files = Files{Plan: []byte("{}\n"), Sources: map[string][]byte{"main.plumb.hcl": []byte("x"), "../mods/p2p/main.plumb.hcl": []byte("y"), "/etc/a.hcl": []byte("z")}}
	if l, err := List(in.Results); err != nil || l != nil {
		t.Errorf("a folder that is not there: %v %v", l, err)
	}
	in.Benchmarks = append(in.Benchmarks, in.Benchmarks[0])
	run := measure(t, in) // saved twice
	dir := filepath.Join(in.Results, run.ID)
	var names []string
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			names = append(names, rel)
		}
		return err
	})
	want := []string{"configuration/__/mods/p2p/main.plumb.hcl", "configuration/etc/a.hcl", "configuration/main.plumb.hcl", "facts.json", "manifest.json", "plan.json", "run.json", "trials.csv", "trials.jsonl"}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	got, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(run, got); d != "" {
		t.Error(d)
	}
	l, err := List(in.Results)
	if err != nil || len(l) != 1 || l[0].ID != run.ID || len(l[0].Benchmarks) != 2 || l[0].Problem != "" {
		t.Errorf("%+v %v", l, err)
	}

	for _, tc := range []struct {
		name, want string
		spoil      func() error
	}{
		{"changed", "trials.csv was changed after the run", func() error { return os.WriteFile(filepath.Join(dir, "trials.csv"), []byte("1"), 0o644) }},
		{"gone", "trials.csv is in the manifest", func() error { return os.Remove(filepath.Join(dir, "trials.csv")) }},
		{"other format", `format version "2.0"`, func() error {
			return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{"format_version":"2.0"}`), 0o644)
		}},
		{"outside", "outside of the folder", func() error {
			return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{"format_version":"1.0","sha256":{"../x":""}}`), 0o644)
		}},
		{"empty", "has no run.json", func() error {
			return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{"format_version":"1.0"}`), 0o644)
		}},
		{"no manifest", "has no manifest.json", func() error {
			return errors.Join(os.Remove(filepath.Join(dir, "manifest.json")), os.Remove(filepath.Join(dir, "trials.jsonl")))
		}},
	} {
		if err := tc.spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
	if l, err := List(in.Results); err != nil || len(l) != 1 || l[0].Problem == "" {
		t.Errorf("%+v %v", l, err)
	}
}

func TestSecretsStayOut(t *testing.T) {
	const secret = "hunter2"
	m := newModel(true)
	in, _ := bench(t, m, nil, nil, nil)
	in.Results = t.TempDir()
	// Marked as the evaluator marks them; the provider must not see the mark, the results not the value.
	hidden := cty.ObjectVal(map[string]cty.Value{"password": cty.StringVal(secret).Mark(eval.Sensitive)})
	in.Generators[0].Config = hidden
	for i := range in.Instances {
		in.Instances[i].Value = hidden
	}
	in.Benchmarks[0].Config = in.Benchmarks[0].Config.Mark(eval.Sensitive)
	in.Benchmarks[0].Method, in.Benchmarks[0].MethodCfg = "reset", cty.ObjectVal(map[string]cty.Value{
		"throughput": cty.StringVal("1k"), "search": cty.ObjectVal(map[string]cty.Value{"loss": cty.NumberFloatVal(7.7654321)}).Mark(eval.Sensitive)})
	in.Set.Generators = []providers.GeneratorType{newDevice()}
	run := measure(t, in)
	if run.Benchmarks[0].Error != "" || !slices.Contains(run.Benchmarks[0].Settings, [2]string{"search.loss", hiddenText}) {
		t.Fatal(run.Benchmarks[0].Error)
	}
	files := 0
	filepath.WalkDir(in.Results, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		if data, _ := os.ReadFile(p); bytes.Contains(data, []byte(secret)) || bytes.Contains(data, []byte("7.765")) {
			t.Errorf("%s holds the secret", p)
		}
		return nil
	})
	if files < 4 {
		t.Errorf("only %d files were looked at", files)
	}
}
