package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/stages/session"
)

func destroyCommand(e *env) *cli.Command {
	var vars []config.ValueArg
	return &cli.Command{
		Name:  "destroy",
		Usage: "take everything down and put every host back as it was found",
		Description: `Works from the state: it needs no configuration. Objects are deleted in the reverse of the order in which they depend on one another, settings
get back the values that were found before the first apply. What is gone already is fine; a second destroy does nothing.

Exit status: 0 done, 1 error, 130 interrupted.`,
		Flags: append(append(append(varFlags(&vars), lockFlags()...), viewFlags()...), jsonFlag(), parallelFlag(),
			&cli.BoolFlag{Name: "auto-approve", Usage: "do not ask"},
			&cli.StringSliceFlag{Name: "target", Usage: "only `ADDRESS` and what depends on it; may be given several times"},
			&cli.BoolFlag{Name: "refresh", Value: true, Usage: "trust the state instead of reading the world first"},
		),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if err := e.mayAsk(c); err != nil {
				return err
			}
			targets, err := parseTargets("target", c.StringSlice("target"))
			if err != nil {
				return err
			}
			w, err := e.begin(c, &vars, true, "destroy")
			if err != nil {
				return err
			}
			defer w.end()
			return w.destroy(session.PlanArgs{Destroy: true, Targets: targets, Refresh: c.Bool("refresh"), Parallelism: c.Int("parallelism")}, c.Bool("auto-approve"))
		},
	}
}

// destroy plans the destruction, asks, and does it.
func (w *work) destroy(args session.PlanArgs, approved bool) error {
	if err := w.sweep(); err != nil {
		return err
	}
	if w.as.Absent || len(w.as.State.Instances) == 0 {
		w.p.text("Nothing to destroy.\n")
		return nil
	}
	res, err := w.plan(args)
	if err != nil {
		return err
	}
	w.showPlan(res.Plan)
	if !w.approved(res, approved, "Do you really want to destroy this?") {
		return status(exitError)
	}
	defer res.Hosts.Close()
	return w.apply(res.Plan, res.Hosts)
}
