package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/urfave/cli/v3"

	"plumb/lang/format"
)

func fmtCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "fmt",
		Usage:     "rewrite configuration files in the canonical form",
		ArgsUsage: "[FILE or DIR ...]",
		Description: `Rewrites *.plumb.hcl and *.plumbvars.hcl files (of the working directory, or as named) with canonical spacing and
indentation, and prints the names of those it changed. "-" formats standard input to standard output. JSON files
are left alone.

Exit status: 0 done, 1 error, 3 with -check when a file is not formatted.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "change nothing; exit 3 when a file is not formatted"},
			&cli.BoolFlag{Name: "recursive", Usage: "folders below too"},
		},
		Action: func(_ context.Context, c *cli.Command) error {
			args := c.Args().Slice()
			if len(args) == 1 && args[0] == "-" {
				src, err := io.ReadAll(e.stdin)
				if err != nil {
					return err
				}
				out, diags := format.Source(src, "<stdin>")
				if diags.HasErrors() {
					return e.fail(diags, map[string][]byte{"<stdin>": src})
				}
				_, err = e.stdout.Write(out)
				return err
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			return e.fmtAll(args, c.Bool("recursive"), c.Bool("check"))
		},
	}
}

func (e *env) fmtAll(args []string, recursive, check bool) error {
	unformatted := false
	var bad hcl.Diagnostics
	sources := map[string][]byte{}
	for _, a := range args {
		files, err := configFiles(e.path(a), recursive)
		if err != nil {
			return err
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			name := e.relative(f)
			out, diags := format.Source(src, name)
			if diags.HasErrors() { // the others are formatted all the same
				bad = append(bad, diags...)
				sources[name] = src
				continue
			}
			if bytes.Equal(src, out) {
				continue
			}
			unformatted = true
			fmt.Fprintln(e.stdout, name)
			if check {
				continue
			}
			st, err := os.Stat(f)
			if err != nil {
				return err
			}
			if err := os.WriteFile(f, out, st.Mode().Perm()); err != nil {
				return err
			}
		}
	}
	if len(bad) > 0 {
		return e.fail(bad, sources)
	}
	if check && unformatted {
		return status(exitUnformatted)
	}
	return nil
}

func configFiles(path string, recursive bool) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		if !isConfigFile(path) {
			return nil, fmt.Errorf("%s is not a *.plumb.hcl or *.plumbvars.hcl file", path)
		}
		return []string{path}, nil
	}
	var out []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != path && (!recursive || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.IsDir() && isConfigFile(p) && !strings.HasPrefix(d.Name(), "."):
			out = append(out, p)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist", path)
	}
	return out, err
}

func isConfigFile(p string) bool {
	return strings.HasSuffix(p, ".plumb.hcl") || strings.HasSuffix(p, ".plumbvars.hcl")
}

func (e *env) relative(p string) string {
	if r, err := filepath.Rel(e.dir, p); err == nil {
		return r
	}
	return p
}
