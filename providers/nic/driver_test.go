package nic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// machine has a two-port NIC in one IOMMU group, a NIC that we are connected by, one with the default route, a ConnectX, and a virtual function.
func machine() *providers.Facts {
	dev := func(pci, driver string, class uint32) providers.Device {
		return providers.Device{PCI: pci, Class: class, Driver: driver}
	}
	f := &providers.Facts{Root: true, IOMMU: providers.IOMMU{Enabled: true, Groups: map[int][]providers.Device{
		7: {dev("0000:00:01.0", "pcieport", 0x60400), dev("0000:01:00.0", "i40e", 0x20000), dev("0000:01:00.1", "i40e", 0x20000), dev("0000:01:00.2", "", 0x20000), dev("0000:01:00.3", "vfio-pci", 0x20000)},
		8: {dev("0000:02:00.0", "igb", 0x20000)}}}}
	add := func(pci, driver string, vendor, product uint16, group int, i ...providers.Interface) {
		f.NICs = append(f.NICs, providers.NIC{Device: dev(pci, driver, 0x20000), Vendor: vendor, Product: product, IOMMUGroup: group, Interfaces: i})
	}
	add("0000:01:00.0", "i40e", 0x8086, 0x1572, 7, providers.Interface{Name: "ens1f0"})
	add("0000:01:00.1", "i40e", 0x8086, 0x1572, 7, providers.Interface{Name: "ens1f1"})
	add("0000:02:00.0", "igb", 0x8086, 0x10c9, 8, providers.Interface{Name: "eno1", Management: true, DefaultRoute: true})
	add("0000:03:00.0", "igb", 0x8086, 0x10c9, -1, providers.Interface{Name: "eno2", DefaultRoute: true})
	add("0000:04:00.0", "mlx5_core", 0x15b3, 0x1017, -1, providers.Interface{Name: "ens4f0np0"})
	add("0000:05:02.0", "iavf", 0x8086, 0x154c, -1)
	f.NICs[5].PF = "0000:05:00.0"
	add("0000:05:00.0", "i40e", 0x8086, 0x1572, -1)
	f.NICs[6].VFs = []string{"0000:05:02.0"}
	return f
}

