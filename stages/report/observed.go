package report

import (
	"html/template"
	"slices"
	"strings"

	"plumb/providers"
)

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

// primary are the metrics in percent by which a kind's subjects are compared with bars; a cache's are compared by all.
var primary = map[string][]string{"pmd": {"busy"}, "cpu": {"busy"}, "rxq": {"usage"}, "thread": {"cpu"}, "bottleneck": {"busy", "taken_by_queue"}}

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
	var out, folded []observedView
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
				if m.Unit == "%" && (t.kind == "cache" || slices.Contains(primary[t.kind], r.metric)) {
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
			folded = append(folded, rest)
		}
	}
	return append(out, folded...)
}
