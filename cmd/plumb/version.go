package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/urfave/cli/v3"
)

func versionCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print Plumb's version",
		Flags: []cli.Flag{jsonFlag()},
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.Bool("json") {
				return json.NewEncoder(e.stdout).Encode(map[string]string{"plumb_version": version, "go": runtime.Version(), "platform": runtime.GOOS + "_" + runtime.GOARCH})
			}
			fmt.Fprintf(e.stdout, "Plumb %s\n%s on %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