func TestRefusals(t *testing.T) {
	yes := true
	for name, tc := range map[string]struct {
		change func(*providers.Facts)
		want   want
		text   string
	}{
		"fine":            {nil, want{pci: "0000:01:00.0", driver: "vfio-pci"}, ""},
		"bound already":   {func(f *providers.Facts) { f.NICs[3].Driver = "vfio-pci" }, want{pci: "0000:03:00.0", driver: "vfio-pci"}, ""},
		"kernel's own":    {nil, want{pci: "0000:04:00.0", driver: "kernel"}, ""},
		"no such NIC":     {func(f *providers.Facts) { f.NICs = f.NICs[:1] }, want{pci: "0000:09:00.0", driver: "vfio-pci"}, "No such NIC: dut has no NIC at 0000:09:00.0. It has 0000:01:00.0 (i40e)."},
		"own connection":  {nil, want{pci: "0000:02:00.0", driver: "vfio-pci"}, "NIC carries Plumb's own connection: 0000:02:00.0 of dut is eno1, by which Plumb is connected to it: bound to vfio-pci, the host could not be reached any more. Use another NIC, or connect to dut by another one."},
		"default route":   {nil, want{pci: "0000:03:00.0", driver: "uio_pci_generic"}, "NIC carries the default route: 0000:03:00.0 of dut is eno2, which its default route goes through: bound to uio_pci_generic, the host would be cut off. Use another NIC, or move the route first."},
		"mlx5":            {nil, want{pci: "0000:04:00.0", driver: "vfio-pci"}, "NIC is used together with its kernel driver: 0000:04:00.0 of dut (15b3:1017, mlx5_core): DPDK drives such a NIC through its kernel driver, and on vfio-pci it is dead for both. Leave out this resource; the port takes the PCI address as it is."},
		"no IOMMU":        {func(f *providers.Facts) { f.IOMMU = providers.IOMMU{} }, want{pci: "0000:01:00.0", driver: "vfio-pci"}, "There is no IOMMU: dut has no IOMMU groups, so that vfio-pci refuses devices. Switch the IOMMU on: VT-d or AMD-Vi in the BIOS, and intel_iommu=on iommu=pt on the kernel's command line (host_kernel_args). Where there is none, as in most virtual machines, noiommu = true uses vfio's unsafe mode."},
		"no IOMMU, taken": {func(f *providers.Facts) { f.IOMMU = providers.IOMMU{} }, want{pci: "0000:01:00.0", driver: "vfio-pci", noiommu: true}, ""},
		"Secure Boot":     {func(f *providers.Facts) { f.SecureBoot = &yes }, want{pci: "0000:01:00.0", driver: "igb_uio"}, "igb_uio cannot be loaded: On dut Secure Boot is on, and igb_uio is a module from outside the kernel, without a signature that it trusts: the kernel says \"Required key not available\". Use vfio-pci, which is part of the kernel."},
		"lockdown":        {func(f *providers.Facts) { f.Lockdown = "integrity" }, want{pci: "0000:01:00.0", driver: "uio_pci_generic"}, "uio_pci_generic gives no access to the NIC: On dut the kernel is locked down (integrity), and the kernel then lets no program map the memory of a PCI device. Use vfio-pci."},
		"uio of a VF":     {nil, want{pci: "0000:05:02.0", driver: "uio_pci_generic"}, "uio_pci_generic needs an interrupt line: 0000:05:02.0 of dut is a virtual function, which has message-signalled interrupts only, and uio_pci_generic refuses such devices. Use vfio-pci."},
		"a PF with VFs":   {nil, want{pci: "0000:05:00.0", driver: "vfio-pci"}, "NIC has virtual functions: 0000:05:00.0 of dut has 1 virtual functions (0000:05:02.0), which go when it is bound to another driver. Set their number to 0 first."},
	} {
		f := machine()
		if tc.change != nil {
			tc.change(f)
		}
		var got []string
		for _, p := range problems(f, "dut", tc.want) {
			got = append(got, p.Summary+": "+p.Detail)
		}
		if d := cmp.Diff(tc.text, strings.Join(got, "\n")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestGroupThatIsNotViable(t *testing.T) {
	got := viable(machine(), "dut", "0000:01:00.0")
	want := []providers.Named{{Kind: onVFIO, Name: "0000:01:00.1", Path: cty.GetAttrPath("pci"), Summary: "IOMMU group is not viable",
		Hint: "0000:01:00.0 of dut is in IOMMU group 7 with 0000:00:01.0 (pcieport), 0000:01:00.0 (i40e), 0000:01:00.1 (i40e), 0000:01:00.2 (no driver), 0000:01:00.3 (vfio-pci). " +
			"vfio-pci takes a group as a whole, and 0000:01:00.1 has the driver i40e. Add a resource nic_driver for it with driver = \"vfio-pci\" too, or use a NIC in a group of its own."}}
	if len(got) != 1 || got[0].Name != want[0].Name || got[0].Hint != want[0].Hint || got[0].Summary != want[0].Summary {
		t.Errorf("%+v", got)
	}
	for _, pci := range []string{"0000:02:00.0", "0000:03:00.0"} {
		if got := viable(machine(), "dut", pci); len(got) > 0 {
			t.Errorf("%s: %+v", pci, got)
		}
	}
}

func TestCanonicalPCI(t *testing.T) {
	for in, want := range map[string]string{"01:00.0": "0000:01:00.0", "0000:AF:1F.7": "0000:af:1f.7", "10000:01:00.0": "10000:01:00.0", "0000:01:20.0": "", "0000:01:00.8": "", "": "", "-1:00.0": "",
		"0000:01:00.0\n": "", "0000:01:00.0;id": "", "../0000:01:00.0": "", "0000:01:00.0\x00": ""} {
		v, err := canonicalPCI(cty.StringVal(in))
		if (err == nil) != (want != "") || err == nil && v.AsString() != want {
			t.Errorf("%q: %v, %v", in, v, err)
		}
	}
}

func TestValidDriver(t *testing.T) {
	for in, ok := range map[string]bool{"vfio-pci": true, "igb_uio": true, "kernel": true, "": false, "-r": false, "a b": false, "a;b": false, "$(id)": false, "a/b": false, "a\nb": false, "a\x00": false} {
		if err := validDriver(cty.StringVal(in)); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestNetdev(t *testing.T) {
	const out = `[{"ifname":"ens1","mtu":9000,"flags":["BROADCAST","PROMISC","UP","LOWER_UP"],"promiscuity":1,"master":"bond0","ifalias":"to the switch","addr_info":[{"local":"198.51.100.1","prefixlen":24},` +
		`{"local":"203.0.113.9","prefixlen":24,"dynamic":true},{"local":"2001:db8::1","prefixlen":64},{"local":"fe80::1","prefixlen":64}]}]
===
[{"dst":"198.51.100.0/24","protocol":"kernel","flags":[]},{"dst":"192.0.2.0/24","gateway":"198.51.100.9","protocol":"static","metric":100,"flags":[]},{"dst":"default","gateway":"198.51.100.1","protocol":"dhcp","flags":[]}]
===
[{"dst":"2001:db8:1::/48","gateway":"2001:db8::9","prefsrc":"2001:db8::1","protocol":"boot","flags":[]}]
`
	n, err := parseNetdev([]byte(out), "ens1")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"link set dev ens1 mtu 9000", `link set dev ens1 alias "to the switch"`, "link set dev ens1 promisc on", "link set dev ens1 master bond0", "link set dev ens1 up",
		"address replace 198.51.100.1/24 dev ens1", "address replace 2001:db8::1/64 dev ens1", "route replace 192.0.2.0/24 via 198.51.100.9 dev ens1 metric 100",
		"route replace 2001:db8:1::/48 via 2001:db8::9 dev ens1 src 2001:db8::1"}
	if d := cmp.Diff(want, restoreLines("ens1", n)); d != "" {
		t.Error(d)
	}
}

func FuzzParseNetdev(f *testing.F) {
	f.Add([]byte("[{}]\n===\n[]\n===\n[]\n"))
	f.Add([]byte(`[{"ifname":"a","addr_info":[{"local":"x"}]}]` + "\n===\n[{}]\n===\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if n, err := parseNetdev(b, "x"); err == nil {
			restoreLines("x", n)
		}
	})
}
