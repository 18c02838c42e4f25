package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"plumb/lang/diagfmt"
)

// run runs one command line and returns the exit code. args[0] is the program's name.
func run(e *env, args []string) int {
	app := newApp(e)
	err := app.Run(context.Background(), args)
	var st status
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &st):
		return int(st)
	}
	fmt.Fprintf(e.stderr, "plumb: %v\n", err)
	return exitError
}

const rootHelp = `Plumb brings Open vSwitch / DPDK testbeds up from HCL files, measures them, and puts every host back exactly as it
was found. The usual round:

  plumb doctor    what stands in the way on the hosts, and what to do about it
  plumb plan      what would change, how disruptive each change is, and what cannot work
  plumb apply     converge the testbed, run its benchmarks, write the reports
  plumb destroy   take it all down

Files are *.plumb.hcl (or *.plumb.json) in the working directory. Values of variables come, later over earlier, from
PLUMB_VAR_name, *.auto.plumbvars.hcl, -var-file and -var.

Exit status: 0 done, 1 error, 2 changes (plan -detailed-exitcode) or a require that failed, 130 interrupted.
Environment: PLUMB_VAR_name, NO_COLOR.`

func newApp(e *env) *cli.Command {
	commands := []*cli.Command{
		validateCommand(e), planCommand(e), applyCommand(e), destroyCommand(e),
		benchCommand(e), reportCommand(e), loadgenCommand(e),
		showCommand(e), outputCommand(e), stateCommand(e), graphCommand(e), snapshotCommand(e), doctorCommand(e),
		fmtCommand(e), providersCommand(e), versionCommand(e),
	}
	app := &cli.Command{
		Name:                  "plumb",
		Usage:                 "infrastructure as code, and measuring, for Open vSwitch / DPDK testbeds",
		Description:           rootHelp,
		Commands:              commands,
		EnableShellCompletion: true,
		ConfigureShellCompletionCommand: func(c *cli.Command) {
			c.Hidden = false
			c.Usage = "print the completion script for bash, zsh, fish or pwsh"
			c.Description = "Load it in the shell's start-up file, for example:\n\n  bash    source <(plumb completion bash)\n  zsh     source <(plumb completion zsh)\n" +
				"  fish    plumb completion fish > ~/.config/fish/completions/plumb.fish"
			e.polish(c)
		},
		Suggest:         true,
		HideVersion:     true,
		HideHelpCommand: true,
		Reader:          e.stdin,
		Writer:          e.stdout,
		ErrWriter:       e.stderr,
		ExitErrHandler:  func(context.Context, *cli.Command, error) {},
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "chdir", Usage: "work in `DIR` instead of the current directory"},
			&cli.BoolFlag{Name: "no-color", Usage: "no colour (as with NO_COLOR set)"},
		},
		Before: func(ctx context.Context, c *cli.Command) (context.Context, error) {
			e.noColor = c.Bool("no-color")
			if d := c.String("chdir"); d != "" {
				if !filepath.IsAbs(d) {
					d = filepath.Join(e.dir, d)
				}
				if st, err := os.Stat(d); err != nil || !st.IsDir() {
					return ctx, fmt.Errorf("-chdir: %s is not a directory", d)
				}
				e.dir = d
			}
			return ctx, nil
		},
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return unknownCommand(c, commands, c.Args().First())
			}
			showHelp(e.stdout, c)
			return nil
		},
	}
	e.polish(app)
	return app
}

// unknownCommand names the nearest command.
func unknownCommand(c *cli.Command, commands []*cli.Command, given string) error {
	names := make([]string, len(commands))
	for i, sub := range commands {
		names[i] = sub.Name
	}
	hint := ""
	if s := diagfmt.Suggest(given, names); s != "" {
		hint = fmt.Sprintf(" Did you mean %q?", s)
	}
	return fmt.Errorf("there is no command %q.%s See %s -help", given, hint, c.FullName())
}

// polish sets on every command what urfave does not inherit: -var a=1,2 must stay one value, and a usage error is one line.
func (e *env) polish(c *cli.Command) {
	c.DisableSliceFlagSeparator = true
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return fmt.Errorf("%w. See %s -help", err, c.FullName())
	}
	if len(c.Commands) > 0 && c.Action == nil {
		commands := c.Commands
		c.Action = func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return unknownCommand(c, commands, c.Args().First())
			}
			showHelp(e.stdout, c)
			return nil
		}
	}
	for _, sub := range c.Commands {
		e.polish(sub)
	}
}

// noArgs refuses arguments that a command would ignore.
func noArgs(c *cli.Command) error {
	if c.Args().Present() {
		return fmt.Errorf("%s takes no arguments; %q is too much. See %s -help", c.FullName(), c.Args().First(), c.FullName())
	}
	return nil
}

// path makes a path from the command line absolute, against the working directory that -chdir may have set.
func (e *env) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.dir, p)
}

// ask asks for "yes"; anything else is no.
func (e *env) ask(question string) (bool, error) {
	fmt.Fprintf(e.stdout, "\n%s\n  Only 'yes' is accepted: ", question)
	line, err := readLine(e.stdin)
	if err != nil && err != io.EOF {
		return false, err
	}
	fmt.Fprintln(e.stdout)
	return strings.TrimSpace(line) == "yes", nil
}

// readLine reads byte by byte so that nothing after the line is taken from whoever reads next.
func readLine(r io.Reader) (string, error) {
	var b []byte
	one := make([]byte, 1)
	for {
		n, err := r.Read(one)
		if n == 1 {
			if one[0] == '\n' {
				return string(b), nil
			}
			b = append(b, one[0])
		}
		if err != nil {
			return string(b), err
		}
	}
}
