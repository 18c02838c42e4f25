package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/stages/plan"
	"plumb/stages/session"
	"plumb/stages/view"
)

func applyCommand(e *env) *cli.Command {
	var vars []config.ValueArg
	return &cli.Command{
		Name:      "apply",
		Usage:     "converge the testbed, run its benchmarks, write the reports",
		ArgsUsage: "[PLANFILE]",
		Description: `Plans, asks, applies, and then measures. With the file of an earlier plan -out it applies just that, without asking, and refuses
when the state has moved on.

Interrupt once: running steps finish and the state is saved. Twice: it stops at once; the journal knows what may be half
done, and the next apply or destroy goes on from there.

Exit status: 0 done, 1 error, 2 a require of a benchmark does not hold, 130 interrupted.`,
		Flags: append(append(append(append(planFlags(&vars), lockFlags()...), viewFlags()...), benchFlags()...), jsonFlag(),
			&cli.BoolFlag{Name: "auto-approve", Usage: "do not ask"},
			&cli.BoolFlag{Name: "skip-bench", Usage: "converge only; measure nothing"},
			&cli.BoolFlag{Name: "destroy-after", Usage: "destroy everything when the benchmarks are done, or failed"},
		),
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Len() > 1 {
				return fmt.Errorf("apply takes one plan file. See %s -help", c.FullName())
			}
			if c.Args().Present() {
				return e.applySaved(c, &vars)
			}
			args, err := planArgs(c)
			if err != nil {
				return err
			}
			if err := e.mayAsk(c); err != nil {
				return err
			}
			w, err := e.begin(c, &vars, false, "apply")
			if err != nil {
				return err
			}
			defer w.end()
			return w.converge(args)
		},
	}
}

// mayAsk refuses where nobody could answer.
func (e *env) mayAsk(c *cli.Command) error {
	if c.Bool("json") && !c.Bool("auto-approve") {
		return fmt.Errorf("-json cannot ask: give -auto-approve, or a plan file")
	}
	return nil
}

// converge plans, asks, applies and measures.
func (w *work) converge(args session.PlanArgs) error {
	if err := w.sweep(); err != nil {
		return err
	}
	res, err := w.plan(args)
	if err != nil {
		return err
	}
	w.showPlan(res.Plan)
	if !w.approved(res, w.c.Bool("auto-approve"), "Do you want Plumb to do this?") {
		return status(exitError)
	}
	err = w.apply(res.Plan, res.Hosts)
	res.Hosts.Close()
	if err == nil {
		w.showOutputs()
	}
	return w.after(err, res.Plan)
}

// approved asks whether to go on; what is approved already, or does nothing, is not asked about. Without a yes the hosts are closed.
func (w *work) approved(res *plan.Result, already bool, question string) bool {
	if already || !res.Plan.HasChanges() {
		return true
	}
	yes, err := w.p.ask(question)
	res.Hosts.Close()
	if err != nil || !yes {
		w.p.text("Nothing was changed.\n")
		return false
	}
	// While somebody was thinking the world may have moved on: what is to be put back one day is read anew.
	res.Hosts = plan.NewHosts(w.s.Providers.OpenHost)
	return true
}

// after measures what was applied, and destroys it where that was asked for.
func (w *work) after(err error, p *plan.Plan) error {
	if err == nil && !w.c.Bool("skip-bench") && w.s.HasBenchmarks() && len(p.Targets) == 0 {
		doc, _ := json.MarshalIndent(view.RedactPlan(p), "", "  ")
		err = w.bench(session.BenchArgs{Names: w.c.StringSlice("bench"), Plan: doc, Fresh: w.c.Bool("fresh")})
	}
	if !w.c.Bool("destroy-after") || w.soft.Err() != nil {
		return err
	}
	if derr := w.destroy(session.PlanArgs{Destroy: true, Refresh: true, Parallelism: w.c.Int("parallelism")}, true); derr != nil {
		return derr
	}
	return err
}

// applySaved applies the plan of a file.
func (e *env) applySaved(c *cli.Command, vars *[]config.ValueArg) error {
	for _, f := range []string{"var", "var-file", "target", "replace", "refresh", "max-cost"} {
		if c.IsSet(f) {
			return fmt.Errorf("-%s cannot be given with a plan file: the plan has it already", f)
		}
	}
	w, p, err := e.beginSaved(c, e.path(c.Args().First()), "apply")
	if err != nil {
		return err
	}
	defer w.end()
	hosts := plan.NewHosts(w.s.Providers.OpenHost)
	err = w.apply(p, hosts)
	hosts.Close()
	if err == nil {
		err = w.sweep()
	}
	if err == nil {
		w.showOutputs()
	}
	if p.Destroy {
		return err
	}
	return w.after(err, p)
}
