package nic

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"plumb/providers"
)

// facts are as many as the type asks for: package host gathers the real ones, and providers do not import one another.
func facts(ctx context.Context, c providers.Conn) (*providers.Facts, error) {
	files, err := c.ReadFiles(ctx, pciDir+"/*/uevent", pciDir+"/*/numa_node", pciDir+"/*/sriov_totalvfs", groupDir+"/*/devices/*/uevent")
	if err != nil {
		return nil, err
	}
	f := &providers.Facts{Root: true, IOMMU: providers.IOMMU{Groups: map[int][]providers.Device{}}}
	for name, data := range files {
		if path.Base(name) != "uevent" {
			continue
		}
		d := providers.Device{PCI: property(data, "PCI_SLOT_NAME"), Driver: property(data, "DRIVER"), Class: 0x20000}
		parts := strings.Split(name, "/")
		if strings.HasPrefix(name, groupDir) {
			n, err := strconv.Atoi(parts[4])
			if err != nil {
				return nil, err
			}
			f.IOMMU.Enabled, f.IOMMU.Groups[n] = true, append(f.IOMMU.Groups[n], d)
			continue
		}
		nic := providers.NIC{Device: d, IOMMUGroup: -1, Node: -1}
		if _, err := fmt.Sscanf(property(data, "PCI_ID"), "%x:%x", &nic.Vendor, &nic.Product); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if node := files[path.Join(path.Dir(name), "numa_node")]; node != nil {
			if _, err := fmt.Sscan(string(node), &nic.Node); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		if total := files[path.Join(path.Dir(name), "sriov_totalvfs")]; total != nil {
			if _, err := fmt.Sscan(string(total), &nic.TotalVFs); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		f.NICs = append(f.NICs, nic)
	}
	for n, members := range f.IOMMU.Groups {
		for _, m := range members {
			if nic := f.NIC(m.PCI); nic != nil {
				nic.IOMMUGroup = n
			}
		}
	}
	return f, nil
}
