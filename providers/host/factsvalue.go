package host

import (
	"context"
	"errors"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/schema"
	"plumb/providers"
)

// factsSchema describes Facts.Value: host.NAME.facts and data.host_facts are the same object.
func factsSchema() *schema.Resource {
	attr := func(t cty.Type, what string) *schema.Attribute {
		return &schema.Attribute{Type: t, Computed: true, Description: what}
	}
	return &schema.Resource{
		Type:        "host_facts",
		Description: "What a host is, gathered once a run in one round trip. host.NAME.facts is the same object.",
		Example: `data "host_facts" "dut" {
}`,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"hostname":      attr(cty.String, "Name of the machine."),
			"kernel":        attr(cty.String, "Release of the running kernel."),
			"cmdline":       attr(cty.String, "Command line that the kernel was started with."),
			"boot_id":       attr(cty.String, "Changes with every boot."),
			"distribution":  attr(cty.String, "PRETTY_NAME of os-release(5)."),
			"root":          attr(cty.Bool, "Whether Plumb works there as root."),
			"systemd":       attr(cty.Bool, "Whether systemd is process 1."),
			"online_cpus":   attr(cty.String, "CPUs that are online, as a list: 0-27."),
			"isolated_cpus": attr(cty.String, "CPUs that the kernel isolates (isolcpus), as a list."),
			"cpus":          attr(cty.List(cpuType()), "Every CPU: id, NUMA node, core and socket, whether it is online and isolated, and the hyperthreads it shares its core with, as a list."),
			"os":            attr(cty.List(cty.String), "ID, then ID_LIKE of os-release(5): [\"debian\"]."),
			"cpu_model":     attr(cty.String, "Model of the CPUs."),
			"cpu_flags":     attr(cty.Set(cty.String), "What the CPUs can do, as in /proc/cpuinfo: avx2, pdpe1gb."),
			"caches":        attr(cty.List(cacheType()), "Every cache: level, kind (Data, Instruction, Unified), size in KB, and the CPUs that share it, as a list."),
			"power":         attr(powerType(), "How the CPUs save power: cpufreq's driver, the governors in use and those that there are, whether turbo is on (null: not known), the idle states that are enabled, and smt (on, off, forceoff, notsupported). Empty where the machine does not say."),
			"lockdown":      attr(cty.String, "Lockdown of the kernel: none, integrity or confidentiality; empty where it has none."),
			"secure_boot":   attr(cty.Bool, "Whether the firmware checks what it boots; null where it does not say."),
			"iommu":         attr(iommuType(), "Whether devices can be given to user space with memory protection (there are IOMMU groups), and whether vfio's unsafe mode without an IOMMU is on."),
			"nics":          attr(cty.List(nicType()), "Every network controller on the PCI bus: PCI address, vendor and device id, driver (empty: none) and driver_override, NUMA node (-1: not known), IOMMU group (-1: none) and the PCI addresses of all in it, virtual functions that it can have and those that it has, its physical function, and the kernel's interfaces of it: name, MAC address, MTU, up, carrier (null: down), speed in Mbit/s (0: not known), firmware, addresses, bond or bridge, default route, and whether Plumb's own connection comes in by it."),
			"modules":       attr(cty.Set(cty.String), "Kernel modules that are loaded or built in."),
			"services":      attr(cty.Map(cty.String), "State of systemd units that matter to a testbed, of those that there are: active, inactive, failed."),
			"tuned":         attr(cty.String, "Active profile of tuned; empty for none."),
			"versions":      attr(cty.Map(cty.String), "Versions of what is installed: ovs, ovs_dpdk (that ovs-vswitchd was built with), dpdk, qemu, libvirt, docker, podman, tuned, driverctl."),
			"nodes":         attr(cty.List(nodeType()), "Every NUMA node: id, its CPUs as a list, memory in MB, and hugepages by size (2M, 1G): total and free pages."),
		}},
	}
}

func cpuType() cty.Type {
	return cty.Object(map[string]cty.Type{"id": cty.Number, "node": cty.Number, "core": cty.Number, "socket": cty.Number,
		"online": cty.Bool, "isolated": cty.Bool, "siblings": cty.String})
}

func pagesType() cty.Type {
	return cty.Object(map[string]cty.Type{"total": cty.Number, "free": cty.Number})
}

