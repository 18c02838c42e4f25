package plan

import (
	"fmt"
	"runtime"
	"testing"

	"plumb/lang/addrs"
	"plumb/stages/state"
)

const twoLayers = `
resource "store" "a" {
  count = 2000
  input = "a${count.index}"
}
resource "store" "b" {
  count = 2000
  input = "${store.a[count.index].id}-b"
}
`

// BenchmarkPlan plans 4,000 instances in two layers, the second referring to the first: all new, and with nothing to change. peak-MB is the heap at the end,
// before any of it is given back.
func BenchmarkPlan(b *testing.B) {
	for _, tc := range []struct {
		name  string
		prior func(testing.TB) *state.State
	}{
		{"create", func(testing.TB) *state.State { return nil }},
		{"no-op", func(t testing.TB) *state.State { return settled(t, twoLayers) }},
	} {
		b.Run(tc.name, func(b *testing.B) {
			prior := tc.prior(b)
			cfg := load(b, twoLayers)
			b.ReportAllocs()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				in := testInput(b, &world{free: 1024}, "")
				in.Config, in.Prior = cfg, prior
				r, diags := Make(b.Context(), in)
				if diags.HasErrors() || len(r.Plan.Changes) != 4000 {
					b.Fatal(diags, len(r.Plan.Changes))
				}
				if prior != nil && r.Plan.HasChanges() {
					b.Fatal("the plan is not empty: ", r.Plan.Summary())
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapSys)/1e6, "heap-MB")
		})
	}
}

// settled is the state after an apply that has put everything as the configuration wants it: what one instance reports is what others were given.
func settled(t testing.TB, src string) *state.State {
	st := applied(t, src)
	for _, i := range st.Instances {
		if i.Addr.Resource.Name == "b" {
			n, _ := i.Addr.Key.Int()
			a := addrs.Resource{Type: "store", Name: "a"}.Instance(addrs.IntKey(n))
			i.Attributes = fmt.Appendf(nil, `{"id":"b","input":{"value":"id of %s-b","type":"string"},"output":{"value":"x","type":"string"},"secret":null,"trigger":null}`, a)
		}
	}
	return st
}
