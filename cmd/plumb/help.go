package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// ownHelp makes urfave print help as Plumb writes it: flags with one dash. It offers only a package variable for that, which main sets before
// anything else runs.
func ownHelp() {
	cli.HelpPrinter = func(w io.Writer, _ string, data any) {
		if c, ok := data.(*cli.Command); ok {
			showHelp(w, c)
		}
	}
}

// showHelp prints what a command does, how it is called, its commands and its flags.
func showHelp(w io.Writer, c *cli.Command) {
	const width = 100
	usage := c.FullName()
	if len(c.Commands) > 0 {
		usage += " COMMAND"
	}
	usage += " [-FLAG ...]"
	if c.ArgsUsage != "" {
		usage += " " + c.ArgsUsage
	}
	fmt.Fprintf(w, "%s: %s\n\nUsage: %s\n", c.FullName(), c.Usage, usage)
	if c.Description != "" {
		fmt.Fprintf(w, "\n%s\n", reflow(c.Description, width))
	}
	var commands, flags [][2]string
	for _, sub := range c.Commands {
		if !sub.Hidden {
			commands = append(commands, [2]string{sub.Name, sub.Usage})
		}
	}
	for _, f := range c.Flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		if d, ok := f.(cli.DocGenerationFlag); ok {
			flags = append(flags, flagHelp(f.Names()[0], d))
		}
	}
	slices.SortFunc(flags, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	columns(w, "Commands", commands, width)
	columns(w, "Flags", flags, width)
	if c.Root() == c {
		fmt.Fprintf(w, "\nMore about a command: %s COMMAND -help\n", c.FullName())
		return
	}
	fmt.Fprintf(w, "\nBeside these, every command takes -chdir DIR and -no-color: see %s -help.\n", c.Root().Name)
}

// flagHelp is a flag as it is typed and what it does. The placeholder stands in backquotes in the text.
func flagHelp(name string, d cli.DocGenerationFlag) [2]string {
	text, left := d.GetUsage(), "-"+name
	if before, rest, ok := strings.Cut(text, "`"); ok {
		placeholder, after, _ := strings.Cut(rest, "`")
		left += " " + placeholder
		text = before + placeholder + after
	} else if d.TakesValue() {
		left += " " + strings.ToUpper(d.TypeName())
	}
	switch value := d.GetValue(); {
	case !d.TakesValue() && value == "true":
		left += "=false"
	case d.TakesValue() && value != "" && value != "[]":
		text += " (default " + strings.Trim(value, `"`) + ")"
	}
	return [2]string{left, text}
}

// columns prints names and what they mean under a heading.
func columns(w io.Writer, heading string, rows [][2]string, width int) {
	if len(rows) == 0 {
		return
	}
	left := 0
	for _, r := range rows {
		left = max(left, len(r[0]))
	}
	fmt.Fprintf(w, "\n%s:\n", heading)
	for _, r := range rows {
		for i, line := range strings.Split(reflow(r[1], width-left-4), "\n") {
			name := r[0]
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "  %-*s  %s\n", left, name, line)
		}
	}
}

// reflow breaks paragraphs at the width; lines that begin with a blank, such as examples, stay.
func reflow(text string, width int) string {
	var out []string
	current := ""
	flush := func() {
		if current != "" {
			out = append(out, current)
		}
		current = ""
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			flush()
			out = append(out, line)
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if current != "" && len(current)+1+len(word) > width {
				flush()
			}
			if current != "" {
				current += " "
			}
			current += word
		}
	}
	flush()
	return strings.Join(out, "\n")
}
