package config

import (
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// pathString prints a path inside a value as an expression would: .ports[0].name, without the name it starts from.
func pathString(p cty.Path) string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + s.Name)
		case cty.IndexStep:
			switch {
			case !s.Key.IsKnown() || s.Key.IsNull() || s.Key.IsMarked():
				b.WriteString("[...]")
			case s.Key.Type() == cty.String:
				b.WriteString("[" + strconv.Quote(s.Key.AsString()) + "]")
			case s.Key.Type() == cty.Number:
				b.WriteString("[" + s.Key.AsBigFloat().Text('f', -1) + "]")
			default: // an element of a set has no name
				b.WriteString("[...]")
			}
		}
	}
	return b.String()
}
