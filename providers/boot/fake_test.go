package boot

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/internal/bootargs"
	"plumb/providers/internal/dropin"
	"plumb/providers/internal/hostkit"
)

// facts of the fake host: eight cores.
func facts(context.Context, providers.Conn) (*providers.Facts, error) {
	f := &providers.Facts{Root: true}
	for id := range 8 {
		f.CPUs = append(f.CPUs, providers.CPU{ID: id, Node: id / 4, Online: true})
	}
	return f, nil
}

func suite(t *testing.T, c conformance.Case, drift string) {
	run := func(args ...string) func(*testing.T, providers.Host) {
		return func(t *testing.T, h providers.Host) {
			if _, err := h.Conn().Run(t.Context(), providers.Cmd{Args: args}); err != nil {
				t.Fatal(err)
			}
		}
	}
	mark := providers.Mark{Testbed: "conformance", Address: c.Type.Schema().Type + ".test"}
	name := bootargs.DropIn(mark)
	c.Drift = map[string]func(*testing.T, providers.Host){
		"the file is gone": run("rm", "-f", "--", name),
		"the file was changed": func(t *testing.T, h providers.Host) {
			if err := h.Conn().WriteFile(t.Context(), name, dropin.Content(mark, `GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT `+drift+"\"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			run("update-grub")(t, h)
			reboot(t, h)
		},
	}
	runOn(t, "", c)
}

func reboot(t *testing.T, h providers.Host) {
	if err := Reboot(t.Context(), h, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
}

// runOn runs the suite on hosts with a boot loader; "": GRUB as Debian's.
func runOn(t *testing.T, loader string, c conformance.Case) {
	worlds := map[string]*fake.Conn{}
	c.Open = func(t *testing.T) providers.Host {
		conn := worlds[t.Name()]
		if conn == nil {
			var err error
			if conn, err = fake.Open(t.TempDir()); err != nil {
				t.Fatal(err)
			}
			if loader != "" {
				if err := conn.BootsBy(loader); err != nil {
					t.Fatal(err)
				}
			}
			worlds[t.Name()] = conn
		}
		return hostkit.New("dut", conn, facts)
	}
	c.Reboot = reboot
	c.Snapshot = func(t *testing.T, h providers.Host) []string {
		files, err := h.Conn().ReadFiles(t.Context(), "/proc/cmdline", "/etc/default/grub", "/etc/default/grub.d/*", "/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/boot/loader/entries/*", "/boot/efi/loader/entries/*", "/etc/kernel/cmdline", "/sys/devices/system/cpu/isolated")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			out = append(out, name+": "+string(files[name]))
		}
		return out
	}
	conformance.Run(t, c)
}

func args(list ...string) map[string]cty.Value {
	var v []cty.Value
	for _, a := range list {
		v = append(v, cty.StringVal(a))
	}
	return map[string]cty.Value{"args": cty.ListVal(v)}
}

func TestKernelArgsOnFakeHost(t *testing.T) {
	suite(t, conformance.Case{Type: kernelArgs(), Config: args("iommu=pt", "intel_iommu=on"), Update: args("iommu=pt", "nmi_watchdog=0")}, "other=1")
}

// edited changes a file by hand, and has what is made of it made anew.
func edited(file, old, now string, then ...string) func(*testing.T, providers.Host) {
	return func(t *testing.T, h providers.Host) {
		files, err := h.Conn().ReadFiles(t.Context(), file)
		if err != nil || !strings.Contains(string(files[file]), old) {
			t.Fatalf("%s has no %q: %q, %v", file, old, files[file], err)
		}
		if err := h.Conn().WriteFile(t.Context(), file, []byte(strings.Replace(string(files[file]), old, now, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if len(then) > 0 {
			if _, err := h.Conn().Run(t.Context(), providers.Cmd{Args: then}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What is there already and what has another value is found again after destroy, whatever the loader.
func TestKernelArgsByOtherLoaders(t *testing.T) {
	for loader, drift := range map[string]func(*testing.T, providers.Host){
		fake.RedHat:      edited("/boot/loader/entries/m-5.10.0-1-amd64.conf", " iommu=pt", ""),
		fake.SystemdBoot: edited("/boot/efi/loader/entries/m-6.1.0-13-amd64.conf", " iommu=pt", ""),
		fake.Suse:        edited("/etc/default/grub", " iommu=pt", "", "grub2-mkconfig", "-o", "/boot/grub2/grub.cfg"),
	} {
		t.Run(loader, func(t *testing.T) {
			runOn(t, loader, conformance.Case{Type: kernelArgs(), Config: args("iommu=pt", "quiet", "nosmt"), Update: args("iommu=off", "intel_iommu=on"),
				Drift: map[string]func(*testing.T, providers.Host){"edited": drift}})
		})
	}
}

// grubby cannot keep two sizes of hugepages: that is said, and not measured with one of them.
func TestGrubbyLosesRepeatedKeys(t *testing.T) {
	conn, err := fake.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.BootsBy(fake.RedHat); err != nil {
		t.Fatal(err)
	}
	l, err := bootargs.Of(t.Context(), hostkit.New("dut", conn, facts))
	if err != nil {
		t.Fatal(err)
	}
	err = l.Set(t.Context(), bootargs.Change{Mark: providers.Mark{Testbed: "t", Address: "a.a"}, Want: []string{"hugepagesz=1G", "hugepages=2", "hugepagesz=2M", "hugepages=8"}})
	if err == nil || !strings.Contains(err.Error(), "lost hugepagesz=1G hugepages=2") {
		t.Error(err)
	}
}

func TestIsolationOnFakeHost(t *testing.T) {
	cores := func(s string) map[string]cty.Value { return map[string]cty.Value{"cores": cty.StringVal(s)} }
	suite(t, conformance.Case{Type: cpuIsolation(), Config: cores("1-3,5"), Update: cores("2-3")}, "isolcpus=7")
}

func planProblems(t *testing.T, conn *fake.Conn, typ settingType, config map[string]cty.Value, f *providers.Facts) []string {
	t.Helper()
	h := hostkit.New("dut", conn, func(context.Context, providers.Conn) (*providers.Facts, error) { return f, nil })
	b := &typ.schema.Block
	desired := conformance.Desired(b, config)
	res, err := typ.Plan(t.Context(), providers.PlanRequest{Host: h, Mark: providers.Mark{Testbed: "t", Address: "a.a"}, Prior: cty.NullVal(b.ImpliedType()), Desired: desired, Proposed: desired})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range res.Problems {
		out = append(out, p.Summary+": "+p.Detail)
	}
	return out
}

func TestProblems(t *testing.T) {
	conn, err := fake.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, _ := facts(t.Context(), nil)
	if got := planProblems(t, conn, kernelArgs(), args("iommu=pt"), root); got != nil {
		t.Error(got)
	}
	user := *root
	user.Root = false
	if got := planProblems(t, conn, kernelArgs(), args("iommu=pt"), &user); len(got) != 1 || !strings.HasPrefix(got[0], "Not root: ") {
		t.Error(got)
	}
	if err := conn.WriteFile(t.Context(), "/etc/default/grub.d/own.cfg", []byte("GRUB_CMDLINE_LINUX=\"isolcpus=2-3\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Run(t.Context(), providers.Cmd{Args: []string{"update-grub"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"Set elsewhere already: The command line of dut has isolcpus=2-3 by itself (/boot/grub/grub.cfg), and the kernel takes the first isolcpus only. Take it out there."}
	if got := planProblems(t, conn, cpuIsolation(), map[string]cty.Value{"cores": cty.StringVal("1-3")}, root); !slices.Equal(got, want) {
		t.Error(got)
	}
	if _, err := conn.Run(t.Context(), providers.Cmd{Args: []string{"rm", "-f", "--", "/usr/sbin/update-grub"}}); err != nil {
		t.Fatal(err)
	}
	if got := planProblems(t, conn, kernelArgs(), args("iommu=pt"), root); len(got) != 1 || !strings.HasPrefix(got[0], "Unknown boot loader: On dut no boot loader was found that Plumb knows: it knows GRUB") {
		t.Error(got)
	}
}

// A host that has an argument by itself keeps it.
func TestArgumentThatWasThere(t *testing.T) {
	conn, err := fake.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := hostkit.New("dut", conn, facts)
	mark := providers.Mark{Testbed: "t", Address: "host_kernel_args.a"}
	typ := kernelArgs()
	planned := conformance.Desired(&typ.schema.Block, args("quiet")).AsValueMap()
	planned["active"] = cty.True
	req := providers.ApplyRequest{Host: h, Mark: mark, Prior: cty.NullVal(typ.schema.Block.ImpliedType()), Planned: cty.ObjectVal(planned), Log: func(string) {}}
	plan, err := typ.Plan(t.Context(), providers.PlanRequest{Host: h, Mark: mark, Prior: req.Prior, Desired: conformance.Desired(&typ.schema.Block, args("quiet")), Proposed: req.Planned})
	if err != nil || plan.Cost != 0 {
		t.Errorf("an argument that the kernel has costs %s, %v", plan.Cost, err)
	}
	undo, err := typ.Prepare(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Undo = undo
	if _, err := typ.Apply(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	r, err := typ.Removal(t.Context(), providers.RemovalRequest{Host: h, Mark: mark, Prior: req.Planned, Undo: undo})
	if err != nil || r.Cost != 0 {
		t.Errorf("taking it out costs %s, %v", r.Cost, err)
	}
}

func TestRebootAllowed(t *testing.T) {
	block := func(reboot string, ssh bool) cty.Value {
		v := cty.NullVal(cty.EmptyObject)
		if ssh {
			v = cty.EmptyObjectVal
		}
		return cty.ObjectVal(map[string]cty.Value{"reboot": cty.StringVal(reboot), "ssh": v})
	}
	for name, tc := range map[string]struct {
		config cty.Value
		ok     bool
		why    string
	}{
		"allowed":      {block("allowed", true), true, ""},
		"never":        {block("never", true), false, "it may not be rebooted. Set reboot = \"allowed\" in its host block, or make the change when it may be rebooted"},
		"this machine": {block("allowed", false), false, "Plumb runs on it, or on the machine that it is a part of, and would not come back to go on"},
		"no block":     {cty.NullVal(cty.EmptyObject), false, "Plumb runs on it, or on the machine that it is a part of, and would not come back to go on"},
	} {
		if ok, why := RebootAllowed(tc.config); ok != tc.ok || why != tc.why {
			t.Errorf("%s: %t, %q", name, ok, why)
		}
	}
}
