package eval

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
)

// memo keeps what was computed for a key. No lock is held while computing, because computing asks for other values and calls
// back into the stages; two goroutines may compute the same, and then the first result stays.
type memo[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]result[V]
}

type result[V any] struct {
	value V
	diags hcl.Diagnostics
}

// get returns what is kept for k, or computes it. Every caller gets the diagnostics; dedup removes the copies.
func (c *memo[K, V]) get(k K, compute func() (V, hcl.Diagnostics)) (V, hcl.Diagnostics) {
	c.mu.Lock()
	r, ok := c.m[k]
	c.mu.Unlock()
	if ok {
		return r.value, r.diags
	}
	v, diags := compute()
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.m[k]; ok {
		return r.value, r.diags
	}
	if c.m == nil {
		c.m = map[K]result[V]{}
	}
	diags = slices.Clip(Dedup(diags))
	c.m[k] = result[V]{value: v, diags: diags}
	return v, diags
}

// Dedup leaves out diagnostics that say the same about the same place: an error in a local value comes with every object that
// refers to it. The argument may be reused.
func Dedup(diags hcl.Diagnostics) hcl.Diagnostics {
	if len(diags) < 2 {
		return diags
	}
	type key struct {
		severity        hcl.DiagnosticSeverity
		summary, detail string
		at              hcl.Range
	}
	seen := make(map[key]bool, len(diags))
	out := make(hcl.Diagnostics, 0, len(diags))
	for _, d := range diags {
		k := key{severity: d.Severity, summary: d.Summary, detail: d.Detail}
		if d.Subject != nil {
			k.at = *d.Subject
		}
		if !seen[k] {
			seen[k] = true
			out = append(out, d)
		}
	}
	return out
}

// sorted orders diagnostics as they stand in the files; those without a place come first. The argument is reused.
func sorted(diags hcl.Diagnostics) hcl.Diagnostics {
	at := func(d *hcl.Diagnostic) hcl.Range {
		if d.Subject == nil {
			return hcl.Range{}
		}
		return *d.Subject
	}
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		x, y := at(a), at(b)
		return cmp.Or(cmp.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Byte, y.Start.Byte), cmp.Compare(x.End.Byte, y.End.Byte), cmp.Compare(a.Summary, b.Summary))
	})
	return diags
}
