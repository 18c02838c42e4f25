package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"plumb/lang/addrs"
)

// maxDepth ends chains of modules that call one another through symbolic links, where every folder has a new name.
const maxDepth = 32

// Load reads the configuration whose root module is the folder dir, with every module that it calls. version is
// that of the running Plumb, which required_version is held against.
//
// The Config is returned together with errors as far as it could be read; it is never nil, and its Sources
// always hold what the diagnostics quote.
func Load(dir, version string) (*Config, hcl.Diagnostics) { return LoadFrom(OS{}, dir, version) }

// LoadSources reads a configuration from its sources alone (Config.Sources of an earlier Load of the same dir).
func LoadSources(sources map[string][]byte, dir, version string) (*Config, hcl.Diagnostics) {
	return LoadFrom(Memory(sources), dir, version)
}

// LoadFrom reads a configuration from files.
func LoadFrom(files Files, dir, version string) (*Config, hcl.Diagnostics) {
	l := &loader{files: files, version: version, sources: map[string][]byte{}}
	root := l.module(filepath.Clean(dir), nil, nil)
	return &Config{Root: root, Sources: l.sources}, l.diags
}

// loader collects what is read and what is wrong with it.
type loader struct {
	files   Files
	version string
	sources map[string][]byte
	diags   hcl.Diagnostics
}

// file is one parsed file.
type file struct {
	name string
	body hcl.Body
}

func (l *loader) errorf(at hcl.Range, summary, format string, args ...any) {
	l.diags = append(l.diags, &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   fmt.Sprintf(format, args...),
		Subject:  at.Ptr(),
	})
}

// module reads the folder dir as the module that call asks for; call is nil for the root.
func (l *loader) module(dir string, parent *Module, call *Call) *Module {
	m := newModule(dir, parent, call)
	files, ok := l.parse(m, call)
	if !ok {
		return m
	}
	for _, f := range files {
		l.decodeFile(m, f)
	}
	for _, name := range sortedKeys(m.Calls) {
		l.call(m, m.Calls[name])
	}
	return m
}

func newModule(dir string, parent *Module, call *Call) *Module {
	m := &Module{
		Dir:        dir,
		Parent:     parent,
		Settings:   Settings{RequiredProviders: map[string]Constraint{}},
		Variables:  map[string]*Variable{},
		Locals:     map[string]*Local{},
		Outputs:    map[string]*Output{},
		Calls:      map[string]*Call{},
		Resources:  map[string]*Resource{},
		Hosts:      map[string]*Host{},
		Generators: map[string]*Generator{},
		Benchmarks: map[string]*Benchmark{},
	}
	if call != nil {
		m.Addr = parent.Addr.Child(call.Name, addrs.Key{})
	}
	return m
}

// call reads the module of a call, unless that would go round in a circle.
func (l *loader) call(m *Module, c *Call) {
	if c.Source == "" {
		c.Module = newModule(m.Dir, m, c) // the source is wrong and has been reported
		return
	}
	dir := filepath.Join(m.Dir, filepath.FromSlash(c.Source))
	var way []string
	depth := 0
	for up := m; up != nil; up = up.Parent {
		depth++
		way = append(way, name(up))
		if up.Dir == dir {
			slices.Reverse(way)
			l.errorf(c.SourceAt, "Module call cycle", "Module %q is in folder %s, which is being read already: %s calls it again. A module cannot contain itself.",
				c.Name, dir, strings.Join(way, " -> "))
			c.Module = newModule(dir, m, c)
			return
		}
	}
	if depth >= maxDepth {
		l.errorf(c.SourceAt, "Modules nested too deep", "Modules are nested more than %d deep here. Perhaps a symbolic link makes folder %s contain itself.", maxDepth, dir)
		c.Module = newModule(dir, m, c)
		return
	}
	c.Module = l.module(dir, m, c)
}

func name(m *Module) string {
	if m.Addr.IsRoot() {
		return "the root module"
	}
	return m.Addr.String()
}

// parse reads and parses the module's files and checks required_version, before any syntax error is told: a file
// for a newer Plumb may well be one that this Plumb cannot read. false: nothing more can be said about the module.
func (l *loader) parse(m *Module, call *Call) ([]file, bool) {
	names, err := l.files.List(m.Dir)
	if err != nil {
		l.missing(m, call, err)
		return nil, false
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return strings.HasPrefix(n, ".") || !strings.HasSuffix(n, ".plumb.hcl") && !strings.HasSuffix(n, ".plumb.json")
	})
	if len(names) == 0 {
		l.missing(m, call, nil)
		return nil, false
	}
	slices.Sort(names)
	var files []file
	var syntax hcl.Diagnostics
	for _, n := range names {
		path := filepath.Join(m.Dir, n)
		src, err := l.files.Read(path)
		if err != nil {
			l.diags = append(l.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Cannot read file", Detail: fmt.Sprintf("File %s: %s.", path, reason(err))})
			continue
		}
		l.sources[path] = src
		f, diags := parseFile(src, path)
		syntax = append(syntax, withoutEchoes(diags)...)
		if f != nil && f.Body != nil && !(diags.HasErrors() && isJSON(n)) { // of broken JSON there is too little left
			files = append(files, file{name: path, body: f.Body})
		}
	}
	if !l.checkVersion(m, files) {
		return nil, false
	}
	l.diags = append(l.diags, syntax...)
	return files, true
}

// parseFile parses HCL's native syntax, or its JSON syntax when the name ends in .json.
func parseFile(src []byte, name string) (*hcl.File, hcl.Diagnostics) {
	if isJSON(name) {
		return hcljson.Parse(src, name)
	}
	return hclsyntax.ParseConfig(src, name, hcl.InitialPos)
}

func isJSON(name string) bool { return strings.HasSuffix(name, ".json") }

// withoutEchoes leaves out the errors that follow from one before: what the parser says of a place where the scanner has found an error already,
// and of each further line that a quotation mark which was forgotten makes part of a string.
func withoutEchoes(diags hcl.Diagnostics) hcl.Diagnostics {
	const runaway = "Invalid multi-line string"
	var out hcl.Diagnostics
	for _, d := range diags {
		echo := slices.ContainsFunc(out, func(first *hcl.Diagnostic) bool {
			return first.Subject != nil && d.Subject != nil && first.Subject.Start == d.Subject.Start || first.Summary == runaway && strings.Contains(d.Summary+d.Detail, "string") ||
				first.Summary == runaway && d.Summary == runaway
		})
		if !echo {
			out = append(out, d)
		}
	}
	return out
}

// missing reports a folder without configuration: err is nil when it is there but empty.
func (l *loader) missing(m *Module, call *Call, err error) {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "No configuration files"}
	switch {
	case err == nil:
		d.Detail = fmt.Sprintf("There are no *.plumb.hcl files in %s. Write one, or name the folder that has them with -chdir=DIR.", m.Dir)
	case errors.Is(err, fs.ErrNotExist):
		d.Detail = fmt.Sprintf("There is no folder %s.", m.Dir)
	default:
		d.Summary = "Cannot read folder"
		d.Detail = fmt.Sprintf("Folder %s: %s.", m.Dir, reason(err))
	}
	if call != nil {
		if err == nil {
			d.Detail = fmt.Sprintf("There are no *.plumb.hcl files in %s.", m.Dir)
		}
		d.Detail += fmt.Sprintf(" Module %q has source %q, which is looked for from the folder of the file that calls it.", call.Name, call.Source)
		d.Subject = call.SourceAt.Ptr()
	}
	l.diags = append(l.diags, d)
}

// reason is the error without the operation and path that an fs.PathError puts before it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
