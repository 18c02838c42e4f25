package view

import (
	"fmt"

	"plumb/stages/bench"
)

var _ bench.Events = (*Progress)(nil)
var _ bench.Events = (*Events)(nil)

// Begin says that a benchmark starts.
func (p *Progress) Begin(benchmark string, trials int) {
	if trials == 0 {
		p.Bench(benchmark, "starting")
		return
	}
	p.Bench(benchmark, "starting, "+plural(trials, "trial"))
}

// Step says what happens now.
func (p *Progress) Step(benchmark, text string) { p.Bench(benchmark, text) }

// Trial says what a trial came to.
func (p *Progress) Trial(benchmark string, t bench.Trial, counted, trials int) {
	of := ""
	if trials > 0 {
		of = fmt.Sprintf(" %d/%d", counted, trials)
	}
	color := green
	if t.Verdict != bench.Pass {
		color = red
	}
	line := fmt.Sprintf("trial%s: %d B, %s: sent %s, received %s, loss %.4g %%: %s", of, t.FrameSize, plural(t.Flows, "flow"),
		Rate(t.TxRate), Rate(t.RxRate), 100*t.LossRatio, p.st.paint(color, string(t.Verdict)))
	if t.Phase != "" {
		line = t.Phase + " " + line
	}
	if len(t.Reasons) > 0 {
		line += " (" + t.Reasons[0] + ")"
	}
	p.Bench(benchmark, line)
}

// End says what a benchmark found, a line for each figure that heads a report, and whether it came to its end.
func (p *Progress) End(b bench.Benchmark) {
	for _, f := range b.Figures {
		if f.Primary || len(f.Values) == 0 {
			p.Bench(b.Addr, figureLine(f))
		}
	}
	if b.Error != "" {
		p.Bench(b.Addr, p.st.paint(red, "not measured: ")+b.Error)
	}
}

// figureLine is a figure in a line: the median, and the spread where there is one.
func figureLine(f bench.Figure) string {
	line := fmt.Sprintf("%d B, %s: %s ", f.FrameSize, plural(f.Flows, "flow"), f.Name)
	switch {
	case len(f.Values) > 0 && f.Bound != "":
		line += f.Bound + " " + quantity(f.Median, f.Unit)
	case len(f.Values) > 0:
		line += quantity(f.Median, f.Unit)
	case len(f.Nones) > 0:
		return line + "none: " + f.Nones[0]
	default:
		return line + "none"
	}
	if n := len(f.Values); n > 1 {
		line += fmt.Sprintf(" (median of %d, CV %.1f %%)", n, 100*f.CV)
	}
	if f.Unsteady {
		line += ", unsteady"
	}
	if f.Unfinished {
		line += ", unfinished"
	}
	return line
}

// quantity writes a figure with its unit.
func quantity(v float64, unit string) string {
	switch unit {
	case "fps":
		return Rate(v)
	case "ns":
		return fmt.Sprintf("%.4g us", v/1e3)
	case "s":
		return fmt.Sprintf("%.4g ms", v*1e3)
	case "ratio":
		return fmt.Sprintf("%.4g %%", 100*v)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// Begin is type bench_start.
func (e *Events) Begin(benchmark string, trials int) {
	e.Event("bench_start", map[string]any{"benchmark": benchmark, "trials": trials})
}

// Step is type bench_progress.
func (e *Events) Step(benchmark, text string) { e.Bench(benchmark, text) }

// Trial is type bench_trial with the whole trial.
func (e *Events) Trial(benchmark string, t bench.Trial, counted, trials int) {
	e.Event("bench_trial", map[string]any{"benchmark": benchmark, "trial": t, "counted": counted, "trials": trials})
}

// End is type bench_complete.
func (e *Events) End(b bench.Benchmark) {
	e.Event("bench_complete", map[string]any{"benchmark": b.Addr, "summary": b.Summary, "figures": b.Figures, "error": b.Error})
}

// Rate writes frames per second with a unit prefix: "2.31 Mpps".
func Rate(fps float64) string {
	switch {
	case fps >= 1e6:
		return fmt.Sprintf("%.2f Mpps", fps/1e6)
	case fps >= 1e3:
		return fmt.Sprintf("%.1f kpps", fps/1e3)
	}
	return fmt.Sprintf("%.0f pps", fps)
}
