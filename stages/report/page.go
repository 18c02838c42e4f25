package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"plumb/stages/bench"
)

//go:embed page.html.tmpl
var pageTemplate string

//go:embed page.css
var pageStyle string

// ledgersOpen is how many ledgers of a benchmark are unfolded at first.
const ledgersOpen = 4

// HTML is the run as one page that needs no network, no script and no font.
func HTML(run *bench.Run) ([]byte, error) {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newPage(run)); err != nil {
		return nil, fmt.Errorf("write HTML report: %w", err)
	}
	return b.Bytes(), nil
}

// page is what the template shows. All text is ready to be read.
type page struct {
	Style    template.CSS
	ID       string
	Title    string
	Facts    [][2]string // about the run
	Verdicts []badge
	Overview []chart
	// Columns of the results table that not every run has.
	HasSpread, HasLine, HasFlows, HasBottleneck bool
	Rows                                        []overviewRow
	Found                                       *foundView // primary figures of methods that search
	Sections                                    []section
	Hosts                                       []bench.HostFacts
	Legend                                      []string
}

// badge is a count with a sign besides its colour.
type badge struct{ Class, Sign, Text string }

type overviewRow struct {
	Benchmark, Anchor string
	Span              int // rows of this benchmark; 0: not the first
	Frame, Flows      string
	Sent, Received    string
	Spread, Bits      string
	Share             string // of the theoretical maximum
	Lost, Bottleneck  string
	Verdict           badge
}

var (
	passBadge    = badge{"pass", "✓", "PASS"}
	failBadge    = badge{"fail", "✗", "FAIL"}
	invalidBadge = badge{"invalid", "⚠", "INVALID"}
)

func badgeOf(v bench.Verdict) badge {
	switch v {
	case bench.Pass:
		return passBadge
	case bench.Fail:
		return failBadge
	}
	return invalidBadge
}

func newPage(run *bench.Run) page {
	p := page{Style: template.CSS(pageStyle), ID: run.ID, Title: "Benchmark report", Hosts: run.Hosts, Legend: legend}
	p.Facts = [][2]string{{"Run", run.ID}, {"Measured", when(run.Started) + ", " + short(run.Ended.Sub(run.Started))}}
	if names := hostNames(run); names != "" {
		p.Facts = append(p.Facts, [2]string{"Hosts", names})
	}
	p.Facts = append(p.Facts, [2]string{"Testbed", fmt.Sprintf("%s, state serial %d", run.Testbed, run.Serial)}, [2]string{"Plumb", run.PlumbVersion})
	p.Verdicts = verdicts(run)
	var primary []figureView
	for i := range run.Benchmarks {
		b := &run.Benchmarks[i]
		anchor := fmt.Sprintf("b%d", i+1)
		if found := foundRows(b, anchor); len(found) > 0 {
			primary = append(primary, found...)
		} else {
			p.Rows = append(p.Rows, overview(b, anchor)...)
		}
		p.Sections = append(p.Sections, newSection(b, anchor))
	}
	for _, r := range p.Rows {
		p.HasSpread, p.HasLine = p.HasSpread || r.Spread != "—", p.HasLine || r.Share != "—"
		p.HasFlows, p.HasBottleneck = p.HasFlows || r.Flows != "1" && r.Flows != "—", p.HasBottleneck || r.Bottleneck != ""
	}
	p.Found = newFound(primary)
	p.Overview = compare(run)
	return p
}

