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
	if len(t.Reasons) > 0 {
		line += " (" + t.Reasons[0] + ")"
	}
	p.Bench(benchmark, line)
}

// End says that a benchmark is over.
func (p *Progress) End(b bench.Benchmark) {
	if b.Error != "" {
		p.Bench(b.Addr, p.st.paint(red, "not measured: ")+b.Error)
	}
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
	e.Event("bench_complete", map[string]any{"benchmark": b.Addr, "summary": b.Summary, "error": b.Error})
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
