package host

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
)

// told is what the script prints on a machine with a PF in a bond that we are connected through, and a second NIC.
const told = `=== address
[{"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"address":"00:00:00:00:00:00","addr_info":[{"local":"127.0.0.1","prefixlen":8}]},{},
{"ifname":"eno1","flags":["BROADCAST","UP","LOWER_UP"],"mtu":9000,"address":"3c:fd:fe:00:00:01","master":"bond0","operstate":"UP"},
{"ifname":"bond0","flags":["BROADCAST","UP","LOWER_UP"],"mtu":9000,"address":"3c:fd:fe:00:00:01","addr_info":[{"local":"192.0.2.10","prefixlen":24},{"local":"2001:db8::10","prefixlen":64}]},
{"ifname":"ens2f0np0","flags":["BROADCAST"],"mtu":1500,"address":"b8:59:9f:00:00:01"}]
=== route
[{"dst":"default","gateway":"192.0.2.1","dev":"bond0"},{"dst":"192.0.2.0/24","dev":"bond0"}]
[]
=== units
Id=irqbalance.service
LoadState=loaded
ActiveState=active

Id=tuned.service
LoadState=not-found
ActiveState=inactive

Id=openvswitch-switch.service
LoadState=masked
ActiveState=inactive
=== firmware
interface: eno1
speed: 25000
driver: i40e
version: 2.8
firmware-version: 8.30 0x8000a49d 1.2926.0
interface: ens2f0np0
speed: -1
driver: mlx5_core
firmware-version: 16.31.1014 (MT_0000000012)
=== packages
dpdk 22.11.11-0+deb12u1 installed
dpdk-dev  not-installed
qemu-system-x86 1:7.2+dfsg-7+deb12u12 installed
=== ovs
ovs-vswitchd (Open vSwitch) 3.1.0
DPDK 22.11.11
=== end
`

func pciFiles() fileset {
	f := twoNodes()
	add := func(pci, class, id, driver string, more map[string]string) {
		dir := pciDir + "/" + pci + "/"
		f[dir+"uevent"] = fmt.Appendf(nil, "DRIVER=%s\nPCI_CLASS=%s\nPCI_ID=%s\nPCI_SLOT_NAME=%s\n", driver, class, id, pci)
		for name, text := range more {
			f[dir+name] = []byte(text)
		}
	}
	add("0000:18:00.0", "20000", "8086:158B", "i40e", map[string]string{"numa_node": "0\n", "driver_override": "(null)\n", "sriov_totalvfs": "64\n", "net/eno1/address": "3c:fd:fe:00:00:01\n",
		"virtfn0/uevent": "PCI_SLOT_NAME=0000:18:02.0\n", "virtfn1/uevent": "PCI_SLOT_NAME=0000:18:02.1\n"})
	add("0000:18:02.0", "20000", "8086:154C", "vfio-pci", map[string]string{"numa_node": "0\n", "driver_override": "vfio-pci\n", "physfn/uevent": "PCI_SLOT_NAME=0000:18:00.0\n"})
	add("10000:af:00.0", "20000", "15B3:1017", "mlx5_core", map[string]string{"numa_node": "1\n", "net/ens2f0np0/address": "b8:59:9f:00:00:01\n"})
	add("0000:00:03.0", "20000", "1AF4:1000", "virtio-pci", map[string]string{"numa_node": "-1\n", "virtio0/net/bond0/address": "3c:fd:fe:00:00:01\n"})
	add("0000:00:1f.0", "60100", "8086:A1C1", "", nil)
	for g, members := range map[string][]string{"7": {"0000:18:00.0"}, "8": {"0000:18:02.0", "0000:00:1f.0"}} {
		for _, m := range members {
			f[groupDir+"/"+g+"/devices/"+m+"/uevent"] = f[pciDir+"/"+m+"/uevent"]
		}
	}
	f["/sys/kernel/security/lockdown"] = []byte("none [integrity] confidentiality\n")
	f[secureBoot] = []byte{6, 0, 0, 0, 1}
	f["/proc/modules"] = []byte("vfio_pci 16384 0 - Live 0x0\n")
	f["/proc/sys/kernel/osrelease"] = []byte("6.1.0\n")
	f["/lib/modules/6.1.0/modules.builtin"] = []byte("kernel/drivers/net/tun.ko\nkernel/net/8021q/8021q.ko.xz\nkernel/drivers/vfio/vfio-iommu-x.ko\n")
	f["/lib/modules/5.0.0/modules.builtin"] = []byte("kernel/old.ko\n")
	f[cpuDir+"/cpu0/cpufreq/scaling_driver"] = []byte("intel_pstate\n")
	f[cpuDir+"/cpu0/cpufreq/scaling_governor"], f[cpuDir+"/cpu1/cpufreq/scaling_governor"] = []byte("powersave\n"), []byte("performance\n")
	f[cpuDir+"/cpu0/cpufreq/scaling_available_governors"] = []byte("performance powersave\n")
	f[cpuDir+"/intel_pstate/no_turbo"] = []byte("1\n")
	f[cpuDir+"/cpu0/cpuidle/state0/name"], f[cpuDir+"/cpu0/cpuidle/state0/disable"] = []byte("POLL\n"), []byte("0\n")
	f[cpuDir+"/cpu0/cpuidle/state3/name"], f[cpuDir+"/cpu0/cpuidle/state3/disable"] = []byte("C6\n"), []byte("1\n")
	for cpu := range 2 {
		dir := fmt.Sprintf("%s/cpu%d/cache/index3/", cpuDir, cpu)
		f[dir+"level"], f[dir+"type"], f[dir+"size"], f[dir+"shared_cpu_list"] = []byte("3\n"), []byte("Unified\n"), []byte("32768K\n"), []byte("0-3\n")
	}
	return f
}

