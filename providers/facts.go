package providers

import "github.com/zclconf/go-cty/cty"

// Facts is what a host is. Zero values mean "not known" where a comment says nothing else; nothing here is guessed.
type Facts struct {
	Hostname, Kernel, Distribution string   // Distribution is PRETTY_NAME of os-release(5)
	OS                             []string // ID, then ID_LIKE of os-release(5): "debian"; "rocky", "rhel", "centos", "fedora"
	Cmdline, BootID                string
	Root, Systemd                  bool
	CPUModel                       string
	CPUFlags                       map[string]bool // as in /proc/cpuinfo of the first CPU: "avx2", "pdpe1gb"
	CPUs                           []CPU
	Caches                         []Cache
	Nodes                          []Node
	Power                          Power
	// Lockdown is the kernel's lockdown mode: "none", "integrity", "confidentiality"; "" where the kernel has none. SecureBoot is nil where the
	// firmware is no UEFI or does not say.
	Lockdown   string
	SecureBoot *bool
	IOMMU      IOMMU
	NICs       []NIC
	Modules    map[string]bool   // loaded, or built in and visible in /sys/module
	Services   map[string]string // systemd units that matter to a testbed (irqbalance, tuned, openvswitch-switch, ...): "active", "inactive", "failed"; only those that exist
	Tuned      string            // active profile of tuned; "" for none
	Versions   map[string]string // "ovs", "dpdk" (of testpmd), "ovs_dpdk" (that ovs-vswitchd is linked with), "qemu", "libvirt", "docker", "podman", "tuned", "driverctl"; only what is installed
	Value      cty.Value         // the same and more as an object: host.NAME.facts and data.host_facts
}

// CPU is one logical CPU.
type CPU struct {
	ID, Node, Core, Socket int
	Online, Isolated       bool
	Siblings               []int // the other hyperthreads of its core
}

// Cache is one level of a CPU's caches.
type Cache struct {
	Level int
	Kind  string // "Data", "Instruction", "Unified"
	Bytes uint64
	CPUs  []int // that share it
}

// Node is one NUMA node.
type Node struct {
	ID          int
	MemoryBytes uint64
	Hugepages   []Hugepages
}

// Hugepages is the pool of one page size on one node.
type Hugepages struct {
	Size        uint64 // bytes
	Total, Free uint64 // pages
}

// Power is how the CPUs save power; "" and nil where the machine does not say (a virtual machine mostly does not).
type Power struct {
	Driver    string   // cpufreq's scaling driver: "intel_pstate", "acpi-cpufreq"
	Governors []string // in use, each once
	Available []string // governors that there are
	Turbo     *bool
	CStates   []string // idle states that are enabled on any CPU
	SMT       string   // "on", "off", "forceoff", "notsupported", "notimplemented"
}

// IOMMU is whether devices can be given to user space with memory protection.
type IOMMU struct {
	Enabled bool // there are IOMMU groups
	// NoIOMMU says that vfio's unsafe mode is on (enable_unsafe_noiommu_mode).
	NoIOMMU bool
	Groups  map[int][]Device // by number
}

// Device is a PCI device.
type Device struct {
	PCI    string // "0000:01:00.0", domain with four digits or more
	Class  uint32 // 0x020000 is an Ethernet controller; bridges (0x06....) do not make a group unviable
	Driver string // "" for none
}

// NIC is a network controller on the PCI bus, whatever driver it has.
type NIC struct {
	Device
	Vendor, Product uint16
	Node            int    // NUMA node; -1: not known
	IOMMUGroup      int    // -1: none
	Override        string // driver_override; "" for none
	// Interfaces are the kernel's names while a kernel driver has it; mlx4 and some others have several for one device.
	Interfaces []Interface
	TotalVFs   int      // that it can have
	VFs        []string // PCI addresses of those it has
	PF         string   // PCI address of its physical function; "" when it is not a VF
}

// Interface is a network interface of the kernel.
type Interface struct {
	Name, MAC        string
	MTU              int
	Up               bool
	Carrier          *bool
	SpeedMbit        int // 0: not known
	Driver, Firmware string
	Addresses        []string // with prefix length
	Master           string   // bridge or bond that it belongs to
	DefaultRoute     bool
	// Management says that our own connection to the host comes in by it.
	Management bool
}

// NIC finds a network controller by its PCI address; nil when there is none.
func (f *Facts) NIC(pci string) *NIC {
	for i := range f.NICs {
		if f.NICs[i].PCI == pci {
			return &f.NICs[i]
		}
	}
	return nil
}

// CPU finds a logical CPU by its number; nil when there is none.
func (f *Facts) CPU(id int) *CPU {
	for i := range f.CPUs {
		if f.CPUs[i].ID == id {
			return &f.CPUs[i]
		}
	}
	return nil
}

// Online are the numbers of the CPUs that run, in order.
func (f *Facts) Online() []int { return f.numbers(func(c CPU) bool { return c.Online }) }

// Isolated are the numbers of the CPUs that the scheduler puts nothing on, in order.
func (f *Facts) Isolated() []int { return f.numbers(func(c CPU) bool { return c.Isolated }) }

func (f *Facts) numbers(is func(CPU) bool) []int {
	var out []int
	for _, c := range f.CPUs {
		if is(c) {
			out = append(out, c.ID)
		}
	}
	return out
}

// Locked says why the kernel takes no module without a trusted signature, in a clause: Secure Boot, or its lockdown; "" when it does.
func (f *Facts) Locked() string {
	switch {
	case f.SecureBoot != nil && *f.SecureBoot:
		return "Secure Boot is on"
	case f.Lockdown == "integrity" || f.Lockdown == "confidentiality":
		return "the kernel is locked down (" + f.Lockdown + ")"
	}
	return ""
}
