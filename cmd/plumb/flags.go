package main

import (
	"fmt"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
)

// The flags that several verbs share, each declared once.

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON for programs instead of text"}
}

// varFlags collect into one list, which stands in for the values.
func varFlags(into *[]config.ValueArg) []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "var", Value: &valueFlag{into: into}, Usage: "set a root variable: `NAME=VALUE`; may be given several times"},
		&cli.GenericFlag{Name: "var-file", Value: &valueFlag{into: into, file: true}, Usage: "read root variables from `FILE` (HCL, or JSON when it ends in .json); may be given several times"},
	}
}

func lockFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "lock-timeout", Usage: "wait so long, such as 30s, for a state lock that somebody else holds; 0s: fail at once"},
	}
}

func parallelFlag() cli.Flag {
	return &cli.IntFlag{Name: "parallelism", Value: 10, Usage: "do at most `N` things at once", Validator: func(n int) error {
		if n < 1 {
			return fmt.Errorf("-parallelism must be at least 1, not %d", n)
		}
		return nil
	}}
}

// planFlags bend what is planned.
func planFlags(into *[]config.ValueArg) []cli.Flag {
	return append(varFlags(into),
		&cli.StringSliceFlag{Name: "target", Usage: "only `ADDRESS` (a resource, an instance or a module) and what it depends on; may be given several times"},
		&cli.StringSliceFlag{Name: "replace", Usage: "replace the instance `ADDRESS` even if nothing about it changes; may be given several times"},
		&cli.BoolFlag{Name: "refresh", Value: true, Usage: "trust the state instead of reading the world first"},
		&cli.StringFlag{Name: "max-cost", Usage: "refuse changes that cost more than `COST`: live, port_reset, service_restart, guest_restart, host_reboot, replace"},
		parallelFlag(),
	)
}

func viewFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "concise", Usage: "one line per resource, grouped by host"},
		&cli.BoolFlag{Name: "verbose", Usage: "show unchanged arguments too"},
	}
}

func benchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "bench", Usage: "run only benchmark `NAME`; may be given several times"},
		freshFlag(),
	}
}

func freshFlag() cli.Flag {
	return &cli.BoolFlag{Name: "fresh", Usage: "measure from the beginning instead of going on with a run that was interrupted"}
}
