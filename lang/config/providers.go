package config

import (
	"fmt"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"

	"plumb/lang/diagfmt"
)

// CheckProviders holds required_providers of every module against the providers at hand, by name with their versions. A version
// before a release ("0.2.0-dev") counts as that release, as for required_version.
func CheckProviders(c *Config, have map[string]string) hcl.Diagnostics {
	var diags hcl.Diagnostics
	report := func(at hcl.Range, summary, format string, args ...any) {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()})
	}
	seen := map[hcl.Range]bool{} // a folder that is called twice is told of once
	var walk func(m *Module)
	walk = func(m *Module) {
		for _, name := range sortedKeys(m.Settings.RequiredProviders) {
			want := m.Settings.RequiredProviders[name]
			if seen[want.Range] {
				continue
			}
			seen[want.Range] = true
			version, ok := have[name]
			if !ok {
				report(want.Range, "Unknown provider", "There is no provider %q in this Plumb.%s All of them are built in.", name, diagfmt.DidYouMean(name, sortedKeys(have)))
				continue
			}
			constraint, err := goversion.NewConstraint(want.Text)
			if err != nil {
				continue // loading has said so
			}
			v, err := goversion.NewVersion(version)
			switch {
			case err != nil:
				report(want.Range, "Unknown provider version", "Provider %s says that its version is %q, which is not a version: this is a bug in that provider.", name, version)
			case !constraint.Check(v.Core()):
				report(want.Range, "Unsupported provider version", "Provider %s %s is required, and this Plumb has %s. Providers are built in: use a Plumb that has it.", name, want.Text, version)
			}
		}
		for _, name := range sortedKeys(m.Calls) {
			if called := m.Calls[name].Module; called != nil {
				walk(called)
			}
		}
	}
	walk(c.Root)
	return diags
}
