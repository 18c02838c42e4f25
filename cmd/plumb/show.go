package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v3"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"plumb/lang/diagfmt"
	"plumb/stages/session"
	"plumb/stages/state"
	"plumb/stages/view"
)

func showCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show the state, or a saved plan",
		ArgsUsage: "[PLANFILE]",
		Description: `Looks at no host. A saved plan is shown also when the state has moved on since. Sensitive values are never shown; with -json they are
null.`,
		Flags: append(viewFlags(), jsonFlag()),
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Len() > 1 {
				return fmt.Errorf("show takes one plan file. See %s -help", c.FullName())
			}
			if c.Args().Present() {
				p, err := session.ReadPlan(e.path(c.Args().First()))
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return e.encode(view.RedactPlan(p))
				}
				fmt.Fprint(e.stdout, view.Plan(p, view.PlanOptions{Style: e.style(), Catalog: session.Catalog(e.set()), Concise: c.Bool("concise"), Verbose: c.Bool("verbose")}))
				return nil
			}
			s, st, err := e.readState(nil)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return e.encode(view.Redact(st))
			}
			fmt.Fprint(e.stdout, view.State(st, s.Catalog, e.style()))
			return nil
		},
	}
}

func outputCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "output",
		Usage:     "print the outputs of the last apply",
		ArgsUsage: "[NAME]",
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.BoolFlag{Name: "raw", Usage: "print a string, number or bool as it is, without quotes or newline"},
			&cli.BoolFlag{Name: "show-sensitive", Usage: "print sensitive values too"},
		},
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Len() > 1 {
				return fmt.Errorf("output takes one name. See %s -help", c.FullName())
			}
			_, st, err := e.readState(nil)
			if err != nil {
				return err
			}
			outputs := map[string]state.Output{}
			if st != nil {
				outputs = st.Outputs
			}
			if c.Bool("show-sensitive") {
				for name, o := range outputs {
					o.Sensitive = false
					outputs[name] = o
				}
			}
			if !c.Args().Present() {
				return e.allOutputs(outputs, c.Bool("json"))
			}
			return e.oneOutput(outputs, c.Args().First(), c.Bool("json"), c.Bool("raw"))
		},
	}
}

func (e *env) allOutputs(outputs map[string]state.Output, asJSON bool) error {
	if !asJSON {
		fmt.Fprint(e.stdout, view.Outputs(outputs))
		return nil
	}
	for name, o := range outputs {
		if o.Sensitive {
			o.Value = json.RawMessage("null")
			outputs[name] = o
		}
	}
	return e.encode(outputs)
}

func (e *env) oneOutput(outputs map[string]state.Output, name string, asJSON, raw bool) error {
	o, ok := outputs[name]
	if !ok {
		var names []string
		for n := range outputs {
			names = append(names, n)
		}
		return fmt.Errorf("the state has no output %q.%s Outputs are known after an apply", name, diagfmt.DidYouMean(name, names))
	}
	if o.Sensitive {
		return fmt.Errorf("output %q is sensitive; give -show-sensitive to print it", name)
	}
	switch {
	case asJSON:
		var b bytes.Buffer
		if err := json.Compact(&b, o.Value); err != nil { // the state's own indentation
			return fmt.Errorf("output %q: %w", name, err)
		}
		_, err := fmt.Fprintln(e.stdout, b.String())
		return err
	case raw:
		ty, err := ctyjson.UnmarshalType(o.Type)
		if err != nil {
			return err
		}
		v, err := ctyjson.Unmarshal(o.Value, ty)
		if err != nil {
			return err
		}
		text, err := rawText(v)
		if err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
		_, err = fmt.Fprint(e.stdout, text)
		return err
	}
	_, err := fmt.Fprintln(e.stdout, view.JSONValue(o.Value))
	return err
}

func rawText(v cty.Value) (string, error) {
	switch {
	case v.IsNull():
		return "", fmt.Errorf("-raw cannot print null")
	case v.Type() == cty.String:
		return v.AsString(), nil
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1), nil
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True()), nil
	}
	return "", fmt.Errorf("-raw prints strings, numbers and bools; this is %s. Use -json", v.Type().FriendlyName())
}