func nodeType() cty.Type {
	return cty.Object(map[string]cty.Type{"id": cty.Number, "cpus": cty.String, "memory_mb": cty.Number, "hugepages": cty.Map(pagesType())})
}

func factsValue(f *providers.Facts) cty.Value {
	var cpus, nodes []cty.Value
	var online, isolated []int
	byNode := map[int][]int{}
	for _, c := range f.CPUs {
		byNode[c.Node] = append(byNode[c.Node], c.ID)
		if c.Online {
			online = append(online, c.ID)
		}
		if c.Isolated {
			isolated = append(isolated, c.ID)
		}
		cpus = append(cpus, cty.ObjectVal(map[string]cty.Value{
			"id": integer(c.ID), "node": integer(c.Node), "core": integer(c.Core), "socket": integer(c.Socket),
			"online": cty.BoolVal(c.Online), "isolated": cty.BoolVal(c.Isolated), "siblings": cpuList(c.Siblings)}))
	}
	for _, n := range f.Nodes {
		pages := map[string]cty.Value{}
		for _, p := range n.Hugepages {
			pages[formatSize(p.Size)] = cty.ObjectVal(map[string]cty.Value{"total": cty.NumberUIntVal(p.Total), "free": cty.NumberUIntVal(p.Free)})
		}
		nodes = append(nodes, cty.ObjectVal(map[string]cty.Value{"id": integer(n.ID), "cpus": cpuList(byNode[n.ID]),
			"memory_mb": cty.NumberUIntVal(n.MemoryBytes >> 20), "hugepages": mapOrEmpty(pages, pagesType())}))
	}
	return cty.ObjectVal(map[string]cty.Value{
		"hostname": cty.StringVal(f.Hostname), "kernel": cty.StringVal(f.Kernel), "cmdline": cty.StringVal(f.Cmdline), "boot_id": cty.StringVal(f.BootID),
		"distribution": cty.StringVal(f.Distribution), "root": cty.BoolVal(f.Root), "systemd": cty.BoolVal(f.Systemd),
		"online_cpus": cpuList(online), "isolated_cpus": cpuList(isolated),
		"cpus": listOrEmpty(cpus, cpuType()), "nodes": listOrEmpty(nodes, nodeType()),
		"os": texts(f.OS), "cpu_model": cty.StringVal(f.CPUModel), "cpu_flags": setValue(f.CPUFlags), "caches": cachesValue(f.Caches), "power": powerValue(&f.Power),
		"lockdown": cty.StringVal(f.Lockdown), "secure_boot": truth(f.SecureBoot),
		"iommu": cty.ObjectVal(map[string]cty.Value{"enabled": cty.BoolVal(f.IOMMU.Enabled), "noiommu": cty.BoolVal(f.IOMMU.NoIOMMU)}),
		"nics":  nicsValue(f), "modules": setValue(f.Modules), "services": textMap(f.Services), "tuned": cty.StringVal(f.Tuned), "versions": textMap(f.Versions),
	})
}

func integer(n int) cty.Value { return cty.NumberIntVal(int64(n)) }

// cpuList prints CPU numbers that the kernel gave, which are in range.
func cpuList(ids []int) cty.Value {
	s, err := cpuset.Of(ids...)
	if err != nil {
		return cty.StringVal("")
	}
	return cty.StringVal(s.String())
}

func listOrEmpty(l []cty.Value, t cty.Type) cty.Value {
	if len(l) == 0 {
		return cty.ListValEmpty(t)
	}
	return cty.ListVal(l)
}

func mapOrEmpty(m map[string]cty.Value, t cty.Type) cty.Value {
	if len(m) == 0 {
		return cty.MapValEmpty(t)
	}
	return cty.MapVal(m)
}

// FactsSource is data "host_facts".
type FactsSource struct{}

var _ providers.DataSource = FactsSource{}

// Schema is constant.
func (FactsSource) Schema() *schema.Resource { return factsSchema() }

// Read gives the facts that the host has gathered already in this run.
func (FactsSource) Read(ctx context.Context, h providers.Host, _ cty.Value) (cty.Value, error) {
	if h == nil {
		return cty.NilVal, errors.New("host_facts needs a host")
	}
	f, err := h.Facts(ctx)
	if err != nil {
		return cty.NilVal, err
	}
	return f.Value, nil
}
