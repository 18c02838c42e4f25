package session

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"plumb/lang/config"
	"plumb/stages/plan"
	"plumb/stages/state"
)

// SavePlan writes a plan file with the configuration and the variables' values.
func (s *Session) SavePlan(path string, p *plan.Plan) error {
	saved := plan.Saved{Plan: p, Dir: s.Dir, ConfigDir: s.Dir, Variables: s.variables}
	if s.Config != nil {
		saved.Sources = s.Config.Sources
	}
	return plan.Save(path, saved)
}

// ReadPlan reads the plan of a plan file, for showing it.
func ReadPlan(path string) (*plan.Plan, error) {
	saved, err := plan.Load(path)
	if err != nil {
		return nil, err
	}
	return saved.Plan, nil
}

// OpenSaved opens the session of a saved plan: the configuration and variables are the plan's, the state is where that configuration keeps
// it.
func OpenSaved(env Env, path string) (*Session, *plan.Plan, hcl.Diagnostics) {
	s := &Session{Env: env, Catalog: Catalog(env.Providers)}
	saved, err := plan.Load(path)
	if err != nil {
		return s, nil, errorDiag("The plan file cannot be used", err)
	}
	if saved.Plan.PlumbVersion != env.Version {
		return s, nil, errorDiag("The plan file cannot be used", fmt.Errorf("it was made by Plumb %s, and this is %s: plan again", saved.Plan.PlumbVersion, env.Version))
	}
	s.Dir, s.variables = saved.Dir, saved.Variables
	var backend *config.Backend
	var diags hcl.Diagnostics
	if len(saved.Sources) > 0 {
		s.Config, diags = config.LoadSources(saved.Sources, saved.ConfigDir, env.Version)
		if diags.HasErrors() {
			return s, nil, diags
		}
		backend = s.Config.Root.Settings.Backend
	}
	statePath, more := state.Locate(backend, saved.ConfigDir)
	if more.HasErrors() {
		return s, nil, append(diags, more...)
	}
	s.Store = s.store(statePath)
	return s, saved.Plan, diags
}
