package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/conformance"
)

func TestModuleNamesAndOptions(t *testing.T) {
	for name, want := range map[string]string{"vfio-pci": "vfio_pci", "8021q": "8021q", "-r": "", "": "", "a b": "", "a/../b": "", "a\n": "", "$(id)": ""} {
		if got, err := moduleName(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, c := range []struct {
		want, have string
		same       bool
	}{{"1", "Y", true}, {"yes", "Y", true}, {"0", "Y", false}, {"0x10", "16", true}, {"a,b", "a,b\n", true}, {"2", "Y", false}, {"", "", true}, {"x", "y", false}} {
		if got := sameOption(c.want, c.have); got != c.same {
			t.Errorf("%q and %q: %v", c.want, c.have, got)
		}
	}
	for v, ok := range map[string]bool{"1": true, "8086:10ed,8086:10fb": true, "a b": false, "a\nb": false, `"`: false, "$(id)": true, "": true} {
		if err := validOptions(cty.MapVal(attrs{"x": str(v)})); (err == nil) != ok {
			t.Errorf("%q: %v", v, err)
		}
	}
	depends := "builtin tpm\ninsmod /lib/modules/6.1/kernel/a/irqbypass.ko.xz \ninsmod /lib/modules/6.1/kernel/b/vfio-pci.ko ids=1\ninsmod /x/vfio.ko\n"
	if got := newModules(depends, "vfio 1 0 - Live\n"); !slices.Equal(got, []string{"irqbypass", "vfio_pci"}) {
		t.Error(got)
	}
}

func FuzzModules(f *testing.F) {
	f.Add("vfio 45056 2 vfio_pci_core,vfio_iommu_type1, Live 0x0\n", "insmod /lib/modules/x/vfio.ko a=b\n")
	f.Fuzz(func(t *testing.T, loaded, depends string) {
		(&seenModule{}).parse("vfio", loaded)
		for _, n := range newModules(depends, loaded) {
			if n == "" || strings.ContainsAny(n, "-/") {
				t.Errorf("%q is not a name", n)
			}
		}
	})
}

func moduleCase(open func(*testing.T) providers.Host) conformance.Case {
	return conformance.Case{
		Type: Module{}, Open: open,
		Config: attrs{"name": str("vfio-pci"), "at_boot": cty.True, "options": cty.MapVal(attrs{"ids": str("8086:10ed")})},
		Update: attrs{"name": str("vfio_pci")},
		Drift: map[string]func(*testing.T, providers.Host){
			"unloaded": func(t *testing.T, h providers.Host) { do(t, h, "rmmod", "vfio_pci") },
		},
	}
}

func TestModule(t *testing.T) {
	w := newWorld(t)
	c := moduleCase(w.open)
	c.Snapshot = w.snapshot
	conformance.Run(t, c)
}

// A module that was loaded before stays, and gets its parameters back: those that can be written, and those for which it is loaded anew.
func TestModuleThatWasLoaded(t *testing.T) {
	for name, options := range map[string]attrs{"written": {"debug": str("1")}, "loaded anew": {"max_bonds": str("0x4"), "debug": str("1")}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.open(t)
			do(t, h, "modprobe", "bonding", "debug=3")
			h.Close()
			conformance.Run(t, conformance.Case{
				Type: Module{}, Open: w.open, Snapshot: w.snapshot,
				Config: attrs{"name": str("bonding"), "options": cty.MapVal(options)},
				Update: attrs{"name": str("bonding"), "at_boot": cty.True},
				Drift: map[string]func(*testing.T, providers.Host){
					"changed": func(t *testing.T, h providers.Host) { put(t, h, "/sys/module/bonding/parameters/debug", "7") },
				},
			})
		})
	}
}

func TestBuiltinModule(t *testing.T) {
	w := newWorld(t)
	conformance.Run(t, conformance.Case{Type: Module{}, Open: w.open, Snapshot: w.snapshot,
		Config: attrs{"name": str("tcp-cubic"), "options": cty.MapVal(attrs{"fast_beta": str("700")})}})
}

func TestModuleRefusals(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	wantProblem(t, planOf(t, Module{}, h, attrs{"name": str("no_such")}), "no module no_such", "6.1.0-13-amd64")

	// In use: named, in the plan, in apply, and when it is to be unloaded.
	req, err := create(t, Module{}, h, attrs{"name": str("vfio-pci")})
	if err != nil {
		t.Fatal(err)
	}
	wasLoaded := attrs{"name": str("bonding"), "options": cty.MapVal(attrs{"max_bonds": str("5")})}
	do(t, h, "modprobe", "bonding")
	if res := planOf(t, Module{}, h, wasLoaded); res.Cost != schema.ServiceRestart || len(res.Problems) > 0 {
		t.Errorf("%+v", res)
	}
	use := strings.ReplaceAll(string(mustRead(t, h, "/proc/modules")), "bonding 16384 0 -", "bonding 16384 2 -")
	use = strings.ReplaceAll(use, "vfio_pci 16384 0 -", "vfio_pci 16384 1 mlx5_vfio_pci,")
	w.write(t, "/proc/modules", use)
	again := w.open(t)
	defer again.Close()
	wantProblem(t, planOf(t, Module{}, again, wasLoaded), "max_bonds", "2 users")
	_, err = create(t, Module{}, h, wasLoaded)
	wantError(t, err, "2 users", "max_bonds=5")
	req.Prior, req.Planned = req.Planned, cty.NullVal(req.Planned.Type())
	_, err = Module{}.Apply(t.Context(), req)
	wantError(t, err, "vfio_pci", "used by mlx5_vfio_pci")
}

func TestSecureBoot(t *testing.T) {
	on := true
	for name, f := range map[string]*providers.Facts{"Secure Boot": {Root: true, SecureBoot: &on}, "locked down (integrity)": {Root: true, Lockdown: "integrity"}} {
		w := newWorld(t)
		h := w.openWith(t, f)
		wantProblem(t, planOf(t, Module{}, h, attrs{"name": str("igb_uio")}), name, "Secure Boot", "vfio-pci")
		wantProblem(t, planOf(t, Module{}, h, attrs{"name": str("uncommon-unsigned")}), name, "not signed")
		if res := planOf(t, Module{}, h, attrs{"name": str("vfio-pci")}); len(res.Problems) > 0 {
			t.Error(res.Problems)
		}
		h.Close()
	}
}
