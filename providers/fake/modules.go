package fake

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const kernelModules = "/lib/modules/6.1.0-13-amd64/"

// ko is a module of the fake kernel.
type ko struct {
	file   string            // below kernelModules
	needs  []string          // direct dependencies
	params map[string]string // defaults; those that begin with "=" can only be given when it is loaded
	signer string
}

// modules are those that the fake kernel can load.
func modules() map[string]ko {
	const debian = "Debian Secure Boot CA"
	return map[string]ko{
		"irqbypass":         {file: "kernel/virt/lib/irqbypass.ko", signer: debian},
		"vfio":              {file: "kernel/drivers/vfio/vfio.ko", params: map[string]string{"enable_unsafe_noiommu_mode": "N"}, signer: debian},
		"vfio_iommu_type1":  {file: "kernel/drivers/vfio/vfio_iommu_type1.ko", needs: []string{"vfio"}, params: map[string]string{"dma_entry_limit": "65535"}, signer: debian},
		"vfio_pci_core":     {file: "kernel/drivers/vfio/pci/vfio-pci-core.ko", needs: []string{"vfio", "irqbypass"}, params: map[string]string{"disable_idle_d3": "N", "nointxmask": "N"}, signer: debian},
		"vfio_pci":          {file: "kernel/drivers/vfio/pci/vfio-pci.ko", needs: []string{"vfio_pci_core"}, params: map[string]string{"ids": "="}, signer: debian},
		"uio":               {file: "kernel/drivers/uio/uio.ko", signer: debian},
		"uio_pci_generic":   {file: "kernel/drivers/uio/uio_pci_generic.ko", needs: []string{"uio"}, signer: debian},
		"igb_uio":           {file: "updates/dkms/igb_uio.ko", needs: []string{"uio"}},
		"openvswitch":       {file: "kernel/net/openvswitch/openvswitch.ko", signer: debian},
		"vhost_net":         {file: "kernel/drivers/vhost/vhost_net.ko", params: map[string]string{"experimental_zcopytx": "=0"}, signer: debian},
		"igbvf":             {file: "kernel/drivers/net/ethernet/intel/igbvf/igbvf.ko", signer: debian},
		"bonding":           {file: "kernel/drivers/net/bonding/bonding.ko", params: map[string]string{"max_bonds": "=1", "debug": "0"}, signer: debian},
		"8021q":             {file: "kernel/net/8021q/8021q.ko", signer: debian},
		"uncommon_unsigned": {file: "updates/dkms/uncommon-unsigned.ko"},
	}
}

func seedModules() map[string]string {
	return map[string]string{
		kernelModules[1:] + "modules.builtin":         "kernel/net/ipv4/tcp_cubic.ko\nkernel/drivers/char/tpm/tpm.ko\n",
		"sys/module/tcp_cubic/parameters/hystart":     "1\n",
		"etc/modprobe.d/blacklist.conf":               "blacklist floppy\n",
		"proc/sys/kernel/modules_disabled":            "0\n",
		kernelModules[1:] + "modules.dep":             "",
		"sys/module/tcp_cubic/parameters/fast_beta":   "717\n",
		"sys/module/tcp_cubic/parameters/only_at_one": "0\n",
	}
}

func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// loadedModule is a line of /proc/modules.
type loadedModule struct {
	name  string
	refs  int
	users []string
}

func (h *host) loadedModules() []loadedModule {
	var out []loadedModule
	for line := range strings.Lines(h.get("/proc/modules")) {
		f := strings.Fields(line)
		m := loadedModule{name: f[0]}
		m.refs, _ = strconv.Atoi(f[2])
		for _, u := range strings.Split(f[3], ",") {
			if u != "" && u != "-" {
				m.users = append(m.users, u)
			}
		}
		out = append(out, m)
	}
	return out
}

