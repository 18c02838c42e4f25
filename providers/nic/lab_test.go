package nic

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/internal/hostkit"
	"plumb/providers/labhost"
)

// Real NICs on the virtual host (PLUMB_LAB): the suite takes each from its driver and gives it back a dozen times, with addresses and routes on its interface.

func TestLabE1000E(t *testing.T) { labSuite(t, 2) }

func TestLabIGB(t *testing.T) { labSuite(t, 0) }

func labSuite(t *testing.T, nic int) {
	pci := labhost.Find(t).NICs[nic].PCI
	conn := labhost.Shared(t)
	name := interfaceName(t, pci, conn(t))
	run(t, conn(t), "link set dev "+name+" mtu 2000\nlink set dev "+name+" up\naddress replace 198.51.100.1/24 dev "+name+"\nroute replace 203.0.113.0/24 via 198.51.100.9 dev "+name+"\n")
	defer func() {
		run(t, conn(t), "address del 198.51.100.1/24 dev "+name+"\nlink set dev "+name+" down\nlink set dev "+name+" mtu 1500\n")
	}()
	config := func(driver string) map[string]cty.Value {
		return map[string]cty.Value{"pci": cty.StringVal(pci), "driver": cty.StringVal(driver)}
	}
	conformance.Run(t, conformance.Case{
		Type: Driver{}, Config: config("vfio-pci"), Update: config("kernel"),
		Open: func(t *testing.T) providers.Host { return hostkit.New("dut", conn(t), facts) },
		Snapshot: func(t *testing.T, h providers.Host) []string {
			n, err := readNetdev(t.Context(), h.Conn(), name)
			if err != nil {
				t.Fatal(err)
			}
			b := &bus{host: h}
			devices, err := b.look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			d := devices[pci]
			return append(restoreLines(name, n), d.driver, d.override, d.driverctl, d.rule)
		},
		Drift: map[string]func(*testing.T, providers.Host){
			"bound to the kernel's driver": func(t *testing.T, h providers.Host) {
				write(t, h, pciDir+"/"+pci+"/driver_override", "\n")
				b := &bus{host: h}
				if d, err := b.device(t.Context(), pci); err != nil {
					t.Fatal(err)
				} else if d.driver == vfioDriver {
					write(t, h, driverDir+"/vfio-pci/unbind", pci)
				}
				write(t, h, probeFile, pci)
				if err := b.wait(t.Context(), pci, func(d *device) bool { return d.driver != "" && d.driver != vfioDriver && d.first() == name }, "its own driver"); err != nil {
					t.Fatal(err)
				}
			},
		},
	})
}

func interfaceName(t *testing.T, pci string, conn providers.Conn) string {
	t.Helper()
	b := &bus{host: hostkit.New("dut", conn, facts)}
	d, err := b.device(t.Context(), pci)
	if err != nil || d.first() == "" {
		t.Fatalf("%s: %+v, %v", pci, d, err)
	}
	return d.first()
}

// Virtual functions of a real physical one, which igb's driver sets up.
func TestLabSRIOV(t *testing.T) {
	pci := labhost.Find(t).NICs[1].PCI
	conn := labhost.Shared(t)
	name := interfaceName(t, pci, conn(t))
	conformance.Run(t, conformance.Case{
		Type: SRIOV{}, Config: sriovConfig(pci), Update: sriovUpdate(pci), Snapshot: functionsOf(pci), Drift: sriovDrift(pci, name, 0),
		Open: func(t *testing.T) providers.Host { return hostkit.New("dut", conn(t), facts) },
	})
	want := conformance.Desired(&SRIOV{}.Schema().Block, attrs{"pci": cty.StringVal(pci), "num_vfs": cty.NumberIntVal(1), "vf": cty.MapVal(attrs{"0": vf(attrs{"min_tx_rate": cty.NumberIntVal(10)})})})
	h := hostkit.New("dut", conn(t), facts)
	req := providers.ApplyRequest{Host: h, Prior: cty.NullVal(want.Type()), Planned: want, Log: func(s string) { t.Log(s) }}
	var err error
	if req.Undo, err = (SRIOV{}).Prepare(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if _, err = (SRIOV{}).Apply(t.Context(), req); err == nil || !strings.Contains(err.Error(), "min_tx_rate: the driver igb does not take") {
		t.Errorf("what igb does not support: %v", err)
	}
	req.Prior, req.Planned = want, cty.NullVal(want.Type())
	if _, err = (SRIOV{}).Apply(t.Context(), req); err != nil {
		t.Error(err)
	}
}
