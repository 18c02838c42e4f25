package config

import (
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

var callSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{
		{Name: "source", Required: true}, {Name: "version"}, {Name: "providers"},
		{Name: "count"}, {Name: "for_each"}, {Name: "depends_on"},
	},
}

// decodeCall decodes a module block. Source stays "" when it cannot be used; the module is then empty.
func (l *loader) decodeCall(m *Module, b *hcl.Block) {
	if !l.validName(b, 0, "name for a module") {
		return
	}
	c := &Call{Name: b.Labels[0], Range: b.DefRange}
	var content *hcl.BodyContent
	content, c.Inputs = l.partial(b.Body, callSchema)
	c.SourceAt = b.DefRange
	if attr, ok := content.Attributes["source"]; ok {
		c.SourceAt = attr.Expr.Range()
	}
	c.Source = l.source(content.Attributes["source"])
	if attr, ok := content.Attributes["version"]; ok {
		l.errorf(attr.NameRange, "Argument not supported", "version belongs to modules from a registry, which Plumb does not have. A module from a local path has the version of the configuration itself.")
	}
	if attr, ok := content.Attributes["providers"]; ok {
		l.errorf(attr.NameRange, "Argument not supported", "Plumb's providers are not handed to modules: the hosts of the root module are seen in all modules.")
	}
	c.Count, c.ForEach = l.repetition(content)
	c.DependsOn = l.dependsOn(content.Attributes["depends_on"])
	put(l, m.Calls, c.Name, "module \""+c.Name+"\"", c, b.DefRange, func(x *Call) hcl.Range { return x.Range })
}

// source decodes a module's source: a local path.
func (l *loader) source(attr *hcl.Attribute) string {
	s, ok := l.staticString(attr)
	if !ok {
		return ""
	}
	at := attr.Expr.Range()
	clean := filepath.ToSlash(filepath.Clean(filepath.FromSlash(s)))
	switch {
	case s == "." || s == ".." || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../"):
		if clean == "." {
			l.errorf(at, "Module call cycle", "Source %q is the folder of the module that calls it. A module cannot contain itself.", s)
			return ""
		}
		return s
	case strings.HasPrefix(s, "git::") || strings.HasPrefix(s, "git@") || strings.HasPrefix(s, "github.com/") || strings.Contains(s, "://"):
		l.errorf(at, "Module source not supported yet", "Modules from git or the network are not supported yet by this version of Plumb. Clone the module and name its folder, for example \"./modules/pvp\".")
	case strings.HasPrefix(s, "/"):
		l.errorf(at, "Invalid module source", "Source %q is an absolute path, which would be another folder on another machine. Write a path relative to this file's folder, beginning with ./ or ../.", s)
	default:
		l.errorf(at, "Invalid module source", "Source %q is not a local path. Write a path relative to this file's folder, beginning with ./ or ../, for example \"./%s\".", s, strings.TrimLeft(s, "./"))
	}
	return ""
}
