package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"plumb/lang/cpuset"
	"plumb/providers"
	"plumb/providers/internal/pcidriver"
)

// Examine holds a host against what a DPDK testbed needs. It reads what facts leave out beside them, in the time of one round trip, and changes nothing. Findings come in the order of
// the machine: processors, kernel, memory, NICs, software, and last what only its firmware knows.
func Examine(ctx context.Context, h providers.Host) ([]providers.Finding, error) {
	if h == nil {
		return nil, errors.New("an examination is a host's, and none is given")
	}
	m := &patient{}
	var told providers.Result
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		m.f, err = h.Facts(ctx)
		return err
	})
	g.Go(func() (err error) {
		if m.files, err = h.Conn().ReadFiles(ctx, doctorFiles()...); errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return err
	})
	g.Go(func() (err error) {
		told, err = h.Conn().Run(ctx, providers.Cmd{Args: []string{"sh", "-c", doctorScript, "plumb-doctor"}})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("examine %s: %w", h.Name(), err)
	}
	if err := m.tell(string(told.Stdout)); err != nil {
		return nil, fmt.Errorf("examine %s: %w", h.Name(), err)
	}
	return m.examine(), nil
}

// doctorScript prints what no file tells, in sections that begin with "=== NAME": where modules are, which tables for an IOMMU the firmware has (names alone: root alone may read them),
// and what it says of memory.
const doctorScript = `export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
echo "=== modules"
for m in vfio-pci igb_uio openvswitch; do echo "$m $(modinfo -F filename "$m" 2>/dev/null)"; done
echo "=== tables"
for t in DMAR IVRS; do [ ! -e "/sys/firmware/acpi/tables/$t" ] || echo "$t"; done
echo "=== memory"; dmidecode -t 17 2>/dev/null
echo "=== end"
`

// doctorFiles are read beside those of the facts.
func doctorFiles() []string {
	return []string{
		"/proc/mounts", "/proc/swaps", "/proc/irq/default_smp_affinity", "/proc/sys/kernel/numa_balancing", "/proc/sys/kernel/nmi_watchdog", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		"/sys/devices/system/clocksource/clocksource0/available_clocksource", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/ksm/run", "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
		cpuDir + "/nohz_full", cpuDir + "/cpu[0-9]*/power/energy_perf_bias", cpuDir + "/cpu[0-9]*/cpufreq/energy_performance_preference", cpuDir + "/cpu[0-9]*/cpuidle/state*/name",
		cpuDir + "/cpu[0-9]*/cpuidle/state*/latency", cpuDir + "/cpu[0-9]*/cpuidle/state*/disable", pciDir + "/*/current_link_speed", pciDir + "/*/max_link_speed", pciDir + "/*/current_link_width",
		pciDir + "/*/max_link_width", groupDir + "/*/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name", "/sys/class/dmi/id/bios_version",
	}
}

// patient is all that is known of a host, and what was found so far.
type patient struct {
	f       *providers.Facts
	files   fileset
	modules map[string]string // where modules are, for those that there are
	tables  []string          // "DMAR": VT-d, "IVRS": AMD-Vi
	memory  string            // what dmidecode says; "" where it is not there, or may not
	found   []providers.Finding
}

// tell takes in what the script told.
func (m *patient) tell(told string) error {
	if !strings.Contains(told, "=== end\n") {
		return errors.New("the answer of the host is cut off")
	}
	parts := sections(told)
	m.modules = map[string]string{}
	for line := range strings.Lines(parts["modules"]) {
		if w := strings.Fields(line); len(w) == 2 {
			m.modules[w[0]] = w[1]
		}
	}
	m.tables, m.memory = strings.Fields(parts["tables"]), parts["memory"]
	return nil
}

func (m *patient) examine() []providers.Finding {
	for _, part := range []func(*patient){
		examineAccess, examineInstructions, examineIsolation, examineThreads, examineFrequency, examineIdle, examineClock, examineNodes,
		examineKernel, examineIOMMU, examineModules, examineQuiet, examineServices,
		examineHugepages, examineMemory, examineNICs, examineSoftware, examineFirmware,
	} {
		part(m)
	}
	return m.found
}

func (m *patient) ok(subject, format string, args ...any) {
	m.found = append(m.found, providers.Finding{Subject: subject, Found: fmt.Sprintf(format, args...)})
}

// say notes what is not as it should be.
func (m *patient) say(level providers.Level, subject, found, why, do, block string) {
	m.found = append(m.found, providers.Finding{Level: level, Subject: subject, Found: found, Why: why, Do: do, Block: block})
}

// block is a resource in HCL; attributes are lines.
func block(kind, name string, attributes ...string) string {
	width := 0
	for _, a := range attributes {
		before, _, _ := strings.Cut(a, " = ")
		width = max(width, len(before))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "resource %q %q {\n", kind, name)
	for _, a := range attributes {
		before, after, _ := strings.Cut(a, " = ")
		fmt.Fprintf(&b, "  %-*s = %s\n", width, before, after)
	}
	return b.String() + "}\n"
}

func kernelArgs(name string, args ...string) string {
	return block("host_kernel_args", name, `args = ["`+strings.Join(args, `", "`)+`"]`)
}

func sysctlBlock(name, key, value string) string {
	return block("host_sysctl", name, fmt.Sprintf("key = %q", key), fmt.Sprintf("value = %q", value))
}

func stopped(unit string) string {
	return block("host_service", strings.NewReplacer("-", "_", ".", "_").Replace(unit), fmt.Sprintf("name = %q", unit), `state = "stopped"`, "enabled = false")
}

// virtual says that the machine is one of a hypervisor, which hides its firmware and mostly its power management.
func (m *patient) virtual() bool { return m.f.CPUFlags["hypervisor"] }

func (m *patient) x86() bool { return m.f.CPUFlags["fpu"] }

// argument is the value of an argument of the running kernel.
func (m *patient) argument(name string) (value string, ok bool) {
	for _, w := range strings.Fields(m.f.Cmdline) {
		if key, v, _ := strings.Cut(w, "="); key == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// candidates are the NICs that a testbed may have: physical ones that neither carry our connection nor the default route.
func (m *patient) candidates() []*providers.NIC {
	var out []*providers.NIC
	for i := range m.f.NICs {
		if n := &m.f.NICs[i]; n.PF == "" && busy(n) == "" {
			out = append(out, n)
		}
	}
	return out
}

// busy says what a NIC is needed for beside the testbed; "" for nothing.
func busy(n *providers.NIC) string {
	for _, i := range n.Interfaces {
		switch {
		case i.Management:
			return "carries Plumb's own connection"
		case i.DefaultRoute:
			return "carries the default route"
		}
	}
	return ""
}

// forVFIO are the candidates that DPDK needs vfio-pci for.
func (m *patient) forVFIO() []*providers.NIC {
	return slices.DeleteFunc(m.candidates(), pcidriver.Bifurcated)
}

// cpus prints CPU numbers as a list: 1-13,15.
func cpus(ids []int) string {
	s, err := cpuset.Of(ids...)
	if err != nil { // more than Linux is built for
		return fmt.Sprint(ids)
	}
	return s.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
