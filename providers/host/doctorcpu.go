package host

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"plumb/lang/cpuset"
	"plumb/providers"
)

func examineAccess(m *patient) {
	if !m.f.Root {
		m.say(providers.Hinders, "access", "Plumb is not root there.", "Hugepages, drivers and kernel settings are root's.", "Connect as root, or as a user who may use sudo without a password.", "")
	}
	if !m.f.Systemd {
		m.say(providers.Advice, "access", "Process 1 is not systemd.", "host_service needs it, and after a reboot nothing says whether all units have started.", "Use host_command where a service has to be started.", "")
	}
}

// examineInstructions: DPDK's packages for x86 are built for SSE4.2, and the build's own start-up check ends a program without it.
func examineInstructions(m *patient) {
	name := cmp.Or(m.f.CPUModel, "A processor that does not say its name")
	switch {
	case !m.x86():
		m.ok("processor", "%s, %s.", name, plural(len(m.f.CPUs), "CPU"))
	case !m.f.CPUFlags["sse4_2"]:
		m.say(providers.Hinders, "processor", name+" has no SSE4.2.", "DPDK as distributions package it ends at once on such a processor.", "In a virtual machine, give it the host's processor (cpu host-passthrough). Else build DPDK with cpu_instruction_set=generic.", "")
	case !m.f.CPUFlags["avx2"]:
		m.say(providers.Advice, "processor", name+" has no AVX2.", "The vector paths of DPDK's drivers are then those for SSE, which take fewer frames a cycle.", "In a virtual machine, give it the host's processor (cpu host-passthrough).", "")
	default:
		wide := ""
		if m.f.CPUFlags["avx512f"] {
			wide = " and AVX-512"
		}
		m.ok("processor", "%s, %s, with AVX2%s.", name, plural(len(m.f.CPUs), "CPU"), wide)
	}
}

// housekeeping are the CPUs that a proposal leaves to the system: the first core of every node, with all of its threads.
func (m *patient) housekeeping() (keep, rest []int) {
	first := map[int]*providers.CPU{}
	for i := range m.f.CPUs {
		if c := &m.f.CPUs[i]; c.Online && first[c.Node] == nil {
			first[c.Node] = c
		}
	}
	for _, c := range m.f.CPUs {
		if f := first[c.Node]; !c.Online {
			continue
		} else if c.ID == f.ID || slices.Contains(f.Siblings, c.ID) {
			keep = append(keep, c.ID)
		} else {
			rest = append(rest, c.ID)
		}
	}
	return keep, rest
}

func examineIsolation(m *patient) {
	isolated := m.f.Isolated()
	if len(isolated) == 0 {
		why := "Where a poll mode driver shares its core with anything else, frames are lost while the other one runs, at loads far below what the switch could take."
		_, rest := m.housekeeping()
		if len(rest) == 0 {
			m.say(providers.Advice, "isolation", fmt.Sprintf("No CPU is isolated, and with %s none can be spared.", plural(len(m.f.Online()), "CPU")), why, "Measure on a machine with more cores.", "")
			return
		}
		m.say(providers.Warning, "isolation", "No CPU is isolated.", why, "Isolate the cores of the data path. It takes a reboot.", block("host_cpu_isolation", "data_path", fmt.Sprintf("cores = %q", cpus(rest))))
		return
	}
	split, ticking := []int{}, []int{}
	tickless, _ := cpuset.Parse(strings.Trim(m.files.text(cpuDir+"/nohz_full"), "()\n")) // "(null)" for none
	for _, id := range isolated {
		c := m.f.CPU(id)
		if slices.ContainsFunc(c.Siblings, func(s int) bool { return !slices.Contains(isolated, s) && m.f.CPU(s) != nil && m.f.CPU(s).Online }) {
			split = append(split, id)
		}
		if !tickless.Contains(id) {
			ticking = append(ticking, id)
		}
	}
	m.ok("isolation", "Isolated: %s.", cpus(isolated))
	if len(split) > 0 {
		m.say(providers.Warning, "isolation", fmt.Sprintf("Of isolated CPUs, %s: the other hyperthread of the core is not isolated.", cpus(split)), "What runs on the other thread takes half of the core.", "Isolate both threads of a core, or neither.", "")
	}
	if len(ticking) > 0 {
		m.say(providers.Warning, "isolation", fmt.Sprintf("Of isolated CPUs, %s: timer tick and RCU callbacks go on (no nohz_full).", cpus(ticking)), "Each tick takes some microseconds from a poll mode driver, a hundred to a thousand times a second.",
			"Isolate by host_cpu_isolation, which sets isolcpus, nohz_full, rcu_nocbs and irqaffinity together.", block("host_cpu_isolation", "data_path", fmt.Sprintf("cores = %q", cpus(isolated))))
	}
	affinity, err := cpuset.ParseMask(m.files.text("/proc/irq/default_smp_affinity"))
	if err == nil && slices.ContainsFunc(isolated, affinity.Contains) {
		var others []int
		for _, id := range m.f.Online() {
			if !slices.Contains(isolated, id) {
				others = append(others, id)
			}
		}
		m.say(providers.Warning, "interrupts", fmt.Sprintf("New interrupts may go to isolated CPUs (default mask %s).", m.files.text("/proc/irq/default_smp_affinity")), "An interrupt on the core of a poll mode driver delays its frames.", "Keep interrupts on the other CPUs.",
			block("host_irq_affinity", "others", "default = true", fmt.Sprintf("cpus = %q", cpus(others))))
	}
}

