package diagfmt

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
)

// Consolidate makes one of all warnings that say the same (by their summary) of the same place, as a block with for_each
// gives them for every instance. The first stays whole and counts the others. Errors are all kept.
func Consolidate(diags hcl.Diagnostics) hcl.Diagnostics {
	type key struct {
		summary string
		at      hcl.Range
	}
	first := map[key]int{} // index into out
	more := map[key]int{}
	var out hcl.Diagnostics
	for _, d := range diags {
		if d.Severity != hcl.DiagWarning || d.Subject == nil {
			out = append(out, d)
			continue
		}
		k := key{d.Summary, *d.Subject}
		if _, seen := first[k]; seen {
			more[k]++
			continue
		}
		first[k] = len(out)
		out = append(out, d)
	}
	for k, n := range more {
		c := *out[first[k]]
		c.Detail += fmt.Sprintf("\n\n(and %d more like this)", n)
		out[first[k]] = &c
	}
	return out
}
