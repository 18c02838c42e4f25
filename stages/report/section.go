package report

import (
	"fmt"
	"slices"
	"strings"

	"plumb/providers"
	"plumb/stages/bench"
)

// section is one benchmark.
type section struct {
	Anchor, Addr string
	Error        string
	Path         []string
	Facts        [][2]string
	Found        *foundView
	Charts       []chart
	Ledgers      []ledgerView
	Observed     []observedView
	Latency      []latencyRow
	Requires     []requireView
	Trials       []trialRow
	Proof        []string
	Phases       []string
	Notes        []string
}

type latencyRow struct{ Group, Samples, Min, P50, P90, P99, P999, Max, PDV, Jitter string }

type requireView struct {
	Badge          badge
	Message, Where string
}

type trialRow struct {
	Phase                                            string
	Frame, Flows, Repeat, Attempt, Offered, Duration string
	Sent, Unsent, Received, Rate, Lost               string
	Verdict                                          badge
	Reasons                                          string
}

func newSection(b *bench.Benchmark, anchor string) section {
	gs := groups(b)
	s := section{Anchor: anchor, Addr: b.Addr, Error: b.Error, Path: b.Path, Phases: b.Phases, Notes: b.Notes}
	s.Facts = [][2]string{{"Method", methodText(b)}, {"Goal", goalText(b)}, {"Generator", joined(", ", b.Generator, b.Tool)},
		{"Traffic", joined(", ", b.Headers+" frames", flowText(gs), directions(b))}}
	if !b.Signed && b.Tool != "" {
		s.Facts = append(s.Facts, [2]string{"Counting", "the generator counts every frame that arrives, not only its own; a surplus anywhere on the path makes a trial INVALID"})
	}
	if b.LineRate > 0 {
		s.Facts = append(s.Facts, [2]string{"Link", bits(b.LineRate)})
	}
	for _, a := range b.Settings {
		s.Facts = append(s.Facts, [2]string{capital(a[0]), a[1]})
	}
	s.Found = newFound(figures(b))
	s.Charts = sectionCharts(b, gs)
	several := severalFlows(gs)
	for i, g := range gs {
		if g.typical != nil && len(g.typical.Ledger) > 0 {
			s.Ledgers = append(s.Ledgers, newLedger(g, several, i < ledgersOpen))
		}
	}
	s.Observed = observed(gs, several)
	s.Latency = latency(gs, several)
	for _, q := range b.Requires {
		v := requireView{badge{"pass", "✓", "met"}, q.Message, q.Where}
		if !q.Holds {
			v.Badge = badge{"fail", "✗", "not met"}
		}
		s.Requires = append(s.Requires, v)
	}
	for _, t := range b.Trials {
		r := trialRow{Phase: t.Phase, Frame: grouped(t.FrameSize), Flows: grouped(t.Flows), Repeat: fmt.Sprint(t.Repeat), Attempt: fmt.Sprint(t.Attempt), Offered: "maximum",
			Duration: fmt.Sprintf("%.3f s", t.Duration), Sent: grouped(t.Sent), Unsent: grouped(t.Unsent), Received: grouped(t.Received), Rate: rate(t.RxRate),
			Lost: percentOf(t.LossRatio), Verdict: badgeOf(t.Verdict), Reasons: strings.Join(t.Reasons, "; ")}
		if t.Offered > 0 {
			r.Offered = rate(t.Offered)
		}
		for _, step := range t.Steps {
			r.Offered += fmt.Sprintf(", then %s for %s", rate(step.Offered), seconds(step.Duration))
		}
		if t.Burst > 1 {
			r.Offered += fmt.Sprintf(" in bursts of %s", grouped(t.Burst))
		}
		if t.Frames > 0 {
			r.Offered += fmt.Sprintf(", %s frames", grouped(t.Frames))
		}
		s.Trials = append(s.Trials, r)
	}
	for _, p := range b.Proof {
		s.Proof = append(s.Proof, proofText(b, p))
	}
	return s
}

// flowText lists the flow counts.
func flowText(gs []group) string {
	var out []string
	for _, f := range flowCounts(gs) {
		out = append(out, grouped(f))
	}
	switch {
	case len(out) == 0:
		return ""
	case len(out) == 1:
		return plural(gs[0].Flows, "flow")
	}
	return strings.Join(out[:len(out)-1], ", ") + " and " + out[len(out)-1] + " flows"
}

func proofText(b *bench.Benchmark, p bench.Proof) string {
	names := slices.Clone(b.Path)
	way := ""
	if p.Direction == 1 {
		slices.Reverse(names)
		way = " against the path"
	}
	names = append(names, "the generator")
	parts := make([]string, 0, len(p.Seen))
	for i, n := range p.Seen {
		if i < len(names) {
			parts = append(parts, fmt.Sprintf("%s %d", names[i], n))
		}
	}
	return fmt.Sprintf("%d frames of %d bytes sent%s; seen at %s.", p.Sent, p.FrameSize, way, strings.Join(parts, ", "))
}

