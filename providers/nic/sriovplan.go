package nic

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/hostkit"
)

// Plan finds what cannot work, from the facts of the host.
func (SRIOV) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	res.Problems = labelProblems(req.Desired)
	f := decodeFunctions(req.Desired)
	if req.Host == nil || f.pci == "" {
		return res, nil
	}
	facts, err := req.Host.Facts(ctx)
	if err != nil {
		return res, err
	}
	if !facts.Root {
		res.Problems = append(res.Problems, hostkit.NotRoot(req.Host.Name()))
	}
	res.Problems = append(res.Problems, functionProblems(facts, req.Host.Name(), f, req.Prior.IsNull())...)
	nic := facts.NIC(f.pci)
	if nic == nil {
		return res, nil
	}
	planned := req.Proposed.AsValueMap()
	if !planned["total_vfs"].IsKnown() || planned["total_vfs"].IsNull() {
		planned["total_vfs"] = cty.NumberIntVal(int64(nic.TotalVFs))
	}
	if !req.Prior.IsNull() {
		was := decodeFunctions(req.Prior)
		if was.num != f.num {
			planned["vf_pci"] = cty.UnknownVal(cty.List(cty.String))
		}
		if was.num != f.num || !sameDrivers(was, f) {
			planned["vf_interfaces"] = cty.UnknownVal(cty.List(cty.String))
		}
	}
	res.Planned = cty.ObjectVal(planned)
	if n := len(nic.VFs); req.Prior.IsNull() && n > 0 && n != f.num && f.num > 0 {
		res.Effects = []string{fmt.Sprintf("takes %d virtual functions of %s on %s away first: the kernel changes their number only from 0", n, f.pci, req.Host.Name())}
	}
	return res, nil
}

// sameDrivers says that no function gets another driver, nor the same one anew.
func sameDrivers(was, now functions) bool {
	for n := range max(was.num, now.num) {
		if was.driver(n) != now.driver(n) || macChanged(now.vf[n], was.vf[n]) {
			return false
		}
	}
	return true
}

// labelProblems are labels of vf blocks that are no number of a function.
func labelProblems(v cty.Value) []providers.Problem {
	blocks, num := v.GetAttr("vf"), v.GetAttr("num_vfs")
	if !blocks.IsKnown() || blocks.IsNull() {
		return nil
	}
	var out []providers.Problem
	for _, label := range slices.Sorted(maps.Keys(blocks.AsValueMap())) {
		n, ok := index(label)
		most := "its number, from 0"
		if num.IsKnown() && !num.IsNull() {
			count, _ := num.AsBigFloat().Int64()
			ok = ok && int64(n) < count
			most = fmt.Sprintf("a number from 0 to %d, since num_vfs is %d", count-1, count)
		}
		if !ok {
			out = append(out, providers.Problem{Path: cty.GetAttrPath("vf").Index(cty.StringVal(label)), Summary: "No such virtual function", Detail: fmt.Sprintf("The label of a vf block is %s. There is none called %q.", most, label)})
		}
	}
	return out
}

// functionProblems are the refusals. first: the functions there are now are somebody else's.
func functionProblems(f *providers.Facts, host string, fn functions, first bool) []providers.Problem {
	var out []providers.Problem
	add := func(path cty.Path, summary, format string, args ...any) {
		out = append(out, providers.Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	pci, num := cty.GetAttrPath("pci"), cty.GetAttrPath("num_vfs")
	nic := f.NIC(fn.pci)
	switch {
	case nic == nil:
		var have []string
		for _, n := range f.NICs {
			if n.TotalVFs > 0 {
				have = append(have, fmt.Sprintf("%s (up to %d)", n.PCI, n.TotalVFs))
			}
		}
		add(pci, "No such NIC", "%s has no NIC at %s. Those of it that can have virtual functions: %s.", host, fn.pci, orNone(have))
		return out
	case nic.PF != "":
		add(pci, "NIC is a virtual function", "%s of %s is a virtual function itself, of %s. Virtual functions are made of a physical one.", fn.pci, host, nic.PF)
		return out
	case nic.TotalVFs == 0:
		add(pci, "NIC cannot have virtual functions", "%s of %s (%04x:%04x, %s) has no SR-IOV, or it is switched off: look for SR-IOV in the BIOS and in the NIC's firmware (NVIDIA: mlxconfig set SRIOV_EN=1; Intel: devlink or the vendor's tool).", fn.pci, host, nic.Vendor, nic.Product, called(nic.Driver))
		return out
	case fn.num > nic.TotalVFs:
		add(num, "Too many virtual functions", "%s of %s can have %d virtual functions, and %d are asked for.", fn.pci, host, nic.TotalVFs, fn.num)
	}
	if slices.Contains(userDrivers(), nic.Driver) || nic.Driver == "" {
		out = append(out, providers.Problem{Warning: true, Path: pci, Summary: "NIC has no kernel driver now", Detail: fmt.Sprintf("%s of %s has %s, and only the kernel's own driver makes virtual functions. "+
			"Unless something that is applied before gives it back to the kernel, such as a nic_driver that this refers to, apply will stop here.", fn.pci, host, orDriver(nic.Driver))})
	}
	for _, i := range nic.Interfaces {
		if i.Management && len(nic.VFs) != fn.num {
			out = append(out, providers.Problem{Warning: true, Path: pci, Summary: "NIC carries Plumb's own connection", Detail: fmt.Sprintf("%s of %s is %s, by which Plumb is connected to it. Some drivers reset the NIC when virtual functions are made, and the link is gone for seconds.", fn.pci, host, i.Name)})
		}
	}
	if first && fn.num > 0 && len(nic.VFs) > 0 && len(nic.VFs) != fn.num {
		if used := inUse(f, nic); len(used) > 0 {
			add(num, "Virtual functions are in use", "%s of %s has %d virtual functions, which Plumb has not made, and %d are wanted. The kernel changes the number only from 0, so all of them would go, and these are in use: %s. Free them, or ask for %d.",
				fn.pci, host, len(nic.VFs), fn.num, strings.Join(used, ", "), len(nic.VFs))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(fn.vf)) {
		name := fmt.Sprintf("Virtual function %d of %s", n, fn.pci)
		if summary, why := refusal(f, host, want{pci: name, driver: fn.driver(n), noiommu: f.IOMMU.NoIOMMU}, true); summary != "" {
			add(vfPath(n).GetAttr("driver"), summary, "%s", why)
		}
	}
	return out
}

// inUse lists the virtual functions that somebody seems to use, each with how.
func inUse(f *providers.Facts, pf *providers.NIC) []string {
	var out []string
	for n, addr := range pf.VFs {
		vf := f.NIC(addr)
		if vf == nil {
			continue
		}
		how := ""
		switch {
		case slices.Contains(userDrivers(), vf.Driver):
			how = "on " + vf.Driver
		case vf.Driver != "" && len(vf.Interfaces) == 0:
			how = "its interface is in another namespace"
		}
		for _, i := range vf.Interfaces {
			switch {
			case len(i.Addresses) > 0:
				how = i.Name + " with " + strings.Join(i.Addresses, ", ")
			case i.Master != "":
				how = i.Name + " in " + i.Master
			case i.Up:
				how = i.Name + " is up"
			}
		}
		if how != "" {
			out = append(out, strconv.Itoa(n)+" ("+addr+": "+how+")")
		}
	}
	return out
}
