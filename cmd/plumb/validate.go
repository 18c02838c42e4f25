package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/urfave/cli/v3"

	"plumb/lang/config"
	"plumb/lang/diagfmt"
	"plumb/stages/session"
)

func validateCommand(e *env) *cli.Command {
	var vars []config.ValueArg
	return &cli.Command{
		Name:  "validate",
		Usage: "check the configuration without looking at the state or any host",
		Description: `Checks syntax, types, references, arguments and their values. It needs neither root nor Open vSwitch, opens no
connection, and changes nothing.

Exit status: 0 valid (perhaps with warnings), 1 not valid.`,
		Flags: append(varFlags(&vars), jsonFlag()),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			s, diags := e.open(&vars, session.NotEmpty)
			if !diags.HasErrors() {
				diags = append(diags, s.Validate()...)
			}
			if c.Bool("json") {
				return e.validateJSON(s, diags)
			}
			if err := e.printer(c).show(s, diags); err != nil {
				return err
			}
			fmt.Fprintln(e.stdout, "The configuration is valid.")
			return nil
		},
	}
}

func (e *env) validateJSON(s *session.Session, diags hcl.Diagnostics) error {
	errs := len(diags.Errs())
	warnings := 0
	for _, d := range diags {
		if d.Severity == hcl.DiagWarning {
			warnings++
		}
	}
	errs -= warnings
	err := e.encode(map[string]any{
		"format_version": "1.0", "valid": errs == 0, "error_count": errs, "warning_count": warnings,
		"diagnostics": diagfmt.All(diags, s.Sources(), e.dir),
	})
	if err == nil && errs > 0 {
		return status(exitError)
	}
	return err
}