func sectionCharts(b *bench.Benchmark, gs []group) []chart {
	if !slices.ContainsFunc(gs, func(g group) bool { return g.typical != nil }) {
		return nil
	}
	var out []chart
	keep := func(c chart, ok bool) {
		if ok {
			out = append(out, c)
		}
	}
	if len(b.Figures) > 0 {
		keep(foundChart(b, gs))
		keep(lossCurve(b, gs))
		keep(latencyCurve(gs))
		return out
	}
	flows := flowCounts(gs)
	note := ""
	if len(flows) > maxSeries {
		note = fmt.Sprintf("The first %d of %d flow counts.", maxSeries, len(flows))
		flows = flows[:maxSeries]
	}
	sizes := frames(gs)
	base := barChart{xLabel: sizeAxis, note: note}
	for _, f := range flows {
		base.names = append(base.names, plural(f, "flow"))
	}
	for _, s := range sizes {
		base.categories = append(base.categories, grouped(s))
	}
	fill := func(c barChart, value func(group) bar) (barChart, float64) {
		top := 0.0
		for _, f := range flows {
			var bars []bar
			for _, s := range sizes {
				var v bar
				if g := find(gs, s, f); g != nil && g.typical != nil {
					v = value(*g)
					top = max(top, v.high)
				}
				bars = append(bars, v)
			}
			c.bars = append(c.bars, bars)
		}
		return c, top
	}
	rates, top := fill(base, rateBar)
	rates.title = "Receive rate by frame size"
	repeated := slices.ContainsFunc(gs, func(g group) bool { return g.Trials > 1 })
	if repeated {
		rates.note = joined(" ", "Bars are medians; whiskers reach from the least to the greatest trial.", note)
	}
	if b.LineRate > 0 {
		rates.markName = "theoretical maximum of a link of " + bits(b.LineRate)
		for _, s := range sizes {
			m := bench.LineRateFPS(b.LineRate, s)
			rates.marks = append(rates.marks, m)
			top = max(top, m)
		}
	}
	losses, most := fill(base, func(g group) bar {
		l := max(0, g.LossMedian*100)
		return bar{value: l, low: l, high: l, ok: true}
	})
	losses.title, losses.yLabel, losses.limit = "Frames lost by frame size", "% of the frames sent", 100
	losses.format = label
	losses.full = func(v float64) string { return percentOf(v / 100) }
	if most == 0 {
		rates.note = joined(" ", "No frames were lost.", rates.note)
	}
	out = append(out, rates.scaled(rateScale(top)).draw())
	keep(losses.draw(), most > 0)
	keep(latencyCurve(gs))
	if repeated && len(gs) <= 12 {
		out = append(out, spread(gs))
	}
	return out
}

func spread(gs []group) chart {
	several := severalFlows(gs)
	var cats []string
	var dots [][]dot
	for _, g := range gs {
		if g.typical == nil || g.RxMedian == 0 {
			continue
		}
		cat := grouped(g.FrameSize)
		if several {
			cat += "/" + grouped(g.Flows)
		}
		var ds []dot
		for _, t := range g.trials {
			ds = append(ds, dot{off: 100 * (t.RxRate - g.RxMedian) / g.RxMedian, fail: t.Verdict == bench.Fail,
				tip: fmt.Sprintf("%s, trial %d: %s, %s", g.label(several), t.Repeat, rate(t.RxRate), t.Verdict)})
		}
		cats, dots = append(cats, cat), append(dots, ds)
	}
	return spreadChart(cats, dots)
}

// typicalLatency is the latency of the trial that stands for a group: of two directions that along the path. nil: it was not measured.
func typicalLatency(g group) *providers.Latency {
	switch t := g.typical; {
	case t == nil:
		return nil
	case t.Latency == nil && len(t.Directions) > 0:
		return t.Directions[0].Latency
	default:
		return t.Latency
	}
}

func latency(gs []group, several bool) []latencyRow {
	var out []latencyRow
	add := func(name string, l *providers.Latency) {
		if l != nil {
			us := func(ns float64) string { return significant(ns / 1000) }
			out = append(out, latencyRow{name, grouped(l.Samples), us(l.Min), us(l.P50), us(l.P90), us(l.P99), us(l.P999), us(l.Max), us(l.PDV), us(l.Jitter)})
		}
	}
	for _, g := range gs {
		if g.typical == nil {
			continue
		}
		add(g.label(several), g.typical.Latency)
		for i, d := range g.typical.Directions {
			add(g.label(several)+[]string{", along", ", against"}[i&1], d.Latency)
		}
	}
	return out
}