func (h *host) putModules(list []loadedModule) error {
	var b strings.Builder
	for _, m := range list {
		users := "-"
		if len(m.users) > 0 {
			users = strings.Join(m.users, ",") + ","
		}
		fmt.Fprintf(&b, "%s 16384 %d %s Live 0x0000000000000000\n", m.name, m.refs, users)
	}
	return h.put("/proc/modules", b.String())
}

func (h *host) moduleLoaded(name string) bool {
	return slices.ContainsFunc(h.loadedModules(), func(m loadedModule) bool { return m.name == name })
}

func (h *host) moduleBuiltin(name string) bool {
	for line := range strings.Lines(h.get(kernelModules + "modules.builtin")) {
		if underscored(strings.TrimSuffix(path.Base(strings.TrimSpace(line)), ".ko")) == name {
			return true
		}
	}
	return false
}

// configured are the options of modprobe.d for a module.
func (h *host) configured(name string) []string {
	var out []string
	entries, _ := os.ReadDir(h.real("/etc/modprobe.d", true))
	for _, e := range entries {
		for line := range strings.Lines(h.get("/etc/modprobe.d/" + e.Name())) {
			if f := strings.Fields(line); len(f) > 2 && f[0] == "options" && underscored(f[1]) == name {
				out = append(out, f[2:]...)
			}
		}
	}
	return out
}

