package host

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFingerprint(t *testing.T) {
	files := fileset{
		"/proc/mounts":  []byte("none /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\nproc /proc proc rw 0 0\ntmpfs /tmp tmpfs rw,size=1493584k 0 0\n/dev/sda1 /srv/with\\040blank ext4 rw 0 0\nnsfs /run/netns/a nsfs rw 0 0\n"),
		"/proc/cmdline": []byte("quiet\n"), "/proc/modules": []byte("vfio 16384 0 - Live 0x0\n"),
		"/var/lib/dpkg/alternatives/ovs-vswitchd": []byte("manual\n/usr/sbin/ovs-vswitchd\n"),
		"/proc/5/stat": []byte("5 (dpdk-testpmd) S 1\n"), "/proc/6/stat": []byte("6 (ovs-vswitchd) Z 1\n"),
		"/sys/class/net/eth0/mtu": []byte("1500\n"), "/sys/class/net/eth0/flags": []byte("0x1003\n"), "/sys/class/net/eth0/address": []byte("02:00:00:00:00:01\n"),
		"/sys/class/net/eth0/master/uevent":        []byte("INTERFACE=br0\n"),
		"/sys/bus/pci/devices/0000:01:00.0/uevent": []byte("DRIVER=vfio-pci\nPCI_CLASS=20000\n"), "/sys/bus/pci/devices/0000:01:00.0/driver_override": []byte("vfio-pci\n"),
		"/sys/bus/pci/devices/0000:02:00.0/uevent": []byte("DRIVER=nvme\nPCI_CLASS=10802\n"),
		"/sys/bus/pci/devices/0000:03:00.0/uevent": []byte("DRIVER=igb\nPCI_CLASS=20000\n"), "/sys/bus/pci/devices/0000:03:00.0/sriov_numvfs": []byte("2\n"),
		"/sys/bus/pci/devices/0000:03:00.0/sriov_drivers_autoprobe": []byte("0\n"),
		"/sys/bus/pci/devices/0000:03:00.0/msi_irqs/101":            []byte("msix\n"), "/sys/bus/pci/devices/0000:03:00.0/msi_irqs/99": []byte("msix\n"),
		"/proc/irq/101/smp_affinity_list": []byte("3\n"), "/proc/irq/99/smp_affinity_list": []byte("0-3\n"), "/proc/irq/default_smp_affinity": []byte("f\n"),
		"/proc/sys/net/ipv4/tcp_rmem": []byte("4096\t131072\t6291456\n"), "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode": []byte("N\n"),
		"/etc/default/grub": []byte("GRUB_CMDLINE_LINUX=\"\"\n"), "/etc/modprobe.d/empty.conf": nil, "/sys/kernel/mm/ksm/run": []byte("0\n"),
		cpuDir + "/cpu0/cpufreq/scaling_governor": []byte("performance\n"), cpuDir + "/cpu1/cpufreq/scaling_governor": []byte("performance\n"), cpuDir + "/cpu2/cpufreq/scaling_governor": []byte("powersave\n"),
		cpuDir + "/cpu0/cpuidle/state2/disable": []byte("1\n"), cpuDir + "/intel_pstate/no_turbo": []byte("1\n"), cpuDir + "/cpufreq/boost": []byte("0\n"), cpuDir + "/online": []byte("0-2\n"),
	}
	got, err := fingerprint(files)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{
		"alternative ovs-vswitchd: manual",
		"cpu cpufreq/boost: 0",
		"cpu cpufreq/scaling_governor performance: on 0-1",
		"cpu cpufreq/scaling_governor powersave: on 2",
		"cpu cpuidle/state2/disable 1: on 0",
		"cpu intel_pstate/no_turbo: 1",
		"cpu online: 0-2",
		"file /etc/default/grub: sha256 86fb35954d26cb8d",
		"file /etc/modprobe.d/empty.conf: sha256 e3b0c44298fc1c14",
		"hugetlbfs /dev/hugepages: 2M",
		"interrupt 0 of nic 0000:03:00.0: to CPUs 0-3",
		"interrupt 1 of nic 0000:03:00.0: to CPUs 3",
		"interrupts by default: mask f",
		"kernel command line: quiet",
		"ksm/run: 0",
		"link eth0: up, mtu 1500, address 02:00:00:00:00:01, master br0",
		"module parameter vfio.enable_unsafe_noiommu_mode: N",
		"module vfio: loaded",
		"mount /dev/hugepages: none hugetlbfs rw,pagesize=2M",
		"mount /srv/with blank: /dev/sda1 ext4 rw",
		"mount /tmp: tmpfs tmpfs rw",
		"nic 0000:01:00.0: driver vfio-pci, override vfio-pci",
		"nic 0000:03:00.0: driver igb, virtual functions 2, drivers of virtual functions are not probed",
		"process dpdk-testpmd: 1",
		"sysctl net/ipv4/tcp_rmem: 4096 131072 6291456",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	files = maps.Clone(files)
	files["/proc/7/stat"] = []byte("7 (irqbalance) S 1\n")
	if got, err = fingerprint(files); err != nil || slices.ContainsFunc(got, func(l string) bool { return l == "interrupt 1 of nic 0000:03:00.0: to CPUs 3" }) {
		t.Errorf("interrupts that irqbalance moves: %q, %v", got, err)
	}
}

// snapTold is what the script prints on a host with a NIC that has two virtual functions, a bond with a VLAN, and routes of all kinds.
const snapTold = `=== units
Id=irqbalance.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled

Id=tuned.service
LoadState=not-found
ActiveState=inactive
UnitFileState=

Id=firewalld.service
LoadState=masked
ActiveState=inactive
UnitFileState=
=== found
d	/run/netns	
f	/run/netns/dut	
f	/run/openvswitch/ovs-vswitchd.4711.ctl	
l	/etc/systemd/system/multi-user.target.wants/irqbalance.service	/lib/systemd/system/irqbalance.service
=== address
[{"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"}]},{},
{"ifname":"ens2","flags":["BROADCAST","PROMISC"],"ifalias":"plumb: ours","promiscuity":1,"vfinfo_list":[
 {"vf":0,"address":"00:00:00:00:00:00","vlan_list":[{"vlan":5,"qos":1}],"rate":{"max_tx":100,"min_tx":0},"spoofchk":true,"link_state":"auto","trust":false},
 {"vf":1,"address":"02:00:00:00:00:07","vlan_list":[{}],"rate":{"max_tx":0,"min_tx":0},"spoofchk":false,"link_state":"enable","trust":true}],"addr_info":[]},
{"ifname":"bond0.5","link":"bond0","flags":["UP"],"linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":5}},"addr_info":[
 {"family":"inet","local":"192.0.2.10","prefixlen":24,"scope":"global","dynamic":true,"valid_life_time":86000},
 {"family":"inet","local":"10.0.0.1","address":"10.0.0.2","prefixlen":32,"scope":"global"},
 {"family":"inet6","local":"2001:db8::1","prefixlen":64,"scope":"global","dynamic":true,"mngtmpaddr":true},
 {"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link"}]}]
=== route
[{"dst":"default","gateway":"192.0.2.1","dev":"bond0.5","protocol":"dhcp","prefsrc":"192.0.2.10","metric":100,"flags":["linkdown"]},
 {"dst":"192.0.2.0/24","dev":"bond0.5","protocol":"kernel","scope":"link"},{"type":"blackhole","dst":"198.51.100.0/24","table":"100","flags":[]},
 {"dst":"203.0.113.0/24","flags":[],"nexthops":[{"gateway":"192.0.2.2","dev":"bond0.5","weight":1},{"gateway":"192.0.2.3","dev":"bond0.5","weight":1}]},
 {"type":"local","dst":"192.0.2.10","dev":"bond0.5","table":"local","protocol":"kernel"}]
[{"dst":"default","gateway":"fe80::2","dev":"bond0.5","protocol":"ra","metric":1024,"expires":1799},{"dst":"fe80::/64","dev":"bond0.5","protocol":"kernel"}]
=== neighbour
[{"dst":"192.0.2.7","dev":"bond0.5","lladdr":"02:00:00:00:00:99","state":["PERMANENT"]}]
=== driver
interface: ens2 ring
Ring parameters for ens2:
Pre-set maximums:
RX:			4096
TX:			4096
Current hardware settings:
RX:			256
RX Mini:		n/a
TX:			512
interface: ens2 channels
interface: ens2 pause
Pause parameters for ens2:
Autonegotiate:	on
RX:		on
TX:		off
interface: ens2 coalescing
Coalesce parameters for ens2:
Adaptive RX: on  TX: off
stats-block-usecs:	n/a

rx-usecs:	3
tx-usecs:	8

CQE mode RX: n/a  TX: n/a

interface: ens2 offloads
Features for ens2:
rx-checksumming: on
tx-checksumming: off
	tx-checksum-ipv4: off [fixed]
	highdma: on [fixed]
scatter-gather: on
large-receive-offload: off [requested on]
=== packages
openvswitch-switch:amd64 3.1.0-2+deb12u1 installed
removed:amd64 1.0 config-files
=== end
`

func TestParseSnapshot(t *testing.T) {
	got, err := parseSnapshot(snapTold)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{
		"address bond0.5: 10.0.0.1/32, peer 10.0.0.2",
		"address bond0.5: 192.0.2.10/24",
		"address lo: 127.0.0.1/8",
		"file /run/netns/dut: exists",
		"file /run/openvswitch/ovs-vswitchd.PID.ctl: exists",
		"link bond0.5 is: kind vlan, id 5, on bond0",
		`link ens2 is: promisc, alias "plumb: ours"`,
		"link to /etc/systemd/system/multi-user.target.wants/irqbalance.service: /lib/systemd/system/irqbalance.service",
		"neighbour 192.0.2.7 on bond0.5: 02:00:00:00:00:99",
		"nic ens2 coalescing: Adaptive RX on TX: off, tx-usecs 8",
		"nic ens2 offloads: rx-checksumming, scatter-gather",
		"nic ens2 pause: Autonegotiate on",
		"nic ens2 ring: RX 256, TX 512",
		"package openvswitch-switch:amd64: 3.1.0-2+deb12u1",
		"route 203.0.113.0/24: nexthop 192.0.2.2 bond0.5 nexthop 192.0.2.3 bond0.5",
		"route blackhole 198.51.100.0/24: table 100",
		"route default: via 192.0.2.1 dev bond0.5 src 192.0.2.10 metric 100",
		"service firewalld.service: inactive, masked",
		"service irqbalance.service: active, enabled",
		"virtual function 0 of ens2: mac 00:00:00:00:00:00, trust off, spoofchk on, rate 0 to 100 Mbit/s, link auto, query_rss off, vlan 5 qos 1",
		"virtual function 1 of ens2: mac 02:00:00:00:00:07, trust on, spoofchk off, rate 0 to 0 Mbit/s, link enable, query_rss off",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseSnapshot(snapTold[:len(snapTold)-2]); err == nil {
		t.Error("an answer that is cut off was taken")
	}
}

func FuzzParseSnapshot(f *testing.F) {
	f.Add(snapTold)
	f.Fuzz(func(_ *testing.T, s string) { _, _ = parseSnapshot(s) })
}
