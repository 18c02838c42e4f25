package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/providers"
)

func TestContinuousWalksSizesFlowsAndRepeats(t *testing.T) {
	m := newModel(true)
	in, j := bench(t, m, map[string]cty.Value{"frame_sizes": numbers(64, 1518), "flows": numbers(1, 1000), "headers": cty.StringVal("udp")},
		map[string]cty.Value{"repeat": cty.NumberIntVal(2), "warm_up": cty.StringVal("3s"), "drain": cty.StringVal("4s")}, nil)
	run := measure(t, in)
	b := run.Benchmarks[0]
	var got []string
	for _, tr := range b.Trials {
		got = append(got, fmt.Sprintf("%d/%d/%d %s", tr.FrameSize, tr.Flows, tr.Repeat, tr.Verdict))
	}
	want := []string{"64/1/1 PASS", "64/1/2 PASS", "64/1000/1 PASS", "64/1000/2 PASS", "1518/1/1 PASS", "1518/1/2 PASS", "1518/1000/1 PASS", "1518/1000/2 PASS"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if b.Error != "" || len(b.Summary) != 4 || b.Summary[0].Trials != 2 || b.Summary[0].RxMedian != 1e6 || b.Summary[0].BitrateMedian != 1e6*84*8 {
		t.Errorf("error %q, summary %+v", b.Error, b.Summary)
	}
	wantProof := []Proof{{FrameSize: 64, Sent: 32, Seen: []uint64{32, 32, 32, 32, 32, 32}}, {FrameSize: 1518, Sent: 32, Seen: []uint64{32, 32, 32, 32, 32, 32}}}
	if d := cmp.Diff(wantProof, b.Proof); d != "" {
		t.Error(d)
	}
	// proof, then warm-up and trial, eight times; a new size is proved first.
	var asked []string
	for _, q := range m.asked[:6] {
		asked = append(asked, fmt.Sprintf("%d %s %s drain %s %s", q.Frames, q.Duration, q.Headers, q.Drain, strings.Repeat("f", q.FrameSize/1000)))
	}
	if d := cmp.Diff([]string{"32 0s udp drain 4s ", "0 3s udp drain 4s ", "0 1s udp drain 4s ", "0 3s udp drain 4s ", "0 1s udp drain 4s ", "0 3s udp drain 4s "}, asked); d != "" {
		t.Error(d)
	}
	if len(m.asked) != 18 || m.closed != 1 {
		t.Errorf("%d requests, closed %d times", len(m.asked), m.closed)
	}
	if d := cmp.Diff([]string{"opened model on dut", "closed model on dut"}, j.lines); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([][2]string{{"Host name", "box"}, {"Operating system", "Debian 12"}, {"Kernel", "6.1"}, {"CPUs", "2 online in 1 socket(s), one thread a core, isolated: 1"},
		{"NUMA node 0", "8.0 GiB of memory; hugepages of 2 MiB: 512, 100 free"}, {"Version of ovs", "3.1.0"}}, run.Hosts[0].Rows); d != "" {
		t.Error(d)
	}
}

func TestVerdicts(t *testing.T) {
	load := map[string]cty.Value{"duration": cty.StringVal("1s"), "load": cty.StringVal("1M")}
	for _, tc := range []struct {
		name   string
		method map[string]cty.Value
		set    func(*model)
		want   Verdict
		reason string
	}{
		{name: "nothing lost", want: Pass},
		{name: "loss without a goal", set: func(m *model) { m.lose = loses("v0 tx", 1000, "") }, want: Pass},
		{name: "loss within the goal", method: map[string]cty.Value{"max_loss": cty.NumberFloatVal(0.1), "duration": cty.StringVal("1s")},
			set: func(m *model) { m.lose = loses("v0 tx", 1000, "") }, want: Pass},
		{name: "loss over the goal", method: map[string]cty.Value{"max_loss": cty.NumberFloatVal(0.05), "duration": cty.StringVal("1s")},
			set: func(m *model) { m.lose = loses("v0 tx", 1000, "") }, want: Fail, reason: "lost 0.1 % of the frames sent; the goal is at most 0.05 %"},
		{name: "health", set: change(func(_ *model, r *providers.TrialResult) { r.Health = []string{"link went down"} }), want: Invalid, reason: "link went down"},
		{name: "nothing sent", set: func(m *model) { m.rate = 0 }, want: Invalid, reason: "the generator sent nothing"},
		{name: "nothing back", set: change(func(_ *model, r *providers.TrialResult) { r.Directions[0].Received = 0 }), want: Invalid, reason: "nothing came back although the path was proved: a link, the VNF or the switch has gone"},
		{name: "surplus", set: change(func(_ *model, r *providers.TrialResult) { r.Directions[0].Received += 3 }), want: Invalid, reason: "3 frames more came back than were sent"},
		{name: "tester drops", set: change(func(_ *model, r *providers.TrialResult) { r.Directions[0].RxDrops = 5 }), want: Invalid, reason: "the tester dropped 5 frames that had come back: its receiver was too slow"},
		{name: "sender too slow", method: load, set: func(m *model) { m.rate = 810_000 }, want: Invalid, reason: "the sender reached 81.0 % of the offered load"},
		{name: "sender slow within tolerance", method: load, set: func(m *model) { m.rate = 960_000 }, want: Pass},
		{name: "sender too fast", method: load, set: change(func(_ *model, r *providers.TrialResult) { r.Directions[0].Sent = 1_100_000 }), want: Invalid, reason: "the sender reached 110.0 % of the offered load"},
		{name: "cut short", set: change(func(_ *model, r *providers.TrialResult) { r.Duration = 900 * time.Millisecond }), want: Invalid, reason: "the stream lasted 0.900 s instead of 1.000 s"},
		{name: "no duration", set: change(func(_ *model, r *providers.TrialResult) { r.Duration = 0 }), want: Invalid, reason: "the generator reported no duration"},
		{name: "a direction too few", set: change(func(_ *model, r *providers.TrialResult) { r.Directions = nil }), want: Invalid, reason: "the generator reported 0 directions of 1"},
		{name: "counters backwards", set: change(func(m *model, _ *providers.TrialResult) { m.counters["v1"].Rx = 2 }), want: Invalid,
			reason: "rx of port.v1 went backwards, from 32 to 2: it was reset or made anew during the trial"},
		{name: "surplus on the way, signed", set: change(func(m *model, _ *providers.TrialResult) { m.counters["v0"].Tx += 9 }), want: Pass},
		{name: "surplus on the way, unsigned", set: func(m *model) {
			m.able.Signed = false
			m.after = func(_ int, m *model, _ *providers.TrialResult) { m.counters["v0"].Tx += 9 }
		}, want: Invalid, reason: "9 frames more at port.v0 than left port.t0: something else sends into the path, and the generator cannot tell its own frames"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newModel(true)
			if tc.set != nil {
				tc.set(m)
			}
			in, _ := bench(t, m, nil, map[string]cty.Value{"invalid_retries": cty.NumberIntVal(0)}, tc.method)
			b := measure(t, in).Benchmarks[0]
			if len(b.Trials) != 1 {
				t.Fatalf("%d trials, error %q", len(b.Trials), b.Error)
			}
			tr := b.Trials[0]
			first := ""
			if len(tr.Reasons) > 0 {
				first = tr.Reasons[0]
			}
			if tr.Verdict != tc.want || first != tc.reason {
				t.Errorf("got %s %q, want %s %q", tr.Verdict, tr.Reasons, tc.want, tc.reason)
			}
			if (tc.want == Invalid) != (b.Error != "") || (tc.want == Invalid) == (b.Summary[0].Trials == 1) {
				t.Errorf("error %q, summary %+v", b.Error, b.Summary)
			}
		})
	}
}

