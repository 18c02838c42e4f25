package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/stages/session"
	"plumb/stages/view"
)

func snapshotCommand(e *env) *cli.Command {
	var vars []config.ValueArg
	return &cli.Command{
		Name:  "snapshot",
		Usage: "write a fingerprint of the hosts, or compare two",
		Description: `A snapshot lists everything that a testbed may change and destroy must put back: hugepages, mounts, the OVS database and its daemons,
links, namespaces, drivers, processes. It reads every host of the configuration; without a configuration, this machine.

-compare takes two files that -out wrote and prints "before and after: identical", or the lines that differ.

Exit status: 0 done or identical, 1 error, 2 different.`,
		ArgsUsage: "[-compare FILE FILE]",
		Flags: append(varFlags(&vars),
			&cli.StringFlag{Name: "out", Usage: "write the snapshot to `FILE` instead of printing it"},
			&cli.BoolFlag{Name: "compare", Usage: "compare two snapshot files"},
		),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Bool("compare") {
				if c.Args().Len() != 2 {
					return fmt.Errorf("snapshot -compare takes two files. See %s -help", c.FullName())
				}
				before, err := session.ReadSnapshot(e.path(c.Args().Get(0)))
				if err != nil {
					return err
				}
				after, err := session.ReadSnapshot(e.path(c.Args().Get(1)))
				if err != nil {
					return err
				}
				text, same := view.SnapshotDiff(before, after, e.style())
				fmt.Fprint(e.stdout, text)
				if !same {
					return status(exitChanges)
				}
				return nil
			}
			if err := noArgs(c); err != nil {
				return err
			}
			s, diags := e.open(&vars, session.MayBeEmpty)
			if diags.HasErrors() {
				return e.fail(diags, s.Sources())
			}
			snap, diags := s.Snapshot(ctx)
			if diags.HasErrors() {
				return e.fail(diags, s.Sources())
			}
			if out := c.String("out"); out != "" {
				return session.WriteSnapshot(e.path(out), snap)
			}
			return session.PrintSnapshot(e.stdout, snap)
		},
	}
}
