package bench

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
)

func TestSchemaDefaultsAreValid(t *testing.T) {
	traffic := Schema().Blocks["traffic"].Block
	for _, b := range []*schema.Block{Schema(), &traffic, Methods()["continuous"]} {
		if b.Description == "" {
			t.Error("a block without description")
		}
		for name, a := range b.Attributes {
			if a.Description == "" || !a.Optional {
				t.Errorf("%s has no description or is not optional", name)
			}
			if a.Default == cty.NilVal {
				continue
			}
			if !a.Default.Type().Equals(a.Type) {
				t.Errorf("%s: default of type %s", name, a.Default.Type().FriendlyName())
			}
			if a.Validate != nil && a.Validate(a.Default) != nil {
				t.Errorf("%s: its default is refused: %v", name, a.Validate(a.Default))
			}
		}
	}
	s, err := decode(&eval.Benchmark{Method: "continuous", Config: cty.NullVal(cty.EmptyObject), MethodCfg: cty.NullVal(cty.EmptyObject)})
	if err != nil || !cmp.Equal(s.sizes, []int{64, 128, 256, 512, 1024, 1280, 1518}) || s.repeat != 1 || s.load != 0 || s.maxLoss != nil || !s.observe || s.tolerance != 0.05 {
		t.Errorf("%+v %v", s, err)
	}
}

func TestSchemaRefuses(t *testing.T) {
	traffic := Schema().Blocks["traffic"].Attributes
	for _, tc := range []struct {
		a    *schema.Attribute
		v    cty.Value
		want string
	}{
		{traffic["frame_sizes"], numbers(64, 63), "63 is not a whole number from 64 to 16000"},
		{traffic["frame_sizes"], cty.ListVal([]cty.Value{cty.NumberFloatVal(64.5)}), "64.5 is not a whole number from 64 to 16000"},
		{traffic["frame_sizes"], cty.ListValEmpty(cty.Number), "the list is empty; nothing would be measured"},
		{traffic["frame_sizes"], cty.ListVal([]cty.Value{cty.UnknownVal(cty.Number), cty.NumberIntVal(64)}), ""},
		{traffic["flows"], numbers(0), "0 is not a whole number from 1 to 16000000"},
		{traffic["src_mac"], cty.StringVal("02:00:00:00:00:0g"), `"02:00:00:00:00:0g" is not a MAC address such as 02:00:00:00:00:01`},
		{traffic["src_mac"], cty.StringVal("02:00:00:00:00:0A"), ""},
		{traffic["line_rate"], cty.StringVal("10G"), ""},
		{traffic["line_rate"], cty.StringVal("fast"), `"fast" is not a bit rate such as 10G or 25G`},
		{Schema().Attributes["warm_up"], cty.StringVal("-1s"), "-1s is negative"},
		{Schema().Attributes["warm_up"], cty.StringVal("ten"), `"ten" is not a duration; write a number with a unit, such as 500ms, 10s or 2m`},
		{Schema().Attributes["repeat"], cty.NumberIntVal(0), "0 is not a whole number from 1 to 1000"},
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
	got := summarize([]Trial{
		{FrameSize: 64, Flows: 1, RxRate: 10, TxRate: 20, LossRatio: 0.5, Verdict: Pass, Observations: pmd("core 1", 99)},
		{FrameSize: 64, Flows: 1, RxRate: 1e9, Verdict: Invalid, Observations: pmd("core 2", 100)},
		{FrameSize: 64, Flows: 1, RxRate: 14, TxRate: 20, LossRatio: 0.3, Verdict: Fail, Observations: pmd("core 1", 97)},
		{FrameSize: 64, Flows: 1, RxRate: 12, TxRate: 22, LossRatio: 0.4, Verdict: Pass, Observations: pmd("core 1", 98)},
		{FrameSize: 128, Flows: 1, RxRate: 4, Verdict: Pass, Observations: pmd("core 1", 90)},
		{FrameSize: 128, Flows: 1, RxRate: 8, Verdict: Pass},
		{FrameSize: 256, Flows: 1, Verdict: Invalid},
	})
	want := []Summary{
		{FrameSize: 64, Flows: 1, Trials: 3, Invalid: 1, RxMedian: 12, RxMin: 10, RxMax: 14, RxCV: 2. / 12, TxMedian: 20, LossMedian: 0.4, Bottleneck: "PMD core 1 busy 98 %"},
		{FrameSize: 128, Flows: 1, Trials: 2, RxMedian: 6, RxMin: 4, RxMax: 8, RxCV: math.Sqrt(8) / 6},
		{FrameSize: 256, Flows: 1, Invalid: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