func loses(at string, n uint64, cause string) func(string, uint64) (uint64, string) {
	return func(passage string, have uint64) (uint64, string) {
		if passage == at && have > 100 {
			return n, cause
		}
		return 0, ""
	}
}

func change(f func(*model, *providers.TrialResult)) func(*model) {
	return func(m *model) { m.after = func(_ int, m *model, r *providers.TrialResult) { f(m, r) } }
}

func TestInvalidIsRepeated(t *testing.T) {
	m := newModel(true)
	m.after = func(n int, _ *model, r *providers.TrialResult) {
		if n <= 2 {
			r.Health = []string{"hiccup"}
		}
	}
	in, _ := bench(t, m, nil, nil, nil)
	b := measure(t, in).Benchmarks[0]
	if len(b.Trials) != 3 || b.Trials[2].Attempt != 3 || b.Trials[2].Verdict != Pass || b.Error != "" || b.Summary[0].Invalid != 2 || b.Summary[0].Trials != 1 {
		t.Errorf("%+v", b)
	}
	m.after = func(_ int, _ *model, r *providers.TrialResult) { r.Health = []string{"hiccup"} }
	b = measure(t, in).Benchmarks[0]
	if want := "64-byte frames, 1 flows: 4 trials in a row did not count; the last because hiccup"; b.Error != want || len(b.Trials) != 4 || b.Summary[0].RxMedian != 0 {
		t.Errorf("error %q, %d trials", b.Error, len(b.Trials))
	}
}

