package view

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"plumb/providers"
)

// Examined is what was found on one host.
type Examined struct {
	Findings []providers.Finding
	Error    string // why there are none
}

// Findings writes what was found on each host: what is wrong first, with what to do about it, then what is well. Text is broken at the width; 0: not at all.
func Findings(hosts map[string]Examined, width int, st Style) string {
	var out strings.Builder
	for i, name := range sortedKeys(hosts) {
		if i > 0 {
			out.WriteString("\n")
		}
		h := hosts[name]
		if h.Error != "" {
			fmt.Fprintf(&out, "%s  %s: %s\n", st.paint(bold, "host."+name), st.paint(red, "not examined"), h.Error)
			continue
		}
		fmt.Fprintf(&out, "%s  %s\n", st.paint(bold, "host."+name), counted(h.Findings))
		list := slices.Clone(h.Findings)
		slices.SortStableFunc(list, func(a, b providers.Finding) int { return cmp.Compare(b.Level, a.Level) })
		for _, f := range list {
			colour := map[providers.Level]string{providers.Hinders: red, providers.Warning: yellow, providers.Advice: cyan, providers.OK: green}[f.Level]
			fmt.Fprintf(&out, "%s%s\n", st.paint(colour, fmt.Sprintf("  %-8s", f.Level)), wrapped(f.Subject+": "+f.Found, 10, width))
			if f.Why != "" {
				fmt.Fprintf(&out, "%s%s\n", indent(10), wrapped(f.Why, 10, width))
			}
			if f.Do != "" {
				fmt.Fprintf(&out, "%s%s\n", indent(8), wrapped("> "+f.Do, 10, width))
			}
			for line := range strings.Lines(Proposal(name, f.Block, len(hosts) > 1)) {
				out.WriteString(strings.TrimRight(indent(12)+line, " \n") + "\n")
			}
		}
	}
	return out.String()
}

// counted says how many findings of each level there are.
func counted(list []providers.Finding) string {
	n := map[providers.Level]int{}
	for _, f := range list {
		n[f.Level]++
	}
	return fmt.Sprintf("%s, %s, %d advice, %d ok", plural(n[providers.Hinders], "problem"), plural(n[providers.Warning], "warning"), n[providers.Advice], n[providers.OK])
}

// Proposals are the resources that findings propose, as a configuration: each once.
func Proposals(hosts map[string]Examined) string {
	var blocks []string
	for _, name := range sortedKeys(hosts) {
		for _, f := range hosts[name].Findings {
			if b := Proposal(name, f.Block, len(hosts) > 1); b != "" && !slices.Contains(blocks, b) {
				blocks = append(blocks, b)
			}
		}
	}
	return strings.Join(blocks, "\n")
}

// Proposal is a proposed resource for a host. Where there are several, it says which, also in its name.
func Proposal(host, block string, several bool) string {
	if !several {
		return block
	}
	head := regexp.MustCompile(`^resource "(\w+)" "(\w+)" {\n`)
	return head.ReplaceAllString(block, fmt.Sprintf("resource \"$1\" \"%s_$2\" {\n  host = host.%s\n\n", host, host))
}

// wrapped breaks text at the width; every line but the first begins after so many blanks.
func wrapped(text string, from, width int) string {
	if width <= from+20 {
		return text
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && from+len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n"+indent(from))
}
