package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
)

const proposal = "resource \"host_sysctl\" \"nmi\" {\n  key   = \"kernel.nmi_watchdog\"\n  value = \"0\"\n}\n"

func examined() map[string]Examined {
	return map[string]Examined{
		"tg": {Error: "cannot be reached: no route to host"},
		"dut": {Findings: []providers.Finding{
			{Subject: "swap", Found: "None."},
			{Level: providers.Advice, Subject: "watchdog", Found: "The NMI watchdog is on, as it is on most machines that somebody has installed.", Why: "It takes a counter.", Do: "Switch it off.", Block: proposal},
			{Level: providers.Hinders, Subject: "IOMMU", Found: "There is none.", Why: "vfio-pci needs it."},
			{Level: providers.Advice, Subject: "watchdog", Found: "Again.", Block: proposal},
		}},
	}
}

func TestFindings(t *testing.T) {
	want := `host.dut  1 problem, 0 warnings, 2 advice, 1 ok
  problem IOMMU: There is none.
          vfio-pci needs it.
  advice  watchdog: The NMI watchdog is on, as it is on most
          machines that somebody has installed.
          It takes a counter.
        > Switch it off.
            resource "host_sysctl" "dut_nmi" {
              host = host.dut

              key   = "kernel.nmi_watchdog"
              value = "0"
            }
  advice  watchdog: Again.
            resource "host_sysctl" "dut_nmi" {
              host = host.dut

              key   = "kernel.nmi_watchdog"
              value = "0"
            }
  ok      swap: None.

host.tg  not examined: cannot be reached: no route to host
`
	if diff := cmp.Diff(want, Findings(examined(), 60, Style{})); diff != "" {
		t.Error(diff)
	}
}

// One block that several findings propose is in the configuration once; a single host is not named in it.
func TestProposals(t *testing.T) {
	hosts := examined()
	want := "resource \"host_sysctl\" \"dut_nmi\" {\n  host = host.dut\n\n  key   = \"kernel.nmi_watchdog\"\n  value = \"0\"\n}\n"
	if diff := cmp.Diff(want, Proposals(hosts)); diff != "" {
		t.Error(diff)
	}
	delete(hosts, "tg")
	if diff := cmp.Diff(proposal, Proposals(hosts)); diff != "" {
		t.Error(diff)
	}
}