func hostNames(run *bench.Run) string {
	var out []string
	for _, h := range run.Hosts {
		s := h.Name
		for _, r := range h.Rows {
			if r[0] == "Operating system" {
				s += ": " + r[1]
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// verdicts counts the whole run's trials and requirements.
func verdicts(run *bench.Run) []badge {
	n := map[bench.Verdict]int{}
	held, unmet, broken := 0, 0, 0
	for _, b := range run.Benchmarks {
		for _, t := range b.Trials {
			n[t.Verdict]++
		}
		for _, q := range b.Requires {
			if q.Holds {
				held++
			} else {
				unmet++
			}
		}
		if b.Error != "" {
			broken++
		}
	}
	out := []badge{{"pass", "✓", plural(n[bench.Pass], "trial") + " PASS"}}
	if n[bench.Fail] > 0 {
		out = append(out, badge{"fail", "✗", plural(n[bench.Fail], "trial") + " FAIL"})
	}
	if n[bench.Invalid] > 0 {
		out = append(out, badge{"invalid", "⚠", plural(n[bench.Invalid], "trial") + " INVALID, not counted"})
	}
	if held > 0 {
		out = append(out, badge{"pass", "✓", plural(held, "requirement") + " met"})
	}
	if unmet > 0 {
		out = append(out, badge{"fail", "✗", plural(unmet, "requirement") + " not met"})
	}
	if broken > 0 {
		out = append(out, badge{"fail", "✗", plural(broken, "benchmark") + " ended by an error"})
	}
	return out
}

func overview(b *bench.Benchmark, anchor string) []overviewRow {
	gs := groups(b)
	if len(gs) == 0 {
		return []overviewRow{{Benchmark: b.Addr, Anchor: anchor, Span: 1, Frame: "—", Flows: "—", Sent: "—", Received: "—", Spread: "—", Bits: "—", Share: "—", Lost: "—",
			Verdict: badge{"fail", "✗", "no trial"}}}
	}
	var out []overviewRow
	for i, g := range gs {
		r := overviewRow{Frame: grouped(g.FrameSize), Flows: grouped(g.Flows), Sent: "—", Received: "—", Spread: "—", Bits: "—", Share: "—", Lost: "—",
			Bottleneck: g.Bottleneck, Verdict: badge{"pass", "✓", g.verdicts()}}
		if i == 0 {
			r.Benchmark, r.Anchor, r.Span = b.Addr, anchor, len(gs)
		}
		if strings.Contains(r.Verdict.Text, string(bench.Fail)) {
			r.Verdict.Class, r.Verdict.Sign = "fail", "✗"
		} else if g.Invalid > 0 {
			r.Verdict.Class, r.Verdict.Sign = "invalid", "⚠"
		}
		if g.typical != nil {
			r.Sent, r.Received, r.Spread, r.Bits, r.Lost = rate(g.TxMedian), rate(g.RxMedian), g.spread(), bits(g.BitrateMedian), percentOf(g.LossMedian)
			if b.LineRate > 0 {
				r.Share = percentOf(g.RxMedian / bench.LineRateFPS(b.LineRate, g.FrameSize))
			}
		}
		out = append(out, r)
	}
	return out
}

// frames are the frame sizes of groups in their order.
func frames(gs []group) []int {
	var out []int
	for _, g := range gs {
		if !slices.Contains(out, g.FrameSize) {
			out = append(out, g.FrameSize)
		}
	}
	return out
}

func find(gs []group, size, flows int) *group {
	for i := range gs {
		if gs[i].FrameSize == size && gs[i].Flows == flows {
			return &gs[i]
		}
	}
	return nil
}

const sizeAxis = "frame size, bytes with FCS"

// maxSeries is how many series a chart tells apart.
const maxSeries = 6

// compare draws the benchmarks beside one another, at the lowest flow count that each has. One benchmark alone is drawn in its section.
func compare(run *bench.Run) []chart {
	type entry struct {
		b  *bench.Benchmark
		gs []group
	}
	var all []entry
	var sizes []int
	for i := range run.Benchmarks {
		if len(run.Benchmarks[i].Figures) > 0 {
			continue // what was found stands in its section: a rate with a goal is no plain rate
		}
		if gs := groups(&run.Benchmarks[i]); slices.ContainsFunc(gs, func(g group) bool { return g.typical != nil }) && len(all) < maxSeries {
			all = append(all, entry{&run.Benchmarks[i], gs})
			for _, s := range frames(gs) {
				if !slices.Contains(sizes, s) {
					sizes = append(sizes, s)
				}
			}
		}
	}
	if len(all) < 2 {
		return nil
	}
	slices.Sort(sizes)
	draw := func(title, note string, scaleOf func(float64) scale, value func(group) bar) chart {
		c := barChart{title: title, note: note, xLabel: sizeAxis}
		for _, s := range sizes {
			c.categories = append(c.categories, grouped(s))
		}
		top := 0.0
		for _, e := range all {
			name := strings.TrimPrefix(e.b.Addr, "benchmark.")
			flows := slices.Min(flowCounts(e.gs))
			if severalFlows(e.gs) {
				name += ", " + plural(flows, "flow")
			}
			c.names = append(c.names, name)
			var bars []bar
			for _, s := range sizes {
				var b bar
				if g := find(e.gs, s, flows); g != nil && g.typical != nil {
					b = value(*g)
					top = max(top, b.high)
				}
				bars = append(bars, b)
			}
			c.bars = append(c.bars, bars)
		}
		return c.scaled(scaleOf(top)).draw()
	}
	return []chart{
		draw("Receive rate by frame size", "", rateScale, rateBar),
		draw("Bit rate on the wire by frame size", "With 20 bytes of preamble and gap for each frame.", bitScale, func(g group) bar {
			return bar{value: g.BitrateMedian, low: g.BitrateMedian, high: g.BitrateMedian, ok: true}
		}),
	}
}

func rateBar(g group) bar { return bar{value: g.RxMedian, low: g.RxMin, high: g.RxMax, ok: true} }

// scaled gives the chart an axis in a unit.
func (c barChart) scaled(s scale) barChart {
	c.yLabel = s.unit
	c.format = func(v float64) string { return label(v / s.by) }
	c.full = s.format
	return c
}
