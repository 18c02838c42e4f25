package openflow

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Set is a set of flows, one for each key: of two flows with one key the later stands, as in a switch.
type Set map[Key]Flow

// NewSet makes a set.
func NewSet(flows []Flow) Set {
	s := make(Set, len(flows))
	for _, f := range flows {
		s[f.Key] = f
	}
	return s
}

// Diff says what separates two sets: flows of want that have lacks or has otherwise, and flows of have that want has not at all. Both
// are sorted.
func Diff(want, have Set) (missing, extra []Flow) {
	for k, f := range want {
		if have[k] != f {
			missing = append(missing, f)
		}
	}
	for k, f := range have {
		if _, ok := want[k]; !ok {
			extra = append(extra, f)
		}
	}
	slices.SortFunc(missing, compare)
	slices.SortFunc(extra, compare)
	return missing, extra
}

func compare(a, b Flow) int {
	if a.Table != b.Table {
		return a.Table - b.Table
	}
	if a.Priority != b.Priority {
		return b.Priority - a.Priority
	}
	return strings.Compare(a.Match, b.Match)
}

// Sorted lists the flows by table, falling priority and match.
func (s Set) Sorted() []Flow {
	out := make([]Flow, 0, len(s))
	for _, f := range s {
		out = append(out, f)
	}
	slices.SortFunc(out, compare)
	return out
}

// Digest is a SHA-256 over the flows, independent of their order.
func (s Set) Digest() string {
	h := sha256.New()
	for _, f := range s.Sorted() {
		h.Write([]byte(f.String()))
		h.Write([]byte{'\n'})
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
