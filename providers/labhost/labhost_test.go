package labhost_test

import (
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
	patterns := []string{"/sys/kernel/iommu_groups/*/devices/*/uevent", "/proc/1/comm", "/sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages"}
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
	for _, node := range []string{"0", "1"} {
		if _, ok := files["/sys/devices/system/node/node"+node+"/hugepages/hugepages-2048kB/nr_hugepages"]; !ok {
			t.Errorf("there is no NUMA node %s with hugepages", node)
		}
	}
	for _, module := range []string{"openvswitch", "vfio-pci", "uio_pci_generic"} {
		if _, err := conn.Run(t.Context(), providers.Cmd{Args: []string{"modinfo", module}}); err != nil {
			t.Errorf("module %s: %v", module, err)
		}
	}
}