func TestProofNamesTheHop(t *testing.T) {
	for _, tc := range []struct{ at, want string }{
		{"t0 rx", "64-byte frames do not get through: they stopped between generator.model.tg (32 of 32 seen) and port.t0 (none)"},
		{"v0 tx", "64-byte frames do not get through: they stopped between port.t0 (32 of 32 seen) and port.v0 (none); it names as dropped: tx_dropped 32"},
		{"vnf", "64-byte frames do not get through: fwd.vnf took in 32 frames and sent none on"},
		{"v1 rx", "64-byte frames do not get through: they stopped between fwd.vnf (32 of 32 seen) and port.v1 (none)"},
	} {
		m := newModel(true)
		m.lose = func(passage string, n uint64) (uint64, string) {
			if passage != tc.at {
				return 0, ""
			}
			if passage == "v0 tx" {
				return n, "tx_dropped"
			}
			return n, ""
		}
		in, j := bench(t, m, nil, nil, nil)
		b := measure(t, in).Benchmarks[0]
		if b.Error != tc.want || len(b.Trials) != 0 || m.closed != 1 || len(j.lines) != 2 || len(m.asked) != proofTries {
			t.Errorf("%s: error %q, %d trials, closed %d", tc.at, b.Error, len(b.Trials), m.closed)
		}
	}
}

