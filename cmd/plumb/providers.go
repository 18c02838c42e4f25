package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"plumb/stages/session"
	"plumb/stages/view"
)

func providersCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "providers",
		Usage: "what resources, data sources, generators and methods there are",
		Commands: []*cli.Command{{
			Name:  "schema",
			Usage: "print every resource, data source, generator and method with its arguments, costs and defaults",
			Description: `Without a flag it lists the types, one line each; TYPE prints one of them whole. -json is for programs, -markdown makes
docs/reference.md.`,
			ArgsUsage: "[TYPE]",
			Flags: []cli.Flag{
				jsonFlag(),
				&cli.BoolFlag{Name: "markdown", Usage: "print the reference page"},
			},
			Action: func(_ context.Context, c *cli.Command) error {
				cat := session.Catalog(e.set())
				switch {
				case c.Bool("json"):
					return view.SchemaJSON(e.stdout, cat)
				case c.Bool("markdown"):
					return view.SchemaMarkdown(e.stdout, cat)
				case c.Args().Len() == 1:
					return view.SchemaOf(e.stdout, cat, c.Args().First(), e.style())
				case c.Args().Len() > 1:
					return noArgs(c)
				}
				return view.SchemaList(e.stdout, cat, e.style())
			},
		}},
	}
}