// order lists what loading a module needs, dependencies first.
func order(name string) []string {
	var out []string
	for _, n := range modules()[name].needs {
		out = append(out, order(n)...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(append(out, name), func(n string) bool {
		was := seen[n]
		seen[n] = true
		return was
	})
}

// insert loads one module whose dependencies are loaded.
func (h *host) insert(name string, options []string) error {
	m := modules()[name]
	params := maps.Clone(m.params)
	for _, o := range options {
		k, v, _ := strings.Cut(o, "=")
		def, known := params[k]
		if !known {
			continue // the kernel says so in its log and goes on
		}
		v, ok := parameter(def, v)
		if !ok {
			return syscall.EINVAL
		}
		if strings.HasPrefix(def, "=") {
			v = "=" + v
		}
		params[k] = v
	}
	list := h.loadedModules()
	for i := range list {
		if slices.Contains(m.needs, list[i].name) {
			list[i].refs++
			list[i].users = append(list[i].users, name)
		}
	}
	for k, v := range params {
		file := "/sys/module/" + name + "/parameters/" + k
		if err := h.put(file, strings.TrimPrefix(v, "=")+"\n"); err != nil {
			return err
		}
		if strings.HasPrefix(v, "=") {
			if err := os.Chmod(h.real(file, true), 0o444); err != nil {
				return err
			}
		}
	}
	if err := h.put("/sys/module/"+name+"/refcnt", "0\n"); err != nil {
		return err
	}
	return h.putModules(append([]loadedModule{{name: name}}, list...))
}

// parameter is how the kernel prints a value for a parameter that is now so.
func parameter(now, v string) (string, bool) {
	now = strings.TrimPrefix(strings.TrimSpace(now), "=")
	switch {
	case now == "Y" || now == "N":
		switch v {
		case "1", "y", "Y", "on":
			return "Y", true
		case "0", "n", "N", "off":
			return "N", true
		}
		return "", false
	case regexp.MustCompile(`^\d+$`).MatchString(now):
		n, err := strconv.ParseInt(v, 0, 64)
		return strconv.FormatInt(n, 10), err == nil
	}
	return v, true
}

func (h *host) writeModuleParameter(name, file, data string) error {
	fi, err := os.Stat(file)
	if err != nil {
		return err
	}
	if fi.Mode().Perm()&0o200 == 0 {
		return syscall.EACCES
	}
	v, ok := parameter(h.get(name), strings.TrimSpace(data))
	if !ok {
		return syscall.EINVAL
	}
	return replace(file, []byte(v+"\n"), 0o644)
}

func modprobe(h *host, r *run) int {
	flags, args := words(r.args[1:])
	if len(args) == 0 {
		return r.fail(1, "modprobe: ERROR: missing parameters. See -h.")
	}
	name := underscored(args[0])
	m, known := modules()[name]
	switch {
	case h.moduleBuiltin(name):
		if has(flags, 0, "--show-depends") {
			r.printf("builtin %s\n", name)
		}
		return 0
	case !known:
		return r.fail(1, "modprobe: FATAL: Module %s not found in directory %s", args[0], strings.TrimSuffix(kernelModules, "/"))
	case has(flags, 0, "--show-depends"):
		for _, n := range order(name) {
			r.printf("insmod %s%s %s\n", kernelModules, modules()[n].file, strings.Join(h.configured(n), " "))
		}
		return 0
	case has(flags, 'r', "--remove"):
		return h.remove(r, "modprobe", name)
	case h.settings.Unprivileged:
		return r.fail(1, "modprobe: ERROR: could not insert '%s': Operation not permitted", name)
	case m.signer == "" && h.lockedDown():
		return r.fail(1, "modprobe: ERROR: could not insert '%s': Key was rejected by service", name)
	}
	for _, n := range order(name) {
		if h.moduleLoaded(n) {
			continue
		}
		options := h.configured(n)
		if n == name {
			options = append(options, args[1:]...)
		}
		if err := h.insert(n, options); err != nil {
			return r.fail(1, "modprobe: ERROR: could not insert '%s': %s", n, reason(err))
		}
	}
	return 0
}

func (h *host) lockedDown() bool {
	l := h.get("/sys/kernel/security/lockdown")
	return strings.Contains(l, "[integrity]") || strings.Contains(l, "[confidentiality]")
}

func rmmod(h *host, r *run) int {
	_, args := words(r.args[1:])
	for _, a := range args {
		if status := h.remove(r, "rmmod", underscored(a)); status != 0 {
			return status
		}
	}
	return 0
}

func (h *host) remove(r *run, program, name string) int {
	list := h.loadedModules()
	i := slices.IndexFunc(list, func(m loadedModule) bool { return m.name == name })
	switch {
	case h.settings.Unprivileged:
		return r.fail(1, "%s: ERROR: could not remove '%s': Operation not permitted", program, name)
	case i < 0:
		return r.fail(1, "%s: ERROR: Module %s is not currently loaded", program, name)
	case len(list[i].users) > 0:
		return r.fail(1, "%s: ERROR: Module %s is in use by: %s", program, name, strings.Join(list[i].users, " "))
	case list[i].refs > 0:
		return r.fail(1, "%s: ERROR: Module %s is in use", program, name)
	}
	list = slices.Delete(list, i, i+1)
	for j := range list {
		if k := slices.Index(list[j].users, name); k >= 0 {
			list[j].users = slices.Delete(list[j].users, k, k+1)
			list[j].refs--
		}
	}
	if err := os.RemoveAll(h.real("/sys/module/"+name, false)); err != nil {
		return r.fail(1, "%s: %v", program, err)
	}
	if err := h.putModules(list); err != nil {
		return r.fail(1, "%s: %v", program, err)
	}
	return 0
}

// modinfo is modinfo -F FIELD -- NAME.
func modinfo(h *host, r *run) int {
	field := option(r.args, "-F")
	args := slices.DeleteFunc(slices.Clone(r.args[1:]), func(a string) bool { return a == "-F" || a == field || a == "--" })
	if len(args) != 1 {
		return r.fail(1, "modinfo: ERROR: missing module or filename.")
	}
	name := underscored(args[0])
	m, known := modules()[name]
	switch {
	case h.moduleBuiltin(name):
		if field == "filename" {
			r.printf("(builtin)\n")
		}
	case !known:
		return r.fail(1, "modinfo: ERROR: Module %s not found.", args[0])
	case field == "filename":
		r.printf("%s%s\n", kernelModules, m.file)
	case field == "signer":
		if m.signer != "" {
			r.printf("%s\n", m.signer)
		}
	}
	return 0
}
