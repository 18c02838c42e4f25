package fake

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	pciDevices = "/sys/bus/pci/devices/"
	pciDrivers = "/sys/bus/pci/drivers/"
)

// NIC is a network controller of the fake host.
type NIC struct {
	PCI       string // 0000:01:00.0
	ID        string // 8086:10D3
	Driver    string // the kernel's own
	Interface string // what udev calls its interface
	MAC       string
	Node      int
	Group     int  // IOMMU group; -1: none
	Other     bool // not a network controller: a member of an IOMMU group
	VFs       int  // that it can have (SR-IOV)
}

// controller is a NIC as it is now.
type controller struct {
	NIC
	Bound    string `json:"bound"`
	Override string `json:"override"`

	Apart     bool              `json:"apart,omitempty"` // sriov_drivers_autoprobe is 0
	PF        string            `json:"pf,omitempty"`    // of a virtual function
	Functions []virtualFunction `json:"functions,omitempty"`
}

// AddNIC puts a NIC in, bound to its kernel driver.
func (c *Conn) AddNIC(n NIC) error {
	return c.locked(func(h *host) error { return h.plugIn(&controller{NIC: n, Bound: n.Driver}) })
}

func (h *host) plugIn(ctl *controller) error {
	n := ctl.NIC
	h.state.NICs[n.PCI] = ctl
	for _, d := range []string{n.Driver, "vfio-pci", "uio_pci_generic", "igb_uio"} {
		for _, f := range []string{"bind", "unbind", "new_id"} {
			if err := h.put(pciDrivers+d+"/"+f, ""); err != nil {
				return err
			}
		}
	}
	if err := h.put("/sys/bus/pci/drivers_probe", ""); err != nil {
		return err
	}
	if n.Group >= 0 {
		to := h.real(fmt.Sprintf("/sys/kernel/iommu_groups/%d/devices/%s", n.Group, n.PCI), false)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("../../../../bus/pci/devices/"+n.PCI, to); err != nil {
			return err
		}
	}
	if err := h.showNIC(ctl); err != nil {
		return err
	}
	return h.interfaceOf(ctl)
}

// showNIC writes the device's files in /sys.
func (h *host) showNIC(c *controller) error {
	class := "20000"
	if c.Other {
		class = "40300"
	}
	dir := pciDevices + c.PCI + "/"
	driver, override := "", "(null)"
	if c.Bound != "" {
		driver = "DRIVER=" + c.Bound + "\n"
	}
	if c.Override != "" {
		override = c.Override
	}
	files := map[string]string{"uevent": fmt.Sprintf("%sPCI_CLASS=%s\nPCI_ID=%s\nPCI_SLOT_NAME=%s\nMODALIAS=pci:%s\n", driver, class, c.ID, c.PCI, c.Driver), "driver_override": override + "\n", "numa_node": fmt.Sprintln(c.Node)}
	if c.VFs > 0 {
		files["sriov_totalvfs"], files["sriov_numvfs"], files["sriov_drivers_autoprobe"] = fmt.Sprintln(c.VFs), fmt.Sprintln(len(c.Functions)), "1\n"
		if c.Apart {
			files["sriov_drivers_autoprobe"] = "0\n"
		}
	}
	for name, text := range files {
		if err := h.put(dir+name, text); err != nil {
			return err
		}
	}
	return nil
}

// interfaceOf makes the interface appear while the kernel's driver has the NIC, and go with all it had while not.
func (h *host) interfaceOf(c *controller) error {
	if c.Interface == "" {
		return nil
	}
	if c.Bound != c.Driver {
		return errors.Join(h.removeLink(c.Interface), os.RemoveAll(h.real(pciDevices+c.PCI+"/net", false)))
	}
	return h.addLink(c.Interface, c.MAC, c.PCI)
}

