package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/stages/bench"
	"plumb/stages/report"
	"plumb/stages/session"
	"plumb/stages/view"
)

func benchCommand(e *env) *cli.Command {
	var vars []config.ValueArg
	return &cli.Command{
		Name:      "bench",
		Usage:     "run the benchmarks of the applied testbed and write the reports",
		ArgsUsage: "[BENCHMARK ...]",
		Description: `Changes nothing about the testbed, but for reset benchmarks, which restart what they name and put it back. Each run has a folder of its
own, results/<run>/, with every trial, what was observed, the configuration, the host's facts, a manifest of checksums, and the reports.

Every trial is kept as it is made. A run that was killed or interrupted, or of which a benchmark ended with an error, is gone on with by the next
plumb bench or plumb apply of the same benchmarks, as long as the testbed is the same: benchmarks that came to their end are kept, and so are the trials
of the others while their arguments, path and generator are what they were. -fresh begins a new run instead.

Exit status: 0 done, 1 error (a benchmark that could not be measured too), 2 a require does not hold, 130 interrupted.`,
		Flags: append(append(varFlags(&vars), lockFlags()...), freshFlag(), jsonFlag()),
		Action: func(_ context.Context, c *cli.Command) error {
			w, err := e.begin(c, &vars, false, "bench")
			if err != nil {
				return err
			}
			defer w.end()
			return w.bench(session.BenchArgs{Names: c.Args().Slice(), Fresh: c.Bool("fresh")})
		},
	}
}

// bench measures, prints the table and names the reports.
func (w *work) bench(args session.BenchArgs) error {
	args.Events = view.NewProgress(w.p.stdout, w.p.style())
	if w.p.events != nil {
		args.Events = w.p.events
	}
	m, diags := w.s.Bench(w.soft, w.as, args)
	if m != nil {
		for _, b := range m.Run.Broken() {
			diags = append(diags, errorDiags("A benchmark could not be measured", fmt.Errorf("%s", b))...)
		}
	}
	failed := w.p.show(w.s, diags)
	if m == nil {
		return failed
	}
	w.showRun(m)
	switch {
	case w.soft.Err() != nil:
		return status(exitInterrupted)
	case failed != nil:
		return failed
	case len(m.Run.Unmet()) > 0:
		return status(exitChanges)
	}
	return nil
}

func (w *work) showRun(m *session.Measured) {
	if w.p.events != nil {
		w.p.events.Event("bench_summary", map[string]any{"run": m.Run.ID, "dir": m.Dir, "files": m.Files, "resumed": m.Run.Resumed, "unmet": m.Run.Unmet(), "broken": m.Run.Broken()})
		return
	}
	if len(m.Run.Benchmarks) == 0 {
		return
	}
	if n := len(m.Run.Resumed); n > 0 {
		w.p.text("\nRun %s was gone on with; -fresh begins a new one.\n", m.Run.ID)
	}
	w.p.text("\n%s", report.Table(m.Run, w.p.width))
	w.p.env.requires(m.Run)
	if len(m.Files) > 0 {
		w.p.text("\nReports: %s\n", strings.Join(m.Files, "\n         "))
	}
}

// requires lists what does not hold.
func (e *env) requires(run *bench.Run) {
	for _, u := range run.Unmet() {
		fmt.Fprintf(e.stdout, "Require does not hold: %s\n", u)
	}
}
