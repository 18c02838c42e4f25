// Package pcidriver knows which kernel drivers leave a NIC to DPDK.
package pcidriver

import (
	"fmt"
	"slices"

	"plumb/providers"
)

// Bound is the kind of thing that a nic_driver provides and a user of DPDK needs: a NIC, by its PCI address, whose driver leaves it to DPDK.
const Bound = "NIC on a driver of DPDK"

// ForDPDK says whether DPDK can use a NIC that has this driver: one that only passes it on, or one that shares it (DPDK's guides to Linux drivers, and to the
// mlx4, mlx5 and MANA poll mode drivers).
func ForDPDK(driver string) bool {
	return slices.Contains([]string{"vfio-pci", "uio_pci_generic", "igb_uio", "mlx5_core", "mlx4_core", "mana"}, driver)
}

// Bifurcated says that DPDK uses the NIC beside its kernel driver, which has to stay: all of NVIDIA's (Mellanox's), which mlx4 and mlx5 drive, and Microsoft's MANA with its
// virtual function ("bifurcated driver" in DPDK's guide to Linux drivers; PCI ids of its guides to mlx4, mlx5 and MANA).
func Bifurcated(n *providers.NIC) bool {
	return n.Vendor == 0x15b3 || n.Vendor == 0x1414 && (n.Product == 0x00b9 || n.Product == 0x00ba) || slices.Contains([]string{"mlx5_core", "mlx4_core", "mana"}, n.Driver)
}

// Need is what a user of a NIC needs; ok false: nothing, since the NIC is bound already or the host does not have it.
func Need(f *providers.Facts, host, pci string) (need providers.Named, ok bool) {
	nic := f.NIC(pci)
	if nic == nil || ForDPDK(nic.Driver) {
		return providers.Named{}, false
	}
	has := "has the driver " + nic.Driver
	if nic.Driver == "" {
		has = "has no driver"
	}
	return providers.Named{Kind: Bound, Name: pci,
		Hint: fmt.Sprintf("The NIC %s of %s %s. Add a resource nic_driver for it with driver = \"vfio-pci\".", pci, host, has)}, true
}
