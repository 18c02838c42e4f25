package value

import (
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// shortest is how long a secret text is at least for it to be looked for within other texts; a shorter one counts only where it is the whole text.
const shortest = 4

// Echoes says where v repeats a secret: what stands in from at the sensitive paths. A provider answers without marks, and may compute an attribute from
// one that is sensitive, so that the secret would be shown there. Booleans and empty texts are no secrets. Both values are unmarked, and may
// be null or unknown in parts, which hide nothing.
func Echoes(from cty.Value, sensitive [][]string, v cty.Value) [][]string {
	var texts []string
	var others []cty.Value
	for _, p := range sensitive {
		part, ok := At(from, p)
		if !ok {
			continue
		}
		leaves(part, func(_ cty.Path, leaf cty.Value) {
			switch {
			case leaf.Type() == cty.String && leaf.AsString() != "":
				texts = append(texts, leaf.AsString())
			case leaf.Type() == cty.Number:
				others = append(others, leaf)
			}
		})
	}
	if len(texts)+len(others) == 0 {
		return nil
	}
	var at [][]string
	leaves(v, func(p cty.Path, leaf cty.Value) {
		if repeats(leaf, texts, others) {
			at = append(at, PathOf(p))
		}
	})
	return sortPaths(at)
}

func repeats(leaf cty.Value, texts []string, others []cty.Value) bool {
	if leaf.Type() == cty.String {
		s := leaf.AsString()
		for _, t := range texts {
			if s == t || len(t) >= shortest && strings.Contains(s, t) {
				return true
			}
		}
		return false
	}
	for _, o := range others {
		if leaf.RawEquals(o) {
			return true
		}
	}
	return false
}

// leaves calls f for every primitive value that is known and not null.
func leaves(v cty.Value, f func(cty.Path, cty.Value)) {
	if v == cty.NilVal {
		return
	}
	_ = cty.Walk(v, func(p cty.Path, v cty.Value) (bool, error) {
		if !v.IsKnown() || v.IsNull() {
			return false, nil
		}
		if v.Type().IsPrimitiveType() {
			f(p.Copy(), v)
		}
		return true, nil
	})
}
