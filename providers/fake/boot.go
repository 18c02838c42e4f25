package fake

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The host boots through GRUB as Debian's does: update-grub makes grub.cfg of /etc/default/grub and the files in grub.d, and a reboot takes the command line from there. What a kernel
// and its processes keep in memory is gone after it.

const (
	kernelImage = "/boot/vmlinuz-6.1.0-13-amd64"
	grubConfig  = "/boot/grub/grub.cfg"
)

func bootSeed() map[string]string {
	f := map[string]string{
		"etc/default/grub":         "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n",
		"usr/sbin/update-grub":     "",
		"usr/sbin/reboot":          "",
		grubConfig[1:]:             grubText("quiet"),
		"etc/default/grub.d/x.txt": "not a .cfg\n",
	}
	return f
}

func grubText(args string) string {
	line := fmt.Sprintf("\tlinux\t%s root=/dev/vda1 ro %s\n", kernelImage, args)
	return "menuentry 'Debian' {\n" + line + "\tinitrd\t/boot/initrd.img\n}\nmenuentry 'Debian (recovery mode)' {\n" + fmt.Sprintf("\tlinux\t%s root=/dev/vda1 ro single\n", kernelImage) + "}\n"
}

func bootPrograms() map[string]program {
	return map[string]program{"update-grub": updateGrub, "reboot": reboot}
}

var grubSetting = regexp.MustCompile(`(?m)^(GRUB_CMDLINE_LINUX|GRUB_CMDLINE_LINUX_DEFAULT)="(.*)"$`)

// updateGrub is grub-mkconfig, as Debian calls it.
func updateGrub(h *host, r *run) int {
	if !h.exists("/usr/sbin/update-grub") {
		return r.fail(127, "update-grub: not found")
	}
	return h.mkconfig(r, grubConfig)
}

// mkconfig is grub-mkconfig: the files are read by a shell, one after another. grub.d is Debian's and Ubuntu's addition.
func (h *host) mkconfig(r *run, config string) int {
	values := map[string]string{}
	files := []string{"/etc/default/grub"}
	found, _ := filepath.Glob(h.real("/etc/default/grub.d", true) + "/*.cfg")
	for _, f := range found {
		if config != grubConfig {
			break
		}
		files = append(files, "/etc/default/grub.d/"+filepath.Base(f))
	}
	for _, f := range files {
		for _, m := range grubSetting.FindAllStringSubmatch(h.get(f), -1) {
			values[m[1]] = os.Expand(m[2], func(name string) string { return values[name] })
		}
	}
	args := strings.Join(strings.Fields(values["GRUB_CMDLINE_LINUX"]+" "+values["GRUB_CMDLINE_LINUX_DEFAULT"]), " ")
	if err := h.put(config, grubText(args)); err != nil {
		return r.fail(1, "%v", err)
	}
	fmt.Fprintln(&r.stderr, "Generating grub configuration file ...\ndone")
	return 0
}

// reboot ends everything and starts again.
func reboot(h *host, r *run) int {
	if h.settings.Unprivileged {
		return r.fail(1, "Call to Reboot failed: Access denied")
	}
	if err := h.boot(); err != nil {
		return r.fail(1, "%v", err)
	}
	return 0
}

func (h *host) boot() error {
	for _, pid := range slices.Sorted(maps.Keys(h.state.Procs)) {
		if p := h.state.Procs[pid]; p != nil {
			if err := h.end(p, 128+9); err != nil {
				return err
			}
		}
	}
	cmdline := h.nextCmdline()
	h.state.Boots++
	isolated := ""
	for _, w := range strings.Fields(cmdline) {
		if v, ok := strings.CutPrefix(w, "isolcpus="); ok {
			isolated = v[strings.LastIndexByte(v, ',')+1:]
			if i := strings.Index(v, "domain,"); i >= 0 {
				isolated = v[i+len("domain,"):]
			}
		}
	}
	var mounts strings.Builder
	for line := range strings.Lines(h.get("/proc/mounts")) {
		if f := strings.Fields(line); len(f) > 2 && f[2] != "hugetlbfs" {
			mounts.WriteString(line)
		}
	}
	files := map[string]string{
		"/proc/cmdline": cmdline + "\n", "/proc/sys/kernel/random/boot_id": fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012x\n", h.state.Boots), "/proc/modules": "", "/proc/mounts": mounts.String(),
		"/sys/devices/system/cpu/isolated": isolated + "\n", "/proc/sys/vm/nr_hugepages": "0\n",
	}
	for _, size := range pageSizes() {
		dirs := []string{globalDir(size)}
		for node := range nodes {
			dirs = append(dirs, nodeDir(node, size))
		}
		for _, d := range dirs {
			files[d+"/nr_hugepages"], files[d+"/free_hugepages"] = "0\n", "0\n"
		}
	}
	for name, text := range settingsSeed() {
		if strings.HasPrefix(name, "proc/sys/") {
			files["/"+name] = text
		}
	}
	for name, text := range files {
		if err := h.put(name, text); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/run", "/dev/hugepages"} {
		entries, err := os.ReadDir(h.real(dir, true))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := os.RemoveAll(h.real(path.Join(dir, e.Name()), false)); err != nil {
				return err
			}
		}
	}
	if err := h.reserve(cmdline); err != nil {
		return err
	}
	if err := h.startUp(); err != nil {
		return err
	}
	return h.bindAtBoot()
}

// bindAtBoot gives every NIC to the driver that udev finds for it.
func (h *host) bindAtBoot() error {
	for _, pci := range slices.Sorted(maps.Keys(h.state.NICs)) {
		c := h.state.NICs[pci]
		if c == nil { // a virtual function: it went with its physical one's driver
			continue
		}
		if len(c.Functions) > 0 {
			if err := h.setFunctions(c, "0"); err != nil {
				return err
			}
		}
		c.Apart = false
		c.Bound, c.Override = "", strings.TrimSpace(h.get("/etc/driverctl.d/"+pci))
		rule := h.get("/etc/udev/rules.d/90-plumb-nic-" + pci + ".rules")
		if _, rest, ok := strings.Cut(rule, `ATTR{driver_override}="`); ok {
			c.Override, _, _ = strings.Cut(rest, `"`)
		}
		if err := h.interfaceOf(c); err != nil { // it was up before
			return err
		}
		if c.Override != "" {
			if err := h.insert(underscored(c.Override), nil); err != nil {
				return err
			}
		}
		if err := h.probe(c, c.wanted()); err != nil {
			return err
		}
		if err := h.showNIC(c); err != nil {
			return err
		}
	}
	return nil
}
