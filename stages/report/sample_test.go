package report

import (
	"fmt"
	"time"

	"plumb/providers"
	"plumb/stages/bench"
)

// sample is a run as the quickstart testbed makes it, with every kind of thing that a report shows.
func sample() *bench.Run {
	start := time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC)
	five := 5.0
	gen := "generator.testpmd.tg"
	t0, t1, v0, v1 := `ovs_port.p["t0"]`, `ovs_port.p["t1"]`, `ovs_port.p["v0"]`, `ovs_port.p["v1"]`
	p2p := bench.Benchmark{Addr: "benchmark.p2p", Method: "continuous", Generator: gen, Tool: "dpdk-testpmd 22.11.11", Path: []string{t1, t0}, Headers: "ipv4",
		MaxLoss: &five, LineRate: 25e9,
		Phases: []string{"Warm-up: the same stream for 2s, not counted.", "Settle: 2s of silence.",
			"Measured stream: 5s (RFC 2544 section 24 asks for at least 60 s).", "Drain: 2s for frames in flight.",
			"Between trials: no rest of its own; RFC 2544 section 23 e waits at least 5 s for the device to restabilise."}}
	pvp := p2p
	pvp.Addr, pvp.Path, pvp.MaxLoss, pvp.LineRate = "benchmark.pvp", []string{t0, v0, "dpdk_testpmd.vnf", v1, t1}, nil, 0
	for i, size := range []int{64, 512, 1518} {
		for r := 1; r <= 3; r++ {
			n := uint64(11_500_000 - 1_700_000*i + 35_000*r*r)
			lost := uint64(210_000 * (3 - i) * r)
			tr := trial(start, size, r, n, n-lost)
			tr.Ledger = ledger(gen, tr, []bench.Hop{{Name: t1, Role: bench.Enter, In: n - 1200, Out: n - 1200, Causes: map[string]uint64{"rx_dropped": 1000}},
				{Name: t0, Role: bench.Leave, In: n - lost, Out: n - lost, Causes: map[string]uint64{"ovs_tx_failure_drops": lost - 1200}}})
			if tr.LossRatio > 0.05 {
				tr.Verdict, tr.Reasons = bench.Fail, []string{fmt.Sprintf("lost %.4g %% of the frames sent; the goal is at most 5 %%", 100*tr.LossRatio)}
			}
			p2p.Trials = append(p2p.Trials, tr)
		}
		p2p.Summary = append(p2p.Summary, summary(p2p.Trials[3*i:3*i+3], size, 0, "PMD core 1 busy 99 %"))
		p2p.Proof = append(p2p.Proof, bench.Proof{FrameSize: size, Sent: 32, Seen: []uint64{32, 32, 32}})
	}
	for i, size := range []int{64, 1518} {
		if i == 0 {
			bad := trial(start, size, 1, 11_000_000, 190_000)
			bad.Verdict, bad.Reasons = bench.Invalid, []string{"the tester dropped 5 frames that had come back: its receiver was too slow"}
			pvp.Trials = append(pvp.Trials, bad)
		}
		n := uint64(12_000_000)
		back := uint64(185_000 + 7000*i)
		tr := trial(start, size, 1, n, back)
		if i == 0 {
			tr.Attempt = 2
		}
		tr.Ledger = ledger(gen, tr, []bench.Hop{{Name: t0, Role: bench.Enter, In: n, Out: n},
			{Name: v0, Role: bench.Leave, In: 200_000, Out: 200_000, Causes: map[string]uint64{"ovs_tx_failure_drops": n - 200_000}},
			{Name: "dpdk_testpmd.vnf", Role: bench.Through, In: 200_000, Out: 193_000, Causes: map[string]uint64{"tx_dropped": 7000}},
			{Name: v1, Role: bench.Enter, In: 193_000, Out: 193_000},
			{Name: t1, Role: bench.Leave, In: back, Out: back, Causes: map[string]uint64{"tx_dropped": 900}}})
		pvp.Trials = append(pvp.Trials, tr)
		pvp.Summary = append(pvp.Summary, summary(pvp.Trials[len(pvp.Trials)-1:], size, 1-i, "PMD core 1 busy 99 %"))
		pvp.Proof = append(pvp.Proof, bench.Proof{FrameSize: size, Sent: 32, Seen: []uint64{32, 32, 32, 32, 32, 32}})
	}
	pvp.Trials[1].Latency = &providers.Latency{Samples: 10_000, Min: 4660, P50: 12_970, P90: 21_000, P99: 33_100, P999: 38_000, Max: 41_234}
	pvp.Requires = []bench.Require{{Holds: true, Where: "main.plumb.hcl:71"}, {Message: "64 B frames are forwarded at less than 100 kpps", Where: "main.plumb.hcl:76"}}
	pvp.Notes = []string{"Not observed: the host on dut: cannot read /proc/schedstat."}
	broken := bench.Benchmark{Addr: "benchmark.pvvp", Method: "continuous", Generator: gen, Tool: "dpdk-testpmd 22.11.11", Path: []string{t0, v0, "dpdk_testpmd.a", v1, t1}, Headers: "udp", Bidirectional: true,
		Error: `64-byte frames do not get through: they stopped between ovs_port.p["t0"] (32 of 32 seen) and ovs_port.p["v0"] (none); it names as dropped: tx_dropped 32`}
	return &bench.Run{Format: bench.FormatVersion, ID: "20261201T020304Z-1f3a", PlumbVersion: "0.1.0", Started: start, Ended: start.Add(93 * time.Second),
		Testbed: "3f1c9f7e-5a0b-4f7e-9d0e-2d1f5b0c7a11", Serial: 12,
		Hosts: []bench.HostFacts{{Name: "dut", Rows: [][2]string{{"Host name", "lab7"}, {"Operating system", "Debian GNU/Linux 12 (bookworm)"}, {"Kernel", "6.1.0-37-amd64"},
			{"Kernel command line", "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro default_hugepagesz=2M isolcpus=1"}, {"CPUs", "2 online in 1 socket(s), one thread a core, isolated: 1"},
			{"NUMA node 0", "24.0 GiB of memory; hugepages of 2 MiB: 704, 64 free"}, {"Version of dpdk", "22.11.11"}, {"Version of ovs", "3.1.0"}}}},
		Benchmarks: []bench.Benchmark{p2p, pvp, broken}}
}

