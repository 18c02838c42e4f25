package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumb/providers"
	"plumb/stages/bench"
)

// group is one frame size and flow count of a benchmark: its summary, its trials that count, and the trial that stands for them.
type group struct {
	bench.Summary
	trials []bench.Trial
	// typical is the trial whose receive rate is the median (the lower of two): its ledger and observations are shown. nil: none counts.
	typical *bench.Trial
	why     string // "the median", "the nearest to what was found"
}

// groups are a benchmark's frame sizes and flow counts in their order. Where a method searched, foundGroups makes them.
func groups(b *bench.Benchmark) []group {
	if len(b.Figures) > 0 {
		return foundGroups(b)
	}
	var out []group
	for _, s := range b.Summary {
		g := group{Summary: s}
		for _, t := range b.Trials {
			if t.FrameSize == s.FrameSize && t.Flows == s.Flows && t.Verdict != bench.Invalid {
				g.trials = append(g.trials, t)
			}
		}
		if n := len(g.trials); n > 0 {
			byRate := slices.Clone(g.trials)
			slices.SortStableFunc(byRate, func(a, b bench.Trial) int { return cmp.Compare(a.RxRate, b.RxRate) })
			g.typical, g.why = &byRate[(n-1)/2], "the median"
		}
		out = append(out, g)
	}
	return out
}

// label names a group: "64 B", with the flows where there are several counts.
func (g group) label(flows bool) string {
	if flows {
		return fmt.Sprintf("%d B, %s", g.FrameSize, plural(g.Flows, "flow"))
	}
	return fmt.Sprintf("%d B", g.FrameSize)
}

// verdicts counts in words: "3 PASS, 1 INVALID".
func (g group) verdicts() string { return counts(g.trials, g.Invalid) }

func counts(counted []bench.Trial, invalid int) string {
	pass, fail := 0, 0
	for _, t := range counted {
		if t.Verdict == bench.Fail {
			fail++
		} else {
			pass++
		}
	}
	var parts []string
	for _, p := range []struct {
		n int
		v bench.Verdict
	}{{pass, bench.Pass}, {fail, bench.Fail}, {invalid, bench.Invalid}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.v))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// spread writes the coefficient of variation, and nothing where one trial has none.
func (g group) spread() string {
	if g.Trials < 2 {
		return "—"
	}
	return fmt.Sprintf("%.1f %%", g.RxCV*100)
}

// severalFlows says whether a benchmark's groups differ in their flows.
func severalFlows(gs []group) bool {
	for _, g := range gs {
		if g.Flows != gs[0].Flows {
			return true
		}
	}
	return false
}

// flowCounts are the flow counts of groups in their order.
func flowCounts(gs []group) []int {
	var out []int
	for _, g := range gs {
		if !slices.Contains(out, g.Flows) {
			out = append(out, g.Flows)
		}
	}
	return out
}

// lossPlaces says in one sentence where a trial lost frames, the worst place first.
func lossPlaces(t *bench.Trial) string {
	var worst *bench.Hop
	total, places := int64(0), 0
	for i := range t.Ledger {
		h := &t.Ledger[i]
		if h.Lost <= 0 {
			continue
		}
		places++
		total += h.Lost
		if worst == nil || h.Lost > worst.Lost {
			worst = h
		}
	}
	if worst == nil {
		return "nothing lost"
	}
	s := fmt.Sprintf("%s of %s frames lost", grouped(total), grouped(t.Sent))
	if places == 1 {
		return s + ", " + place(*worst)
	}
	return s + fmt.Sprintf(", %s of them %s", percentOf(float64(worst.Lost)/float64(total)), place(*worst))
}

// place says where a line of the ledger loses.
func place(h bench.Hop) string {
	switch h.Role {
	case bench.Enter:
		return "before " + h.Name + " took them in"
	case bench.Leave:
		return "in the switch or at " + h.Name + " on their way out"
	case bench.Through:
		return "at " + h.Name
	}
	return "on the way back to the generator"
}

// roleText says what a hop's figure is.
func roleText(r bench.Role) string {
	switch r {
	case bench.Sender:
		return "generator sends"
	case bench.Enter:
		return "into the switch"
	case bench.Leave:
		return "out of the switch"
	case bench.Through:
		return "passes on"
	}
	return "generator receives"
}

// causeText lists what a hop named, the greatest first, and what nobody named.
func causeText(h bench.Hop) string {
	var parts []string
	for _, c := range ordered(h.Causes) {
		parts = append(parts, fmt.Sprintf("%s %s", c, grouped(h.Causes[c])))
	}
	switch {
	case h.Unexplained > 0:
		parts = append(parts, "no counter names "+grouped(h.Unexplained))
	case h.Unexplained < 0:
		parts = append(parts, "counters name "+grouped(-h.Unexplained)+" more than were lost")
	}
	return strings.Join(parts, "; ")
}

