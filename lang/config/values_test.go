package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
)

// declared are the variables that the tests below give values to.
func declared() map[string]*Variable {
	out := map[string]*Variable{}
	for name, ty := range map[string]cty.Type{
		"name":   cty.String,
		"count_": cty.Number,
		"sizes":  cty.List(cty.Number),
		"ports":  cty.Map(cty.Object(map[string]cty.Type{"n": cty.Number})),
		"any":    cty.DynamicPseudoType,
	} {
		out[name] = &Variable{Name: name, Type: ty, Nullable: true}
	}
	out["secret"] = &Variable{Name: "secret", Type: cty.String, Sensitive: true}
	out["secrets"] = &Variable{Name: "secrets", Type: cty.List(cty.String), Sensitive: true}
	return out
}

func TestReadValues(t *testing.T) {
	files := Memory{
		"root/b.auto.plumbvars.hcl":  []byte("name = \"b\"\n"),
		"root/a.auto.plumbvars.hcl":  []byte("name = \"a\"\nsizes = [64, \"128\"]\nnaem = 1\n"),
		"root/c.auto.plumbvars.json": []byte(`{"ports": {"p0": {"n": 1}}, "any": "${literal}"}`),
		"root/.x.auto.plumbvars.hcl": []byte("name = \"hidden\"\n"),
		"root/plain.plumbvars.hcl":   []byte("name = \"plain\"\n"),
		"vars/more.plumbvars.hcl":    []byte("name = \"more\"\nany = { a = 1 }\n"),
		"vars/bad.plumbvars.hcl":     []byte("name = var.x\nsizes = max(1)\nvariable \"x\" {}\n"),
		"vars/syntax.plumbvars.hcl":  []byte("name = \n"),
		"root/main.plumb.hcl":        []byte("variable \"name\" {}\n"),
	}
	file := func(p string) ValueArg { return ValueArg{File: true, Text: p} }
	set := func(s string) ValueArg { return ValueArg{Text: s} }
	for _, tt := range []struct {
		name  string
		dir   string
		env   []string
		args  []ValueArg
		want  string
		diags string
	}{
		{
			name: "environment alone",
			env:  []string{"PLUMB_VAR_name=env=x", "PLUMB_VAR_sizes=[64]", "PLUMB_VAR_other=1", "HOME=/root", "PLUMB_VAR_any=hello"},
			want: `any "hello"; name "env=x"; sizes [64]`,
		},
		{
			name:  "files over environment, later files over earlier",
			dir:   "root",
			env:   []string{"PLUMB_VAR_name=env", "PLUMB_VAR_count_=5"},
			want:  `any "${literal}"; count_ "5"; name "b"; ports {"p0":{"n":1}}; sizes [64,"128"]`,
			diags: "warning root/a.auto.plumbvars.hcl:3,1-5: Undeclared variable\n    The file sets \"naem\", but the root module declares no such variable, so the value is not used. Did you mean \"name\"?\n",
		},
		{
			name: "arguments in their order",
			args: []ValueArg{set("name=flag"), file("vars/more.plumbvars.hcl"), set("any=[1, 2]")},
			want: `any [1,2]; name "more"`,
		},
		{
			name: "flag after file",
			args: []ValueArg{file("vars/more.plumbvars.hcl"), set("name=a=b"), set(`ports={ p0 = { n = 1 } }`), set("any=1.10")},
			want: `any 1.1; name "a=b"; ports {"p0":{"n":1}}`,
		},
		{
			name:  "undeclared flag",
			args:  []ValueArg{set("nam=x"), set("zzzzzz=x")},
			diags: "error -: Undeclared variable\n    -var sets \"nam\", but the root module declares no such variable. Did you mean \"name\"?\nerror -: Undeclared variable\n    -var sets \"zzzzzz\", but the root module declares no such variable.\n",
		},
		{
			name:  "flag without a value, which may be a secret",
			args:  []ValueArg{set("hunter2"), set("my name=x")},
			diags: strings.Repeat("error -: Invalid -var\n    An argument of -var is not of the form NAME=VALUE. Write for example -var 'pmd_cores=1,15'.\n", 2),
		},
		{
			name: "flag that is not an expression",
			args: []ValueArg{set("sizes=64,128")},
			want: "sizes unknown",
			diags: "error <value of -var sizes>:1,3-4: Extra characters after expression\n    An expression was successfully parsed, but extra characters were found after it." +
				" Variable \"sizes\" is of type list of number, so that the value must be an expression of that type. On a shell put it in single quotes.\n",
		},
		{
			name: "sensitive values are not shown",
			env:  []string{"PLUMB_VAR_secrets=[hunter2", "PLUMB_VAR_secret=hunter2 is fine"},
			args: []ValueArg{set("secrets=hunter2")},
			want: `secret "hunter2 is fine"; secrets unknown`,
			diags: strings.ReplaceAll("error -: Invalid value for variable\n    The value of FROM is not an HCL expression of type list of string. The variable is sensitive, so what is wrong with it is not shown. On a shell put it in single quotes.\n", "FROM", "environment variable PLUMB_VAR_secrets") +
				strings.ReplaceAll("error -: Invalid value for variable\n    The value of FROM is not an HCL expression of type list of string. The variable is sensitive, so what is wrong with it is not shown. On a shell put it in single quotes.\n", "FROM", "-var secrets"),
		},
		{
			name: "files with more than values",
			args: []ValueArg{file("vars/bad.plumbvars.hcl")},
			want: "name unknown; sizes unknown",
			diags: "error vars/bad.plumbvars.hcl:3,1-9: Unexpected \"variable\" block\n    Blocks are not allowed here. A file of values has lines like name = value only; variable blocks stand in *.plumb.hcl files.\n" +
				"error vars/bad.plumbvars.hcl:1,8-11: Variables not allowed\n    Variables may not be used here. Values must be written out: they cannot refer to anything or call functions.\n" +
				"error vars/bad.plumbvars.hcl:2,9-15: Function calls not allowed\n    Functions may not be called here. Values must be written out: they cannot refer to anything or call functions.\n",
		},
		{
			name: "file that is not there, or is something else",
			args: []ValueArg{file("vars/none.plumbvars.hcl"), file("root/main.plumb.hcl")},
			diags: "error -: Cannot read file of values\n    File vars/none.plumbvars.hcl: file does not exist.\n" +
				"error -: Not a file of values\n    root/main.plumb.hcl is a configuration file. A file of values has lines like name = value, and is best called NAME.plumbvars.hcl.\n",
		},
		{
			name:  "syntax error",
			args:  []ValueArg{file("vars/syntax.plumbvars.hcl")},
			diags: "error vars/syntax.plumbvars.hcl:1,8-2,1: Invalid expression\n    Expected the start of an expression, but found an invalid expression token.\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tt.dir
			if dir == "" {
				dir = "elsewhere"
			}
			got, diags := ReadValues(declared(), ValueSources{Files: files, Dir: dir, Environ: tt.env, Args: tt.args})
			var parts []string
			for _, name := range sortedKeys(got.ByName) {
				parts = append(parts, name+" "+printValue(got.ByName[name]))
			}
			if diff := cmp.Diff(tt.want, strings.Join(parts, "; ")); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			text := printDiags(diags)
			if diff := cmp.Diff(tt.diags, text); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			for name, src := range got.Sources {
				if strings.Contains(string(src), "hunter2") || strings.Contains(text, "hunter2") {
					t.Errorf("a sensitive value is shown by %s", name)
				}
			}
			for _, d := range diags {
				if d.Subject != nil && got.Sources[d.Subject.Filename] == nil {
					t.Errorf("the source of %s is not given", d.Subject)
				}
			}
		})
	}
}

