package plan

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
)

// Bytes around the payload of a frame: addresses, type and FCS (IEEE 802.3), and one VLAN tag (802.1Q).
const (
	frameBytes = 18
	tagBytes   = 4
)

// checkFrames finds benchmarks whose frames a hop of their path does not take: it would drop every one, and a search would call that the switch's rate.
func (ps *pass) checkFrames(hosts map[string]*hostClaims) {
	list, diags := ps.ev.Benchmarks()
	ps.report(diags...)
	mtu := map[string]int{}
	for _, h := range hosts {
		for _, c := range h.list {
			if c.claims.MTU > 0 {
				mtu[c.addr] = c.claims.MTU
			}
		}
	}
	for _, b := range list {
		size, payload := greatestFrame(b)
		for i, hop := range b.Path {
			if most := mtu[hop.String()]; most > 0 && payload > most && !slices.Contains(b.Path[:i], hop) {
				ps.report(errorAt(b.Range.Ptr(), "Frames are larger than the path takes", "%s sends frames of %d bytes, whose payload is %d bytes, and %s takes %d at most (its MTU): it would drop them all. Set mtu = %d there, or leave the size out.",
					b.Addr, size, payload, hop, most, payload))
			}
		}
	}
}

// greatestFrame is the largest size of frames with FCS, and what of it counts against an MTU; 0 for what is not known.
func greatestFrame(b *eval.Benchmark) (size, payload int) {
	config, _ := b.Config.UnmarkDeep()
	if !config.IsKnown() || config.IsNull() || !config.Type().HasAttribute("traffic") {
		return 0, 0
	}
	traffic := config.GetAttr("traffic")
	if !traffic.IsKnown() || traffic.IsNull() {
		return 0, 0
	}
	for _, name := range []string{"frame_sizes", "imix"} {
		size = max(size, slices.Max(append(wholes(traffic.GetAttr(name)), 0)))
	}
	return size, size - frameBytes - tagBytes*len(wholes(traffic.GetAttr("vlans")))
}

// wholes are the whole numbers of a list, those that are known.
func wholes(list cty.Value) []int {
	if !list.IsKnown() || list.IsNull() {
		return nil
	}
	var out []int
	for _, e := range list.AsValueSlice() {
		if e.IsKnown() && !e.IsNull() {
			n, _ := e.AsBigFloat().Int64()
			out = append(out, int(n))
		}
	}
	return out
}