func ordered(m map[string]uint64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return keys
}

// kinds are the observed kinds in a fixed order, others after them by name.
var kinds = []struct{ kind, title, what string }{
	{"bottleneck", "Bottleneck", "A PMD thread that was busy for more than 90 % of its cycles, and the receive queue that took most of them."},
	{"pmd", "PMD threads", "Cycles of the poll mode driver threads between the start and the end of the stream."},
	{"rxq", "Receive queues", "Which PMD polls which queue, and the share of its cycles that the queue took."},
	{"cache", "Datapath caches", "Where the datapath found the flow of a packet: exact match cache, signature match cache, megaflow table, or an upcall."},
	{"cpu", "CPU by core", "Share of time that each core was busy, as the kernel counts it. A PMD or testpmd polls, so its core is always fully busy. Steal is what the hypervisor gave to others."},
	{"thread", "CPU by thread", "What threads did, as pidstat shows it, in percent of one core. Threads of one name are added up."},
	{"irq", "Interrupts", "Interrupts by core, the greatest lines."},
	{"frequency", "Clock frequency", ""},
	{"memory", "Memory by NUMA node", "Where the pages of the processes lie."},
	{"hugepages", "Hugepages", ""},
	{"flows", "Datapath flows", "Flows in the datapath's table and how they were found."},
	{"datapath", "Datapath events", "Drops and upcalls that the datapath counted as events, over all ports."},
	{"coverage", "Coverage counters", "Events inside ovs-vswitchd that moved."},
	{"port", "Ports", "Counters of the switch's ports."},
}

func kindTitle(kind string) (title, what string) {
	for _, k := range kinds {
		if k.kind == kind {
			return k.title, k.what
		}
	}
	if kind == "" {
		return "Other", ""
	}
	return strings.ToUpper(kind[:1]) + kind[1:], ""
}

func kindRank(kind string) int {
	i := slices.IndexFunc(kinds, func(k struct{ kind, title, what string }) bool { return k.kind == kind })
	if i < 0 {
		return len(kinds)
	}
	return i
}

// metric writes a figure with its unit.
func metric(m providers.Metric) string {
	switch m.Unit {
	case "%":
		return fmt.Sprintf("%.1f %%", m.Value)
	case "s":
		return significant(m.Value) + " s"
	}
	s := significant(m.Value)
	if m.Value == float64(int64(m.Value)) {
		s = grouped(int64(m.Value))
	} else if m.Value >= 1000 {
		s = grouped(int64(m.Value + 0.5))
	}
	if m.Unit == "" {
		return s
	}
	return s + " " + m.Unit
}

// methodTexts say what each method measures, so that a number is not taken for another.
var methodTexts = map[string]string{
	"continuous":   "one offered load, and the rate that came back. It is not RFC 2544 throughput, which is the highest rate at which nothing is lost.",
	"throughput":   "the highest offered load at which the loss goal is met (RFC 2544 section 26.1). What each figure may be called stands beside it.",
	"ndr_pdr":      "several loss goals in one search (MLRsearch, draft-ietf-bmwg-mlrsearch): the highest load that each goal's rule passes, and its conditional throughput.",
	"loss_rate":    "the share of frames lost, from the highest load downwards (RFC 2544 section 26.3).",
	"latency":      "the time from sending a frame to receiving it, at the throughput (RFC 2544 section 26.2, RFC 8219 section 7).",
	"back_to_back": "the longest burst at the least gap of which nothing is lost, and the buffer that it implies (RFC 9004).",
	"recovery":     "how long frames are lost after an overload has ended (RFC 2544 section 26.5).",
	"reset":        "how long nothing is forwarded when the device under test is reset (RFC 2544 section 26.6, RFC 6201).",
	"burst":        "the highest mean load without loss when frames come in bursts (RFC 2544 section 21).",
	"soak":         "one load for a long time, every frame accounted for.",
}

// methodText names a method and says what it measures.
func methodText(b *bench.Benchmark) string {
	if text := methodTexts[b.Method]; text != "" {
		return b.Method + ": " + text
	}
	return b.Method
}

// goalText says what a trial had to hold.
func goalText(b *bench.Benchmark) string {
	if b.MaxLoss == nil && len(b.Figures) > 0 {
		return "stands beside each figure"
	}
	if b.MaxLoss == nil {
		return "no loss goal: every trial that counts is a PASS"
	}
	return fmt.Sprintf("at most %g %% of the frames lost", *b.MaxLoss)
}

func directions(b *bench.Benchmark) string {
	if b.Bidirectional {
		return "both directions at once; rates are their sum"
	}
	return "one direction, along the path"
}
