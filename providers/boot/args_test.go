package boot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

func TestValidArgs(t *testing.T) {
	for name, l := range map[string][]string{"dangerous": {"root=/dev/sda1"}, "twice": {"a=1", "a=2"}, "the same key": {"rcu-nocbs=1", "rcu_nocbs=2"}} {
		if err := validArgs(args(l...)["args"]); err == nil {
			t.Errorf("%s: %q was taken", name, l)
		}
	}
	if err := validArgs(args("hugepagesz=1G", "hugepages=8", "hugepagesz=2M", "hugepages=512")["args"]); err != nil {
		t.Error(err)
	}
}

func TestIsolationProblems(t *testing.T) {
	f := &providers.Facts{Nodes: []providers.Node{{ID: 0, MemoryBytes: 1}, {ID: 1, MemoryBytes: 1}, {ID: 2}}}
	for id := range 4 {
		f.CPUs = append(f.CPUs, providers.CPU{ID: id, Node: id / 3, Online: id != 2, Siblings: []int{(id + 2) % 4}})
	}
	for cores, want := range map[string]string{"1,3": "No core is left on a NUMA node: All cores of NUMA node 1 of dut would be isolated. Kernel threads and interrupts of that node then run on another one: leave one core out on each.",
		"1":     "Hyperthreads beside isolated ones: Cores 1 of dut share their physical cores with hyperthreads that are not isolated: what the scheduler puts there slows them down. Isolate those too.",
		"0,1,3": "No core is left: All cores of dut would be isolated, and nothing could run there but what is pinned. Leave at least one out, better one on each NUMA node.", "2,7": "No such core: dut has no core 2,7 online."} {
		var got []string
		for _, p := range isolationProblems(cty.ObjectVal(map[string]cty.Value{"cores": cty.StringVal(cores)}), f, "dut") {
			got = append(got, p.Summary+": "+p.Detail)
		}
		if d := cmp.Diff(want, strings.Join(got, "\n")); d != "" {
			t.Errorf("%s: %s", cores, d)
		}
	}
}
