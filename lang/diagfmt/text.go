package diagfmt

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// Style says how the text looks.
type Style struct {
	Color bool // a coloured rule at the left, the subject underlined by the terminal
	Width int  // columns; 0 does not wrap
}

const (
	reset     = "\x1b[0m"
	bold      = "\x1b[1m"
	underline = "\x1b[4m"
	red       = "\x1b[31m"
	yellow    = "\x1b[33m"
	dim       = "\x1b[2m"
)

// Text renders diagnostics for people, each after an empty line, ending with a newline; "" when there are none.
func Text(diags hcl.Diagnostics, sources map[string][]byte, dir string, st Style) string {
	var b strings.Builder
	for _, d := range diags {
		b.WriteString(New(d, sources, dir).Text(st))
	}
	return b.String()
}

// Text renders the diagnostic for people.
func (d Diagnostic) Text(st Style) string {
	color, label := red, "Error"
	if d.Severity == "warning" {
		color, label = yellow, "Warning"
	}
	p := painter(st.Color)
	width := st.Width
	if st.Color && width > 0 {
		width = max(width-2, 1) // the rule and the blank after it
	}

	lines := []string{p.paint(bold+color, label+": ") + p.paint(bold, oneLine(d.Summary)), ""}
	if d.Address != "" {
		lines = append(lines, "  with "+d.Address+",")
	}
	lines = append(lines, d.source(p)...)
	if len(lines) > 2 {
		lines = append(lines, "")
	}
	if d.Detail != "" {
		lines = append(lines, wrap(d.Detail, width)...)
	}
	for lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}

	var b strings.Builder
	if !st.Color {
		b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
		return b.String()
	}
	b.WriteString(p.paint(color, "╷") + "\n")
	for _, l := range lines {
		b.WriteString(p.paint(color, "│") + " " + l + "\n")
	}
	b.WriteString(p.paint(color, "╵") + "\n")
	return b.String()
}

// source is the place, the source lines with the subject marked, and the values.
func (d Diagnostic) source(p painter) []string {
	if d.Range == nil {
		return nil
	}
	where := fmt.Sprintf("  on %s line %d", d.Range.Filename, d.Range.Start.Line)
	if d.Snippet == nil {
		return []string{where + ":", "  (the source is not at hand)"}
	}
	if d.Snippet.Context != "" {
		where += ", in " + d.Snippet.Context
	}
	lines := []string{where + ":"}
	s, at := d.Snippet, 0
	carets := !bool(p) && !strings.Contains(s.Code[s.Start:s.End], "\n") // below several lines they would only be in the way
	for i, code := range strings.Split(s.Code, "\n") {
		start, end := clamp(s.Start-at, len(code)), clamp(s.End-at, len(code))
		number := fmt.Sprintf("%4d: ", s.StartLine+i)
		marked := start < end
		if marked && bool(p) {
			lines = append(lines, number+clean(code[:start])+p.paint(underline, clean(code[start:end]))+clean(code[end:]))
		} else {
			lines = append(lines, number+clean(code))
		}
		if marked && carets {
			lines = append(lines, strings.Repeat(" ", len(number))+blank(code[:start])+strings.Repeat("^", utf8.RuneCountInString(code[start:end])))
		}
		at += len(code) + 1
	}
	if d.Range.End.Line >= s.StartLine+strings.Count(s.Code, "\n")+1 {
		lines = append(lines, "      ...")
	}
	if len(s.Values) > 0 {
		lines = append(lines, "    "+p.paint(dim, "├────────────────"))
		for _, v := range s.Values {
			lines = append(lines, "    "+p.paint(dim, "│ ")+p.paint(bold, v.Traversal)+" "+v.Statement)
		}
	}
	return lines
}

// painter colours when it is true.
type painter bool

func (p painter) paint(code, text string) string {
	if !p || text == "" {
		return text
	}
	return code + text + reset
}

// clean keeps a source line from steering the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// blank is as wide as s: tabs stay, everything else is a space.
func blank(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, clean(s))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// wrap breaks lines between words so that they fit the width. Lines that begin with a blank are left as they are, so
// that a command in them can be copied; so are words that are longer than the width.
func wrap(text string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if width <= 0 || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") || utf8.RuneCountInString(line) <= width {
			out = append(out, line)
			continue
		}
		current, n := "", 0
		for word := range strings.SplitSeq(line, " ") {
			w := utf8.RuneCountInString(word)
			if n > 0 && n+1+w > width {
				out = append(out, current)
				current, n = "", 0
			}
			if n > 0 {
				current += " "
				n++
			}
			current += word
			n += w
		}
		out = append(out, current)
	}
	return out
}
