package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this binary a plumb to be killed when the crash test asks for that, and the commands of the scripts when it runs under their names.
func TestMain(m *testing.M) {
	if code, asked := victimMain(); asked {
		os.Exit(code)
	}
	testscript.Main(m, scriptCommands())
}

// needReal skips where the real daemons are not asked for. With PLUMB_REAL=1 the test runs, and fails where something is missing.
func needReal(t *testing.T) {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("needs root, Open vSwitch with DPDK and hugepages: set PLUMB_REAL=1")
	}
	if os.Geteuid() != 0 {
		t.Fatal("PLUMB_REAL=1 needs root")
	}
}
