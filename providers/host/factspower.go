package host

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plumb/lang/cpuset"
	"plumb/providers"
)

// Files about power, caches and what the kernel allows: Documentation/admin-guide/pm, ABI/stable/sysfs-devices-system-cpu and sysfs-kernel-security-lockdown of Linux.
func powerFiles() []string {
	return []string{
		cpuDir + "/cpu[0-9]*/cpufreq/scaling_driver", cpuDir + "/cpu[0-9]*/cpufreq/scaling_governor", cpuDir + "/cpu[0-9]*/cpufreq/scaling_available_governors",
		cpuDir + "/intel_pstate/no_turbo", cpuDir + "/cpufreq/boost", cpuDir + "/smt/control", cpuDir + "/cpu[0-9]*/cpuidle/state*/name", cpuDir + "/cpu[0-9]*/cpuidle/state*/disable",
		cpuDir + "/cpu[0-9]*/cache/index*/level", cpuDir + "/cpu[0-9]*/cache/index*/type", cpuDir + "/cpu[0-9]*/cache/index*/size", cpuDir + "/cpu[0-9]*/cache/index*/shared_cpu_list",
		"/proc/cpuinfo", "/proc/modules", "/lib/modules/*/modules.builtin", "/sys/kernel/security/lockdown", secureBoot, "/etc/tuned/active_profile",
	}
}

// secureBoot is the variable of the firmware (UEFI specification 2.10, section 3.3): four bytes of attributes, then 1 or 0.
const secureBoot = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

func parsePower(files fileset, f *providers.Facts) error {
	if m := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindSubmatch(files["/proc/cpuinfo"]); m != nil {
		f.CPUModel = string(m[1])
	}
	f.CPUFlags = map[string]bool{}
	if m := regexp.MustCompile(`(?m)^(?:flags|Features)\s*:\s*(.+)$`).FindSubmatch(files["/proc/cpuinfo"]); m != nil { // of x86, of ARM
		for _, flag := range strings.Fields(string(m[1])) {
			f.CPUFlags[flag] = true
		}
	}
	p := &f.Power
	add := func(list *[]string, words ...string) {
		for _, w := range words {
			if w != "" && !slices.Contains(*list, w) {
				*list = append(*list, w)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch path.Base(name) {
		case "scaling_driver":
			p.Driver = files.text(name)
		case "scaling_governor":
			add(&p.Governors, files.text(name))
		case "scaling_available_governors":
			add(&p.Available, strings.Fields(files.text(name))...)
		case "name":
			if files.text(path.Dir(name)+"/disable") == "0" {
				add(&p.CStates, files.text(name))
			}
		}
	}
	slices.Sort(p.Governors)
	switch no, boost := files.text(cpuDir+"/intel_pstate/no_turbo"), files.text(cpuDir+"/cpufreq/boost"); {
	case no != "":
		on := no == "0"
		p.Turbo = &on
	case boost != "":
		on := boost == "1"
		p.Turbo = &on
	}
	p.SMT = files.text(cpuDir + "/smt/control")
	if m := regexp.MustCompile(`\[(\w+)\]`).FindStringSubmatch(files.text("/sys/kernel/security/lockdown")); m != nil {
		f.Lockdown = m[1]
	}
	if b := files[secureBoot]; len(b) >= 5 {
		on := b[4] == 1
		f.SecureBoot = &on
	}
	f.Tuned = files.text("/etc/tuned/active_profile")
	f.Modules = map[string]bool{}
	for line := range strings.Lines(string(files["/proc/modules"])) {
		name, _, _ := strings.Cut(line, " ")
		f.Modules[name] = true
	}
	for line := range strings.Lines(string(files["/lib/modules/"+f.Kernel+"/modules.builtin"])) {
		name, _, _ := strings.Cut(path.Base(strings.TrimSpace(line)), ".ko")
		f.Modules[strings.ReplaceAll(name, "-", "_")] = true
	}
	return parseCaches(files, f)
}

// parseCaches lists each cache once, though each of its CPUs has a folder for it.
func parseCaches(files fileset, f *providers.Facts) error {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) != "level" || !strings.Contains(name, "/cache/index") {
			continue
		}
		dir := path.Dir(name)
		key := fmt.Sprint(files.text(name), files.text(dir+"/type"), files.text(dir+"/shared_cpu_list"))
		if seen[key] {
			continue
		}
		seen[key] = true
		level, err := files.number(name, 0)
		if err != nil {
			return err
		}
		c := providers.Cache{Level: level, Kind: files.text(dir + "/type")}
		if kb, err := strconv.ParseUint(strings.TrimSuffix(files.text(dir+"/size"), "K"), 10, 53); err == nil {
			c.Bytes = kb << 10
		}
		cpus, err := cpuset.Parse(files.text(dir + "/shared_cpu_list"))
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		c.CPUs = slices.Collect(cpus.All())
		f.Caches = append(f.Caches, c)
	}
	slices.SortStableFunc(f.Caches, func(a, b providers.Cache) int {
		if a.Level != b.Level {
			return a.Level - b.Level
		}
		if a.Kind != b.Kind {
			return strings.Compare(a.Kind, b.Kind)
		}
		return slices.Compare(a.CPUs, b.CPUs)
	})
	return nil
}
