package pcidriver

import (
	"testing"

	"plumb/providers"
)

func TestBifurcated(t *testing.T) {
	for name, tc := range map[string]struct {
		nic  providers.NIC
		want bool
	}{
		"ConnectX-5":                       {providers.NIC{Vendor: 0x15b3, Product: 0x1017, Device: providers.Device{Driver: "mlx5_core"}}, true},
		"ConnectX-5 bound to vfio-pci":     {providers.NIC{Vendor: 0x15b3, Product: 0x1017, Device: providers.Device{Driver: "vfio-pci"}}, true},
		"MANA":                             {providers.NIC{Vendor: 0x1414, Product: 0x00ba, Device: providers.Device{Driver: "mana"}}, true},
		"another device of Microsoft's":    {providers.NIC{Vendor: 0x1414, Product: 0x5353}, false},
		"X710":                             {providers.NIC{Vendor: 0x8086, Product: 0x1572, Device: providers.Device{Driver: "i40e"}}, false},
		"what is not known, by the driver": {providers.NIC{Device: providers.Device{Driver: "mlx4_core"}}, true},
	} {
		if got := Bifurcated(&tc.nic); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
