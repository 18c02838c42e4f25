package host

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"plumb/providers"
)

// Files about PCI devices: Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-net and sysfs-kernel-iommu_groups of Linux.
const (
	pciDir   = "/sys/bus/pci/devices"
	groupDir = "/sys/kernel/iommu_groups"
)

func nicFiles() []string {
	return []string{
		pciDir + "/*/uevent", pciDir + "/*/numa_node", pciDir + "/*/driver_override", pciDir + "/*/sriov_totalvfs", pciDir + "/*/virtfn*/uevent", pciDir + "/*/physfn/uevent",
		pciDir + "/*/net/*/address", pciDir + "/*/virtio*/net/*/address", groupDir + "/*/devices/*/uevent",
		"/sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
	}
}

// device reads a PCI device from its uevent.
func device(uevent []byte) (d providers.Device, vendor, product uint16) {
	d = providers.Device{PCI: property(uevent, "PCI_SLOT_NAME"), Driver: property(uevent, "DRIVER")}
	class, _ := strconv.ParseUint(property(uevent, "PCI_CLASS"), 16, 32)
	d.Class = uint32(class)
	v, p, _ := strings.Cut(property(uevent, "PCI_ID"), ":")
	n, _ := strconv.ParseUint(v, 16, 16)
	m, _ := strconv.ParseUint(p, 16, 16)
	return d, uint16(n), uint16(m)
}

// parseNICs fills in the NICs and the IOMMU's groups. all are the kernel's interfaces by name.
func parseNICs(files fileset, all map[string]*providers.Interface, f *providers.Facts) error {
	group := map[string]int{}
	f.IOMMU = providers.IOMMU{Groups: map[int][]providers.Device{}, NoIOMMU: files.text("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode") == "Y"}
	nics := map[string]*providers.NIC{}
	for name, data := range files {
		if rest, ok := strings.CutPrefix(name, groupDir+"/"); ok && strings.HasSuffix(name, "/uevent") {
			n, err := strconv.Atoi(strings.Split(rest, "/")[0])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			d, _, _ := device(data)
			if d.PCI == "" { // devices that are not on the PCI bus have groups too
				continue
			}
			f.IOMMU.Groups[n] = append(f.IOMMU.Groups[n], d)
			group[d.PCI] = n
			continue
		}
		if dir, base := path.Split(name); base == "uevent" && path.Dir(path.Clean(dir)) == pciDir {
			d, vendor, product := device(data)
			if d.Class>>16 == 2 && d.PCI != "" { // network controllers
				nics[d.PCI] = &providers.NIC{Device: d, Vendor: vendor, Product: product, Node: -1, IOMMUGroup: -1}
			}
		}
	}
	for _, g := range f.IOMMU.Groups {
		slices.SortFunc(g, func(a, b providers.Device) int { return strings.Compare(a.PCI, b.PCI) })
	}
	f.IOMMU.Enabled = len(f.IOMMU.Groups) > 0
	for _, pci := range slices.Sorted(maps.Keys(nics)) {
		n := nics[pci]
		dir := pciDir + "/" + pci + "/"
		var err error
		if n.Node, err = files.number(dir+"numa_node", -1); err != nil {
			return err
		}
		if n.TotalVFs, err = files.number(dir+"sriov_totalvfs", 0); err != nil {
			return err
		}
		if o := files.text(dir + "driver_override"); o != "(null)" {
			n.Override = o
		}
		if g, ok := group[pci]; ok {
			n.IOMMUGroup = g
		}
		n.PF = property(files[dir+"physfn/uevent"], "PCI_SLOT_NAME")
		for i := 0; ; i++ {
			vf, ok := files[fmt.Sprintf("%svirtfn%d/uevent", dir, i)]
			if !ok {
				break
			}
			n.VFs = append(n.VFs, property(vf, "PCI_SLOT_NAME"))
		}
		for _, name := range files.interfacesOf(dir) {
			i := all[name]
			if i == nil {
				i = &providers.Interface{Name: name}
			}
			n.Interfaces = append(n.Interfaces, *i)
		}
		f.NICs = append(f.NICs, *n)
	}
	return nil
}

// interfacesOf lists the kernel's interfaces of a PCI device, which may be behind a virtio device.
func (f fileset) interfacesOf(dir string) []string {
	var out []string
	for name := range f {
		rest, ok := strings.CutPrefix(name, dir)
		if !ok || path.Base(name) != "address" {
			continue
		}
		parts := strings.Split(rest, "/") // net, NAME, address; virtio0, net, NAME, address
		if n := len(parts); n >= 3 && parts[n-3] == "net" {
			out = append(out, parts[n-2])
		}
	}
	slices.Sort(out)
	return out
}

// markManagement notes which interface our own connection comes in by, or a bond or bridge above it.
func markManagement(all map[string]*providers.Interface, address string) {
	address, _, _ = strings.Cut(address, "%") // the zone of a link-local one
	if address == "" {
		return
	}
	for _, i := range all {
		for _, a := range i.Addresses {
			if host, _, _ := strings.Cut(a, "/"); host == address {
				i.Management = true
			}
		}
	}
	spread(all, func(i *providers.Interface) *bool { return &i.Management })
}

// spread hands a property of a bond or bridge down to its members.
func spread(all map[string]*providers.Interface, of func(*providers.Interface) *bool) {
	for range all { // a chain is no longer than there are interfaces
		changed := false
		for _, i := range all {
			if m := all[i.Master]; m != nil && *of(m) && !*of(i) {
				*of(i), changed = true, true
			}
		}
		if !changed {
			return
		}
	}
}
