package report

import (
	"fmt"
	"strings"

	"plumb/stages/bench"
)

// Markdown is the run as a page for a wiki or a merge request.
func Markdown(run *bench.Run) []byte {
	var w strings.Builder
	fmt.Fprintf(&w, "# Benchmark report %s\n\n%s, %s. Testbed `%s`, state serial %d, Plumb %s.\n", run.ID, when(run.Started), short(run.Ended.Sub(run.Started)),
		run.Testbed, run.Serial, run.PlumbVersion)
	for i := range run.Benchmarks {
		markdownBenchmark(&w, &run.Benchmarks[i])
	}
	for _, h := range run.Hosts {
		fmt.Fprintf(&w, "\n## Host %s\n\n", escape(h.Name))
		rows := make([][]string, len(h.Rows))
		for i, r := range h.Rows {
			rows[i] = []string{r[0], r[1]}
		}
		mdTable(&w, []string{"what", "value"}, rows)
	}
	w.WriteString("\n## Reading the figures\n\n")
	for _, l := range legend {
		fmt.Fprintf(&w, "- %s\n", l)
	}
	return []byte(w.String())
}

func markdownBenchmark(w *strings.Builder, b *bench.Benchmark) {
	fmt.Fprintf(w, "\n## %s\n\n", escape(b.Addr))
	if b.Error != "" {
		fmt.Fprintf(w, "**Error:** %s\n\n", escape(b.Error))
	}
	fmt.Fprintf(w, "- Method: %s\n- Goal: %s\n- Generator: %s\n- Traffic: %s frames, %s\n- Path: %s\n", escape(methodText(b)), goalText(b),
		escape(joined(", ", b.Generator, b.Tool)), b.Headers, directions(b), escape(strings.Join(b.Path, " → ")))
	for _, a := range b.Settings {
		fmt.Fprintf(w, "- %s: %s\n", escape(capital(a[0])), escape(a[1]))
	}
	gs := groups(b)
	if fs := figures(b); len(fs) > 0 {
		w.WriteByte('\n')
		var rows [][]string
		for _, f := range fs {
			label := joined("; ", f.Label, f.Missing, f.Goal)
			for _, m := range f.Marks {
				label += " (" + m.Text + ")"
			}
			rows = append(rows, []string{f.Frame + " B", f.Flows, label, f.Value, f.Interval, f.Range, f.Spread, f.Bounds, f.Share, f.Trials, f.Took})
		}
		mdTable(w, []string{"frame", "flows", "figure", "median", "95 % interval of the mean", "least – greatest", "variation", "bounds", "of line rate", "trials", "took"}, rows)
	} else if len(gs) > 0 {
		w.WriteByte('\n')
		var rows [][]string
		for _, g := range gs {
			row := []string{fmt.Sprintf("%d B", g.FrameSize), grouped(g.Flows), "—", "—", "—", "—", "—", "—", g.verdicts(), g.Bottleneck}
			if g.typical != nil {
				copy(row[2:], []string{rate(g.TxMedian), rate(g.RxMedian), rate(g.RxMin) + " – " + rate(g.RxMax), g.spread(), bits(g.BitrateMedian), percentOf(g.LossMedian)})
			}
			rows = append(rows, row)
		}
		mdTable(w, []string{"frame", "flows", "sent", "received (median)", "least – greatest", "variation", "on the wire", "lost", "trials", "bottleneck"}, rows)
	}
	several := severalFlows(gs)
	for _, g := range gs {
		if g.typical == nil || len(g.typical.Ledger) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n### Packet ledger, %s\n\n%s (trial %d).\n\n", g.label(several), capital(escape(lossPlaces(g.typical))), g.typical.Repeat)
		var rows [][]string
		for _, h := range g.typical.Ledger {
			lost := ""
			if h.Role != bench.Sender {
				lost = grouped(h.Lost)
			}
			rows = append(rows, []string{h.Name, roleText(h.Role), grouped(h.In), grouped(h.Out), lost, causeText(h)})
		}
		mdTable(w, []string{"hop", "", "in", "out", "lost", "because"}, rows)
	}
	if len(b.Requires) > 0 {
		w.WriteString("\n### Requirements\n\n")
		for _, q := range b.Requires {
			if q.Holds {
				fmt.Fprintf(w, "- holds (%s)\n", escape(q.Where))
			} else {
				fmt.Fprintf(w, "- **FAILED** (%s): %s\n", escape(q.Where), escape(q.Message))
			}
		}
	}
	w.WriteString("\n### How it was measured\n\n")
	for _, p := range b.Phases {
		fmt.Fprintf(w, "- %s\n", escape(p))
	}
	for _, n := range b.Notes {
		fmt.Fprintf(w, "- Note: %s\n", escape(n))
	}
}

func mdTable(w *strings.Builder, heads []string, rows [][]string) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, r := range rows {
		for i := range r {
			r[i] = escape(r[i])
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(r, " | "))
	}
}

var markdownEscaper = strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", "[", "\\[", "]", "\\]", "\n", " ")

func escape(s string) string { return markdownEscaper.Replace(s) }

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// legend explains what a reader must not get wrong.
var legend = []string{
	"Frame sizes are in bytes with the 4-byte FCS (RFC 2544 section 9).",
	"Rates are frames per second: 1 Mpps is a million. Where trials were repeated, the median is shown, and the variation is the standard deviation over the mean.",
	"“On the wire” is the received bit rate with 20 bytes of preamble and inter-frame gap for each frame (layer 1).",
	"A figure that a search found is a rate in each direction, with the bounds that the search ended with: the highest load that passed and the lowest that failed.",
	"At an offered load, a frame that the device's full queue refused is lost. At maximum load it is not.",
	"“Sent” is what the generator's port took.",
	"PASS and FAIL trials count. An INVALID trial does not: the tester or the testbed, not the switch, was at fault; it was repeated.",
	"In the ledger, “lost” at a hop is what left the hop before it less what left this one. Sent is received plus the sum of all that was lost.",
}