func TestRefusedBeforeTheFirstTrial(t *testing.T) {
	for _, tc := range []struct {
		name    string
		traffic map[string]cty.Value
		method  map[string]cty.Value
		change  func(*Input, *model)
		want    string
	}{
		{name: "no rate control", method: map[string]cty.Value{"load": cty.StringVal("5k")}, change: func(_ *Input, m *model) { m.able.RateControl = false },
			want: `generator.model.tg (model 1.0) cannot send at a given rate; write load = "max" in a continuous benchmark or choose another generator`},
		{name: "one direction", traffic: map[string]cty.Value{"bidirectional": cty.True}, change: func(_ *Input, m *model) { m.able.Bidirectional = false },
			want: "generator.model.tg (model 1.0) sends in one direction only; write bidirectional = false or choose another generator"},
		{name: "flows", traffic: map[string]cty.Value{"flows": numbers(1, 100)}, change: func(_ *Input, m *model) { m.able.MaxFlows = 10 },
			want: "generator.model.tg (model 1.0) makes at most 10 flows, not 100"},
		{name: "not applied", change: func(in *Input, _ *model) { in.Instances = nil }, want: "port.t0 of the path is not applied; run plumb apply first"},
		{name: "no counter", change: func(in *Input, _ *model) { in.Benchmarks[0].Path = append(in.Benchmarks[0].Path, addr("switch", "sw")) },
			want: "switch.sw cannot stand in a path: frames are not counted at a switch"},
		{name: "empty path", change: func(in *Input, _ *model) { in.Benchmarks[0].Path = nil }, want: "the path is empty; name the hops from where frames come in to where they leave"},
		{name: "ends inside", change: func(in *Input, _ *model) { in.Benchmarks[0].Path = in.Benchmarks[0].Path[:1] },
			want: "the path ends inside the switch: frames come in by port.t0, and no hop after it says by which port they leave"},
		{name: "VNF inside", change: func(in *Input, _ *model) {
			in.Benchmarks[0].Path = []addrs.Instance{addr("port", "t0"), addr("fwd", "vnf")}
		},
			want: "the path goes from port.t0 straight to fwd.vnf; frames that came into the switch there have to leave it by a port first"},
		{name: "no generator", change: func(in *Input, _ *model) { in.Generators = nil }, want: "there is no generator.model.tg"},
		{name: "bad value", method: map[string]cty.Value{"duration": cty.StringVal("0s")}, want: "duration: 0s is too short; want at least 1ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newModel(true)
			in, j := bench(t, m, tc.traffic, nil, tc.method)
			if tc.change != nil {
				tc.change(&in, m)
			}
			b := measure(t, in).Benchmarks[0]
			if b.Error != tc.want || m.trials != 0 || m.opened != m.closed || len(j.lines) != 2*m.opened {
				t.Errorf("error %q, want %q; opened %d, closed %d", b.Error, tc.want, m.opened, m.closed)
			}
		})
	}
}

func TestInterruptClosesTheGenerator(t *testing.T) {
	m := newModel(true)
	ctx, cancel := context.WithCancelCause(t.Context())
	m.before = func(n int) error {
		if n == 2 {
			cancel(errors.New("Ctrl-C"))
			return ctx.Err()
		}
		return nil
	}
	in, j := bench(t, m, map[string]cty.Value{"frame_sizes": numbers(64, 128)}, nil, nil)
	in.Benchmarks = append(in.Benchmarks, in.Benchmarks[0])
	in.Results = t.TempDir()
	run, err := Measure(ctx, in)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	b := run.Benchmarks[0]
	if len(run.Benchmarks) != 1 || len(b.Trials) != 1 || b.Error != "interrupted: Ctrl-C" || len(b.Summary) != 1 {
		t.Errorf("%+v", run)
	}
	if m.closed != 1 || m.closeIn[0] != nil || len(j.lines) != 2 {
		t.Errorf("closed %d times, its context %v, recorded %v", m.closed, m.closeIn, j.lines)
	}
	if l, err := List(in.Results); err != nil || len(l) != 1 || l[0].Problem != "" {
		t.Errorf("%v %v", l, err)
	}
}

func TestBrokenGeneratorEndsTheBenchmarkAndNotTheRun(t *testing.T) {
	m := newModel(true)
	m.before = func(n int) error {
		if n == 1 {
			return errors.New("testpmd is gone")
		}
		return nil
	}
	in, _ := bench(t, m, nil, nil, nil)
	in.Benchmarks = append(in.Benchmarks, in.Benchmarks[0])
	run := measure(t, in)
	if d := cmp.Diff([]string{"benchmark.b: trial with 64-byte frames: testpmd is gone"}, run.Broken()); d != "" {
		t.Error(d)
	}
	if len(run.Benchmarks) != 2 || len(run.Benchmarks[1].Trials) != 1 || m.closed != 2 {
		t.Errorf("%+v", run)
	}
}

