package ovs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers/internal/openflow"
)

// BenchmarkCompareFlows is what a plan does with 100000 generated flows that are there: it parses what is wanted and what the bridge
// printed, compares them, and makes the digest.
func BenchmarkCompareFlows(b *testing.B) {
	g := generateBlock()
	obj := desired(&(flowsType{}).Schema().Block, attrs{"bridge": str("br0"), "generate": cty.ListVal([]cty.Value{desired(&g, attrs{"count": num(100000), "src": str("10.0.0.0"), "actions": str("output:2")})})})
	want := wantedOf(obj)
	var dump strings.Builder
	_ = want.all(func(l string) error {
		_, err := fmt.Fprintln(&dump, " "+l)
		return err
	})
	br := &bridge{name: "br0"}
	s := &session{dumps: map[string]string{"br0": dump.String()}}
	b.ReportAllocs()
	for b.Loop() {
		wantSet, have, err := s.flowsNow(b.Context(), br, want)
		if err != nil {
			b.Fatal(err)
		}
		if missing, extra := openflow.Diff(wantSet, have); len(missing)+len(extra) > 0 {
			b.Fatalf("%d missing, %d extra", len(missing), len(extra))
		}
		summary(want)
	}
}
