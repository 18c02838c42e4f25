package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/diagfmt"
)

// EnvPrefix begins the names of environment variables that set root variables.
const EnvPrefix = "PLUMB_VAR_"

// ValueSources says where the values of root variables come from. Later ones win: Environ, then the
// *.auto.plumbvars.hcl and .json files of Dir in order of their names, then Args in order.
type ValueSources struct {
	Files   Files    // nil: OS
	Dir     string   // folder of the root module
	Environ []string // "NAME=value", as os.Environ
	Args    []ValueArg
}

// ValueArg is one -var NAME=VALUE or -var-file FILE of the command line.
type ValueArg struct {
	File bool   // -var-file
	Text string // NAME=VALUE, or the path
}

// Values are the root variables' values as given: not yet converted to their types, completed or validated.
type Values struct {
	ByName  map[string]cty.Value
	Sources map[string][]byte // texts that the diagnostics quote; never one of a sensitive variable from env or -var
}

// ReadValues collects the values of the root module's variables. What a file says is an HCL expression without
// references or functions. So is the text of -var and of the environment, with two exceptions: for a variable of
// type string, number or bool it is the value as it stands, and for one without a type or of type any, text that
// is not such an expression is a string.
//
// A variable that is not declared is an error in -var, a warning in a file, and ignored in the environment,
// which may be shared with other configurations. That a required variable has no value is for lang/eval to say,
// which knows whether values are needed. A value with errors is unknown in the result.
func ReadValues(vars map[string]*Variable, in ValueSources) (Values, hcl.Diagnostics) {
	r := &valueReader{vars: vars, files: in.Files, out: Values{ByName: map[string]cty.Value{}, Sources: map[string][]byte{}}}
	if r.files == nil {
		r.files = OS{}
	}
	r.environ(in.Environ)
	r.autoFiles(in.Dir)
	for _, a := range in.Args {
		if a.File {
			r.file(a.Text)
		} else {
			r.flag(a.Text)
		}
	}
	return r.out, r.diags
}

type valueReader struct {
	vars  map[string]*Variable
	files Files
	out   Values
	diags hcl.Diagnostics
}

func (r *valueReader) add(severity hcl.DiagnosticSeverity, at *hcl.Range, summary, format string, args ...any) {
	r.diags = append(r.diags, &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at})
}

func (r *valueReader) environ(environ []string) {
	for _, e := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(e, "=")
		name, ok := strings.CutPrefix(name, EnvPrefix)
		if v := r.vars[name]; ok && v != nil {
			r.text(v, text, "environment variable "+EnvPrefix+name)
		}
	}
}

func (r *valueReader) autoFiles(dir string) {
	names, err := r.files.List(dir)
	if err != nil {
		return // loading the configuration has said so
	}
	slices.Sort(names)
	for _, n := range names {
		if !strings.HasPrefix(n, ".") && (strings.HasSuffix(n, ".auto.plumbvars.hcl") || strings.HasSuffix(n, ".auto.plumbvars.json")) {
			r.file(filepath.Join(dir, n))
		}
	}
}

// flag reads NAME=VALUE.
func (r *valueReader) flag(arg string) {
	name, text, ok := strings.Cut(arg, "=")
	name = strings.TrimSpace(name)
	switch v := r.vars[name]; {
	case !ok || !hclsyntax.ValidIdentifier(name):
		// Not even a part of the argument is shown: it may be the secret whose name was forgotten.
		r.add(hcl.DiagError, nil, "Invalid -var", "An argument of -var is not of the form NAME=VALUE. Write for example -var 'pmd_cores=1,15'.")
	case v == nil:
		r.add(hcl.DiagError, nil, "Undeclared variable", "-var sets %q, but the root module declares no such variable.%s", name, diagfmt.DidYouMean(name, sortedKeys(r.vars)))
	default:
		r.text(v, text, "-var "+name)
	}
}

// text reads a value that is given as text: as it is for a primitive type, else as an expression.
func (r *valueReader) text(v *Variable, text, from string) {
	if v.Type.IsPrimitiveType() {
		r.out.ByName[v.Name] = cty.StringVal(text)
		return
	}
	source := "<value of " + from + ">"
	expr, diags := hclsyntax.ParseExpression([]byte(text), source, hcl.InitialPos)
	var value cty.Value
	if !diags.HasErrors() {
		value, diags = expr.Value(nil)
	}
	switch {
	case !diags.HasErrors():
		r.out.ByName[v.Name] = value
	case v.Type == cty.DynamicPseudoType:
		r.out.ByName[v.Name] = cty.StringVal(text)
	case v.Sensitive:
		r.unreadable(v)
		r.add(hcl.DiagError, nil, "Invalid value for variable", "The value of %s is not an HCL expression of type %s. The variable is sensitive, so what is wrong with it is not shown. On a shell put it in single quotes.",
			from, v.Type.FriendlyNameForConstraint())
	default:
		r.unreadable(v)
		r.out.Sources[source] = []byte(text)
		for _, d := range diags {
			d.Detail += fmt.Sprintf(" Variable %q is of type %s, so that the value must be an expression of that type. On a shell put it in single quotes.", v.Name, v.Type.FriendlyNameForConstraint())
		}
		r.diags = append(r.diags, diags...)
	}
}

// unreadable keeps a variable whose value has an error from being reported as missing too.
func (r *valueReader) unreadable(v *Variable) {
	r.out.ByName[v.Name] = cty.UnknownVal(v.Type.WithoutOptionalAttributesDeep())
}

// file reads a file of values: HCL attributes, or a JSON object when the name ends in .json.
func (r *valueReader) file(path string) {
	src, err := r.files.Read(path)
	if err != nil {
		r.add(hcl.DiagError, nil, "Cannot read file of values", "File %s: %s.", path, reason(err))
		return
	}
	if strings.HasSuffix(path, ".plumb.hcl") || strings.HasSuffix(path, ".plumb.json") {
		r.add(hcl.DiagError, nil, "Not a file of values", "%s is a configuration file. A file of values has lines like name = value, and is best called NAME.plumbvars.hcl.", path)
		return
	}
	r.out.Sources[path] = src
	f, diags := parseFile(src, path)
	if diags.HasErrors() {
		r.diags = append(r.diags, diags...)
		return
	}
	attrs, diags := f.Body.JustAttributes()
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			d.Detail += " A file of values has lines like name = value only; variable blocks stand in *.plumb.hcl files."
		}
	}
	r.diags = append(r.diags, diags...)
	for _, name := range sortedKeys(attrs) {
		r.attribute(name, attrs[name])
	}
}

func (r *valueReader) attribute(name string, attr *hcl.Attribute) {
	if r.vars[name] == nil {
		r.add(hcl.DiagWarning, attr.NameRange.Ptr(), "Undeclared variable", "The file sets %q, but the root module declares no such variable, so the value is not used.%s", name, diagfmt.DidYouMean(name, sortedKeys(r.vars)))
		return
	}
	v, diags := attr.Expr.Value(nil)
	for _, d := range diags {
		d.EvalContext, d.Expression = nil, nil
		if d.Severity == hcl.DiagError {
			d.Detail += " Values must be written out: they cannot refer to anything or call functions."
		}
	}
	r.diags = append(r.diags, diags...)
	if diags.HasErrors() {
		r.unreadable(r.vars[name])
		return
	}
	r.out.ByName[name] = v
}
