package fake

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// writePower is a write to what governs the power of CPUs, where the host has it: a virtual machine such as this one has none until a test puts the files there.
func (h *host) writePower(name, file, data string) error {
	dir, base := path.Split(name)
	v := strings.TrimSpace(data)
	number, err := strconv.Atoi(v)
	of := func(file string) int {
		n, _ := strconv.Atoi(strings.TrimSpace(h.get(dir + file)))
		return n
	}
	switch base {
	case "scaling_governor":
		if !slices.Contains(strings.Fields(h.get(dir+"scaling_available_governors")), v) {
			return syscall.EINVAL
		}
		if h.exists(dir + "energy_performance_preference") {
			preference := "balance_performance"
			if v == "performance" {
				preference = "performance"
			}
			if err := h.put(dir+"energy_performance_preference", preference+"\n"); err != nil {
				return err
			}
		}
	case "energy_performance_preference":
		if strings.TrimSpace(h.get(dir+"scaling_governor")) == "performance" && v != "performance" {
			return syscall.EBUSY
		}
		if !slices.Contains(strings.Fields(h.get(dir+"energy_performance_available_preferences")), v) {
			return syscall.EINVAL
		}
	case "scaling_min_freq":
		if err != nil || number > of("scaling_max_freq") || number < of("cpuinfo_min_freq") {
			return syscall.EINVAL
		}
	case "scaling_max_freq":
		if err != nil || number < of("scaling_min_freq") || number > of("cpuinfo_max_freq") {
			return syscall.EINVAL
		}
	case "no_turbo", "boost", "disable":
		if v != "0" && v != "1" {
			return syscall.EINVAL
		}
	}
	return replace(file, []byte(v+"\n"), 0o644)
}

// writeIRQ is a write below /proc/irq: the kernel takes online CPUs only, and moves no interrupt that it manages itself (a file "managed" beside it, which the
// real one shows only in debugfs).
func (h *host) writeIRQ(name, file, data string) error {
	v := strings.TrimSpace(data)
	if h.exists(path.Dir(name) + "/managed") {
		return syscall.EIO
	}
	if path.Base(name) == "default_smp_affinity" {
		n, err := strconv.ParseUint(strings.ReplaceAll(v, ",", ""), 16, 64)
		if err != nil || n == 0 {
			return syscall.EINVAL
		}
		return replace(file, []byte(strconv.FormatUint(n, 16)+"\n"), 0o644)
	}
	for part := range strings.SplitSeq(v, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || a > b || b >= nodes*cpusPerNode {
			return syscall.EINVAL
		}
	}
	return replace(file, []byte(v+"\n"), 0o644)
}
