package nic

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/internal/hostkit"
)

// fakeCase is nic_driver on a fake host with one NIC whose interface has something to lose.
func fakeCase(t *testing.T, group int, more map[string]cty.Value) conformance.Case {
	conns := map[string]*fake.Conn{}
	open := func(t *testing.T) providers.Host {
		dir := t.Name() // a world for each subtest
		c := conns[dir]
		if c == nil {
			var err error
			if c, err = fake.Open(t.TempDir()); err != nil {
				t.Fatal(err)
			}
			conns[dir] = c
			if err := c.AddNIC(fake.NIC{PCI: "0000:01:00.0", ID: "8086:10C9", Driver: "igb", Interface: "ens1", MAC: "52:54:00:00:01:00", Group: group}); err != nil {
				t.Fatal(err)
			}
			run(t, c, "link set dev ens1 mtu 9000\nlink set dev ens1 up\naddress replace 198.51.100.1/24 dev ens1\nroute replace 203.0.113.0/24 via 198.51.100.9 dev ens1\n")
		}
		return hostkit.New("dut", c, facts)
	}
	config := map[string]cty.Value{"pci": cty.StringVal("0000:01:00.0"), "driver": cty.StringVal("vfio-pci")}
	maps.Copy(config, more)
	update := maps.Clone(config)
	update["driver"] = cty.StringVal("kernel")
	return conformance.Case{Type: Driver{}, Open: open, Config: config, Update: update, Snapshot: world,
		Drift: map[string]func(*testing.T, providers.Host){
			"bound to the kernel's driver": func(t *testing.T, h providers.Host) {
				write(t, h, pciDir+"/0000:01:00.0/driver_override", "\n")
				if driverOf(t, h) != "" {
					write(t, h, driverDir+"/"+driverOf(t, h)+"/unbind", "0000:01:00.0")
				}
				write(t, h, probeFile, "0000:01:00.0")
			},
		}}
}

func run(t *testing.T, c providers.Conn, batch string) {
	t.Helper()
	if _, err := c.Run(t.Context(), providers.Cmd{Args: []string{"ip", "-batch", "-"}, Stdin: []byte(batch)}); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, h providers.Host, name, text string) {
	t.Helper()
	if err := h.Conn().WriteFile(t.Context(), name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func driverOf(t *testing.T, h providers.Host) string {
	t.Helper()
	name := pciDir + "/0000:01:00.0/uevent"
	files, err := h.Conn().ReadFiles(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return property(files[name], "DRIVER")
}

// world is all that a binding may touch.
func world(t *testing.T, h providers.Host) []string {
	t.Helper()
	files, err := h.Conn().ReadFiles(t.Context(), pciDir+"/*/uevent", pciDir+"/*/driver_override", "/proc/modules", unsafeFile, controlDir+"/*", ruleDir+"/*", loadedDir+"/*", "/sys/class/net/*/*")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, name+": "+string(files[name]))
	}
	n, err := readNetdev(t.Context(), h.Conn(), "ens1")
	if err == nil {
		out = append(out, strings.Join(restoreLines("ens1", n), "; "))
	}
	return out
}

func TestOnFakeHost(t *testing.T) { conformance.Run(t, fakeCase(t, 3, nil)) }

func TestOnFakeHostWithoutIOMMU(t *testing.T) {
	conformance.Run(t, fakeCase(t, -1, map[string]cty.Value{"noiommu": cty.True}))
}

func TestNotPersistentOnFakeHost(t *testing.T) {
	conformance.Run(t, fakeCase(t, 3, map[string]cty.Value{"persistent": cty.False}))
}
