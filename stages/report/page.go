package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"plumb/providers"
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
	Rows     []overviewRow
	Sections []section
	Hosts    []bench.HostFacts
	Legend   []string
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

// section is one benchmark.
type section struct {
	Anchor, Addr string
	Error        string
	Path         []string
	Facts        [][2]string
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

type ledgerView struct {
	Title, Sum string
	Open       bool
	Ways       []ledgerWay
	Check      string
}

type ledgerWay struct {
	Title string
	Hops  []hopView
}

type hopView struct {
	Name, Role string
	Lost       string // "" for nothing; else "1,234 lost (0.1 %)"
	Why        string
	Surplus    bool
	Bar        template.HTML
	Figure     string
	Share      string
}

// observedView is one kind of observation as a table: subjects down, groups across.
type observedView struct {
	Title, What string
	Columns     []string
	Meters      bool // one metric in percent, drawn
	Rows        []observedRow
	Folded      bool
}

type observedRow struct {
	Subject, Metric string
	Cells           []cell
}

type cell struct {
	Text string
	Bar  template.HTML
}

type latencyRow struct{ Group, Samples, Min, P50, P90, P99, P999, Max string }

type requireView struct {
	Badge          badge
	Message, Where string
}

type trialRow struct {
	Frame, Flows, Repeat, Attempt, Offered, Duration string
	Sent, Unsent, Received, Rate, Lost               string
	Verdict                                          badge
	Reasons                                          string
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
	for i := range run.Benchmarks {
		b := &run.Benchmarks[i]
		anchor := fmt.Sprintf("b%d", i+1)
		p.Rows = append(p.Rows, overview(b, anchor)...)
		p.Sections = append(p.Sections, newSection(b, anchor))
	}
	p.Overview = compare(run)
	return p
}

func hostNames(run *bench.Run) string {
	var out []string
	for _, h := range run.Hosts {
		s := h.Name
		for _, r := range h.Rows {
			if r[0] == "Operating system" {
				s += " (" + r[1] + ")"
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
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
	c.format = func(v float64) string { return significant(v / s.by) }
	c.full = s.format
	return c
}

func newSection(b *bench.Benchmark, anchor string) section {
	gs := groups(b)
	s := section{Anchor: anchor, Addr: b.Addr, Error: b.Error, Path: b.Path, Phases: b.Phases, Notes: b.Notes}
	s.Facts = [][2]string{{"Method", methodText(b)}, {"Goal", goalText(b)}, {"Generator", joined(", ", b.Generator, b.Tool)},
		{"Traffic", joined(", ", b.Headers+" frames", directions(b))}}
	if !b.Signed && b.Tool != "" {
		s.Facts = append(s.Facts, [2]string{"Counting", "the generator counts every frame that arrives, not only its own; a surplus anywhere on the path makes a trial INVALID"})
	}
	if b.LineRate > 0 {
		s.Facts = append(s.Facts, [2]string{"Link", bits(b.LineRate)})
	}
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
		r := trialRow{Frame: grouped(t.FrameSize), Flows: grouped(t.Flows), Repeat: fmt.Sprint(t.Repeat), Attempt: fmt.Sprint(t.Attempt), Offered: "maximum",
			Duration: fmt.Sprintf("%.3f s", t.Duration), Sent: grouped(t.Sent), Unsent: grouped(t.Unsent), Received: grouped(t.Received), Rate: rate(t.RxRate),
			Lost: percentOf(t.LossRatio), Verdict: badgeOf(t.Verdict), Reasons: strings.Join(t.Reasons, "; ")}
		if t.Offered > 0 {
			r.Offered = rate(t.Offered)
		}
		s.Trials = append(s.Trials, r)
	}
	for _, p := range b.Proof {
		s.Proof = append(s.Proof, proofText(b, p))
	}
	return s
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
	losses, _ := fill(base, func(g group) bar {
		l := max(0, g.LossMedian*100)
		return bar{value: l, low: l, high: l, ok: true}
	})
	losses.title, losses.yLabel, losses.limit = "Frames lost by frame size", "% of the frames sent", 100
	losses.format = func(v float64) string { return significant(v) }
	losses.full = func(v float64) string { return percentOf(v / 100) }
	out := []chart{rates.scaled(rateScale(top)).draw(), losses.draw()}
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

func newLedger(g group, several, open bool) ledgerView {
	t := g.typical
	v := ledgerView{Title: g.label(several), Sum: lossPlaces(t), Open: open}
	if g.Trials > 1 {
		v.Title += fmt.Sprintf(" (trial %d of %d, the median)", t.Repeat, g.Trials)
	}
	var way *ledgerWay
	var sent, before uint64
	var lost int64
	for _, h := range t.Ledger {
		if h.Role == bench.Sender {
			title := ""
			if len(t.Directions) > 1 {
				title = []string{"Along the path", "Against the path"}[h.Direction&1]
			}
			v.Ways = append(v.Ways, ledgerWay{Title: title})
			way, sent, before = &v.Ways[len(v.Ways)-1], h.Out, h.Out
		} else {
			lost += h.Lost
		}
		if way == nil {
			continue // a ledger that does not begin with a sender is not one of ours
		}
		way.Hops = append(way.Hops, newHop(h, sent, before))
		before = h.Out
	}
	v.Check = fmt.Sprintf("%s sent = %s received + %s lost", grouped(t.Sent), grouped(t.Received), grouped(lost))
	return v
}

func newHop(h bench.Hop, sent, before uint64) hopView {
	share := func(n float64) float64 {
		if sent == 0 {
			return 0
		}
		return n / float64(sent)
	}
	v := hopView{Name: h.Name, Role: roleText(h.Role), Bar: meter(share(float64(h.Out)), share(float64(h.Lost))), Figure: grouped(h.Out), Share: percentOf(share(float64(h.Out)))}
	if h.Role == bench.Sender {
		return v
	}
	switch {
	case h.Lost < 0:
		v.Lost, v.Surplus = fmt.Sprintf("%s more than left the hop before", grouped(-h.Lost)), true
	case h.Lost > 0:
		v.Lost = fmt.Sprintf("%s lost (%s of the sent)", grouped(h.Lost), percentOf(share(float64(h.Lost))))
		if h.Role == bench.Through && h.In != h.Out && h.In != before {
			v.Lost += fmt.Sprintf(": %s on the way to it, %s inside", grouped(int64(before)-int64(h.In)), grouped(int64(h.In)-int64(h.Out)))
		} else if h.Role == bench.Through && h.In != h.Out {
			v.Lost += " inside"
		}
	}
	v.Why = causeText(h)
	return v
}

// primary is the metric in percent by which a kind's subjects are compared with bars.
var primary = map[string]string{"pmd": "busy", "cpu": "busy", "rxq": "usage", "thread": "cpu"}

// observed makes one table for each kind: for the kinds that have one, the metric in percent as bars and the rest folded below.
func observed(gs []group, several bool) []observedView {
	type row struct{ subject, metric string }
	type table struct {
		kind string
		rows []row
		at   map[row]map[int]providers.Metric
	}
	var tables []*table
	var columns []string
	var shown []group
	multi := map[string]bool{}
	for _, g := range gs {
		if g.typical != nil && len(g.typical.Observations) > 0 {
			shown = append(shown, g)
			columns = append(columns, g.label(several))
			for _, o := range g.typical.Observations {
				multi[o.Host] = true
			}
		}
	}
	for c, g := range shown {
		for _, o := range g.typical.Observations {
			i := slices.IndexFunc(tables, func(t *table) bool { return t.kind == o.Kind })
			if i < 0 {
				i = len(tables)
				tables = append(tables, &table{kind: o.Kind, at: map[row]map[int]providers.Metric{}})
			}
			t := tables[i]
			subject := o.Subject
			if len(multi) > 1 {
				subject = o.Host + ": " + subject
			}
			for _, m := range o.Metrics {
				r := row{subject, m.Name}
				if t.at[r] == nil {
					t.at[r] = map[int]providers.Metric{}
					t.rows = append(t.rows, r)
				}
				t.at[r][c] = m
			}
		}
	}
	slices.SortStableFunc(tables, func(a, b *table) int { return kindRank(a.kind) - kindRank(b.kind) })
	var out []observedView
	for _, t := range tables {
		title, what := kindTitle(t.kind)
		view := observedView{Title: title, What: what, Columns: columns}
		rest := observedView{Title: title + ": all figures", Columns: columns, Folded: true}
		for _, r := range t.rows {
			cells := make([]cell, len(columns))
			bars, zero := false, true
			for c := range columns {
				m, ok := t.at[r][c]
				if !ok {
					cells[c].Text = "—"
					continue
				}
				zero = zero && m.Value == 0
				cells[c].Text = metric(m)
				if m.Unit == "%" && (primary[t.kind] == r.metric || t.kind == "cache") {
					cells[c].Bar, bars = meter(m.Value/100, 0), true
				}
			}
			line := observedRow{Subject: r.subject, Metric: strings.ReplaceAll(r.metric, "_", " "), Cells: cells}
			switch {
			case t.kind == "cache" && zero: // a cache that is off
			case bars:
				view.Meters = true
				view.Rows = append(view.Rows, line)
			default:
				rest.Rows = append(rest.Rows, line)
			}
		}
		if len(view.Rows) == 0 {
			rest.Title, rest.What = title, what
		} else {
			out = append(out, view)
		}
		if len(rest.Rows) > 0 {
			out = append(out, rest)
		}
	}
	return out
}

func latency(gs []group, several bool) []latencyRow {
	var out []latencyRow
	add := func(name string, l *providers.Latency) {
		if l != nil {
			us := func(ns float64) string { return significant(ns / 1000) }
			out = append(out, latencyRow{name, grouped(l.Samples), us(l.Min), us(l.P50), us(l.P90), us(l.P99), us(l.P999), us(l.Max)})
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
