package host

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

func cacheType() cty.Type {
	return cty.Object(map[string]cty.Type{"level": cty.Number, "kind": cty.String, "kb": cty.Number, "cpus": cty.String})
}

func powerType() cty.Type {
	return cty.Object(map[string]cty.Type{"driver": cty.String, "governors": cty.List(cty.String), "available": cty.List(cty.String), "turbo": cty.Bool, "cstates": cty.List(cty.String), "smt": cty.String})
}

func iommuType() cty.Type {
	return cty.Object(map[string]cty.Type{"enabled": cty.Bool, "noiommu": cty.Bool})
}

func interfaceType() cty.Type {
	return cty.Object(map[string]cty.Type{"name": cty.String, "mac": cty.String, "mtu": cty.Number, "up": cty.Bool, "carrier": cty.Bool, "speed_mbit": cty.Number, "firmware": cty.String,
		"addresses": cty.List(cty.String), "master": cty.String, "default_route": cty.Bool, "management": cty.Bool})
}

func nicType() cty.Type {
	return cty.Object(map[string]cty.Type{"pci": cty.String, "vendor": cty.String, "device": cty.String, "driver": cty.String, "driver_override": cty.String, "node": cty.Number, "iommu_group": cty.Number,
		"iommu_members": cty.List(cty.String), "total_vfs": cty.Number, "vfs": cty.List(cty.String), "pf": cty.String, "interfaces": cty.List(interfaceType())})
}

func texts(list []string) cty.Value {
	var out []cty.Value
	for _, s := range list {
		out = append(out, cty.StringVal(s))
	}
	return listOrEmpty(out, cty.String)
}

func textMap(m map[string]string) cty.Value {
	out := map[string]cty.Value{}
	for k, v := range m {
		out[k] = cty.StringVal(v)
	}
	return mapOrEmpty(out, cty.String)
}

// truth is null for nil: not known.
func truth(b *bool) cty.Value {
	if b == nil {
		return cty.NullVal(cty.Bool)
	}
	return cty.BoolVal(*b)
}

func setValue(m map[string]bool) cty.Value {
	var out []cty.Value
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, cty.StringVal(name))
	}
	if len(out) == 0 {
		return cty.SetValEmpty(cty.String)
	}
	return cty.SetVal(out)
}

func cachesValue(list []providers.Cache) cty.Value {
	var out []cty.Value
	for _, c := range list {
		out = append(out, cty.ObjectVal(map[string]cty.Value{"level": integer(c.Level), "kind": cty.StringVal(c.Kind), "kb": cty.NumberUIntVal(c.Bytes >> 10), "cpus": cpuList(c.CPUs)}))
	}
	return listOrEmpty(out, cacheType())
}

func powerValue(p *providers.Power) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"driver": cty.StringVal(p.Driver), "governors": texts(p.Governors), "available": texts(p.Available), "turbo": truth(p.Turbo), "cstates": texts(p.CStates), "smt": cty.StringVal(p.SMT)})
}

func nicsValue(f *providers.Facts) cty.Value {
	var out []cty.Value
	for _, n := range f.NICs {
		var members []string
		for _, d := range f.IOMMU.Groups[n.IOMMUGroup] {
			members = append(members, d.PCI)
		}
		if n.IOMMUGroup < 0 {
			members = nil
		}
		var interfaces []cty.Value
		for _, i := range n.Interfaces {
			interfaces = append(interfaces, cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(i.Name), "mac": cty.StringVal(i.MAC), "mtu": integer(i.MTU), "up": cty.BoolVal(i.Up), "carrier": truth(i.Carrier),
				"speed_mbit": integer(i.SpeedMbit), "firmware": cty.StringVal(i.Firmware), "addresses": texts(i.Addresses), "master": cty.StringVal(i.Master),
				"default_route": cty.BoolVal(i.DefaultRoute), "management": cty.BoolVal(i.Management)}))
		}
		out = append(out, cty.ObjectVal(map[string]cty.Value{"pci": cty.StringVal(n.PCI), "vendor": hex(n.Vendor), "device": hex(n.Product), "driver": cty.StringVal(n.Driver), "driver_override": cty.StringVal(n.Override),
			"node": integer(n.Node), "iommu_group": integer(n.IOMMUGroup), "iommu_members": texts(members), "total_vfs": integer(n.TotalVFs), "vfs": texts(n.VFs), "pf": cty.StringVal(n.PF),
			"interfaces": listOrEmpty(interfaces, interfaceType())}))
	}
	return listOrEmpty(out, nicType())
}

// hex is a PCI id as lspci prints it.
func hex(n uint16) cty.Value { return cty.StringVal(fmt.Sprintf("%04x", n)) }
