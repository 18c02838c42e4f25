package fake

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// virtualFunction is what a physical function allows a virtual one.
type virtualFunction struct {
	MAC     string `json:"mac"`
	VLAN    int    `json:"vlan,omitempty"`
	QoS     int    `json:"qos,omitempty"`
	Trust   bool   `json:"trust,omitempty"`
	Spoof   bool   `json:"spoof,omitempty"`
	Link    string `json:"link"`
	MaxRate int    `json:"max_rate,omitempty"`
}

// vfAddress is where a virtual function stands on the bus: the offset of Intel's 82576, 128 routing ids from its physical function, and every second one.
func vfAddress(pf string, n int) string {
	bus, id := pf[:strings.LastIndexByte(pf, ':')+1], 128+2*n
	return fmt.Sprintf("%s%02x.%d", bus, id>>3, id&7)
}

// setFunctions is a write to sriov_numvfs.
func (h *host) setFunctions(c *controller, data string) error {
	num, err := strconv.Atoi(data)
	switch {
	case err != nil || num < 0:
		return syscall.EINVAL
	case c.Bound != c.Driver:
		return syscall.ENOENT // its driver cannot
	case num > c.VFs:
		return syscall.ERANGE
	case num == len(c.Functions):
		return nil
	case num != 0 && len(c.Functions) != 0:
		return syscall.EBUSY
	}
	for n := range len(c.Functions) {
		if err := h.removeFunction(c, n); err != nil {
			return err
		}
	}
	c.Functions = nil
	for n := range num {
		c.Functions = append(c.Functions, virtualFunction{MAC: "00:00:00:00:00:00", Spoof: true, Link: "auto"})
		if err := h.addFunction(c, n); err != nil {
			return err
		}
	}
	return h.showNIC(c)
}

func (h *host) addFunction(c *controller, n int) error {
	vf := &controller{NIC: NIC{PCI: vfAddress(c.PCI, n), ID: "8086:10CA", Driver: c.Driver + "vf", Interface: fmt.Sprintf("%sv%d", c.Interface, n), MAC: fmt.Sprintf("52:54:00:ff:00:%02x", n), Node: c.Node, Group: -1}, PF: c.PCI}
	if c.Group >= 0 {
		vf.Group = 1000 + c.Group*16 + n // access control gives each a group of its own
	}
	if err := h.plugIn(vf); err != nil {
		return err
	}
	dir := h.real(pciDevices, false)
	err := errors.Join(os.Symlink("../"+vf.PCI, filepath.Join(dir, c.PCI, "virtfn"+strconv.Itoa(n))), os.Symlink("../"+c.PCI, filepath.Join(dir, vf.PCI, "physfn")))
	if err != nil || c.Apart {
		return err
	}
	if !h.moduleLoaded(vf.Driver) { // udev loads it, and the kernel keeps it
		modprobe(h, &run{args: []string{"modprobe", "--", vf.Driver}})
	}
	return h.probe(vf, vf.Driver)
}

func (h *host) removeFunction(c *controller, n int) error {
	pci := vfAddress(c.PCI, n)
	vf := h.state.NICs[pci]
	if vf == nil {
		return nil
	}
	delete(h.state.NICs, pci)
	err := errors.Join(h.removeLink(vf.Interface), os.Remove(h.real(pciDevices+c.PCI+"/virtfn"+strconv.Itoa(n), false)), os.RemoveAll(h.real(pciDevices+pci, false)))
	if vf.Group >= 0 {
		err = errors.Join(err, os.RemoveAll(h.real(fmt.Sprintf("/sys/kernel/iommu_groups/%d", vf.Group), false)))
	}
	return err
}

// showFunctions is vfinfo_list of `ip -d link show`.
func (h *host) showFunctions(pci string) []map[string]any {
	c := h.state.NICs[pci]
	if c == nil {
		return nil
	}
	var out []map[string]any
	for n, f := range c.Functions {
		vlan := map[string]any{}
		if f.VLAN != 0 {
			if vlan["vlan"] = f.VLAN; f.QoS != 0 {
				vlan["qos"] = f.QoS
			}
		}
		out = append(out, map[string]any{"vf": n, "link_type": "ether", "address": f.MAC, "broadcast": "ff:ff:ff:ff:ff:ff", "vlan_list": []any{vlan}, "rate": map[string]int{"max_tx": f.MaxRate, "min_tx": 0},
			"spoofchk": f.Spoof, "link_state": f.Link, "trust": f.Trust})
	}
	return out
}

// linkFunction is link set dev NAME vf N WORDS. As igb: no least rate, no link state.
func (c *ipCall) linkFunction(l *netLink, w []string) error {
	nic := c.h.state.NICs[l.PCI]
	n, err := strconv.Atoi(w[0])
	if nic == nil || err != nil || n < 0 || n >= len(nic.Functions) {
		return kernelSays("RTNETLINK answers: Invalid argument")
	}
	f := &nic.Functions[n]
	for key, v := range options(w[1:], "") {
		number, err := strconv.Atoi(v)
		if slices.Contains([]string{"vlan", "qos", "max_tx_rate", "min_tx_rate"}, key) && err != nil {
			return wrongWord("argument \"%s\" is wrong: Invalid \"%s\" value", v, key)
		}
		switch key {
		case "mac":
			f.MAC = v
		case "vlan":
			if f.VLAN = number; number == 0 {
				f.QoS = 0
			}
		case "qos":
			f.QoS = number
		case "trust":
			f.Trust = v == "on"
		case "spoofchk":
			f.Spoof = v == "on"
		case "max_tx_rate":
			f.MaxRate = number
		case "min_tx_rate":
			if number != 0 {
				return kernelSays("RTNETLINK answers: Invalid argument")
			}
		case "state":
			return kernelSays("RTNETLINK answers: Operation not supported")
		default:
			return wrongWord("either \"vf\" is duplicate, or \"%s\" is a garbage.", key)
		}
	}
	return nil
}