func trial(start time.Time, size, repeat int, sent, received uint64) bench.Trial {
	t := bench.Trial{FrameSize: size, Flows: 1, Repeat: repeat, Attempt: 1, Started: start, Duration: 5.002, Sent: sent, Unsent: 3 * sent, Received: received, Verdict: bench.Pass}
	t.TxRate, t.RxRate = float64(sent)/t.Duration, float64(received)/t.Duration
	t.RxBitrate, t.LossRatio = t.RxRate*float64(size+20)*8, float64(sent-received)/float64(sent)
	pct := func(name string, v float64) providers.Metric {
		return providers.Metric{Name: name, Value: v, Unit: "%"}
	}
	t.Observations = []providers.Observation{
		{Host: "dut", Kind: "cpu", Subject: "core 0", Metrics: []providers.Metric{pct("busy", 34.5), pct("user", 30), pct("system", 4.5)}},
		{Host: "dut", Kind: "cpu", Subject: "core 1", Metrics: []providers.Metric{pct("busy", 100), pct("user", 99.2), pct("system", 0.8)}},
		{Host: "dut", Kind: "pmd", Subject: "core 1", Metrics: []providers.Metric{pct("busy", 99.1), {Name: "busy_cycles", Value: 12_345_678_901, Unit: "cycles"},
			{Name: "busy_cycles_per_packet", Value: 312.4567, Unit: "cycles"}}},
		{Host: "dut", Kind: "rxq", Subject: "t1 queue 0 on core 1", Metrics: []providers.Metric{pct("usage", 88)}},
		{Host: "dut", Kind: "cache", Subject: "core 1", Metrics: []providers.Metric{pct("phwol", 0), pct("emc", 99.7), pct("megaflow", 0.3), pct("upcall", 0)}},
		{Host: "dut", Kind: "port", Subject: "t1", Metrics: []providers.Metric{{Name: "rx", Value: float64(sent), Unit: "frames"}}},
	}
	return t
}

func ledger(gen string, t bench.Trial, hops []bench.Hop) []bench.Hop {
	all := append([]bench.Hop{{Name: gen, Role: bench.Sender, In: t.Sent, Out: t.Sent}}, hops...)
	all = append(all, bench.Hop{Name: gen, Role: bench.Receiver, In: t.Received, Out: t.Received})
	for i := 1; i < len(all); i++ {
		all[i].Lost = int64(all[i-1].Out) - int64(all[i].Out)
		all[i].Unexplained = all[i].Lost
		for _, n := range all[i].Causes {
			all[i].Unexplained -= int64(n)
		}
	}
	return all
}

func summary(ts []bench.Trial, size, invalid int, bottleneck string) bench.Summary {
	m := ts[len(ts)/2]
	s := bench.Summary{FrameSize: size, Flows: 1, Trials: len(ts), Invalid: invalid, RxMedian: m.RxRate, RxMin: m.RxRate, RxMax: m.RxRate, TxMedian: m.TxRate,
		LossMedian: m.LossRatio, BitrateMedian: m.RxBitrate, Bottleneck: bottleneck}
	for _, t := range ts {
		s.RxMin, s.RxMax = min(s.RxMin, t.RxRate), max(s.RxMax, t.RxRate)
	}
	if len(ts) > 1 {
		s.RxCV = 0.031
	}
	return s
}