func examineThreads(m *patient) {
	var shared int
	for _, c := range m.f.CPUs {
		if c.Online && len(c.Siblings) > 0 {
			shared++
		}
	}
	if shared == 0 {
		m.ok("hyperthreads", "No core has several threads.")
		return
	}
	m.say(providers.Advice, "hyperthreads", "Cores have several threads (hyperthreading).", "Two poll mode drivers on one core get little more than half of it each, and their figures depend on each other.",
		"Use one thread of a core and leave the other idle, which plan checks; or switch hyperthreading off in the BIOS.", "")
}

// all lists the distinct values of a file of every CPU.
func (m *patient) all(name string) []string {
	values := map[string]bool{}
	for file := range m.files {
		if ok, _ := path.Match(cpuDir+"/cpu[0-9]*/"+name, file); ok {
			values[m.files.text(file)] = true
		}
	}
	return slices.Sorted(maps.Keys(values))
}

func examineFrequency(m *patient) {
	p := &m.f.Power
	others := slices.DeleteFunc(slices.Clone(p.Governors), func(g string) bool { return g == "performance" })
	why := "A core that the kernel or the processor clocks down while queues are short needs time to come back, and each run meets another frequency."
	switch {
	case len(p.Governors) == 0:
		m.ok("frequency", "The kernel does not change frequencies (EIST is off, or the machine is virtual).")
	case len(others) == 0:
		m.ok("frequency", "The governor is performance (%s).", p.Driver)
	case slices.Contains(p.Available, "performance"):
		m.say(providers.Warning, "frequency", fmt.Sprintf("The governor of CPUs is %s (%s).", strings.Join(others, ", "), p.Driver), why, "Set the governor performance, or switch EIST (P-states) off in the BIOS.", block("host_cpu_power", "governor", `governor = "performance"`))
	default:
		m.say(providers.Warning, "frequency", fmt.Sprintf("The governor of CPUs is %s (%s), and there is no performance.", strings.Join(others, ", "), p.Driver), why, "Switch EIST (P-states) off in the BIOS.", "")
	}
	preferences := slices.DeleteFunc(m.all("cpufreq/energy_performance_preference"), func(s string) bool { return s == "performance" || s == "0" })
	if len(preferences) > 0 {
		m.say(providers.Advice, "frequency", fmt.Sprintf("The processor's own control prefers %s.", strings.Join(preferences, ", ")), why, "Set the preference performance, or Energy Performance BIAS to Performance in the BIOS.",
			block("host_cpu_power", "preference", `energy_performance_preference = "performance"`))
	}
	// 0 is performance, 6 normal, 15 power saving (Documentation/admin-guide/pm/intel_epb.rst).
	if bias := slices.DeleteFunc(m.all("power/energy_perf_bias"), func(s string) bool { return s == "0" }); len(bias) > 0 {
		m.say(providers.Advice, "frequency", fmt.Sprintf("The energy performance bias is %s (0 is performance).", strings.Join(bias, ", ")), why, "Set Energy Performance BIAS to Performance in the BIOS.", "")
	}
	switch {
	case p.Turbo == nil:
	case *p.Turbo:
		m.say(providers.Advice, "turbo", "Turbo is on.", "How fast a core is then depends on temperature and on what the others do: figures of two runs differ.", "Switch it off where figures are compared; leave it on where the highest is sought.", block("host_cpu_power", "turbo", "turbo = false"))
	default:
		m.ok("turbo", "Turbo is off.")
	}
}