// writePCI is what the PCI bus does on a write; known is false for files that are none of its business.
func (h *host) writePCI(name, data string) (known bool, err error) {
	data = strings.TrimSpace(data)
	dir, base := path.Split(name)
	switch {
	case strings.HasPrefix(name, pciDevices) && base == "driver_override":
		c := h.state.NICs[path.Base(dir)]
		if c == nil {
			return true, syscall.ENODEV
		}
		c.Override = data
		return true, h.showNIC(c)
	case strings.HasPrefix(name, pciDevices) && (base == "sriov_numvfs" || base == "sriov_drivers_autoprobe"):
		c := h.state.NICs[path.Base(dir)]
		if c == nil || c.VFs == 0 {
			return true, syscall.ENOENT
		}
		if base == "sriov_drivers_autoprobe" {
			c.Apart = data == "0"
			return true, h.showNIC(c)
		}
		return true, h.setFunctions(c, data)
	case name == "/sys/bus/pci/drivers_probe":
		c := h.state.NICs[data]
		if c == nil {
			return true, syscall.ENODEV
		}
		return true, h.probe(c, c.wanted())
	case strings.HasPrefix(name, pciDrivers):
		driver := path.Base(dir)
		c := h.state.NICs[data]
		switch {
		case base == "new_id":
			return true, nil
		case c == nil:
			return true, syscall.ENODEV
		case base == "unbind" && c.Bound != driver, base == "bind" && c.wanted() != driver:
			return true, syscall.ENODEV
		case base == "unbind":
			if len(c.Functions) > 0 { // they go with the driver
				if err := h.setFunctions(c, "0"); err != nil {
					return true, err
				}
			}
			c.Bound = ""
			if err := h.showNIC(c); err != nil {
				return true, err
			}
			return true, h.interfaceOf(c)
		}
		return true, h.probe(c, driver)
	}
	return false, nil
}

// wanted is the driver that matches.
func (c *controller) wanted() string {
	if c.Override != "" {
		return c.Override
	}
	return c.Driver
}

// probe binds a device that has no driver, if that one is there and takes it.
func (h *host) probe(c *controller, driver string) error {
	user := slices.Contains([]string{"vfio-pci", "uio_pci_generic", "igb_uio"}, driver)
	unsafe := strings.TrimSpace(h.get("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode")) == "Y"
	if c.Bound != "" || user && !h.moduleLoaded(underscored(driver)) || driver == "vfio-pci" && c.Group < 0 && !unsafe {
		return nil // the kernel says so in its log alone
	}
	c.Bound = driver
	if err := h.showNIC(c); err != nil {
		return err
	}
	return h.interfaceOf(c)
}

func nicScripts() map[string]program {
	return map[string]program{
		"plumb-nic-load": func(h *host, r *run) int {
			args := r.args[1:]
			var before []string
			for _, m := range args[1:] {
				if h.moduleLoaded(m) {
					before = append(before, m)
				}
			}
			r.args = []string{"modprobe", "--", args[0]}
			if status := modprobe(h, r); status != 0 {
				return status
			}
			for _, m := range args[1:] {
				if h.moduleLoaded(m) && !slices.Contains(before, m) {
					if err := h.put("/run/plumb/loaded/"+m, ""); err != nil {
						return r.fail(1, "%v", err)
					}
				}
			}
			return 0
		},
		"plumb-nic-note": func(h *host, r *run) int {
			m := strings.TrimPrefix(r.args[1], "pci:")
			if _, known := modules()[m]; !known || slices.Contains(r.args[2:], m) {
				return 0
			}
			if err := h.put("/run/plumb/loaded/"+m, ""); err != nil {
				return r.fail(1, "%v", err)
			}
			return 0
		},
		"plumb-nic-held": func(*host, *run) int { return 0 }, // nobody has one
		"plumb-nic-unload": func(h *host, r *run) int {
			for _, m := range r.args[1:] {
				if h.moduleLoaded(m) {
					inner := &run{args: []string{"rmmod", "--", m}}
					if rmmod(h, inner) != 0 {
						continue
					}
				}
				_ = os.Remove(h.real("/run/plumb/loaded/"+m, false))
			}
			_ = os.Remove(h.real("/run/plumb/loaded", false)) // as rmdir: only when it is empty
			return 0
		},
		"plumb-nic-read": func(h *host, r *run) int {
			name := r.args[1]
			if !h.exists("/sys/class/net/" + name) {
				return r.fail(1, "Device \"%s\" does not exist.", name)
			}
			for _, l := range h.addresses() {
				if l["ifname"] == name {
					r.printf("%s===\n", jsonLine([]any{l}))
				}
			}
			for i, family := range []int{32, 128} {
				routes := h.state.Network.Spaces[""].showRoutes("main", family)
				r.printf("%s%s", jsonLine(slices.DeleteFunc(routes, func(o map[string]any) bool { return o["dev"] != name })), []string{"===\n", ""}[i])
			}
			return 0
		},
	}
}

func nicPrograms() map[string]program {
	return map[string]program{"udevadm": func(*host, *run) int { return 0 }}
}
