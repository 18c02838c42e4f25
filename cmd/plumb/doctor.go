package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/providers"
	"plumb/stages/session"
	"plumb/stages/view"
)

func doctorCommand(e *env) *cli.Command {
	var vars []config.ValueArg
	return &cli.Command{
		Name:  "doctor",
		Usage: "examine the hosts against what a DPDK testbed needs, and say what to do",
		Description: `It looks at processors, isolation, frequencies and idle states, NUMA, the IOMMU, Secure Boot, hugepages, the kernel's own work on cores, services, NICs and their PCIe links, Open vSwitch and DPDK,
and names what only the BIOS knows. Every host of the configuration is examined; without a configuration, this machine. Nothing is changed.

What is found is a problem (something of a testbed cannot work), a warning (figures will be lower, or differ from run to run), advice, or ok. Where Plumb can do something about it, the resource that does is shown; -hcl prints all of
them, to be put into the configuration. Destroy takes them back.

Exit status: 0 nothing hinders, 1 error (a host could not be examined), 2 there are problems.`,
		Flags: append(varFlags(&vars), jsonFlag(), &cli.BoolFlag{Name: "hcl", Usage: "print only the proposed resources"}),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.Bool("json") && c.Bool("hcl") {
				return fmt.Errorf("doctor takes one of -json and -hcl. See %s -help", c.FullName())
			}
			s, diags := e.open(&vars, session.MayBeEmpty)
			if diags.HasErrors() {
				return e.fail(diags, s.Sources())
			}
			found := s.Examine(ctx)
			code := exitOK
			hosts := map[string]view.Examined{}
			for name, x := range found {
				hosts[name] = view.Examined{Findings: x.Findings, Error: x.Error}
				hinders := slices.ContainsFunc(x.Findings, func(f providers.Finding) bool { return f.Level == providers.Hinders })
				switch {
				case x.Error != "":
					code = exitError
				case hinders && code == exitOK:
					code = exitChanges
				}
			}
			switch {
			case c.Bool("json"):
				if err := e.encode(map[string]any{"hosts": found}); err != nil {
					return err
				}
			case c.Bool("hcl"):
				fmt.Fprint(e.stdout, view.Proposals(hosts))
				for name, x := range found {
					if x.Error != "" {
						fmt.Fprintf(e.stderr, "host %s was not examined: %s\n", name, x.Error)
					}
				}
			default:
				fmt.Fprint(e.stdout, view.Findings(hosts, e.width, e.style()))
			}
			if code != exitOK {
				return status(code)
			}
			return nil
		},
	}
}
