package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
)

// blocks are all of the schema's, by a name for messages.
func blocks(name string, b *schema.Block, into map[string]*schema.Block) {
	into[name] = b
	for n, inner := range b.Blocks {
		blocks(name+"."+n, &inner.Block, into)
	}
}

func TestSchemaDefaultsAreValid(t *testing.T) {
	all := map[string]*schema.Block{}
	blocks("benchmark", Schema(&schema.Block{Description: "A load."}), all)
	for name, m := range Methods() {
		blocks(name, m, all)
	}
	for block, b := range all {
		if b.Description == "" {
			t.Errorf("%s has no description", block)
		}
		for name, a := range b.Attributes {
			if a.Description == "" || !a.Optional && !a.Required {
				t.Errorf("%s.%s has no description, or is neither optional nor required", block, name)
			}
			if a.Default == cty.NilVal {
				continue
			}
			if !a.Default.Type().Equals(a.Type) {
				t.Errorf("%s.%s: default of type %s", block, name, a.Default.Type().FriendlyName())
			}
			if a.Validate != nil && a.Validate(a.Default) != nil {
				t.Errorf("%s.%s: its default is refused: %v", block, name, a.Validate(a.Default))
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	empty := cty.NullVal(cty.EmptyObject)
	for method := range Methods() {
		s, err := decode(&eval.Benchmark{Method: method, Config: empty, MethodCfg: empty}, nil)
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		if !cmp.Equal(s.sizes, []int{64, 128, 256, 512, 1024, 1280, 1518}) || s.plan.maxLoss != nil || !s.observe || s.tolerance != 0.05 || s.unsteady != 0.05 {
			t.Errorf("%s: %+v", method, s)
		}
		// A plain block of RFC 2544's methods leaves nothing out.
		if said := strings.Join(s.phases(false, nil), " "); rfc2544(method) && strings.Contains(said, "shortened") {
			t.Errorf("%s: %s", method, said)
		}
		if len(s.rows) < 10 {
			t.Errorf("%s: settings %q", method, s.rows)
		}
	}
}

func TestRefusedTogether(t *testing.T) {
	text, num := cty.StringVal, cty.NumberIntVal
	for _, tc := range []struct {
		method          string
		traffic, config map[string]cty.Value
		err             string
	}{
		{method: "continuous", traffic: map[string]cty.Value{"frame_sizes": numbers(64), "imix": numbers(64)}, err: "frame_sizes and imix exclude each other: a mix is measured in a benchmark of its own"},
		{method: "continuous", traffic: map[string]cty.Value{"headers": text("l2"), "vary": text("ip")}, err: `vary = "ip" needs headers with IP addresses, not "l2"`},
		{method: "continuous", traffic: map[string]cty.Value{"vary": text("port")}, err: `vary = "port" needs headers with ports, udp, udp6 or tcp, not "ipv4"`},
		{method: "continuous", traffic: map[string]cty.Value{"headers": text("ipv6"), "dst_ip": text("198.18.0.1")}, err: `dst_ip 198.18.0.1 is not of the family of headers = "ipv6"`},
		{method: "continuous", traffic: map[string]cty.Value{"headers": text("udp6")}, err: "a frame of 64 bytes is too short: the headers alone take 66 (Ethernet with FCS, udp6)"},
		{method: "continuous", traffic: map[string]cty.Value{"vlans": numbers(1, 2, 3)}, err: "vlans: 3 VLAN tags; there can be one or two"},
		{method: "continuous", traffic: map[string]cty.Value{"vxlan": cty.ObjectVal(map[string]cty.Value{"vni": num(7)})}, err: "a frame of 64 bytes is too short: the headers alone take 88 (Ethernet with FCS, ipv4, vxlan)"},
		{method: "continuous", config: map[string]cty.Value{"burst": num(16)}, err: "burst needs a load that it is kept on average to; at max, frames are back to back anyway"},
		{method: "soak", config: map[string]cty.Value{"load": text("1k"), "share": num(50)}, err: "load and share exclude each other: the load is given, or a share of the throughput"},
		{method: "soak", config: map[string]cty.Value{"throughput": text("1k")}, err: "throughput is of no use without share, which is a share of it"},
		{method: "back_to_back", config: map[string]cty.Value{"throughput": text("1k")},
			err: "the greatest rate is not known, which bursts are sent at: set traffic.line_rate or max_load, or let the throughput be searched without search.max_load"},
		{method: "throughput", config: map[string]cty.Value{"min_load": text("2k"), "max_load": text("1k")}, err: "the greatest load, 1000 fps, is below the least, 2000 fps"},
		{method: "latency", config: map[string]cty.Value{"search": cty.ObjectVal(map[string]cty.Value{"trial": text("90s")})},
			err: "search: trials of 1m30s in the search and 1m0s at last; the first is above 0 and at most the second"},
		{method: "ndr_pdr", config: map[string]cty.Value{"sum": text("500ms")}, err: "goal NDR: the durations are initial 1s, final 1s, sum 500ms; each is at most the next, and final is above 0\ngoal PDR: the durations are initial 1s, final 1s, sum 500ms; each is at most the next, and final is above 0"},
	} {
		traffic := tc.traffic
		if traffic == nil {
			traffic = map[string]cty.Value{"frame_sizes": numbers(64)}
		}
		b := &eval.Benchmark{Method: tc.method, Config: cty.ObjectVal(map[string]cty.Value{"traffic": cty.ObjectVal(traffic)}), MethodCfg: cty.EmptyObjectVal}
		if tc.config != nil {
			b.MethodCfg = cty.ObjectVal(tc.config)
		}
		if _, err := decode(b, nil); err == nil || err.Error() != tc.err {
			t.Errorf("%s: %v, want %s", tc.method, err, tc.err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	traffic := Schema(nil).Blocks["traffic"].Attributes
	for _, tc := range []struct {
		a    *schema.Attribute
		v    cty.Value
		want string
	}{
		{traffic["frame_sizes"], numbers(64, 63), "63 is not a whole number from 64 to 9216"},
		{traffic["frame_sizes"], cty.ListVal([]cty.Value{cty.NumberFloatVal(64.5)}), "64.5 is not a whole number from 64 to 9216"},
		{traffic["frame_sizes"], cty.ListValEmpty(cty.Number), "the list is empty; nothing would be measured"},
		{traffic["frame_sizes"], cty.ListVal([]cty.Value{cty.UnknownVal(cty.Number), cty.NumberIntVal(64)}), ""},
		{traffic["flows"], numbers(0), "0 is not a whole number from 1 to 16000000"},
		{traffic["src_mac"], cty.StringVal("02:00:00:00:00:0g"), `"02:00:00:00:00:0g" is not a MAC address such as 02:00:00:00:00:01`},
		{traffic["src_mac"], cty.StringVal("02:00:00:00:00:0A"), ""},
		{traffic["line_rate"], cty.StringVal("10G"), ""},
		{traffic["line_rate"], cty.StringVal("fast"), `"fast" is not a bit rate such as 10G or 25G`},
		{Schema(nil).Attributes["warm_up"], cty.StringVal("-1s"), "-1s is negative"},
		{Schema(nil).Attributes["warm_up"], cty.StringVal("ten"), `"ten" is not a duration; write a number with a unit, such as 500ms, 10s or 2m`},
		{Schema(nil).Attributes["repeat"], cty.NumberIntVal(0), "0 is not a whole number from 1 to 1000"},
		{Methods()["continuous"].Attributes["load"], cty.StringVal("0"), `"0" is not a load; want max, or at least one frame per second such as 1000000, 250k or 1.5M`},
		{Methods()["continuous"].Attributes["max_loss"], cty.NumberIntVal(101), "101 is not between 0 and 100"},
	} {
		got := ""
		if err := tc.a.Validate(tc.v); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%#v: %q, want %q", tc.v, got, tc.want)
		}
	}
}

func TestParseLoad(t *testing.T) {
	for in, want := range map[string]float64{"max": 0, "1000000": 1e6, "250k": 250e3, "1.5M": 1.5e6, "2G": 2e9, "1e6": 1e6} {
		if got, err := parseLoad(in); err != nil || got != want {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
}

func FuzzParseLoad(f *testing.F) {
	for _, s := range []string{"max", "1k", "1.5M", "NaN", "Infk", "-1", "0x1p10", "1_000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := parseLoad(s); err == nil && (v < 0 || math.IsNaN(v) || v > 1e15) {
			t.Errorf("%q is %v", s, v)
		}
	})
}

// RFC 2544 appendix B, and its sums for faster links.
func TestLineRateFPS(t *testing.T) {
	for _, tc := range []struct {
		bps  float64
		size int
		want float64
	}{{10e6, 64, 14880}, {10e6, 1518, 812}, {1e9, 64, 1488095}, {10e9, 64, 14880952}, {10e9, 1280, 961538}, {100e9, 1518, 8127438}, {25e9, 9000, 346452}} {
		if got := LineRateFPS(tc.bps, tc.size); got != tc.want {
			t.Errorf("%v at %v: %v, want %v", tc.size, tc.bps, got, tc.want)
		}
	}
}

func TestSummarize(t *testing.T) {
	pmd := func(core string, busy float64) []providers.Observation {
		return []providers.Observation{{Host: "dut", Kind: "pmd", Subject: core, Metrics: []providers.Metric{{Name: "busy", Value: busy, Unit: "%"}}}}
	}
	trials := []Trial{
		{FrameSize: 64, Flows: 1, RxRate: 10, TxRate: 20, LossRatio: 0.5, Verdict: Pass, Observations: pmd("core 1", 99)},
		{FrameSize: 64, Flows: 1, RxRate: 1e9, Verdict: Invalid, Observations: pmd("core 2", 100)},
		{FrameSize: 64, Flows: 1, RxRate: 14, TxRate: 20, LossRatio: 0.3, Verdict: Fail, Observations: pmd("core 1", 97)},
		{FrameSize: 64, Flows: 1, RxRate: 12, TxRate: 22, LossRatio: 0.4, Verdict: Pass, Observations: pmd("core 1", 98)},
		{FrameSize: 128, Flows: 1, RxRate: 4, Verdict: Pass, Observations: pmd("core 1", 90)},
		{FrameSize: 128, Flows: 1, RxRate: 8, Verdict: Pass},
		{FrameSize: 256, Flows: 1, Verdict: Invalid},
	}
	want := []Summary{
		{FrameSize: 64, Flows: 1, Trials: 3, Invalid: 1, RxMedian: 12, RxMin: 10, RxMax: 14, RxCV: 2. / 12, RxLow: 7.032, RxHigh: 16.968, TxMedian: 20, LossMedian: 0.4, Bottleneck: "PMD core 1 busy 98 %"},
		{FrameSize: 128, Flows: 1, Trials: 2, RxMedian: 6, RxMin: 4, RxMax: 8, RxCV: math.Sqrt(8) / 6, RxLow: 6 - 12.706*2, RxHigh: 6 + 12.706*2, Unsteady: true},
		{FrameSize: 256, Flows: 1, Invalid: 1},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b) })
	if d := cmp.Diff(want, summarize(trials, false, 0.2), near); d != "" {
		t.Error(d)
	}
	searched := []Summary{{FrameSize: 64, Flows: 1, Trials: 3, Invalid: 1, Bottleneck: "PMD core 1 busy 98 %"}, {FrameSize: 128, Flows: 1, Trials: 2}, {FrameSize: 256, Flows: 1, Invalid: 1}}
	if d := cmp.Diff(searched, summarize(trials, true, 0.2)); d != "" {
		t.Error(d)
	}
}
