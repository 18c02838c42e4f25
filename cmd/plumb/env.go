package main

import (
	"context"
	"io"
	"time"

	"plumb/providers"
	"plumb/stages/view"
)

// Exit codes, as documented by `plumb -help`.
const (
	exitOK          = 0
	exitError       = 1
	exitChanges     = 2 // plan -detailed-exitcode found changes, a require failed, or doctor found a problem
	exitUnformatted = 3 // fmt -check found files to format
	exitInterrupted = 130
)

// env is everything that a command takes from outside the process, so that tests can give their own.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	environ        func() []string
	now            func() time.Time
	dir            string // working directory; -chdir changes it
	tty, ttyIn     bool
	width          int
	pid            int
	set            func() providers.Set
	signal         func(notice io.Writer) (soft, hard context.Context, stop func())
	noColor        bool
	crash          func(point string) // for tests only
}

func (e *env) style() view.Style {
	return view.Style{Color: e.tty && !e.noColor && e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb"}
}

// status is an error that only carries an exit code: everything has been said already.
type status int

func (s status) Error() string { return "" }
