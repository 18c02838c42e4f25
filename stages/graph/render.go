package graph

import (
	"fmt"
	"strconv"
	"strings"
)

// DOT renders the graph in Graphviz's language: arrows point from what waits to what it waits for, as in terraform graph.
func (g *Graph[K]) DOT(label func(K) string) string {
	var out strings.Builder
	out.WriteString("digraph plumb {\n  rankdir = \"RL\";\n  node [shape = rect, fontname = \"sans-serif\"];\n")
	for _, k := range g.keys {
		fmt.Fprintf(&out, "  %s;\n", dotQuote(label(k)))
	}
	for _, e := range g.Edges() {
		fmt.Fprintf(&out, "  %s -> %s [label = %s];\n", dotQuote(label(e.From)), dotQuote(label(e.To)), dotQuote(e.Reason))
	}
	out.WriteString("}\n")
	return out.String()
}

// dotQuote quotes as Graphviz reads it: a backslash escapes only the quote and itself in a label.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// Mermaid renders the graph as a Mermaid flowchart.
func (g *Graph[K]) Mermaid(label func(K) string) string {
	var out strings.Builder
	out.WriteString("flowchart LR\n")
	for i, k := range g.keys {
		fmt.Fprintf(&out, "  n%d[\"%s\"]\n", i, mermaidEscape(label(k)))
	}
	for f, edges := range g.after {
		for _, e := range edges {
			out.WriteString("  n" + strconv.Itoa(f) + " -->|\"" + mermaidEscape(e.reason) + "\"| n" + strconv.Itoa(e.to) + "\n")
		}
	}
	return out.String()
}

// mermaidEscape writes what Mermaid would take for syntax as HTML entities.
func mermaidEscape(s string) string {
	return strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", "<br>").Replace(s)
}
