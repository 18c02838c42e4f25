package ovs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
)

// recorded is what ovs-vswitchd 3.1.0 with DPDK 22.11 printed, the i-th time.
func recorded(t testing.TB, i int) reading {
	out := func(name string) string { return readFile(t, fmt.Sprintf("ovs31/%s%d.txt", name, i)) }
	r := reading{paths: parseDatapaths(out("dpctl")), upcalls: parseUpcalls(out("upcall")), coverage: parseCoverage(out("cov"))}
	r.pmds, _ = mergePMDs(parsePMDStats(out("stats")), parsePMDPerf(out("perf")))
	if i == 2 {
		r.rxqs, r.rxqWindow = parseRxqs(out("rxq")), shownWindow(out("rxq"))
	}
	return r
}

func print(obs []providers.Observation) string {
	var b strings.Builder
	for _, o := range obs {
		fmt.Fprintf(&b, "%s | %s |", o.Kind, o.Subject)
		for _, m := range o.Metrics {
			fmt.Fprintf(&b, " %s %.6g%s", m.Name, m.Value, m.Unit)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestObservations compares what is made of real output, 6 s apart, with golden text.
func TestObservations(t *testing.T) {
	got := print(observations("dut", recorded(t, 1), recorded(t, 2)))
	golden := filepath.Join("testdata", "ovs31", "observations.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readFile(t, "ovs31/observations.golden"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Histograms of two readings with pmd-perf-metrics tell the window's longest iteration.
func TestHistogram(t *testing.T) {
	a, b := parsePMDPerf(readFile(t, "ovs31/perf2.txt"))[1], parsePMDPerf(readFile(t, "ovs31/perf3.txt"))[1]
	if len(a.perf.cycles.walls) != 31 || len(a.perf.cycles.bins) != 32 || a.perf.cycles.bins[31] != 4 || a.perf.vhostQueue.bins[0] != 805892 {
		t.Errorf("%+v", a.perf)
	}
	if hz := a.perf.cyclesPerMicrosecond; hz < 2440 || hz > 2460 {
		t.Errorf("%g cycles a µs; the machine has 2450", hz)
	}
	d := b.since(a).perf
	var sum uint64
	for _, n := range d.cycles.bins {
		sum += n
	}
	if sum > d.iterations || sum < d.iterations-100 { // the thread goes on while it is read
		t.Errorf("%d values of %d iterations", sum, d.iterations)
	}
	if first := parsePMDPerf(readFile(t, "ovs31/perf1.txt"))[1]; !a.since(first).perf.cycles.empty() {
		t.Error("a histogram that is older than the window is taken for the window's")
	}
	h := histogram{walls: []uint64{10, 20, 40}, bins: []uint64{1, 2, 3, 0}}
	if n, within := h.most(); n != 40 || !within || h.over(20) != 3 || h.over(15) != 3 || h.over(25) != 0 {
		t.Errorf("at most %d, %d over", n, h.over(20))
	}
	h.bins[3] = 1
	if n, within := h.most(); n != 40 || within || h.over(25) != 1 {
		t.Errorf("beyond %d, %d over", n, h.over(25))
	}
}

// What versions before and after 3.1 print (lib/dpif-netdev.c and lib/dpif-netdev-perf.c of theirs).
func TestOtherVersions(t *testing.T) {
	const old = "pmd thread numa_id 0 core_id 3:\n\tpackets received: 1000\n\tpacket recirculations: 500\n\tavg. datapath passes per packet: 1.50\n\temc hits: 1200\n\tmegaflow hits: 200\n" +
		"\tavg. subtable lookups per megaflow hit: 1.25\n\tmiss with success upcall: 99\n\tmiss with failed upcall: 1\n\tavg. packets per output batch: 2.00\n" +
		"\tidle cycles: 100 (10.00%)\n\tprocessing cycles: 900 (90.00%)\nmain thread:\n\tpackets received: 7\n"
	want := pmdStats{core: 3, packets: 1000, passes: 1500, idle: 100, busy: 900, emc: 1200, megaflow: 200, upcalls: 99, lost: 1, lookups: 250}
	if diff := cmp.Diff(map[int]pmdStats{3: want}, parsePMDStats(old), cmp.AllowUnexported(pmdStats{}, pmdPerf{}, histogram{})); diff != "" {
		t.Errorf("2.9: %s", diff)
	}
	const new = "\nTime: 10:00:00.000\nMeasurement duration: 10.000 s\n\npmd thread numa_id 0 core_id 3:\n\n  Iterations:                 1000  (10.00 us/it)\n" +
		"  - Used TSC cycles:      20000000  ( 80.0 % of total cycles)\n  - idle iterations:           400  ( 25.0 % of used cycles)\n  - busy iterations:           600  ( 75.0 % of used cycles)\n" +
		"  - sleep iterations:          100  ( 10.0 % of iterations)\n  Sleep time (us):         2000000  (20000 us/iteration avg.)\n" +
		"  Rx packets:                 1000  (0 Kpps, 15000 cycles/pkt)\n  Datapath passes:            1500  (1.50 passes/pkt)\n  - PHWOL hits:                  0  (  0.0 %)\n" +
		"  - Simple Match hits:           0  (  0.0 %)\n  - EMC hits:                 1200  ( 80.0 %)\n  - SMC hits:                    0  (  0.0 %)\n" +
		"  - Megaflow hits:             200  ( 13.3 %, 1.25 subtbl lookups/hit)\n  - Upcalls:                    99  (  6.6 %, 0.0 us/upcall)\n  - Lost upcalls:                1  (  0.1 %)\n" +
		"  Tx packets:                  900  (0 Kpps)\n  Tx batches:                  300  (3.00 pkts/batch)\n\nTime: 10:00:00.000\nMeasurement duration: 10.000 s\n\nmain thread:\n\n" +
		"  Rx packets:                    7  (0 Kpps)\n  Datapath passes:               7  (1.00 passes/pkt)\n"
	want.idle, want.busy = 5000000, 15000000
	want.perf = pmdPerf{seconds: 10, iterations: 1000, busy: 600, asleep: 2000000, txPackets: 900, txBatches: 300, cyclesPerMicrosecond: 2.5, sharesIdle: 5000000, sharesOfBusy: 15000000}
	got, exact := mergePMDs(nil, parsePMDPerf(new))
	if diff := cmp.Diff(map[int]pmdStats{3: want}, got, cmp.AllowUnexported(pmdStats{}, pmdPerf{}, histogram{})); diff != "" || exact {
		t.Errorf("4.0, exact %t: %s", exact, diff)
	}
	const obs = "pmd | core 3 | busy 75% busy_cycles 1.5e+07cycles idle_cycles 5e+06cycles packets 1000frames busy_cycles_per_packet 15000cycles cycles_per_packet 20000cycles " +
		"passes_per_packet 1.5 packets_per_batch 3frames packets_per_busy_iteration 1.66667frames cycles_per_iteration 20000cycles iterations 1000 busy_iterations 60% asleep 20%\n" +
		"cache | core 3 | phwol 0% simple_match 0% emc 80% smc 0% megaflow 13.3333% upcall 6.6% upcall_failed 0.0666667% subtable_lookups_per_megaflow_hit 1.25 upcalls 99frames upcalls_failed 1frames\n"
	if diff := cmp.Diff(obs, print(observations("dut", reading{}, reading{pmds: got}))); diff != "" {
		t.Error(diff)
	}
}

func TestParseRxqs(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		want []rxqShare
		secs int
	}{
		"3.1": {out: `Displaying last 60 seconds pmd usage %
pmd thread numa_id 0 core_id 1:
  isolated : true
  port: n0                queue-id:  0 (enabled)   pmd usage: 37 %
  port: v0                queue-id:  1 (disabled)  pmd usage:  0 %
  overhead:  3 %
pmd thread numa_id 0 core_id 2:
  isolated : false
`, secs: 60, want: []rxqShare{{core: 1, port: "n0", enabled: true, usage: 37, overhead: 3, isolated: true}, {core: 1, queue: 1, port: "v0", overhead: 3, isolated: true}}},
		"2.17 without a whole interval": {out: "pmd thread numa_id 0 core_id 1:\n  isolated : false\n  port: n0                queue-id:  0 (enabled)   pmd usage: NOT AVAIL\n  overhead: NOT AVAIL\n",
			want: []rxqShare{{core: 1, port: "n0", enabled: true, usage: -1, overhead: -1}}},
		"2.9": {out: "pmd thread numa_id 0 core_id 1:\n\tisolated : false\n\tport: n0              \tqueue-id:  3\tpmd usage: 12 %\n", want: []rxqShare{{core: 1, queue: 3, port: "n0", enabled: true, usage: 12, overhead: -1}}},
	} {
		if diff := cmp.Diff(c.want, parseRxqs(c.out), cmp.AllowUnexported(rxqShare{})); diff != "" || shownWindow(c.out) != c.secs {
			t.Errorf("%s, over %d s: %s", name, shownWindow(c.out), diff)
		}
	}
}

// A PMD that has no time left is named with the queue that takes most of it.
func TestBottleneck(t *testing.T) {
	r := reading{pmds: map[int]pmdStats{1: {core: 1, busy: 99, idle: 1}, 2: {core: 2, busy: 90, idle: 10}, 3: {core: 3, busy: 95, idle: 5}},
		rxqs: []rxqShare{{core: 1, port: "v0", usage: 60, overhead: 10, enabled: true}, {core: 1, port: "v1", queue: 1, usage: 20, overhead: 10}, {core: 2, port: "v2", usage: 99, overhead: -1}, {core: 3, port: "v3", usage: -1, overhead: -1}}}
	var got []string
	for line := range strings.Lines(print(observations("dut", reading{}, r))) {
		if strings.HasPrefix(line, "bottleneck") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{"bottleneck | PMD core 1, most by v0 queue 0 | busy 99% taken_by_queue 66.6667%", "bottleneck | PMD core 3 | busy 95%"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKernelDatapath(t *testing.T) {
	const out = "system@ovs-system:\n  lookups: hit:100 missed:20 lost:3\n  flows: 5\n  masks: hit:240 total:2 hit/pkt:2.00\n  caches:\n    masks-cache: size:256\n" +
		"  port 0: ovs-system (internal)\n    RX packets:0 errors:0 dropped:0 overruns:0 frame:0\n    TX packets:0 errors:0 dropped:0 aborted:0 carrier:0\n" +
		"  port 1: eth1\n    RX packets:9 errors:1 dropped:2 overruns:0 frame:0\n    TX packets:8 errors:0 dropped:3 aborted:0 carrier:0\n"
	after := reading{paths: parseDatapaths(out), resets: map[string]uint64{"eth1": 2}}
	want := "port | eth1 | rx 9frames tx 8frames rx_dropped 2frames tx_dropped 3frames rx_errors 1frames link_resets 2\n" +
		"flows | system@ovs-system | flows 5 hit 100frames missed 20frames lost 3frames masks 2 masks_looked_at_per_packet 2\n"
	if diff := cmp.Diff(want, print(observations("dut", reading{}, after))); diff != "" {
		t.Error(diff)
	}
}

func TestSince(t *testing.T) {
	got := pmdStats{packets: 10, busy: 5, megaflow: 4, lookups: 8}.since(pmdStats{packets: 4, busy: 9, megaflow: 2, lookups: 3})
	if got.packets != 6 || got.busy != 5 || got.lookups != 5 {
		t.Errorf("%+v", got)
	}
}

func TestRxqWindow(t *testing.T) {
	for d, want := range map[time.Duration]int{0: 5, 3 * time.Second: 5, 5 * time.Second: 5, 6 * time.Second: 10, time.Hour: 60} {
		if got := rxqWindow(d); got != want {
			t.Errorf("rxqWindow(%s) = %d; want %d", d, got, want)
		}
	}
}

// FuzzParsers holds that no output makes a parser fail badly, and that nothing of it is less than nothing.
func FuzzParsers(f *testing.F) {
	for _, name := range []string{"ovs31/stats1.txt", "ovs31/perf2.txt", "ovs31/rxq2.txt", "ovs31/cov1.txt", "ovs31/dpctl1.txt", "ovs31/upcall1.txt", "dump-ports.txt", "eal-failure.log"} {
		f.Add(readFile(f, name))
	}
	f.Fuzz(func(t *testing.T, out string) {
		r := reading{rxqs: parseRxqs(out), rxqWindow: shownWindow(out), paths: parseDatapaths(out), upcalls: parseUpcalls(out), coverage: parseCoverage(out)}
		r.pmds, _ = mergePMDs(parsePMDStats(out), parsePMDPerf(out))
		perf, _ := mergePMDs(nil, parsePMDPerf(out))
		for _, o := range append(observations("h", reading{}, r), observations("h", r, reading{pmds: perf})...) {
			for _, m := range o.Metrics {
				if m.Value < 0 {
					t.Errorf("%s %s: %s is %g", o.Kind, o.Subject, m.Name, m.Value)
				}
			}
		}
		for _, p := range parsePorts(out) {
			p.counters()
		}
		if n := len(pickLog(out, 3)); n > 3 {
			t.Errorf("%d lines", n)
		}
		parseAlternatives(out)
		parseVersion(out)
	})
}
