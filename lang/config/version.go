package config

import (
	"strings"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var settingsSniff = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "plumb"}}}

var versionSniff = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "required_version"}}}

// checkVersion looks into the files for required_version and nothing else, records it, and says whether this Plumb is one that
// the module is written for. Everything else about the plumb block is checked by decodeSettings.
func (l *loader) checkVersion(m *Module, files []file) bool {
	fits := true
	for _, f := range files {
		content, _, _ := f.body.PartialContent(settingsSniff)
		for _, b := range content.Blocks {
			inner, _, _ := b.Body.PartialContent(versionSniff)
			attr, ok := inner.Attributes["required_version"]
			if !ok {
				continue
			}
			c, ok := l.constraint(attr.Expr, "required_version")
			if !ok {
				continue
			}
			m.Settings.RequiredVersion = append(m.Settings.RequiredVersion, c)
			fits = l.satisfied(m, c) && fits
		}
	}
	return fits
}

// satisfied holds the running version against the constraint. A version before a release ("0.2.0-dev") counts as that release.
func (l *loader) satisfied(m *Module, c Constraint) bool {
	running, err := goversion.NewVersion(l.version)
	if err != nil {
		l.errorf(c.Range, "Unknown Plumb version", "This Plumb was built with version %q, which is not a version, so that required_version cannot be checked. Build it from a release.", l.version)
		return false
	}
	want, err := goversion.NewConstraint(c.Text)
	if err != nil {
		return false // constraint() has said so
	}
	if want.Check(running.Core()) {
		return true
	}
	l.errorf(c.Range, "Unsupported Plumb version", "Plumb %s is required by %s, and this is Plumb %s. Use a Plumb of that version, or change required_version if you know that the configuration works with this one.",
		c.Text, name(m), l.version)
	return false
}

// constraint decodes a version constraint, which must be a plain string.
func (l *loader) constraint(expr hcl.Expression, what string) (Constraint, bool) {
	c := Constraint{Range: expr.Range()}
	v, diags := expr.Value(nil)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		l.errorf(c.Range, "Invalid version constraint", "%s must be a string such as \">= 0.2\" or \"~> 0.2.1\", written out: it is read before anything is evaluated.", what)
		return c, false
	}
	c.Text = v.AsString()
	if _, err := goversion.NewConstraint(c.Text); err != nil || strings.TrimSpace(c.Text) == "" {
		l.errorf(c.Range, "Invalid version constraint", "%q is not a version constraint. Write for example \">= 0.2\", \"~> 0.2.1\" or \">= 0.2, < 0.4\".", c.Text)
		return c, false
	}
	return c, true
}
