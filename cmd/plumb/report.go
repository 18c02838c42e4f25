package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"plumb/stages/bench"
	"plumb/stages/report"
	"plumb/stages/session"
)

func reportCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "print or rewrite the report of a run, offline",
		ArgsUsage: "[RUN]",
		Description: `RUN is a run's name below results/, or its folder; without it the newest. The folder's manifest is verified first. Needs neither the
configuration nor the testbed.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "table", Usage: "`FORMAT` to print: table, markdown, csv, json, html"},
			&cli.BoolFlag{Name: "write", Usage: "write all formats into the run's folder and name them"},
			&cli.BoolFlag{Name: "list", Usage: "list the runs"},
		},
		Action: func(_ context.Context, c *cli.Command) error {
			results := filepath.Join(e.dir, session.ResultsDir)
			if c.Bool("list") {
				return e.listRuns(results)
			}
			if c.Args().Len() > 1 {
				return fmt.Errorf("report takes one run. See %s -help", c.FullName())
			}
			dir, err := e.runDir(results, c.Args().First())
			if err != nil {
				return err
			}
			run, err := bench.Load(dir)
			if err != nil {
				return err
			}
			if c.Bool("write") {
				files, err := report.Write(dir, run)
				for _, f := range files {
					fmt.Fprintln(e.stdout, f)
				}
				return err
			}
			return e.printReport(run, c.String("format"))
		},
	}
}

func (e *env) printReport(run *bench.Run, format string) error {
	var out []byte
	var err error
	switch format {
	case "table":
		out = []byte(report.Table(run, e.width))
	case "markdown", "md":
		out = []byte(report.Markdown(run))
	case "csv":
		out = report.CSV(run)
	case "json":
		out, err = report.JSON(run)
	case "html":
		out, err = report.HTML(run)
	default:
		return fmt.Errorf("-format %q: want table, markdown, csv, json or html", format)
	}
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(out)
	return err
}

func (e *env) listRuns(results string) error {
	runs, err := bench.List(results)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Problem != "" {
			fmt.Fprintf(e.stdout, "%s  cannot be read: %s\n", r.ID, r.Problem)
			continue
		}
		note := ""
		if r.Interrupted {
			note = fmt.Sprintf("  interrupted, %d trials", r.Trials)
		}
		fmt.Fprintf(e.stdout, "%s  %s  %v%s\n", r.ID, r.Started.Format("2006-01-02 15:04:05"), r.Benchmarks, note)
	}
	return nil
}

// runDir finds a run's folder.
func (e *env) runDir(results, name string) (string, error) {
	runs, err := bench.List(results)
	if err != nil {
		return "", err
	}
	if name == "" {
		if len(runs) == 0 {
			return "", fmt.Errorf("there are no runs in %s: plumb apply or plumb bench makes one", e.relative(results))
		}
		return runs[len(runs)-1].Dir, nil
	}
	for _, r := range runs {
		if r.ID == name {
			return r.Dir, nil
		}
	}
	return e.path(name), nil
}