func TestParseNICs(t *testing.T) {
	f, err := parseFacts(pciFiles(), told, "192.0.2.10")
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	want := []providers.NIC{
		{Device: providers.Device{PCI: "0000:00:03.0", Class: 0x20000, Driver: "virtio-pci"}, Vendor: 0x1af4, Product: 0x1000, Node: -1, IOMMUGroup: -1, Interfaces: []providers.Interface{
			{Name: "bond0", MAC: "3c:fd:fe:00:00:01", MTU: 9000, Up: true, Carrier: &yes, Addresses: []string{"192.0.2.10/24", "2001:db8::10/64"}, DefaultRoute: true, Management: true}}},
		{Device: providers.Device{PCI: "0000:18:00.0", Class: 0x20000, Driver: "i40e"}, Vendor: 0x8086, Product: 0x158b, Node: 0, IOMMUGroup: 7, TotalVFs: 64, VFs: []string{"0000:18:02.0", "0000:18:02.1"}, Interfaces: []providers.Interface{
			{Name: "eno1", MAC: "3c:fd:fe:00:00:01", MTU: 9000, Up: true, Carrier: &yes, SpeedMbit: 25000, Driver: "i40e", Firmware: "8.30 0x8000a49d 1.2926.0", Master: "bond0", DefaultRoute: true, Management: true}}},
		{Device: providers.Device{PCI: "0000:18:02.0", Class: 0x20000, Driver: "vfio-pci"}, Vendor: 0x8086, Product: 0x154c, Node: 0, IOMMUGroup: 8, Override: "vfio-pci", PF: "0000:18:00.0"},
		{Device: providers.Device{PCI: "10000:af:00.0", Class: 0x20000, Driver: "mlx5_core"}, Vendor: 0x15b3, Product: 0x1017, Node: 1, IOMMUGroup: -1, Interfaces: []providers.Interface{
			{Name: "ens2f0np0", MAC: "b8:59:9f:00:00:01", MTU: 1500, Driver: "mlx5_core", Firmware: "16.31.1014 (MT_0000000012)"}}},
	}
	if d := cmp.Diff(want, f.NICs); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[int][]providers.Device{7: {{PCI: "0000:18:00.0", Class: 0x20000, Driver: "i40e"}}, 8: {{PCI: "0000:00:1f.0", Class: 0x60100}, {PCI: "0000:18:02.0", Class: 0x20000, Driver: "vfio-pci"}}}, f.IOMMU.Groups); d != "" || !f.IOMMU.Enabled {
		t.Error(d)
	}
	if errs := f.Value.Type().TestConformance(factsSchema().Block.ImpliedType()); len(errs) > 0 {
		t.Errorf("the value is not of the schema's type: %v", errs)
	}
}

func TestParsePower(t *testing.T) {
	f, err := parseFacts(pciFiles(), told, "")
	if err != nil {
		t.Fatal(err)
	}
	no, yes := false, true
	if d := cmp.Diff(providers.Power{Driver: "intel_pstate", Governors: []string{"performance", "powersave"}, Available: []string{"performance", "powersave"}, Turbo: &no, CStates: []string{"POLL"}}, f.Power); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]bool{"vfio_pci": true, "tun": true, "8021q": true, "vfio_iommu_x": true}, f.Modules); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"dpdk": "22.11.11", "qemu": "7.2", "ovs": "3.1.0", "ovs_dpdk": "22.11.11"}, f.Versions); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"irqbalance": "active", "openvswitch-switch": "inactive"}, f.Services); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]providers.Cache{{Level: 3, Kind: "Unified", Bytes: 32 << 20, CPUs: []int{0, 1, 2, 3}}}, f.Caches); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(&yes, f.SecureBoot); d != "" || f.Lockdown != "integrity" {
		t.Errorf("%s, lockdown %q", d, f.Lockdown)
	}
	if n := f.NIC("0000:18:00.0"); n == nil || n.Interfaces[0].Management {
		t.Errorf("without an address of ours: %+v", n)
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add(told)
	f.Add("=== address\n[{}]\n=== route\n[][]\n=== end\n")
	f.Fuzz(func(_ *testing.T, s string) {
		if all, err := parseScript(s, &providers.Facts{}); err == nil {
			markManagement(all, "192.0.2.10")
		}
	})
}
