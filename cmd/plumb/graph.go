package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/stages/session"
)

func graphCommand(e *env) *cli.Command {
	var vars []config.ValueArg
	return &cli.Command{
		Name:  "graph",
		Usage: "print what depends on what, and why",
		Description: `Each edge has its reason: reference, depends_on, or host order (one type comes before another on a host). Draw it with, for example,
  plumb graph | dot -Tsvg > graph.svg`,
		Flags: append(varFlags(&vars), &cli.StringFlag{Name: "format", Value: "dot", Usage: "`FORMAT`: dot (Graphviz) or mermaid"}),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			s, diags := e.open(&vars, session.NotEmpty)
			if diags.HasErrors() {
				return e.fail(diags, s.Sources())
			}
			g, diags := s.Graph()
			if diags.HasErrors() {
				return e.fail(diags, s.Sources())
			}
			label := func(s string) string { return s }
			switch c.String("format") {
			case "dot":
				fmt.Fprint(e.stdout, g.DOT(label))
			case "mermaid":
				fmt.Fprint(e.stdout, g.Mermaid(label))
			default:
				return fmt.Errorf("-format %q: want dot or mermaid", c.String("format"))
			}
			return nil
		},
	}
}