func TestObservers(t *testing.T) {
	m := newModel(true)
	var seen []string
	in, _ := bench(t, m, nil, nil, nil)
	w := watching{plainType: plainType{modelType{m, "switch"}}, observed: &seen}
	in.Set.Resources[2], in.Set.HostObserver = w, w
	b := measure(t, in).Benchmarks[0]
	if d := cmp.Diff([]string{"start 1 on dut", "start 6 on dut", "finish", "finish"}, seen); d != "" {
		t.Error(d)
	}
	if len(b.Trials[0].Observations) != 2 || b.Summary[0].Bottleneck != "PMD core 1 busy 97 %" {
		t.Errorf("%+v", b)
	}
	w.fail = errors.New("no answer")
	in.Set.Resources[2] = w
	b = measure(t, in).Benchmarks[0]
	if d := cmp.Diff([]string{"Not observed: switch on dut: no answer."}, b.Notes); d != "" {
		t.Error(d)
	}
	seen = nil
	in, _ = bench(t, m, nil, map[string]cty.Value{"observe": cty.False}, nil)
	in.Set.HostObserver = w
	if b = measure(t, in).Benchmarks[0]; len(seen) > 0 || len(b.Trials[0].Observations) > 0 {
		t.Errorf("observed %v", seen)
	}
}

func TestRequire(t *testing.T) {
	m := newModel(true)
	m.lose = loses("v0 tx", 1000, "")
	in, _ := bench(t, m, nil, nil, nil)
	rule := &config.CheckRule{Range: hcl.Range{Filename: "dir/main.plumb.hcl", Start: hcl.Pos{Line: 12}}}
	in.Benchmarks[0].Requires = []*config.CheckRule{rule, rule, rule}
	calls := 0
	in.Require = func(_ *eval.Benchmark, _ *config.CheckRule, self cty.Value) (bool, string, hcl.Diagnostics) {
		calls++
		at := self.GetAttr("at").Index(cty.StringVal("64/1"))
		if rx, _ := at.GetAttr("rx_fps_median").AsBigFloat().Float64(); rx != 999_000 {
			t.Errorf("self.at[\"64/1\"].rx_fps_median is %v", rx)
		}
		if n := self.GetAttr("trials").LengthInt(); n != 1 {
			t.Errorf("%d trials", n)
		}
		switch calls {
		case 1:
			return true, "unused", nil
		case 2:
			return false, "too slow", nil
		}
		return false, "", hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Bad", Detail: "no such attribute"}}
	}
	run := measure(t, in)
	got := run.Benchmarks[0].Requires
	if len(got) != 3 || !got[0].Holds || got[0].Message != "" || got[1].Holds || got[2].Holds || !strings.Contains(got[2].Message, "no such attribute") {
		t.Errorf("%+v", got)
	}
	if u := run.Unmet(); len(u) != 2 || u[0] != "benchmark.b: too slow (main.plumb.hcl:12)" {
		t.Errorf("%q", u)
	}
	m.before = func(int) error { return errors.New("gone") }
	got = measure(t, in).Benchmarks[0].Requires
	if calls != 3 || got[0].Holds {
		t.Errorf("judged although the benchmark broke: %+v", got)
	}
}

func TestSweep(t *testing.T) {
	m := newModel(false)
	set := &providers.Set{Generators: []providers.GeneratorType{modelGen{m}}}
	host := func(_ context.Context, name string) (providers.Host, error) { return modelHost{name: name}, nil }
	var closed []Open
	err := Sweep(t.Context(), set, host, "lineage", []Open{{"model", "dut"}, {"model", ""}}, func(o Open) error { closed = append(closed, o); return nil })
	if err != nil || len(m.swept) != 2 || len(closed) != 2 {
		t.Errorf("%v, swept %v, closed %v", err, m.swept, closed)
	}
	if err := Sweep(t.Context(), set, host, "x", []Open{{"other", ""}}, nil); err == nil {
		t.Error("a type that does not exist was swept")
	}
}
