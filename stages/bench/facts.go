package bench

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// factRows picks from a host's facts what a reader of a report has to know to judge or repeat a measurement.
func factRows(f *providers.Facts) [][2]string {
	var rows [][2]string
	add := func(what, value string) {
		if value != "" {
			rows = append(rows, [2]string{what, value})
		}
	}
	add("Host name", f.Hostname)
	add("Operating system", f.Distribution)
	add("Kernel", f.Kernel)
	add("Kernel command line", f.Cmdline)
	add("CPU model", text(f.Value, "cpu_model"))
	add("CPUs", cpus(f.CPUs))
	for _, n := range f.Nodes {
		parts := []string{fmt.Sprintf("%.1f GiB of memory", float64(n.MemoryBytes)/(1<<30))}
		for _, h := range n.Hugepages {
			if h.Total > 0 {
				parts = append(parts, fmt.Sprintf("hugepages of %s: %d, %d free", size(h.Size), h.Total, h.Free))
			}
		}
		add(fmt.Sprintf("NUMA node %d", n.ID), strings.Join(parts, "; "))
	}
	if v := attribute(f.Value, "versions"); v.Type().IsObjectType() || v.Type().IsMapType() {
		if !v.IsNull() {
			m := v.AsValueMap()
			for _, k := range sortedKeys(m) {
				add("Version of "+k, scalar(m[k]))
			}
		}
	}
	return rows
}

// cpus counts them, and names those that the kernel keeps free of other work.
func cpus(all []providers.CPU) string {
	online, isolated, siblings := 0, []string{}, false
	sockets := map[int]bool{}
	for _, c := range all {
		if !c.Online {
			continue
		}
		online++
		sockets[c.Socket] = true
		siblings = siblings || len(c.Siblings) > 1
		if c.Isolated {
			isolated = append(isolated, fmt.Sprint(c.ID))
		}
	}
	if online == 0 {
		return ""
	}
	s := fmt.Sprintf("%d online in %d socket(s)", online, len(sockets))
	if siblings {
		s += ", hyperthreading on"
	} else {
		s += ", one thread a core"
	}
	if len(isolated) == 0 {
		return s + ", none isolated"
	}
	return s + ", isolated: " + strings.Join(isolated, ",")
}

func size(b uint64) string {
	switch {
	case b >= 1<<30 && b%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", b>>30)
	case b >= 1<<20:
		return fmt.Sprintf("%d MiB", b>>20)
	}
	return fmt.Sprintf("%d KiB", b>>10)
}

func attribute(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NullVal(cty.EmptyObject)
	}
	a, _ := v.GetAttr(name).UnmarkDeep()
	if a.IsNull() || !a.IsKnown() {
		return cty.NullVal(cty.EmptyObject)
	}
	return a
}

func text(v cty.Value, name string) string { return scalar(attribute(v, name)) }

func scalar(v cty.Value) string {
	switch {
	case v.IsNull() || !v.IsKnown():
		return ""
	case v.Type() == cty.String:
		return v.AsString()
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	}
	return ""
}
