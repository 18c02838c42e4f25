package fake

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
)

// settingsState is what package settings changes of a host apart from files.
type settingsState struct {
	Owners      map[string]string `json:"owners"` // "USER:GROUP" by path; others are root's
	Units       map[string]*unit  `json:"units"`
	Invocations map[string]string `json:"invocations"` // of units that were started, by name
	Starts      int               `json:"starts"`
	Packages    map[string]*pkg   `json:"packages"`
	Indexed     bool              `json:"indexed"` // apt-get update was run
}

func newSettings() settingsState {
	return settingsState{Owners: map[string]string{}, Units: seedUnits(), Invocations: map[string]string{}, Packages: seedPackages()}
}

func settingsPrograms() map[string]program {
	return map[string]program{"chmod": chmod, "chown": chown, "restorecon": func(*host, *run) int { return 0 }, "stat": stat, "modprobe": modprobe, "rmmod": rmmod, "modinfo": modinfo, "systemctl": systemctl, "journalctl": journalctl,
		"dpkg-query": dpkgQuery, "dpkg": dpkg, "apt-get": aptGet, "apt-mark": aptMark, "rpm": rpm, "dnf": dnf, "find": findFresh}
}

func settingsScripts() map[string]program {
	return map[string]program{"plumb-apt": aptScript}
}

// settingsSeed are the files that package settings looks at.
func settingsSeed() map[string]string {
	f := map[string]string{
		"proc/sys/net/core/rmem_max":               "212992\n",
		"proc/sys/net/core/wmem_max":               "212992\n",
		"proc/sys/net/ipv4/ip_forward":             "0\n",
		"proc/sys/net/ipv4/tcp_rmem":               "4096\t131072\t6291456\n",
		"proc/sys/net/ipv4/conf/all/rp_filter":     "0\n",
		"proc/sys/net/ipv4/conf/eth0/rp_filter":    "0\n",
		"proc/sys/net/ipv4/conf/eth0.1/forwarding": "0\n",
		"proc/sys/vm/swappiness":                   "60\n",
		"proc/sys/kernel/core_pattern":             "core\n",
		"proc/sys/kernel/numa_balancing":           "1\n",
		"etc/fstab":                                "/dev/vda1 / ext4 errors=remount-ro 0 1\n",
		"etc/modprobe.d/README":                    "",
		"etc/modules-load.d/README":                "",
		"etc/sysctl.d/README":                      "",
	}
	maps.Copy(f, seedModules())
	return f
}

// writeSetting is what the kernel does with what package settings writes; known is false for files that are none of its business.
func (h *host) writeSetting(name, file, data string) (known bool, err error) {
	switch {
	case strings.HasPrefix(name, "/proc/sys/kernel/os") || strings.HasPrefix(name, "/proc/sys/kernel/random/"):
		return true, syscall.EACCES
	case strings.HasPrefix(name, "/proc/sys/"):
		return true, h.writeParameter(file, data)
	case strings.HasPrefix(name, "/sys/module/") && path.Base(path.Dir(name)) == "parameters":
		return true, h.writeModuleParameter(name, file, data)
	case strings.HasPrefix(name, "/proc/irq/"):
		return true, h.writeIRQ(name, file, data)
	case strings.HasPrefix(name, "/sys/devices/system/cpu/"):
		return true, h.writePower(name, file, data)
	}
	return false, nil
}

// writeParameter is a write below /proc/sys: where there are numbers there have to be numbers, at most as many as there were.
func (h *host) writeParameter(file, data string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	was, now := strings.Fields(string(old)), strings.Fields(data)
	numbers := regexp.MustCompile(`^-?\d+$`)
	if len(was) > 0 && numbers.MatchString(was[0]) {
		if len(now) == 0 || len(now) > len(was) {
			return syscall.EINVAL
		}
		for i, n := range now {
			if !numbers.MatchString(n) {
				return syscall.EINVAL
			}
			was[i] = n
		}
		return replace(file, []byte(strings.Join(was, "\t")+"\n"), 0o644)
	}
	return replace(file, []byte(strings.TrimSuffix(data, "\n")+"\n"), 0o644)
}

// SettingsState is what the host keeps of services, packages and owners, apart from files, as lines: for tests that compare.
func (c *Conn) SettingsState() ([]string, error) {
	var lines []string
	err := c.locked(func(h *host) error {
		s := h.state.Settings
		maps.DeleteFunc(s.Owners, func(name, _ string) bool { return !h.exists(name) })
		s.Invocations, s.Starts, s.Indexed = nil, 0, false // how often something was started is no state that a destroy brings back
		b, err := json.MarshalIndent(s, "", " ")
		lines = strings.Split(string(b), "\n")
		return err
	})
	return lines, err
}
