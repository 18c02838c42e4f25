package labhost_test

import (
	"context"
	"path"
	"strings"
	"testing"

	"plumb/providers"
	"plumb/providers/labhost"
)

// The host has what the suites need (PLUMB_LAB names its folder).
func TestLabHost(t *testing.T) {
	h := labhost.Find(t)
	conn := labhost.Open(t)
	patterns := []string{"/sys/kernel/iommu_groups/*/devices/*/uevent", "/proc/1/comm"}
	for _, n := range h.NICs {
		patterns = append(patterns, path.Join("/sys/bus/pci/devices", n.PCI, "numa_node"), path.Join("/sys/bus/pci/devices", n.PCI, "sriov_totalvfs"))
	}
	files, err := conn.ReadFiles(t.Context(), patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range h.NICs {
		dir := path.Join("/sys/bus/pci/devices", n.PCI)
		if got, want := strings.TrimSpace(string(files[dir+"/numa_node"])), []string{"0", "0", "1", "1"}[i]; got != want {
			t.Errorf("%s is on NUMA node %s, want %s", n.PCI, got, want)
		}
		if got, want := strings.TrimSpace(string(files[dir+"/sriov_totalvfs"])), []string{"7", "7", "", ""}[i]; got != want {
			t.Errorf("%s can have %q virtual functions, want %q", n.PCI, got, want)
		}
		group := false
		for name := range files {
			group = group || path.Base(path.Dir(name)) == n.PCI && strings.HasPrefix(name, "/sys/kernel/iommu_groups/")
		}
		if !group {
			t.Errorf("%s is in no IOMMU group", n.PCI)
		}
	}
	if len(h.NICs) != 4 || string(files["/proc/1/comm"]) != "systemd\n" {
		t.Errorf("%d NICs, process 1 is %q", len(h.NICs), files["/proc/1/comm"])
	}
	for _, program := range []string{"ovs-vsctl", "dpdk-testpmd", "driverctl", "tuned-adm", "update-grub", "ethtool", "lspci", "sudo"} {
		run(t, conn, "command -v "+program+" >/dev/null")
	}
	// No unit of the image fails by itself. A host that still starts is waited for.
	if state := run(t, conn, "systemctl is-system-running --wait || systemctl list-units --failed --plain --no-legend"); state != "running\n" {
		t.Errorf("systemd: %s", state)
	}
}

// Modules of the kernel's datapath and of NICs for DPDK load, and hugepages can be had on each NUMA node. Both are as before then.
func TestLabKernel(t *testing.T) {
	conn := labhost.Open(t)
	for _, module := range []string{"openvswitch", "vfio_pci", "uio_pci_generic"} {
		// One that is loaded already proves as much, and may be in use.
		run(t, conn, "[ -d /sys/module/"+module+" ] || { modprobe "+module+" && [ -d /sys/module/"+module+" ] && modprobe -r "+module+"; }")
	}
	for _, node := range []string{"0", "1"} {
		pages := "/sys/devices/system/node/node" + node + "/hugepages/hugepages-2048kB/nr_hugepages"
		before := run(t, conn, "cat "+pages)
		t.Cleanup(func() {
			if _, err := conn.Run(context.WithoutCancel(t.Context()), shell("echo "+strings.TrimSpace(before)+" >"+pages)); err != nil {
				t.Error(err)
			}
		})
		if got := run(t, conn, "echo 64 >"+pages+" && cat "+pages); got != "64\n" {
			t.Errorf("NUMA node %s gives %s of 64 hugepages of 2 MB", node, strings.TrimSpace(got))
		}
	}
}

func shell(script string) providers.Cmd { return providers.Cmd{Args: []string{"sh", "-c", script}} }

// run runs a constant script on the host and returns what it prints.
func run(t *testing.T, conn providers.Conn, script string) string {
	t.Helper()
	out, err := conn.Run(t.Context(), shell(script))
	if err != nil {
		t.Errorf("%s: %v", script, err)
	}
	return string(out.Stdout)
}
