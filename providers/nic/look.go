package nic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"plumb/providers"
)

// Files of the PCI bus.
const (
	pciDir     = "/sys/bus/pci/devices"
	driverDir  = "/sys/bus/pci/drivers"
	probeFile  = "/sys/bus/pci/drivers_probe"
	groupDir   = "/sys/kernel/iommu_groups"
	unsafeFile = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
	controlDir = "/etc/driverctl.d"
	ruleDir    = "/etc/udev/rules.d"
	driverctl  = "/usr/sbin/driverctl"
	loadedDir  = "/run/plumb/loaded" // a file for each module that a Plumb has loaded since the boot
)

// modulesOf lists the modules that come with a driver for user space, in the order in which they can be unloaded.
func modulesOf(driver string) []string {
	switch driver {
	case vfioDriver:
		return []string{"vfio_pci", "vfio_pci_core", "vfio_iommu_type1", "vfio_virqfd", "vfio", "irqbypass"}
	case uioGeneric, igbUIO:
		return []string{strings.ReplaceAll(driver, "-", "_"), "uio"}
	}
	return nil
}

// bus is what is known of a host's PCI devices, read once until somebody changes something.
type bus struct {
	host providers.Host

	mu      sync.Mutex
	known   map[string]*device
	modules map[string]bool // loaded
	loaded  map[string]bool // by a Plumb
	noiommu bool
	control bool                    // driverctl is installed
	links   map[string][]vfSettings // by interface; nil: not read yet

	binding sync.Mutex // one device at a time is taken from one driver and given to another: probes of the kernel concern all
}

// device is a PCI device.
type device struct {
	pci, driver, override, vendor, product string
	node, group, vfs                       int
	interfaces                             []string
	driverctl                              string // override that driverctl keeps
	rule                                   string // text of our udev rule
	kept                                   string // driver that it will have after a reboot, by either

	total     int      // virtual functions that it can have
	autoprobe string   // sriov_drivers_autoprobe
	vfPCI     []string // its virtual functions, by number
	pf        string   // its physical function
	alias     string   // by which udev finds its driver's module
}

func (d *device) first() string {
	if len(d.interfaces) == 0 {
		return ""
	}
	return d.interfaces[0]
}

// spelled is the driver in the words of a configuration.
func (d *device) spelled(want string) string {
	if want == kernelDriver && d.driver != "" && !slices.Contains(userDrivers(), d.driver) {
		return kernelDriver
	}
	return called(d.driver)
}

type busKey struct{}

func busOf(ctx context.Context, h providers.Host) (*bus, error) {
	if h == nil {
		return nil, errors.New("a NIC is on a host, and none is given")
	}
	v, err := h.Shared(ctx, busKey{}, func(context.Context) (any, error) { return &bus{host: h}, nil })
	if err != nil {
		return nil, err
	}
	return v.(*bus), nil
}

func (b *bus) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known, b.links = nil, nil
}

// look reads all devices in one round trip. Callers wait for one reading.
func (b *bus) look(ctx context.Context) (map[string]*device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known != nil {
		return b.known, nil
	}
	files, err := b.host.Conn().ReadFiles(ctx, pciDir+"/*/uevent", pciDir+"/*/driver_override", pciDir+"/*/numa_node", pciDir+"/*/sriov_*", pciDir+"/*/virtfn*/uevent", pciDir+"/*/net/*/address",
		pciDir+"/*/virtio*/net/*/address", groupDir+"/*/devices/*/uevent", controlDir+"/*", ruleDir+"/90-plumb-nic-*.rules", "/proc/modules", unsafeFile, driverctl, loadedDir+"/*")
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("look at the PCI bus: %w", err)
	}
	b.read(files)
	return b.known, nil
}

