package plan

import (
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/stages/internal/value"
)

// checkVersions finds arguments of an instance that the software of its host is too old for (schema.Attribute.Since): Open vSwitch takes keys that it
// does not know without a word, and what is measured then is not what the configuration says. What is not installed has no version, and is not judged.
func (ps *pass) checkVersions(n *node, h *hostClaims) {
	if h.facts == nil || n.inst == nil || n.desired == cty.NilVal || n.desired.IsNull() || !n.desired.IsKnown() {
		return
	}
	at := ps.argument(n)
	eachSince(&n.schema.Block, n.desired, nil, func(path cty.Path, since string) {
		product, least, _ := strings.Cut(since, " ")
		want, err := version.NewVersion(least)
		if err != nil {
			return // not a version: a kernel option, say, which the provider knows
		}
		have, err := version.NewVersion(plainVersion(h.facts.Versions[strings.ToLower(product)]))
		if err != nil || !have.Core().LessThan(want) {
			return
		}
		ps.report(errorAt(at(path), product+" is too old", "%s of %s needs %s, and host.%s has %s %s, which would ignore it. Leave it out, or install a newer %s.",
			pathText(value.PathOf(path)), n.addr, since, h.name, product, have, product))
	})
}

// eachSince calls f for every argument that is set and has a Since.
func eachSince(b *schema.Block, v cty.Value, at cty.Path, f func(cty.Path, string)) {
	for name, a := range b.Attributes {
		if e := v.GetAttr(name); a.Since != "" && e.IsKnown() && !e.IsNull() {
			f(at.GetAttr(name), a.Since)
		}
	}
	for name, n := range b.Blocks {
		e := v.GetAttr(name)
		if !e.IsKnown() || e.IsNull() {
			continue
		}
		if n.Nesting == schema.Single {
			eachSince(&n.Block, e, at.GetAttr(name), f)
			continue
		}
		for it := e.ElementIterator(); it.Next(); {
			k, inner := it.Element()
			eachSince(&n.Block, inner, at.GetAttr(name).Index(k), f)
		}
	}
}

// plainVersion takes off what a distribution adds: 3.1.0-2+deb12u1 is 3.1.0.
func plainVersion(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i >= 0 {
		return s[:i]
	}
	return s
}