// sweep is one benchmark over the seven sizes of RFC 2544 and four flow counts, without loss.
func sweep() *bench.Run {
	run := sample()
	b := bench.Benchmark{Addr: `module.lab["a"].benchmark.sweep`, Method: "continuous", Generator: "generator.dummy.tg", Tool: "dummy", Path: []string{"ovs_port.p0", "ovs_port.p1"},
		Headers: "udp", LineRate: 10e9, Signed: true}
	for i, size := range []int{64, 128, 256, 512, 1024, 1280, 1518} {
		for j, flows := range []int{10, 1000, 100_000, 1_000_000} {
			rx := min(bench.LineRateFPS(10e9, size), 9e6/float64(1+j)/(1+0.1*float64(i)))
			tr := trial(run.Started, size, 1, uint64(rx*5.002), uint64(rx*5.002))
			tr.Flows = flows
			tr.Observations = nil
			tr.Ledger = ledger("generator.dummy.tg", tr, []bench.Hop{{Name: "ovs_port.p0", Role: bench.Enter, In: tr.Sent, Out: tr.Sent}, {Name: "ovs_port.p1", Role: bench.Leave, In: tr.Sent, Out: tr.Sent}})
			b.Trials = append(b.Trials, tr)
			s := summary([]bench.Trial{tr}, size, 0, "")
			s.Flows = flows
			b.Summary = append(b.Summary, s)
		}
	}
	run.Benchmarks = []bench.Benchmark{b}
	return run
}

// found is a run of methods that search: NDR and PDR with repeats over two sizes, and a latency, a back-to-back that does not apply and one unfinished.
func found() *bench.Run {
	run := sample()
	b := bench.Benchmark{Addr: "benchmark.ndr", Method: "ndr_pdr", Generator: "generator.loadgen.tg", Tool: "loadgen 0.1.0", Path: []string{"ovs_port.p0", "ovs_port.p1"}, Headers: "udp", LineRate: 10e9, Signed: true,
		Settings: [][2]string{{"width", "0.5 %"}, {"least load", "9,001 fps"}}, Took: 312}
	for i, size := range []int{64, 1518} {
		truth := []float64{3.1e6, 0.6e6}[i]
		for r := 1; r <= 3; r++ {
			for n, share := range []float64{1.8, 0.97, 1.03, 1} {
				offered := truth * share
				lost := max(0, offered-truth*1.01)
				tr := trial(run.Started, size, r, uint64(offered*5.002), uint64((offered-lost)*5.002))
				tr.Phase, tr.Offered, tr.Observations, tr.Intended, tr.Unsent = "search", offered, nil, 5, 0
				tr.Latency = &providers.Latency{Samples: 4000, Min: 4000 + 900*float64(i), P50: 11_000 * (1 + float64(i)), P90: 23_000, P99: 140_000, P999: 900_000, Max: 4_100_000, PDV: 896_000, Jitter: 7000}
				tr.Ledger = ledger(b.Generator, tr, []bench.Hop{{Name: "ovs_port.p0", Role: bench.Enter, In: tr.Sent, Out: tr.Sent}, {Name: "ovs_port.p1", Role: bench.Leave, In: tr.Received, Out: tr.Received}})
				if lost > 0 {
					tr.Verdict, tr.Reasons = bench.Fail, []string{"lost frames; the goal is none"}
				}
				if n == 0 {
					tr.Phase, tr.Offered = "maximum", 0
				}
				b.Trials = append(b.Trials, tr)
			}
		}
		b.Figures = append(b.Figures,
			bench.Figure{FrameSize: size, Flows: 1, Name: "NDR", Label: "NDR (loss 0, trials of 1 s)", Unit: "fps", Primary: true, Values: []float64{truth, truth * 1.02, truth * 0.99}, Median: truth, Mean: truth * 1.003, Min: truth * 0.99, Max: truth * 1.02,
				StdDev: truth * 0.0153, CV: 0.0152, Low: truth * 0.965, High: truth * 1.041, Lower: truth, Upper: truth * 1.03, Attributes: [][2]string{{"loss", "0 %"}, {"exceed", "50 %"}, {"sum", "21 s"}}, Trials: 12, Took: 61.5},
			bench.Figure{FrameSize: size, Flows: 1, Name: "PDR", Label: "PDR (loss 0.5 %)", Unit: "fps", Primary: true, Values: []float64{truth * 1.4}, Nones: []string{"below the least load", "below the least load"}, Median: truth * 1.4, Mean: truth * 1.4,
				Min: truth * 1.4, Max: truth * 1.4, Bound: ">=", Lower: truth * 1.4, Unsteady: true, Unfinished: i == 1, Trials: 4, Took: 20})
	}
	l := bench.Benchmark{Addr: "benchmark.b2b", Method: "back_to_back", Generator: b.Generator, Tool: b.Tool, Path: b.Path, Headers: "udp",
		Figures: []bench.Figure{{FrameSize: 64, Flows: 1, Name: "back_to_back", Label: "back-to-back frames (RFC 9004)", Unit: "frames", Primary: true, Values: []float64{26_000}, Median: 26_000, Mean: 26_000, Min: 26_000, Max: 26_000, Trials: 14},
			{FrameSize: 64, Flows: 1, Name: "buffer_time", Label: "corrected buffer time", Unit: "s", Values: []float64{0.000808}, Median: 0.000808, Mean: 0.000808, Min: 0.000808, Max: 0.000808},
			{FrameSize: 1518, Flows: 1, Name: "back_to_back", Unit: "frames", Primary: true, Nones: []string{"not applicable: the throughput is the theoretical maximum"}}}}
	run.Benchmarks = []bench.Benchmark{b, l}
	return run
}