func printValue(v cty.Value) string {
	switch {
	case !v.IsKnown():
		return "unknown"
	case v.Type() == cty.String:
		return fmt.Sprintf("%q", v.AsString())
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('g', 10)
	case v.CanIterateElements():
		object := v.Type().IsObjectType() || v.Type().IsMapType()
		var parts []string
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if object {
				parts = append(parts, printValue(k)+":"+printValue(e))
			} else {
				parts = append(parts, printValue(e))
			}
		}
		if object {
			return "{" + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return fmt.Sprintf("%#v", v)
}

// FuzzReadValues: no text makes reading values panic, and what a sensitive variable is given is in no message.
func FuzzReadValues(f *testing.F) {
	for _, s := range []string{"name=x", "sizes=[1", "any={a=1}", "a = 1\nb = \"${x}\"\n", `{"a": [1]}`, "=", "name"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := ValueSources{
			Files:   Memory{"d/a.auto.plumbvars.hcl": []byte(text), "d/b.auto.plumbvars.json": []byte(text)},
			Dir:     "d",
			Environ: []string{"PLUMB_VAR_any=" + text, "PLUMB_VAR_sizes=" + text, text},
			Args:    []ValueArg{{Text: text}, {Text: "ports=" + text}},
		}
		values, diags := ReadValues(declared(), in)
		_ = printDiags(diags)
		for _, v := range values.ByName {
			if v == cty.NilVal {
				t.Error("a value is missing")
			}
		}
		_, diags = ReadValues(declared(), ValueSources{Files: Memory{}, Dir: "d", Environ: []string{"PLUMB_VAR_secrets=(((hunter2" + text}})
		if strings.Contains(printDiags(diags), "hunter2") {
			t.Errorf("a sensitive value is shown: %s", printDiags(diags))
		}
	})
}
