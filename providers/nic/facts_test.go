package nic

import (
	"context"
	"strconv"
	"strings"

	"plumb/providers"
)

// facts are as many as the type asks for: package host gathers the real ones, and providers do not import one another.
func facts(ctx context.Context, c providers.Conn) (*providers.Facts, error) {
	files, err := c.ReadFiles(ctx, pciDir+"/*/uevent", groupDir+"/*/devices/*/uevent")
	if err != nil {
		return nil, err
	}
	f := &providers.Facts{Root: true, IOMMU: providers.IOMMU{Groups: map[int][]providers.Device{}}}
	for name, data := range files {
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
		f.NICs = append(f.NICs, providers.NIC{Device: d, Vendor: 0x8086, Product: 0x10c9, IOMMUGroup: -1})
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
