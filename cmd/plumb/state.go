package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/stages/session"
	"plumb/stages/state"
	"plumb/stages/view"
)

func stateCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:     "state",
		Usage:    "look at the state, or make it forget something",
		Commands: []*cli.Command{stateList(e), stateShow(e), stateRemove(e)},
	}
}

// readState opens the session without its lock and reads the state; nil when there is none.
func (e *env) readState(vars *[]config.ValueArg) (*session.Session, *state.State, error) {
	s, diags := e.open(vars, session.MayBeEmpty)
	if s.Store == nil {
		return s, nil, e.fail(diags, s.Sources())
	}
	st, err := s.State()
	return s, st, err
}

func stateList(e *env) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the instances in the state", ArgsUsage: "[ADDRESS ...]",
		Action: func(_ context.Context, c *cli.Command) error {
			targets, err := parseTargets("state list", c.Args().Slice())
			if err != nil {
				return err
			}
			_, st, err := e.readState(nil)
			if err != nil {
				return err
			}
			for _, i := range state.Select(st, targets...) {
				note := ""
				if i.Deposed {
					note = " (deposed)"
				}
				fmt.Fprintln(e.stdout, i.Addr.String()+note)
			}
			return nil
		},
	}
}

func stateShow(e *env) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show one instance", ArgsUsage: "ADDRESS",
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Len() != 1 {
				return fmt.Errorf("state show takes one address. See %s -help", c.FullName())
			}
			addr, err := addrs.ParseInstance(c.Args().First())
			if err != nil {
				return err
			}
			s, st, err := e.readState(nil)
			if err != nil {
				return err
			}
			current, deposed, err := state.Find(st, addr)
			if err != nil {
				return err
			}
			if current != nil {
				deposed = append([]*state.Instance{current}, deposed...)
			}
			for _, i := range deposed {
				fmt.Fprint(e.stdout, view.Instance(i, s.Catalog, e.style()))
			}
			return nil
		},
	}
}

func stateRemove(e *env) *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "forget instances; what is in the world stays there", ArgsUsage: "ADDRESS ...",
		Description: `Plumb then knows nothing of them any more: destroy will not take them down and settings are not put back. The previous state is kept as
.backup.`,
		Flags: append(lockFlags(), &cli.BoolFlag{Name: "dry-run", Usage: "only say what would be forgotten"}),
		Action: func(_ context.Context, c *cli.Command) error {
			targets, err := parseTargets("state rm", c.Args().Slice())
			if err != nil {
				return err
			}
			if len(targets) == 0 {
				return fmt.Errorf("state rm takes addresses. See %s -help", c.FullName())
			}
			w, err := e.begin(c, nil, true, "state rm")
			if err != nil {
				return err
			}
			defer w.end()
			st := w.as.State
			for _, t := range targets {
				var gone []*state.Instance
				if st, gone, err = state.Remove(st, t); err != nil {
					return err
				}
				for _, i := range gone {
					word := "Forgot"
					if c.Bool("dry-run") {
						word = "Would forget"
					}
					fmt.Fprintf(e.stdout, "%s %s\n", word, i.Addr)
				}
			}
			if c.Bool("dry-run") {
				return nil
			}
			return w.as.Save(st)
		},
	}
}
