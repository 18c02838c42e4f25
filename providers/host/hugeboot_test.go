package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/internal/bootargs"
)

func TestBootArgs(t *testing.T) {
	two := []providers.Node{{ID: 0}, {ID: 1}}
	for name, tc := range map[string]struct {
		nodes  []providers.Node
		kernel string
		pages  map[int]uint64
		want   string
	}{
		"by node":             {two, "5.15.0-91-generic", map[int]uint64{0: 8, 1: 4}, "hugepagesz=1G hugepages=0:8,1:4"},
		"one of two":          {two, "6.12.118+deb13-amd64", map[int]uint64{1: 4}, "hugepagesz=1G hugepages=1:4"},
		"an older kernel":     {two, "5.14.0-427.el9.x86_64", map[int]uint64{0: 8, 1: 8}, "hugepagesz=1G hugepages=16"},
		"unequal, older":      {two, "4.18.0-553.el8_10.x86_64", map[int]uint64{0: 8, 1: 4}, "error"},
		"one of two, older":   {two, "4.18.0-553.el8_10.x86_64", map[int]uint64{0: 8}, "error"},
		"one node":            {two[:1], "4.18.0", map[int]uint64{0: 8}, "hugepagesz=1G hugepages=8"},
		"a release that says": {two, "nothing", map[int]uint64{0: 8}, "error"},
	} {
		args, err := bootArgs(want{size: 1 << 30, pages: tc.pages}, &providers.Facts{Kernel: tc.kernel, Nodes: tc.nodes})
		got := strings.Join(args, " ")
		if err != nil {
			got = "error"
		}
		if got != tc.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func bootPages(size string, pages ...int64) map[string]cty.Value {
	m := map[string]cty.Value{}
	for node, n := range pages {
		m[[]string{"0", "1"}[node]] = cty.NumberIntVal(n)
	}
	return map[string]cty.Value{"size": cty.StringVal(size), "pages": cty.MapVal(m), "when": cty.StringVal("boot"), "mount": cty.StringVal("")}
}

func rebootFake(t *testing.T, h providers.Host) {
	run(t, h.Conn(), "reboot")
	if err := h.Forget(); err != nil {
		t.Fatal(err)
	}
}

func TestHugepagesAtBoot(t *testing.T) {
	conformance.Run(t, conformance.Case{
		Type: Hugepages{}, Open: faked(t), Config: bootPages("1G", 2, 3), Update: bootPages("1G", 1, 0), Snapshot: snapshot, Reboot: rebootFake,
		Drift: map[string]func(*testing.T, providers.Host){
			"forgotten": func(t *testing.T, h providers.Host) {
				run(t, h.Conn(), "rm", "-f", "--", bootargs.DropIn(providers.Mark{Testbed: "conformance", Address: "host_hugepages.test"}))
				run(t, h.Conn(), "update-grub")
			},
			"lowered": func(t *testing.T, h providers.Host) {
				if err := h.Conn().WriteFile(t.Context(), nodeDir+"/node1/hugepages/hugepages-1048576kB/nr_hugepages", []byte("1"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
		},
	})
}

// From pages of now to pages of the boot and back: no reboot is needed for either.
func TestHugepagesNowThenAtBoot(t *testing.T) {
	now := bootPages("2M", 64, 32)
	now["when"] = cty.StringVal("now")
	conformance.Run(t, conformance.Case{Type: Hugepages{}, Open: faked(t), Config: now, Update: bootPages("2M", 64, 32), Snapshot: snapshot})
}

func planFor(t *testing.T, h providers.Host, config map[string]cty.Value) providers.PlanResult {
	t.Helper()
	b := &Hugepages{}.Schema().Block
	desired := conformance.Desired(b, config)
	res, err := Hugepages{}.Plan(t.Context(), providers.PlanRequest{Host: h, Mark: providers.Mark{Testbed: "t", Address: "host_hugepages.a"}, Prior: cty.NullVal(b.ImpliedType()), Desired: desired, Proposed: desired})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestPlanOfPagesAtBoot(t *testing.T) {
	open := faked(t)
	h := open(t)
	defer h.Close()
	if res := planFor(t, h, bootPages("1G", 2)); res.Cost != schema.HostReboot || len(res.Problems) > 0 {
		t.Errorf("%s %v", res.Cost, res.Problems)
	}
	if res := planFor(t, h, bootPages("1G", 0)); res.Cost != schema.Live {
		t.Errorf("pages that are there already cost %s", res.Cost)
	}
	config := bootPages("1G", 2)
	delete(config, "mount")
	want := []string{`Nothing mounts these pages at boot: fake has no hugetlbfs for pages of 1G, and a mount made now would not outlive the reboot. Set mount = "", and add a host_mount with type = "hugetlbfs", source = "hugetlbfs", target = "/dev/hugepages1G", options = ["pagesize=1G"].`}
	if d := cmp.Diff(want, problemTexts(planFor(t, h, config).Problems)); d != "" {
		t.Error(d)
	}
	if err := h.Conn().WriteFile(t.Context(), "/etc/default/grub.d/50-own.cfg", []byte("GRUB_CMDLINE_LINUX=\"hugepagesz=1G hugepages=1\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, h.Conn(), "update-grub")
	if err := h.Forget(); err != nil {
		t.Fatal(err)
	}
	want = []string{`Pages of that size are reserved already: The command line of fake has hugepagesz=1G by itself (/boot/grub/grub.cfg), and the kernel takes no notice of a second one. Take it out there, or use when = "now".`}
	if d := cmp.Diff(want, problemTexts(planFor(t, h, bootPages("1G", 2)).Problems)); d != "" {
		t.Error(d)
	}
	run(t, h.Conn(), "rm", "-f", "--", "/usr/sbin/update-grub")
	if err := h.Forget(); err != nil {
		t.Fatal(err)
	}
	if got := problemTexts(planFor(t, h, bootPages("1G", 2)).Problems); len(got) != 1 || !strings.HasPrefix(got[0], "Unknown boot loader: On fake no boot loader was found") {
		t.Error(got)
	}
}

func problemTexts(problems []providers.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Summary+": "+p.Detail)
	}
	return out
}
