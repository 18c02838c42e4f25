package nic

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/pcidriver"
)

// onVFIO is the kind of thing that every member of an IOMMU group has to be.
const onVFIO = "PCI device on vfio-pci"

// Plan finds what cannot work, from the facts of the host.
func (Driver) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	w := decode(req.Desired)
	if req.Host == nil || w.pci == "" || w.driver == "" {
		return res, nil
	}
	facts, err := req.Host.Facts(ctx)
	if err != nil {
		return res, err
	}
	if !facts.Root {
		res.Problems = append(res.Problems, hostkit.NotRoot(req.Host.Name()))
	}
	res.Problems = append(res.Problems, problems(facts, req.Host.Name(), w)...)
	nic := facts.NIC(w.pci)
	if nic == nil {
		return res, nil
	}
	// What does not change while the machine runs is known before.
	planned := req.Proposed.AsValueMap()
	for name, v := range map[string]cty.Value{"vendor": cty.StringVal(fmt.Sprintf("%04x", nic.Vendor)), "device": cty.StringVal(fmt.Sprintf("%04x", nic.Product)),
		"numa_node": cty.NumberIntVal(int64(nic.Node)), "iommu_group": cty.NumberIntVal(int64(nic.IOMMUGroup))} {
		if !planned[name].IsKnown() || planned[name].IsNull() {
			planned[name] = v
		}
	}
	switch {
	case slices.Contains(userDrivers(), w.driver):
		planned["interface"] = cty.StringVal("")
	case req.Prior.IsNull() || attr.Text(req.Prior, "driver") != w.driver:
		planned["interface"] = cty.UnknownVal(cty.String)
	}
	res.Planned = cty.ObjectVal(planned)
	if nic.Driver != w.driver && !(w.driver == kernelDriver && !slices.Contains(userDrivers(), nic.Driver) && nic.Driver != "") {
		res.Effects = []string{fmt.Sprintf("takes %s from %s on %s", w.pci, called(nic.Driver), req.Host.Name())}
	}
	if w.noiommu && slices.Contains(userDrivers(), w.driver) && !facts.IOMMU.Enabled {
		res.Effects = append(res.Effects, "switches on vfio's UNSAFE mode without an IOMMU on "+req.Host.Name())
	}
	return res, nil
}

func called(driver string) string {
	if driver == "" {
		return "no driver"
	}
	return driver
}

// problems are the refusals of a binding.
func problems(f *providers.Facts, host string, w want) []providers.Problem {
	var out []providers.Problem
	add := func(attribute, summary, format string, args ...any) {
		out = append(out, providers.Problem{Path: cty.GetAttrPath(attribute), Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	nic := f.NIC(w.pci)
	if nic == nil {
		var have []string
		for _, n := range f.NICs {
			have = append(have, n.PCI+" ("+called(n.Driver)+")")
		}
		add("pci", "No such NIC", "%s has no NIC at %s. It has %s.", host, w.pci, orNone(have))
		return out
	}
	user := slices.Contains(userDrivers(), w.driver)
	if !user || nic.Driver == w.driver {
		return out
	}
	if pcidriver.Bifurcated(nic) {
		add("driver", "NIC is used together with its kernel driver", "%s of %s (%04x:%04x, %s): DPDK drives such a NIC through its kernel driver, and on %s it is dead for both. Leave out this resource; the port takes the PCI address as it is.",
			w.pci, host, nic.Vendor, nic.Product, called(nic.Driver), w.driver)
		return out
	}
	for _, i := range nic.Interfaces {
		switch {
		case i.Management:
			add("pci", "NIC carries Plumb's own connection", "%s of %s is %s, by which Plumb is connected to it: bound to %s, the host could not be reached any more. Use another NIC, or connect to %s by another one.", w.pci, host, i.Name, w.driver, host)
		case i.DefaultRoute:
			add("pci", "NIC carries the default route", "%s of %s is %s, which its default route goes through: bound to %s, the host would be cut off. Use another NIC, or move the route first.", w.pci, host, i.Name, w.driver)
		}
	}
	if len(nic.VFs) > 0 {
		add("pci", "NIC has virtual functions", "%s of %s has %d virtual functions (%s), which go when it is bound to another driver. Set their number to 0 first.", w.pci, host, len(nic.VFs), strings.Join(nic.VFs, ", "))
	}
	if summary, why := refusal(f, host, w, nic.PF != ""); summary != "" {
		add("driver", summary, "%s", why)
	}
	return out
}

// refusal says why a driver for user space cannot have a device, whichever it is.
func refusal(f *providers.Facts, host string, w want, virtual bool) (summary, why string) {
	reason := f.Locked()
	switch {
	case w.driver == igbUIO && reason != "":
		return "igb_uio cannot be loaded", fmt.Sprintf("On %s %s, and igb_uio is a module from outside the kernel, without a signature that it trusts: the kernel says \"Required key not available\". Use vfio-pci, which is part of the kernel.", host, reason)
	case w.driver == uioGeneric && reason != "":
		return "uio_pci_generic gives no access to the NIC", fmt.Sprintf("On %s %s, and the kernel then lets no program map the memory of a PCI device. Use vfio-pci.", host, reason)
	case w.driver == uioGeneric && virtual:
		return "uio_pci_generic needs an interrupt line", fmt.Sprintf("%s of %s is a virtual function, which has message-signalled interrupts only, and uio_pci_generic refuses such devices. Use vfio-pci.", w.pci, host)
	case w.driver == vfioDriver && !f.IOMMU.Enabled && !w.noiommu:
		return "There is no IOMMU", fmt.Sprintf("%s has no IOMMU groups, so that vfio-pci refuses devices. Switch the IOMMU on: VT-d or AMD-Vi in the BIOS, and intel_iommu=on iommu=pt on the kernel's command line (host_kernel_args). "+
			"Where there is none, as in most virtual machines, noiommu = true uses vfio's unsafe mode.", host)
	}
	return "", ""
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// viable lists the other members of a NIC's IOMMU group, which vfio takes as a whole: each must be on vfio-pci, too, or have no driver. Bridges do not count
// (Documentation/driver-api/vfio.rst).
func viable(f *providers.Facts, host, pci string) []providers.Named {
	nic := f.NIC(pci)
	if nic == nil || nic.IOMMUGroup < 0 {
		return nil
	}
	var members []string
	for _, d := range f.IOMMU.Groups[nic.IOMMUGroup] {
		members = append(members, d.PCI+" ("+called(d.Driver)+")")
	}
	var out []providers.Named
	for _, d := range f.IOMMU.Groups[nic.IOMMUGroup] {
		if d.PCI == pci || d.Class>>16 == 6 || d.Driver == "" || d.Driver == vfioDriver || d.Driver == "pci-stub" {
			continue
		}
		out = append(out, providers.Named{Kind: onVFIO, Name: d.PCI, Path: cty.GetAttrPath("pci"), Summary: "IOMMU group is not viable",
			Hint: fmt.Sprintf("%s of %s is in IOMMU group %d with %s. vfio-pci takes a group as a whole, and %s has the driver %s. Add a resource nic_driver for it with driver = \"vfio-pci\" too, or use a NIC in a group of its own.",
				pci, host, nic.IOMMUGroup, strings.Join(members, ", "), d.PCI, d.Driver)})
	}
	return out
}
