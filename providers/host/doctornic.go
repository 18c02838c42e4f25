package host

import (
	"fmt"
	"strconv"
	"strings"

	"plumb/providers"
	"plumb/providers/internal/pcidriver"
)

func examineNICs(m *patient) {
	for i := range m.f.NICs {
		if n := &m.f.NICs[i]; n.PF == "" {
			m.examineNIC(n)
		}
	}
	if len(m.candidates()) == 0 {
		m.say(providers.Advice, "NICs", "There is none that a testbed could have.", "Traffic then stays within the host: between guests, containers and generators on vhost-user, or on kernel ports.", "Put a NIC in that carries neither the default route nor Plumb's connection, to measure with wires.", "")
	}
}

func (m *patient) examineNIC(n *providers.NIC) {
	subject := "NIC " + n.PCI
	driver := n.Driver
	if driver == "" {
		driver = "no driver"
	}
	text := fmt.Sprintf("%04x:%04x, %s", n.Vendor, n.Product, driver)
	for _, i := range n.Interfaces {
		text += ", " + i.Name
		if i.SpeedMbit > 0 {
			text += fmt.Sprintf(" at %d Mbit/s", i.SpeedMbit)
		}
		if i.Firmware != "" {
			text += ", firmware " + i.Firmware
		}
	}
	if n.Node >= 0 {
		text += fmt.Sprintf(", NUMA node %d", n.Node)
	}
	if len(n.VFs) > 0 {
		text += fmt.Sprintf(", %s of %d", plural(len(n.VFs), "virtual function"), n.TotalVFs)
	}
	if b := busy(n); b != "" {
		m.ok(subject, "%s. It %s: leave it out of the testbed.", text, b)
		return
	}
	if pcidriver.Bifurcated(n) {
		text += ". DPDK drives it through its kernel driver: a port takes its PCI address, without nic_driver"
	}
	m.ok(subject, "%s.", text)
	if n.Node < 0 && len(m.f.Nodes) > 1 {
		m.say(providers.Warning, subject, "Its NUMA node is not known.", "Cores and memory on the other node cost a good part of the throughput.", "Look the slot up in the board's manual, and use cores and memory of that node.", "")
	}
	dir := pciDir + "/" + n.PCI + "/"
	if now, most := gigatransfers(m.files.text(dir+"current_link_speed")), gigatransfers(m.files.text(dir+"max_link_speed")); now > 0 && now < most {
		m.say(providers.Warning, subject, fmt.Sprintf("Its PCIe link runs at %g of %g GT/s.", now, most), "The link may be slower than the wire: frames are lost in the NIC at full rate.", "Put it into a slot of that generation, and set the slot's link speed in the BIOS. Some NICs slow down while their ports are down: look again when they are up.", "")
	}
	if now, most := m.width(dir+"current_link_width"), m.width(dir+"max_link_width"); now > 0 && now < most {
		m.say(providers.Warning, subject, fmt.Sprintf("Its PCIe link has %d of %d lanes.", now, most), "The link may be slower than the wire: frames are lost in the NIC at full rate.", "Put it into a slot with all lanes wired, and look whether the BIOS splits the slot (bifurcation).", "")
	}
	for _, i := range n.Interfaces {
		if i.Up && i.Carrier != nil && !*i.Carrier {
			m.say(providers.Advice, subject, i.Name+" is up and has no carrier.", "Nothing is connected, or the other side is down.", "Look at the cable and at the other side.", "")
		}
	}
	var others []string
	for _, d := range m.f.IOMMU.Groups[n.IOMMUGroup] {
		if n.IOMMUGroup >= 0 && d.PCI != n.PCI && d.Class>>16 != 6 && d.Driver != "" && d.Driver != "vfio-pci" {
			others = append(others, d.PCI+" ("+d.Driver+")")
		}
	}
	if len(others) > 0 && !pcidriver.Bifurcated(n) {
		m.say(providers.Warning, subject, "It shares its IOMMU group with "+strings.Join(others, ", ")+".", "vfio-pci takes a group as a whole: with one member it takes all.", "Bind the others to vfio-pci, too, or use another slot (one behind a port with ACS).", "")
	}
}

// gigatransfers reads "8.0 GT/s PCIe"; 0 for what is not known.
func gigatransfers(s string) float64 {
	number, _, _ := strings.Cut(s, " ")
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return f
}

// width is a number of lanes; 255 and 0 are what the kernel prints when it does not know.
func (m *patient) width(file string) int {
	n, err := strconv.Atoi(m.files.text(file))
	if err != nil || n >= 255 {
		return 0
	}
	return n
}
