package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// These are results that other tools are known to print wrongly: each test provokes the situation and looks for INVALID, or for the right number. What only a real
// generator can show is tested there: a stray ARP or LLDP frame on a real port is counted as surplus, and frames in flight when the stream stops are waited for.

// wrong measures one trial at an offered load, provoked by set, and returns it.
func wrong(t *testing.T, load string, traffic map[string]cty.Value, set func(*model)) (Benchmark, Trial) {
	t.Helper()
	m := newModel(true)
	set(m)
	in, _ := bench(t, m, traffic, map[string]cty.Value{"invalid_retries": cty.NumberIntVal(0)}, map[string]cty.Value{"duration": cty.StringVal("1s"), "load": cty.StringVal(load)})
	b := measure(t, in).Benchmarks[0]
	if len(b.Trials) != 1 {
		t.Fatalf("%d trials, error %q", len(b.Trials), b.Error)
	}
	return b, b.Trials[0]
}

// doesNotCount checks that the trial is INVALID for the reason, and that no number came of it.
func doesNotCount(t *testing.T, b Benchmark, tr Trial, reason string) {
	t.Helper()
	if tr.Verdict != Invalid || !strings.Contains(strings.Join(tr.Reasons, "; "), reason) {
		t.Errorf("%s for %q, want INVALID for %q", tr.Verdict, tr.Reasons, reason)
	}
	if s := b.Summary[0]; b.Error == "" || s.Trials != 0 || s.RxMedian != 0 {
		t.Errorf("error %q, summary %+v", b.Error, s)
	}
}

// trafficgen #31, #134; NFVbench's warning below 90 %; CSIT #3865.
func TestWrongTesterSlowerThanAsked(t *testing.T) {
	b, tr := wrong(t, "1M", nil, func(m *model) { m.rate = 0.9e6 })
	doesNotCount(t, b, tr, "the sender reached 90.0 % of the offered load")
}

// A frame that the device's full queue refused is lost, however little the tester's own counter of sent frames says.
func TestWrongFullQueueIsTheDevicesLoss(t *testing.T) {
	_, tr := wrong(t, "1M", nil, change(func(_ *model, r *providers.TrialResult) {
		r.Directions[0].Sent, r.Directions[0].Unsent, r.Directions[0].Received = 700_000, 300_000, 690_000
	}))
	if tr.Verdict != Pass || tr.LossRatio != 0.31 || tr.Unsent != 300_000 {
		t.Errorf("%+v", tr)
	}
	first := tr.Ledger[0]
	if first.In != 1_000_000 || first.Out != 700_000 || first.Lost != 300_000 || first.Causes["device_queue_full"] != 300_000 || first.Unexplained != 0 {
		t.Errorf("first line of the ledger: %+v", first)
	}
	addsUp(t, tr.Ledger)
	// At maximum nothing is due: a port that pushes back is no loss.
	_, tr = wrong(t, "max", nil, change(func(_ *model, r *providers.TrialResult) { r.Directions[0].Unsent = 300_000 }))
	if tr.Verdict != Pass || tr.LossRatio != 0 || tr.Ledger[0].In != tr.Ledger[0].Out || tr.Ledger[0].Lost != 0 {
		t.Errorf("%+v", tr)
	}
}

// trex-core #650: ARP, LLDP and the like on a port. A generator that knows its own frames sets them apart; one that does not must not hide a loss behind them.
func TestWrongStrayFrames(t *testing.T) {
	_, tr := wrong(t, "1M", nil, change(func(_ *model, r *providers.TrialResult) {
		r.Directions[0].Received -= 1000
		r.Directions[0].Surplus = 1000
	}))
	if tr.Verdict != Pass || tr.LossRatio != 0.001 || tr.Surplus != 1000 {
		t.Errorf("signed: %+v", tr)
	}
	b, tr := wrong(t, "1M", nil, func(m *model) {
		m.able.Signed = false
		m.after = func(_ int, m *model, r *providers.TrialResult) {
			m.counters["t1"].Tx += 7 // they came in somewhere else
			r.Directions[0].Received -= 7
		}
	})
	doesNotCount(t, b, tr, "7 frames more at port.t1 than left port.v1: something else sends into the path")
	b, tr = wrong(t, "1M", nil, func(m *model) {
		m.able.Signed = false
		m.after = func(_ int, _ *model, r *providers.TrialResult) { r.Directions[0].Surplus = 5 }
	})
	doesNotCount(t, b, tr, "5 frames came that the generator had not sent, and it cannot tell its own frames from others")
}

// trex-core PR #326: counters that decrease.
func TestWrongCountersGoBack(t *testing.T) {
	b, tr := wrong(t, "1M", nil, change(func(m *model, _ *providers.TrialResult) { m.counters["v0"].Tx = 1 }))
	doesNotCount(t, b, tr, "tx of port.v0 went backwards")
}

// NFVbench and VSPERF add directions up, which hides that one of them loses everything, or half.
func TestWrongOneWayLoss(t *testing.T) {
	both := map[string]cty.Value{"frame_sizes": numbers(64), "bidirectional": cty.True}
	b, tr := wrong(t, "1M", both, change(func(_ *model, r *providers.TrialResult) { r.Directions[1].Received = 0 }))
	doesNotCount(t, b, tr, "direction 1: nothing came back although the path was proved")
	_, tr = wrong(t, "1M", both, change(func(_ *model, r *providers.TrialResult) { r.Directions[1].Received /= 2 }))
	if tr.Verdict != Pass || tr.LossRatio != 0.5 {
		t.Errorf("%s with a loss of %g, want that of the direction that loses more", tr.Verdict, tr.LossRatio)
	}
}

