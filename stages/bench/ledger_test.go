package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// addsUp checks that in each direction sent = received + the sum of what was lost, and each line against the one before.
func addsUp(t *testing.T, ledger []Hop) {
	t.Helper()
	var sent, lost int64
	for i, h := range ledger {
		if h.Role == Sender {
			sent, lost = int64(h.Out), 0
			continue
		}
		lost += h.Lost
		sum := int64(0)
		for _, n := range h.Causes {
			sum += int64(n)
		}
		if h.Lost != int64(ledger[i-1].Out)-int64(h.Out) || h.Unexplained != h.Lost-sum {
			t.Errorf("line %d does not add up: %+v after %+v", i, h, ledger[i-1])
		}
		if h.Role == Receiver && sent != int64(h.In)+lost {
			t.Errorf("sent %d, received %d, lost %d", sent, h.In, lost)
		}
	}
}

func TestLedgerPVP(t *testing.T) {
	m := newModel(true)
	m.lose = func(passage string, n uint64) (uint64, string) {
		if n < 100 {
			return 0, ""
		}
		switch passage {
		case "t0 rx":
			return 10, "rx_dropped"
		case "v0 tx":
			return 200, "ovs_tx_failure_drops"
		case "vnf":
			return 3000, "mbuf_alloc_failed"
		case "v1 rx":
			return 40, ""
		case "t1 tx":
			m.counters["t1"].Drops["rx_dropped"] += 77 // of other traffic: not this passage's
			return 5, ""
		}
		return 0, ""
	}
	in, _ := bench(t, m, nil, nil, nil)
	b := measure(t, in).Benchmarks[0]
	if b.Error != "" {
		t.Fatal(b.Error)
	}
	got := b.Trials[0].Ledger
	gen := "generator.model.tg"
	want := []Hop{
		{Name: gen, Role: Sender, In: 1_000_000, Out: 1_000_000},
		{Name: "port.t0", Role: Enter, In: 999_990, Out: 999_990, Lost: 10, Causes: map[string]uint64{"rx_dropped": 10}},
		{Name: "port.v0", Role: Leave, In: 999_790, Out: 999_790, Lost: 200, Causes: map[string]uint64{"ovs_tx_failure_drops": 200}},
		{Name: "fwd.vnf", Role: Through, In: 999_790, Out: 996_790, Lost: 3000, Causes: map[string]uint64{"mbuf_alloc_failed": 3000}},
		{Name: "port.v1", Role: Enter, In: 996_750, Out: 996_750, Lost: 40, Unexplained: 40},
		{Name: "port.t1", Role: Leave, In: 996_745, Out: 996_745, Lost: 5, Unexplained: 5},
		{Name: gen, Role: Receiver, In: 996_745, Out: 996_745},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	addsUp(t, got)
}

func TestLedgerBidirectional(t *testing.T) {
	m := newModel(true)
	m.lose = func(passage string, n uint64) (uint64, string) {
		switch {
		case n < 100:
		case passage == "vnf":
			return 7, "x"
		case passage == "v1 tx":
			return 30, "tx_dropped"
		}
		return 0, ""
	}
	in, _ := bench(t, m, map[string]cty.Value{"frame_sizes": numbers(64), "bidirectional": cty.True}, nil, nil)
	b := measure(t, in).Benchmarks[0]
	tr := b.Trials[0]
	addsUp(t, tr.Ledger)
	if tr.Sent != 2_000_000 || tr.Received != 2_000_000-44 || len(tr.Directions) != 2 || tr.Directions[1].Received != 1_000_000-37 || tr.RxRate != 1_999_956 {
		t.Errorf("%+v", tr)
	}
	var lines []string
	for _, h := range tr.Ledger {
		if h.Direction == 1 {
			lines = append(lines, h.Name+" "+string(h.Role))
		}
	}
	// The VNF counts both directions together, so it has no line; the loss inside it shows behind it.
	if d := cmp.Diff([]string{"generator.model.tg sender", "port.t1 enter", "port.v1 leave", "port.v0 enter", "port.t0 leave", "generator.model.tg receiver"}, lines); d != "" {
		t.Error(d)
	}
	if len(b.Notes) != 1 || len(b.Proof) != 2 || b.Proof[1].Direction != 1 {
		t.Errorf("notes %q, proof %+v", b.Notes, b.Proof)
	}
}

func TestSamePortTwice(t *testing.T) {
	// One physical port in and out, one vhost port to and from the VNF.
	m := newModel(true)
	m.ways[0] = []string{"t0 rx", "v0 tx", "vnf", "v0 rx", "t0 tx"}
	m.lose = func(passage string, n uint64) (uint64, string) {
		switch {
		case n < 100:
		case passage == "v0 tx":
			return 20, "tx_dropped"
		case passage == "v0 rx":
			return 3, "rx_dropped"
		}
		return 0, ""
	}
	in, _ := bench(t, m, nil, nil, nil)
	tr := measure(t, in).Benchmarks[0].Trials[0]
	addsUp(t, tr.Ledger)
	if len(tr.Ledger) != 7 {
		t.Fatalf("%+v", tr.Ledger)
	}
	if out, back := tr.Ledger[2], tr.Ledger[4]; out.Lost != 20 || out.Unexplained != 0 || back.Lost != 3 || back.Unexplained != 0 || len(back.Causes) != 1 {
		t.Errorf("%+v %+v", out, back)
	}
	// Both ways over them: every counter is moved twice, so only the ends have lines.
	m.ways[1] = m.ways[0]
	in, _ = bench(t, m, map[string]cty.Value{"frame_sizes": numbers(64), "bidirectional": cty.True}, nil, nil)
	b := measure(t, in).Benchmarks[0]
	addsUp(t, b.Trials[0].Ledger)
	if len(b.Trials[0].Ledger) != 4 || len(b.Notes) != 3 {
		t.Errorf("%+v %q", b.Trials[0].Ledger, b.Notes)
	}
}

func TestMovedNamesWhatWentBackwards(t *testing.T) {
	_, back := moved([]string{"a"}, []providers.Counters{{Rx: 5, Drops: map[string]uint64{"x": 4}}}, []providers.Counters{{Rx: 6, Drops: map[string]uint64{"x": 1, "new": 3}}})
	if d := cmp.Diff([]string{"x of a went backwards, from 4 to 1: it was reset or made anew during the trial"}, back); d != "" {
		t.Error(d)
	}
}
