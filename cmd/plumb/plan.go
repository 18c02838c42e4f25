package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/stages/plan"
	"plumb/stages/session"
	"plumb/stages/view"
)

func planCommand(e *env) *cli.Command {
	var vars []config.ValueArg
	return &cli.Command{
		Name:  "plan",
		Usage: "show what apply would change, how disruptive it is, and what cannot work",
		Description: `Reads the world and changes nothing. Each change is shown with its cost: live, port_reset (a short burst of loss),
service_restart, guest_restart, host_reboot, replace.

Exit status: 0 done, 1 error; with -detailed-exitcode 2 when there are changes.`,
		Flags: append(append(append(planFlags(&vars), lockFlags()...), viewFlags()...), jsonFlag(),
			&cli.StringFlag{Name: "out", Usage: "save the plan to `FILE`, which apply takes; it holds the values of variables, sensitive ones too"},
			&cli.BoolFlag{Name: "destroy", Usage: "plan to destroy everything"},
			&cli.BoolFlag{Name: "detailed-exitcode", Usage: "exit with 2 when there are changes"},
		),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			args, err := planArgs(c)
			if err != nil {
				return err
			}
			args.Destroy = c.Bool("destroy")
			w, err := e.begin(c, &vars, args.Destroy, "plan")
			if err != nil {
				return err
			}
			defer w.end()
			res, err := w.plan(args)
			if err != nil {
				return err
			}
			defer res.Hosts.Close()
			w.showPlan(res.Plan)
			if out := c.String("out"); out != "" {
				if err := w.s.SavePlan(e.path(out), res.Plan); err != nil {
					return w.p.show(w.s, errorDiags("The plan was not saved", err))
				}
				w.p.text("\nSaved to %s. Run it with: plumb apply %s\n", out, out)
			}
			if len(res.Unreachable) > 0 {
				return status(exitError)
			}
			if c.Bool("detailed-exitcode") && res.Plan.HasChanges() {
				return status(exitChanges)
			}
			return nil
		},
	}
}

// showPlan prints a plan, as one JSON event or for people.
func (w *work) showPlan(p *plan.Plan) {
	if w.p.events != nil {
		w.p.events.Event("plan", map[string]any{"plan": view.RedactPlan(p)})
		return
	}
	fmt.Fprint(w.p.stdout, "\n"+view.Plan(p, view.PlanOptions{
		Style: w.p.style(), Catalog: w.s.Catalog, Concise: w.c.Bool("concise"), Verbose: w.c.Bool("verbose"),
	}))
}

// plan plans and shows diagnostics; with errors the result's hosts are closed already.
func (w *work) plan(args session.PlanArgs) (*plan.Result, error) {
	res, diags := w.s.Plan(w.soft, w.as, args)
	if err := w.p.show(w.s, diags); err != nil {
		res.Hosts.Close()
		if w.soft.Err() != nil {
			return nil, status(exitInterrupted)
		}
		return nil, err
	}
	_ = w.p.show(w.s, res.Unreachable) // the others are gone on with; what is left makes the end an error
	return res, nil
}
