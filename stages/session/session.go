// Package session strings the phases together for the command line: it loads a configuration, opens its state, plans, applies,
// measures, reports. It holds no policy of its own beyond the order of things.
//
// Start reading at Open.
package session

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/apply"
	"plumb/stages/state"
)

// Env is what a session needs to know of the process that it runs in.
type Env struct {
	Dir       string // root module's folder, absolute
	Version   string // of Plumb
	Now       func() time.Time
	Providers providers.Set
	Environ   []string // for PLUMB_VAR_name
	User      string
	Hostname  string
	PID       int
	Crash     func(point string) // for tests only: told each point at which a test may end the process
}

// Emptiness says whether a session can do without configuration files.
type Emptiness bool

const (
	NotEmpty   Emptiness = false // no configuration is an error
	MayBeEmpty Emptiness = true  // the state, or this machine, is enough
)

// Session is a configuration with its variables and the place of its state. Config is nil when there are no files and that is allowed.
type Session struct {
	Env
	Config  *config.Config
	Catalog *schema.Catalog
	Store   *state.Store

	variables map[string]cty.Value
	texts     map[string][]byte // what diagnostics about values of variables quote
}

// Open loads the configuration and reads the variables; vars are -var and -var-file in the order given. A Session comes back also with errors, so that their source can be shown.
func Open(env Env, vars []config.ValueArg, empty Emptiness) (*Session, hcl.Diagnostics) {
	s := &Session{Env: env, Catalog: Catalog(env.Providers)}
	if empty == MayBeEmpty && !hasFiles(env.Dir) {
		s.Store = s.store(filepath.Join(env.Dir, state.DefaultPath))
		return s, nil
	}
	cfg, diags := config.Load(env.Dir, env.Version)
	s.Config = cfg
	if diags.HasErrors() {
		return s, diags
	}
	diags = append(diags, config.CheckProviders(cfg, s.providerVersions())...)
	path, more := state.Locate(cfg.Root.Settings.Backend, env.Dir)
	diags = append(diags, more...)
	if more.HasErrors() {
		return s, diags
	}
	s.Store = s.store(path)
	values, more := config.ReadValues(cfg.Root.Variables, config.ValueSources{Dir: env.Dir, Environ: env.Environ, Args: vars})
	s.variables, s.texts = values.ByName, values.Sources
	return s, append(diags, more...)
}

// providerVersions are the built-in providers by name, which begins the names of their types; they are of Plumb's version.
func (s *Session) providerVersions() map[string]string {
	out := map[string]string{}
	for typ := range s.Catalog.Resources {
		name, _, _ := strings.Cut(typ, "_")
		out[name] = s.Version
	}
	return out
}

// hasFiles says whether a folder has configuration files.
func hasFiles(dir string) bool {
	names, err := config.OS{}.List(dir)
	return err == nil && slices.ContainsFunc(names, func(n string) bool {
		return !strings.HasPrefix(n, ".") && (strings.HasSuffix(n, ".plumb.hcl") || strings.HasSuffix(n, ".plumb.json"))
	})
}

func (s *Session) store(path string) *state.Store {
	return state.NewStore(path, state.Env{Now: s.Now, User: s.User, Host: s.Hostname, PID: s.PID, Version: s.Version, Crash: s.Crash})
}

func (s *Session) inputs() eval.Inputs {
	return eval.Inputs{Config: s.Config, Catalog: s.Catalog, Variables: s.variables, Dir: s.Dir}
}

// Sources are the files of the configuration, for showing where a diagnostic points.
func (s *Session) Sources() map[string][]byte {
	out := map[string][]byte{}
	if s != nil {
		if s.Config != nil {
			maps.Copy(out, s.Config.Sources)
		}
		maps.Copy(out, s.texts)
	}
	return out
}

// Validate checks the configuration without looking at the state or any host.
func (s *Session) Validate() hcl.Diagnostics {
	in := s.inputs()
	in.UnknownVariables = true // values are for plan
	ev, diags := eval.New(in)
	if diags.HasErrors() {
		return diags
	}
	return append(diags, ev.Validate()...)
}

// State reads the state together with what a cut-off run has done, without a lock; nil when there is none.
func (s *Session) State() (*state.State, error) {
	st, _, err := s.Store.Recover()
	return st, err
}

// Lock opens the state for planning or changing anything; the caller closes it.
func (s *Session) Lock(ctx context.Context, timeout time.Duration, operation string) (*apply.Session, error) {
	return apply.Open(ctx, s.Store, s.Version, timeout, operation)
}

// errorDiag is a diagnostic for an error without a place in the configuration.
func errorDiag(summary string, err error) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: err.Error()}}
}
