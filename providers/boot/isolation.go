package boot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// cpuIsolation is host_cpu_isolation.
func cpuIsolation() settingType {
	truth := func(what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.Bool, Optional: true, Default: cty.True, Description: what}
	}
	return settingType{
		schema: &schema.Resource{
			Type: "host_cpu_isolation", Setting: true, Survives: true,
			Description: "CPUs that the scheduler puts nothing on, that have no timer tick while one thread runs, whose RCU callbacks and interrupts others take: for poll mode drivers and vCPUs. By arguments of the kernel, so that it takes effect with a reboot, which is made once for all that needs one.",
			After:       []string{"host_package"},
			Example: `resource "host_cpu_isolation" "dut" {
  cores = "1-13,15-27"
}`,
			Block: schema.Block{Attributes: map[string]*schema.Attribute{
				"cores":       {Type: cty.String, Required: true, Canonical: schema.CPUs, Description: "The CPUs, as a list: 1-13,15-27. At least one has to be left for the rest of the system."},
				"managed_irq": truth("Keep interrupts that the kernel manages itself, such as those of NVMe queues, from the CPUs (isolcpus=managed_irq)."),
				"nohz_full":   truth("No timer tick while one thread runs on a CPU (nohz_full)."),
				"rcu_nocbs":   truth("RCU callbacks of the CPUs run on others (rcu_nocbs)."),
				"irqaffinity": truth("Interrupts go to the other CPUs by default (irqaffinity)."),
				"active":      activeAttribute(),
			}},
		},
		at:   func(int) cty.Path { return cty.GetAttrPath("cores") },
		args: isolationArgs,
		found: func(prior cty.Value, args []string) cty.Value {
			// Somebody has changed them by hand: there are no words for what is there, so that all of it is set again.
			out := prior.AsValueMap()
			out["cores"] = cty.StringVal("")
			return cty.ObjectVal(out)
		},
		problems: isolationProblems,
		claims: func(v cty.Value) providers.Claims {
			set, err := cpuset.Parse(attr.Text(v, "cores"))
			if err != nil {
				return providers.Claims{}
			}
			return providers.Claims{Isolates: slices.Collect(set.All())}
		},
	}
}

// isolationArgs are the arguments (kernel-parameters.txt: isolcpus, nohz_full, rcu_nocbs, irqaffinity).
func isolationArgs(v cty.Value, f *providers.Facts) ([]string, error) {
	text := v.GetAttr("cores")
	if !text.IsKnown() || text.IsNull() {
		return nil, errors.New("the cores are not known")
	}
	set, err := cpuset.Parse(text.AsString())
	if err != nil {
		return nil, err
	}
	if set.String() == "" {
		return nil, nil
	}
	list := set.String()
	flags := "domain,"
	if attr.Truth(v, "managed_irq", true) {
		flags = "managed_irq,domain,"
	}
	out := []string{"isolcpus=" + flags + list}
	if attr.Truth(v, "nohz_full", true) {
		out = append(out, "nohz_full="+list)
	}
	if attr.Truth(v, "rcu_nocbs", true) {
		out = append(out, "rcu_nocbs="+list)
	}
	if attr.Truth(v, "irqaffinity", true) && f != nil {
		var rest []int
		for _, c := range f.CPUs {
			if !set.Contains(c.ID) {
				rest = append(rest, c.ID)
			}
		}
		if s, err := cpuset.Of(rest...); err == nil && len(rest) > 0 {
			out = append(out, "irqaffinity="+s.String())
		}
	}
	return out, nil
}

func isolationProblems(v cty.Value, f *providers.Facts, host string) []providers.Problem {
	set, err := cpuset.Parse(attr.Text(v, "cores"))
	if err != nil {
		return nil
	}
	at := cty.GetAttrPath("cores")
	var out []providers.Problem
	var missing, left, half []int
	online, kept := map[int]bool{}, map[int]bool{}
	for _, c := range f.CPUs {
		if !c.Online {
			continue
		}
		online[c.ID] = true
		if !set.Contains(c.ID) {
			left = append(left, c.ID)
			kept[c.Node] = true
			continue
		}
		for _, s := range c.Siblings {
			if !set.Contains(s) {
				half = append(half, c.ID)
			}
		}
	}
	for c := range set.All() {
		if !online[c] {
			missing = append(missing, c)
		}
	}
	switch {
	case set.String() == "":
		out = append(out, providers.Problem{Path: at, Summary: "No cores", Detail: "The list is empty: leave the resource out instead."})
	case len(missing) > 0:
		out = append(out, providers.Problem{Path: at, Summary: "No such core", Detail: fmt.Sprintf("%s has no core %s online.", host, text(missing))})
	case len(left) == 0:
		out = append(out, providers.Problem{Path: at, Summary: "No core is left", Detail: fmt.Sprintf("All cores of %s would be isolated, and nothing could run there but what is pinned. Leave at least one out, better one on each NUMA node.", host)})
	case len(half) > 0:
		out = append(out, providers.Problem{Warning: true, Path: at, Summary: "Hyperthreads beside isolated ones", Detail: fmt.Sprintf("Cores %s of %s share their physical cores with hyperthreads that are not isolated: what the scheduler puts there slows them down. Isolate those too.", text(half), host)})
	}
	for _, n := range f.Nodes {
		if n.MemoryBytes > 0 && !kept[n.ID] && len(left) > 0 {
			out = append(out, providers.Problem{Warning: true, Path: at, Summary: "No core is left on a NUMA node", Detail: fmt.Sprintf("All cores of NUMA node %d of %s would be isolated. Kernel threads and interrupts of that node then run on another one: leave one core out on each.", n.ID, host)})
		}
	}
	return out
}

func text(cores []int) string {
	s, err := cpuset.Of(cores...)
	if err != nil {
		return fmt.Sprint(cores)
	}
	return s.String()
}
