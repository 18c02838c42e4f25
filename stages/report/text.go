package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"plumb/stages/bench"
)

// ledgersShown is how many ledgers the terminal table shows of a benchmark before it points to the report.
const ledgersShown = 4

// column of a text table. When the table is too wide, columns with the highest drop go first; 0 always stays.
type column struct {
	head string
	left bool
	drop int
}

// Table is the run for a terminal of the given width in characters; below 40 it is taken for 80. No line is wider but for long names.
func Table(run *bench.Run, width int) string {
	if width < 40 {
		width = 80
	}
	var w strings.Builder
	for i := range run.Benchmarks {
		if i > 0 {
			w.WriteByte('\n')
		}
		tableBenchmark(&w, &run.Benchmarks[i], width)
	}
	return w.String()
}

func tableBenchmark(w *strings.Builder, b *bench.Benchmark, width int) {
	fmt.Fprintln(w, b.Addr)
	wrapped(w, "  ", joined(" · ", b.Method, b.Tool, b.Headers, directions(b)), width)
	wrapped(w, "  ", strings.Join(b.Path, " → "), width)
	gs := groups(b)
	if fs := figures(b); len(fs) > 0 {
		w.WriteByte('\n')
		tableFigures(w, fs, width)
	} else if len(gs) > 0 {
		w.WriteByte('\n')
		cols := []column{{head: "frame"}, {head: "flows", drop: 2}, {head: "sent", drop: 1}, {head: "received"}, {head: "on the wire", drop: 5}, {head: "lost"},
			{head: "spread", drop: 4}, {head: "trials", left: true, drop: 3}, {head: "bottleneck", left: true, drop: 6}}
		var rows [][]string
		for _, g := range gs {
			if g.typical == nil {
				rows = append(rows, []string{fmt.Sprintf("%d B", g.FrameSize), grouped(g.Flows), "—", "—", "—", "—", "—", g.verdicts(), ""})
				continue
			}
			rows = append(rows, []string{fmt.Sprintf("%d B", g.FrameSize), grouped(g.Flows), rate(g.TxMedian), rate(g.RxMedian), bits(g.BitrateMedian),
				percentOf(g.LossMedian), g.spread(), g.verdicts(), g.Bottleneck})
		}
		grid(w, cols, rows, width)
	}
	several := severalFlows(gs)
	for n, g := range gs {
		if g.typical == nil || len(g.typical.Ledger) == 0 {
			continue
		}
		if n == ledgersShown {
			fmt.Fprintf(w, "\n  %s more in the report.\n", plural(len(gs)-n, "ledger"))
			break
		}
		fmt.Fprintf(w, "\n  Ledger, %s (trial %d):\n", g.label(several), g.typical.Repeat)
		var rows [][]string
		for _, h := range g.typical.Ledger {
			lost := ""
			if h.Role != bench.Sender {
				lost = grouped(h.Lost)
			}
			rows = append(rows, []string{h.Name, roleText(h.Role), grouped(h.In), grouped(h.Out), lost, causeText(h)})
		}
		grid(w, []column{{head: "hop", left: true}, {head: "", left: true, drop: 2}, {head: "in"}, {head: "out"}, {head: "lost"}, {head: "because", left: true, drop: 1}}, rows, width)
	}
	for _, q := range b.Requires {
		if q.Holds {
			fmt.Fprintf(w, "\n  require holds (%s)\n", q.Where)
		} else {
			w.WriteByte('\n')
			wrapped(w, "  ", fmt.Sprintf("require FAILED (%s): %s", q.Where, q.Message), width)
		}
	}
	for _, n := range b.Notes {
		w.WriteByte('\n')
		wrapped(w, "  ", "Note: "+n, width)
	}
	if b.Error != "" {
		w.WriteByte('\n')
		wrapped(w, "  ", "Error: "+b.Error, width)
	}
}

// tableFigures writes what a search found.
func tableFigures(w *strings.Builder, fs []figureView, width int) {
	cols := []column{{head: "frame"}, {head: "flows", drop: 4}, {head: "figure", left: true}, {head: "median"}, {head: "spread", drop: 2}, {head: "bounds", drop: 3}, {head: "95 % interval", drop: 6},
		{head: "trials", drop: 5}, {head: "took", drop: 4}, {head: "", left: true, drop: 1}}
	var rows [][]string
	blank := func(s string) string { return strings.TrimPrefix(s, "—") }
	if heads := slices.DeleteFunc(slices.Clone(fs), func(f figureView) bool { return !f.Primary }); len(heads) > 0 {
		fs = heads // the report has the rest
	}
	for _, f := range fs {
		var marks []string
		for _, m := range f.Marks {
			marks = append(marks, m.Text)
		}
		rows = append(rows, []string{f.Frame + " B", f.Flows, f.Name, f.Value, blank(f.Spread), blank(f.Bounds), blank(f.Interval), f.Trials, f.Took, strings.Join(marks, ", ")})
	}
	grid(w, cols, rows, width)
	for _, f := range fs {
		if f.Missing != "" {
			wrapped(w, "  ", fmt.Sprintf("%s B, %s: %s", f.Frame, f.Name, f.Missing), width)
		}
	}
	said := map[string]bool{}
	for _, f := range fs {
		if f.Primary && f.Label != f.Name && !said[f.Label] {
			said[f.Label] = true
			wrapped(w, "  ", fmt.Sprintf("%s: %s.", f.Name, f.Label), width)
		}
	}
}

// grid writes rows under heads, two characters between columns. Columns that are empty throughout are left out; those that do not fit go
// by their drop.
func grid(w *strings.Builder, cols []column, rows [][]string, width int) {
	show := make([]bool, len(cols))
	wide := make([]int, len(cols))
	for c := range cols {
		wide[c] = utf8.RuneCountInString(cols[c].head)
		for _, r := range rows {
			show[c] = show[c] || r[c] != ""
			wide[c] = max(wide[c], utf8.RuneCountInString(r[c]))
		}
	}
	for {
		total, worst := 0, -1
		for c := range cols {
			if show[c] {
				total += 2 + wide[c]
				if cols[c].drop > 0 && (worst < 0 || cols[c].drop > cols[worst].drop) {
					worst = c
				}
			}
		}
		if total <= width || worst < 0 {
			break
		}
		show[worst] = false
	}
	line := func(cells func(int) string) {
		var l strings.Builder
		for c := range cols {
			if !show[c] {
				continue
			}
			s := cells(c)
			pad := strings.Repeat(" ", wide[c]-utf8.RuneCountInString(s))
			if cols[c].left {
				l.WriteString("  " + s + pad)
			} else {
				l.WriteString("  " + pad + s)
			}
		}
		w.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(func(c int) string { return cols[c].head })
	for _, r := range rows {
		line(func(c int) string { return r[c] })
	}
}

// wrapped writes text in lines of at most width characters, each after the indent.
func wrapped(w *strings.Builder, indent, text string, width int) {
	used := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			w.WriteString(indent)
			used = len(indent)
		case used+1+n > width:
			w.WriteString("\n" + indent)
			used = len(indent)
		default:
			w.WriteByte(' ')
			used++
		}
		w.WriteString(word)
		used += n
	}
	w.WriteByte('\n')
}

func joined(sep string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, sep)
}
