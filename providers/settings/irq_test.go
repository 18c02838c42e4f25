package settings

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/providers"
	"plumb/providers/conformance"
)

func TestInterrupts(t *testing.T) {
	got := parseInterrupts(values{
		"/proc/irq/24/smp_affinity_list": "0-3", "/proc/irq/default_smp_affinity": "ff",
		"/sys/bus/pci/devices/0000:01:00.0/msi_irqs/25": "msix", "/sys/bus/pci/devices/0000:01:00.0/msi_irqs/24": "msix", "/sys/bus/pci/devices/0000:01:00.0/irq": "11",
		"/sys/bus/pci/devices/0000:02:00.0/irq": "12", "/sys/bus/pci/devices/0000:03:00.0/irq": "0",
		"/sys/bus/pci/devices/0000:01:00.0/net/eth0/uevent": "INTERFACE=eth0", "/sys/bus/pci/devices/0000:02:00.0/virtio0/net/eth1/uevent": "INTERFACE=eth1",
	})
	want := &interrupts{lists: values{"/proc/irq/24/smp_affinity_list": "0-3", "/proc/irq/default_smp_affinity": "ff"},
		devices: map[string][]int{"0000:01:00.0": {24, 25}, "0000:02:00.0": {12}}, pci: map[string]string{"eth0": "0000:01:00.0", "eth1": "0000:02:00.0"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(interrupts{})); diff != "" {
		t.Error(diff)
	}
	for list, want := range map[string]string{"0": "00000001", "0-3,8": "0000010f", "33": "00000002,00000000"} {
		s, err := cpuset.Parse(list)
		if err != nil {
			t.Fatal(err)
		}
		if got := mask(s); got != want {
			t.Errorf("%s: %s", list, got)
		}
	}
	if !sameCPUs(irqDefault, "ff", "00000000,000000ff") || sameCPUs(irqDefault, "10", "2") || !sameCPUs("x", "0-1", "0,1") {
		t.Error("the same CPUs are not the same")
	}
	for d, ok := range map[string]bool{"0000:01:00.0": true, "eth0": true, "enp1s0f0np0": true, "eth0.5": true, "0000:01:00": false, "../x": false, "": false, "-x": false, "a/b": false, "*": false, "interface-too-long": false} {
		if err := validDevice(str(d)); (err == nil) != ok {
			t.Errorf("%q: %v", d, err)
		}
	}
}

func FuzzInterrupts(f *testing.F) {
	f.Add("/sys/bus/pci/devices/0000:01:00.0/msi_irqs/25", "msix")
	f.Fuzz(func(t *testing.T, name, text string) { parseInterrupts(values{name: text}) })
}

// irqWorld has a device with three vectors, of which one is not requested.
func irqWorld(t *testing.T) *world {
	w := newWorld(t)
	for _, n := range []int{24, 25, 26} {
		w.write(t, fmt.Sprintf("/sys/bus/pci/devices/0000:01:00.0/msi_irqs/%d", n), "msix\n")
		if n < 26 {
			w.write(t, fmt.Sprintf("/proc/irq/%d/smp_affinity_list", n), fmt.Sprintf("0-%d\n", n-20))
		}
	}
	w.write(t, "/sys/bus/pci/devices/0000:01:00.0/net/eth0/uevent", "INTERFACE=eth0\n")
	w.write(t, "/proc/irq/9/smp_affinity_list", "0-7\n")
	w.write(t, irqDefault, "ff\n")
	return w
}

func TestIRQAffinity(t *testing.T) {
	moved := func(file, to string) map[string]func(*testing.T, providers.Host) {
		return map[string]func(*testing.T, providers.Host){"moved": func(t *testing.T, h providers.Host) { put(t, h, file, to) }}
	}
	for name, c := range map[string]struct {
		given attrs
		drift map[string]func(*testing.T, providers.Host)
	}{
		"device":    {attrs{"device": str("0000:01:00.0")}, moved("/proc/irq/25/smp_affinity_list", "7")},
		"interface": {attrs{"device": str("eth0")}, moved("/proc/irq/24/smp_affinity_list", "7")},
		"list":      {attrs{"irqs": cty.ListVal([]cty.Value{num(9)})}, moved("/proc/irq/9/smp_affinity_list", "7")},
		"default":   {attrs{"default": cty.True}, moved(irqDefault, "80")},
	} {
		t.Run(name, func(t *testing.T) {
			w := irqWorld(t)
			conf := func(cpus string) attrs {
				out := attrs{"cpus": str(cpus)}
				for k, v := range c.given {
					out[k] = v
				}
				return out
			}
			conformance.Run(t, conformance.Case{Type: IRQAffinity{}, Open: w.open, Config: conf("0,1"), Update: conf("2"), Drift: c.drift, Snapshot: w.snapshot})
		})
	}
}

func TestIRQRefusals(t *testing.T) {
	w := irqWorld(t)
	w.write(t, "/proc/irq/25/managed", "")
	h := w.open(t)
	defer h.Close()
	_, err := create(t, IRQAffinity{}, h, attrs{"device": str("eth0"), "cpus": str("0")})
	wantError(t, err, "interrupt 25 is managed by the kernel", "0-5", "managed_irq")
	wantProblem(t, planOf(t, IRQAffinity{}, h, attrs{"irqs": cty.ListVal([]cty.Value{num(77)}), "cpus": str("0")}), "no interrupt 77")
	wantProblem(t, planOf(t, IRQAffinity{}, h, attrs{"default": cty.True, "cpus": str("0,99")}), "CPU 99")
	wantProblem(t, planOf(t, IRQAffinity{}, h, attrs{"device": str("eth7"), "cpus": str("0")}), "eth7", "no interrupts")
	wantProblem(t, planOf(t, IRQAffinity{}, h, attrs{"cpus": str("0")}), "Exactly one")

	balanced := w.openWith(t, &providers.Facts{Root: true, CPUs: []providers.CPU{{ID: 0, Online: true}}, Services: map[string]string{"irqbalance": "active"}})
	defer balanced.Close()
	res := planOf(t, IRQAffinity{}, balanced, attrs{"default": cty.True, "cpus": str("0")})
	wantProblem(t, res, "irqbalance", "host_service")
	if slices.ContainsFunc(res.Problems, func(p providers.Problem) bool { return !p.Warning }) {
		t.Error("it is more than a warning")
	}
}
