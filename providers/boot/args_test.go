package boot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

func TestWords(t *testing.T) {
	got := words("BOOT_IMAGE=/vmlinuz ro  hugepagesz=1G hugepages=8\thugepagesz=2M dyndbg=\"file a.c +p\" x\n")
	want := []string{"BOOT_IMAGE=/vmlinuz", "ro", "hugepagesz=1G", "hugepages=8", "hugepagesz=2M", "dyndbg=\"file a.c +p\"", "x"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzWords(f *testing.F) {
	f.Add("a b=\"c d\" e")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Count(s, "\"")%2 == 0 && strings.Join(words(strings.Join(words(s), " ")), "\x00") != strings.Join(words(s), "\x00") {
			t.Errorf("%q", s)
		}
	})
}

func TestValidArg(t *testing.T) {
	for in, ok := range map[string]bool{"iommu=pt": true, "isolcpus=managed_irq,domain,1-3": true, "hugepages=0:8,1:8": true, "quiet": true, "vfio_iommu_type1.allow_unsafe_interrupts=1": true,
		"": false, "a b": false, "a\nb": false, "a;b": false, "$(id)": false, "`id`": false, "a\"b": false, "a'b": false, "a\\b": false, "a|b": false, "a\x00": false, "-r": false, "=x": false,
		"root=/dev/sda1": false, "init=/bin/sh": false, "initrd=x": false, "rw": false} {
		if err := validArg(in); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
	for name, l := range map[string][]string{"twice": {"a=1", "a=2"}, "the same key": {"rcu-nocbs=1", "rcu_nocbs=2"}} {
		if err := validArgs(args(l...)["args"]); err == nil {
			t.Errorf("%s: %q was taken", name, l)
		}
	}
	if err := validArgs(args("hugepagesz=1G", "hugepages=8", "hugepagesz=2M", "hugepages=512")["args"]); err != nil {
		t.Error(err)
	}
}

func TestGrubby(t *testing.T) {
	out := "index=0\nkernel=\"/boot/vmlinuz-5.14\"\nargs=\"ro crashkernel=1G $tuned_params iommu=pt\"\nroot=\"/dev/mapper/x\"\n"
	if got := grubbyArgs(out); got != "ro crashkernel=1G $tuned_params iommu=pt" {
		t.Error(got)
	}
	b := &bootFiles{kind: grubbyTool, next: grubbyArgs(out)}
	if got, there := b.kept(providers.Mark{}, []string{"iommu=pt", "isolcpus=1"}); !there || len(got) != 1 {
		t.Error(got, there)
	}
}

func TestDropIn(t *testing.T) {
	m := providers.Mark{Testbed: "lineage", Address: "host_kernel_args.a"}
	if d := cmp.Diff([]string{"a=1", "b"}, dropInArgs(dropIn(m, []string{"a=1", "b"}))); d != "" {
		t.Error(d)
	}
	if got := dropInArgs(dropIn(m, nil)); len(got) > 0 {
		t.Error(got)
	}
	if dropInName(m) == dropInName(providers.Mark{Testbed: "other", Address: m.Address}) {
		t.Error("two testbeds share a file")
	}
}

func TestIsolationProblems(t *testing.T) {
	f := &providers.Facts{}
	for id := range 4 {
		f.CPUs = append(f.CPUs, providers.CPU{ID: id, Online: id != 2, Siblings: []int{(id + 2) % 4}})
	}
	for cores, want := range map[string]string{"1,3": "", "3": "Hyperthreads beside isolated ones: Cores 3 of dut share their physical cores with hyperthreads that are not isolated: what the scheduler puts there slows them down. Isolate those too.",
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