func (b *bus) read(files map[string][]byte) {
	text := func(name string) string { return strings.TrimSpace(string(files[name])) }
	b.loaded = map[string]bool{}
	b.known, b.modules, b.noiommu = map[string]*device{}, map[string]bool{}, text(unsafeFile) == "Y"
	_, b.control = files[driverctl]
	for line := range strings.Lines(string(files["/proc/modules"])) {
		name, _, _ := strings.Cut(line, " ")
		b.modules[name] = true
	}
	group := map[string]int{}
	for name, data := range files {
		parts := strings.Split(name, "/")
		switch {
		case strings.HasPrefix(name, loadedDir+"/"):
			b.loaded[path.Base(name)] = true
		case strings.HasPrefix(name, groupDir+"/") && len(parts) == 8:
			if n, err := strconv.Atoi(parts[4]); err == nil {
				group[parts[6]] = n
			}
		case strings.HasPrefix(name, pciDir+"/") && len(parts) == 7 && parts[6] == "uevent":
			d := &device{pci: parts[5], driver: property(data, "DRIVER"), node: -1, group: -1}
			vendor, product, _ := strings.Cut(strings.ToLower(property(data, "PCI_ID")), ":")
			d.vendor, d.product, d.alias = vendor, product, property(data, "MODALIAS")
			b.known[d.pci] = d
		}
	}
	for _, d := range b.known {
		dir := pciDir + "/" + d.pci + "/"
		if o := text(dir + "driver_override"); o != "(null)" {
			d.override = o
		}
		if n, err := strconv.Atoi(text(dir + "numa_node")); err == nil {
			d.node = n
		}
		if n, err := strconv.Atoi(text(dir + "sriov_numvfs")); err == nil {
			d.vfs = n
		}
		if n, err := strconv.Atoi(text(dir + "sriov_totalvfs")); err == nil {
			d.total = n
		}
		d.autoprobe = text(dir + "sriov_drivers_autoprobe")
		for n := 0; ; n++ {
			uevent, ok := files[dir+"virtfn"+strconv.Itoa(n)+"/uevent"]
			if !ok {
				break
			}
			addr := property(uevent, "PCI_SLOT_NAME")
			d.vfPCI = append(d.vfPCI, addr)
			if vf := b.known[addr]; vf != nil {
				vf.pf = d.pci
			}
		}
		if g, ok := group[d.pci]; ok {
			d.group = g
		}
		for name := range files {
			rest, ok := strings.CutPrefix(name, dir)
			if parts := strings.Split(rest, "/"); ok && path.Base(name) == "address" && len(parts) >= 3 && parts[len(parts)-3] == "net" {
				d.interfaces = append(d.interfaces, parts[len(parts)-2])
			}
		}
		slices.Sort(d.interfaces)
		d.driverctl, d.rule = text(controlDir+"/"+d.pci), string(files[ruleFile(d.pci)])
		d.kept = d.driverctl
		if d.kept == "" {
			d.kept = ruleDriver(d.rule)
		}
	}
}

func property(uevent []byte, key string) string {
	for line := range strings.Lines(string(uevent)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			return v
		}
	}
	return ""
}

// ruleFile is the udev rule of ours that keeps a device on a driver.
func ruleFile(pci string) string { return ruleDir + "/90-plumb-nic-" + pci + ".rules" }

// rule sets driver_override when the device is found, and has the driver's module loaded (udev(7)).
func rule(pci, driver string) string {
	return fmt.Sprintf("# Written by Plumb (nic_driver): keeps %[1]s on %[2]s over a reboot. plumb destroy removes it.\n"+
		"ACTION==\"add\", SUBSYSTEM==\"pci\", KERNEL==\"%[1]s\", ATTR{driver_override}=\"%[2]s\", RUN{builtin}+=\"kmod load %[2]s\"\n", pci, driver)
}

func ruleDriver(text string) string {
	_, rest, ok := strings.Cut(text, `ATTR{driver_override}="`)
	if !ok {
		return ""
	}
	driver, _, _ := strings.Cut(rest, `"`)
	return driver
}