// CSIT #4018, #4044: a link that flaps looks like a loss.
func TestWrongLinkFlap(t *testing.T) {
	b, tr := wrong(t, "1M", nil, change(func(m *model, r *providers.TrialResult) {
		m.counters["t1"].LinkResets += 2
		r.Directions[0].Received /= 2
	}))
	doesNotCount(t, b, tr, "the link of port.t1 went up or down 2 times during the trial")
}

// CSIT #3867, #4053: a VM that does not forward, or not this size, is found before the first trial.
func TestWrongVMDoesNotForward(t *testing.T) {
	m := newModel(true)
	m.lose = func(passage string, n uint64) (uint64, string) {
		if passage == "vnf" && n == proofFrames && len(m.asked) > 2 { // the first size gets through
			return n, ""
		}
		return 0, ""
	}
	in, _ := bench(t, m, map[string]cty.Value{"frame_sizes": numbers(64, 9000)}, nil, nil)
	b := measure(t, in).Benchmarks[0]
	if want := "9000-byte frames do not get through: fwd.vnf took in 32 frames and sent none on"; b.Error != want || len(b.Trials) != 1 {
		t.Errorf("error %q after %d trials", b.Error, len(b.Trials))
	}
}

// A VM that answers with frames of its own, or sends a frame twice.
func TestWrongAnswers(t *testing.T) {
	b, tr := wrong(t, "1M", nil, change(func(_ *model, r *providers.TrialResult) { r.Directions[0].Duplicated = 3 }))
	doesNotCount(t, b, tr, "3 frames came back more than once: the path has a loop, or copies frames")
}

// trex-core #440: frames that are still in flight when the stream stops are no loss. The generator is told to wait for them, and how long is on record.
func TestWrongInFlightAtTheStop(t *testing.T) {
	m := newModel(true)
	in, _ := bench(t, m, nil, map[string]cty.Value{"drain": cty.StringVal("3s")}, nil)
	b := measure(t, in).Benchmarks[0]
	for _, q := range m.asked {
		if q.Drain != 3*time.Second {
			t.Errorf("drain of %s", q.Drain)
		}
	}
	if !strings.Contains(strings.Join(b.Phases, " "), "Drain: 3s for frames in flight.") {
		t.Errorf("phases %q", b.Phases)
	}
}

// trafficgen #96: a negative loss. Frames of an earlier trial that come late make more come back than was sent.
func TestWrongMoreBackThanSent(t *testing.T) {
	b, tr := wrong(t, "1M", nil, change(func(_ *model, r *providers.TrialResult) { r.Directions[0].Received += 12 }))
	doesNotCount(t, b, tr, "12 frames more came back than were sent")
	if tr.LossRatio < 0 {
		t.Errorf("a loss of %g", tr.LossRatio)
	}
}

// trafficgen #134, trex-core #765: a loss of 100 % is a path that does not forward, never a rate of 0.
func TestWrongNothingBack(t *testing.T) {
	b, tr := wrong(t, "1M", nil, change(func(_ *model, r *providers.TrialResult) { r.Directions[0].Received = 0 }))
	doesNotCount(t, b, tr, "nothing came back although the path was proved: a link, the VNF or the switch has gone")
}

// trafficgen #56, CSIT #3949: a search whose least load does not pass says so; it reports no 0.
func TestWrongBelowTheLeastLoad(t *testing.T) {
	d := newDevice()
	d.capacity = 100
	for _, method := range []string{"throughput", "ndr_pdr"} {
		in := deviceBench(t, d, method, nil, nil, map[string]cty.Value{"min_load": cty.StringVal("10k")})
		b := measure(t, in).Benchmarks[0]
		if b.Error != "" || len(b.Figures) == 0 {
			t.Fatalf("%s: error %q, %d figures", method, b.Error, len(b.Figures))
		}
		for _, f := range b.Figures {
			if len(f.Values) != 0 || len(f.Nones) != 1 {
				t.Errorf("%s: %+v", method, f)
			}
		}
	}
}

// The retries of a search are for the tester's faults: an INVALID trial in the midst of it changes nothing of what is found.
func TestWrongInvalidInASearch(t *testing.T) {
	find := func(invalid map[int]string) Benchmark {
		d := newDevice()
		d.invalid = invalid
		return measure(t, deviceBench(t, d, "throughput", nil, nil, nil)).Benchmarks[0]
	}
	calm, shaken := find(nil), find(map[int]string{2: "late", 3: "late", 6: "late", 9: "late"})
	if a, b := found(t, calm, "throughput"), found(t, shaken, "throughput"); a.Median != b.Median || len(shaken.Trials) != len(calm.Trials)+4 || shaken.Error != "" {
		t.Errorf("%g and %g, error %q", a.Median, b.Median, shaken.Error)
	}
	if b := find(map[int]string{2: "late", 3: "late", 4: "late", 5: "late"}); b.Error == "" || !found(t, b, "throughput").Unfinished {
		t.Errorf("error %q, figures %+v", b.Error, b.Figures)
	}
}
