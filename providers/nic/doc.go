// Package nic holds the settings of network controllers on the PCI bus: which driver they have, and their virtual functions.
//
// Sources: Documentation/ABI/testing/sysfs-bus-pci and Documentation/driver-api/vfio.rst of Linux, driverctl(8), udev(7), ip-address(8), and DPDK's guide to Linux drivers.
//
// Start reading at Driver.
package nic

import "plumb/providers"

// Resources are the resource types of this package.
func Resources() []providers.Resource { return []providers.Resource{Driver{}, SRIOV{}} }