// deepest is the longest time that a CPU takes to wake from an idle state that it may enter, in microseconds, and that state's name.
func (m *patient) deepest() (latency int, name string) {
	for file := range m.files {
		ok, _ := path.Match(cpuDir+"/cpu[0-9]*/cpuidle/state*/latency", file)
		if !ok || m.files.text(path.Dir(file)+"/disable") != "0" {
			continue
		}
		if n, err := strconv.Atoi(m.files.text(file)); err == nil && n > latency {
			latency, name = n, m.files.text(path.Dir(file)+"/name")
		}
	}
	return latency, name
}

// wake is the time to wake from C1 on processors of Intel's, 2 µs in intel_idle: what a testbed can live with.
const wake = 2

func examineIdle(m *patient) {
	latency, name := m.deepest()
	switch {
	case len(m.all("cpuidle/state*/latency")) == 0:
		m.ok("idle states", "The kernel uses no idle states (C-states are off, or the machine is virtual).")
	case latency <= wake:
		m.ok("idle states", "No CPU sleeps deeper than %d µs.", latency)
	default:
		m.say(providers.Warning, "idle states", fmt.Sprintf("CPUs may sleep as deep as %s, which takes %d µs to wake from.", name, latency), "A guest's or the kernel's core that sleeps adds that to the latency of frames; and other cores run faster while it does.",
			"Disable the deeper states, or CPU C State in the BIOS, or boot with intel_idle.max_cstate=0 processor.max_cstate=1.", block("host_cpu_power", "idle", fmt.Sprintf("max_cstate_latency = %d", wake)))
	}
}

func examineClock(m *patient) {
	dir := "/sys/devices/system/clocksource/clocksource0/"
	switch now := m.files.text(dir + "current_clocksource"); {
	case now == "" || !m.x86():
	case now == "tsc" || m.virtual():
		m.ok("clock", "The clock is %s.", now)
	default:
		do, args := "The kernel does not trust the TSC of this machine: look into its log for the reason, and update the BIOS.", ""
		if slices.Contains(strings.Fields(m.files.text(dir+"available_clocksource")), "tsc") {
			do, args = "Boot with clocksource=tsc tsc=reliable.", kernelArgs("clock", "clocksource=tsc", "tsc=reliable")
		}
		m.say(providers.Warning, "clock", fmt.Sprintf("The clock is %s, not tsc.", now), "Reading the time takes a microsecond or more then, in every program that takes timestamps.", do, args)
	}
}

func examineNodes(m *patient) {
	if len(m.f.Nodes) < 2 {
		m.ok("NUMA", "There is one NUMA node.")
		return
	}
	for _, n := range m.f.Nodes {
		has := slices.ContainsFunc(m.f.CPUs, func(c providers.CPU) bool { return c.Node == n.ID && c.Online })
		if has && n.MemoryBytes == 0 {
			m.say(providers.Warning, "NUMA", fmt.Sprintf("Node %d has CPUs and no memory.", n.ID), "All that its cores and NICs touch crosses the link to another node.", "Put memory into the slots of that processor, or use the other node alone.", "")
		}
	}
	m.ok("NUMA", "There are %d NUMA nodes.", len(m.f.Nodes))
}
