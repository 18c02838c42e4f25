package boot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/host"
	"plumb/providers/internal/hostkit"
	"plumb/providers/labhost"
)

// labInstance is a setting that takes effect with a reboot.
type labInstance struct {
	typ     providers.Resource
	config  map[string]cty.Value
	mark    providers.Mark
	planned cty.Value
	undo    []byte
}

func (i *labInstance) plan(t *testing.T, h providers.Host, prior cty.Value) {
	t.Helper()
	desired := conformance.Desired(&i.typ.Schema().Block, i.config)
	res, err := i.typ.(providers.Planner).Plan(t.Context(), providers.PlanRequest{Host: h, Mark: i.mark, Prior: prior, Desired: desired, Proposed: desired})
	if err != nil || len(res.Problems) > 0 || res.Cost != schema.HostReboot {
		t.Fatalf("plan of %s: costs %s, %v, %v", i.mark.Address, res.Cost, res.Problems, err)
	}
	i.planned = res.Planned
}

func (i *labInstance) apply(t *testing.T, h providers.Host, prior, planned cty.Value) {
	t.Helper()
	req := providers.ApplyRequest{Host: h, Mark: i.mark, Prior: prior, Planned: planned, Undo: i.undo, Log: func(s string) { t.Log(s) }}
	var err error
	if !planned.IsNull() {
		if i.undo, err = i.typ.(providers.Preparer).Prepare(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		req.Undo = i.undo
	}
	if _, err := i.typ.Apply(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// One reboot of a real kernel takes arguments, isolation and hugepages in, another takes all of it out (PLUMB_LAB).
func TestLabLongReboot(t *testing.T) {
	h := hostkit.New("dut", labhost.Open(t), host.Gather)
	look := func() map[string]string {
		t.Helper()
		files, err := h.Conn().ReadFiles(t.Context(), "/proc/cmdline", "/etc/default/grub", "/etc/default/grub.d/*", "/boot/grub/grub.cfg", "/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/nohz_full",
			"/sys/devices/system/node/node*/hugepages/*/nr_hugepages")
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for name, text := range files {
			out[name] = strings.TrimSpace(string(text))
		}
		return out
	}
	reboot := func() {
		t.Helper()
		if err := Reboot(t.Context(), h, func(s string) { t.Log(s) }); err != nil {
			t.Fatal(err)
		}
	}
	pages := cty.MapVal(map[string]cty.Value{"0": cty.NumberIntVal(16), "1": cty.NumberIntVal(32)})
	all := []*labInstance{
		{typ: kernelArgs(), config: args("iommu=pt", "nmi_watchdog=0")},
		{typ: cpuIsolation(), config: map[string]cty.Value{"cores": cty.StringVal("1,3")}},
		{typ: host.Hugepages{}, config: map[string]cty.Value{"size": cty.StringVal("2M"), "pages": pages, "when": cty.StringVal("boot")}},
	}
	// The image's own grub.cfg may be none of update-grub's.
	if _, err := h.Conn().Run(t.Context(), providers.Cmd{Args: []string{"update-grub"}, Timeout: 5 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	before := look()
	for n, i := range all {
		i.mark = providers.Mark{Testbed: "lab", Address: fmt.Sprintf("%s.i%d", i.typ.Schema().Type, n)}
		null := cty.NullVal(i.typ.Schema().Block.ImpliedType())
		i.plan(t, h, null)
		i.apply(t, h, null, i.planned)
	}
	reboot()
	during := look()
	for what, want := range map[string]string{"/sys/devices/system/cpu/isolated": "1,3", "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "16", "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages": "32"} {
		if during[what] != want {
			t.Errorf("%s is %q, want %q", what, during[what], want)
		}
	}
	t.Log(during["/proc/cmdline"])
	for _, i := range all {
		res, err := i.typ.Read(t.Context(), providers.ReadRequest{Host: h, Mark: i.mark, Prior: i.planned})
		if err != nil || !res.Current.RawEquals(i.planned) {
			t.Errorf("%s: %#v, %v; want %#v", i.mark.Address, res.Current, err, i.planned)
		}
	}
	slices.Reverse(all)
	for _, i := range all {
		res, err := i.typ.(providers.Remover).Removal(t.Context(), providers.RemovalRequest{Host: h, Mark: i.mark, Prior: i.planned, Undo: i.undo})
		if err != nil || res.Cost != schema.HostReboot {
			t.Errorf("removing %s costs %s, %v", i.mark.Address, res.Cost, err)
		}
		i.apply(t, h, i.planned, cty.NullVal(i.planned.Type()))
	}
	reboot()
	after := look()
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("destroy did not bring back what was there (-before +after):\n%s", d)
	}
	t.Log(len(after), "files compared")
}
