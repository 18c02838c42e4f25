package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/urfave/cli/v3"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/diagfmt"
	"plumb/lang/schema"
	"plumb/stages/session"
	"plumb/stages/view"
)

// valueFlag collects -var and -var-file into one list, since their order among each other counts.
type valueFlag struct {
	file bool
	into *[]config.ValueArg
}

func (v *valueFlag) Set(s string) error {
	*v.into = append(*v.into, config.ValueArg{File: v.file, Text: s})
	return nil
}

func (v *valueFlag) String() string { return "" }

func (v *valueFlag) Get() any { return *v.into }

// open opens the session of the working directory. vars: nil for none.
func (e *env) open(vars *[]config.ValueArg, empty session.Emptiness) (*session.Session, hcl.Diagnostics) {
	var given []config.ValueArg
	if vars != nil {
		for _, v := range *vars {
			if v.File {
				v.Text = e.path(v.Text)
			}
			given = append(given, v)
		}
	}
	return session.Open(e.sessionEnv(), given, empty)
}

func (e *env) sessionEnv() session.Env {
	env := session.Env{
		Dir: e.dir, Version: version, Now: e.now, Providers: e.set(), Environ: e.environ(), PID: e.pid, Crash: e.crash,
		User: "unknown", Hostname: "unknown",
	}
	if u, err := user.Current(); err == nil {
		env.User = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		env.Hostname = h
	}
	return env
}

// printer writes diagnostics, as text to standard error or as JSON events to standard output.
type printer struct {
	*env
	events *view.Events // nil: text
}

func (e *env) printer(c *cli.Command) *printer {
	p := &printer{env: e}
	if c.Bool("json") {
		p.events = view.NewEvents(e.stdout, e.now)
	}
	return p
}

// show prints diagnostics and says, as an error, whether there were any errors.
func (p *printer) show(s *session.Session, diags hcl.Diagnostics) error {
	sources := s.Sources()
	if p.events != nil {
		for _, d := range diagfmt.All(diags, sources, p.dir) {
			p.events.Event("diagnostic", map[string]any{"diagnostic": d})
		}
	} else if len(diags) > 0 {
		fmt.Fprint(p.stderr, diagfmt.Text(diagfmt.Consolidate(diags), sources, p.dir, diagfmt.Style{Color: p.style().Color, Width: p.width}))
	}
	if diags.HasErrors() {
		return status(exitError)
	}
	return nil
}

// text prints for people only.
func (p *printer) text(format string, args ...any) {
	if p.events == nil {
		fmt.Fprintf(p.stdout, format, args...)
	}
}

// fail prints diagnostics about sources at hand.
func (e *env) fail(diags hcl.Diagnostics, sources map[string][]byte) error {
	fmt.Fprint(e.stderr, diagfmt.Text(diags, sources, e.dir, diagfmt.Style{Color: e.style().Color, Width: e.width}))
	return status(exitError)
}

// errorDiags makes diagnostics of an error.
func errorDiags(summary string, err error) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: sentence(err.Error())}}
}

// sentence makes an error's text a sentence. A first word that is a name (benchmark.p2p, ovs-vswitchd) keeps its case.
func sentence(s string) string {
	if s == "" {
		return s
	}
	if first, _, _ := strings.Cut(s, " "); !strings.ContainsAny(strings.TrimSuffix(first, ":"), "._-/") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?\n") {
		s += "."
	}
	return s
}

func parseTargets(flag string, args []string) ([]addrs.Target, error) {
	var out []addrs.Target
	for _, a := range args {
		t, err := addrs.ParseTarget(a)
		if err != nil {
			return nil, fmt.Errorf("-%s: %w", flag, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func planArgs(c *cli.Command) (session.PlanArgs, error) {
	args := session.PlanArgs{Refresh: c.Bool("refresh"), Parallelism: c.Int("parallelism")}
	var err error
	if args.Targets, err = parseTargets("target", c.StringSlice("target")); err != nil {
		return args, err
	}
	if args.Replace, err = parseTargets("replace", c.StringSlice("replace")); err != nil {
		return args, err
	}
	if s := c.String("max-cost"); s != "" {
		cost, err := schema.ParseCost(s)
		if err != nil {
			return args, fmt.Errorf("-max-cost: %w", err)
		}
		args.MaxCost = &cost
	}
	return args, nil
}

func (e *env) encode(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
