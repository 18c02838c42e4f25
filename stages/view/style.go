// Package view writes what people read: plans, progress, results of an apply, state. It renders data that other stages
// made and decides nothing; a plan's text is made from the JSON plan alone, so that `show`, continuous integration and
// people never disagree.
package view

import (
	"strconv"
	"strings"
)

// Style says how text is dressed. The zero Style is plain.
type Style struct{ Color bool }

// The codes used. Colour is never the only sign: every coloured thing has its symbol or word too.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return code + text + reset
}

// plural is "1 core", "2 cores".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

func indent(n int) string { return strings.Repeat(" ", max(n, 0)) }
