package fake

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Boot loaders that a host may have instead of GRUB as Debian's.
const (
	RedHat      = "grubby"       // BLS entries, with grubby
	SystemdBoot = "systemd-boot" // BLS entries alone
	Suse        = "grub2-mkconfig"
)

const (
	grub2Config = "/boot/grub2/grub.cfg"
	redHatEntry = "/boot/loader/entries/"
	efiEntry    = "/boot/efi/loader/entries/"
	loaderInfo  = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-47cf-b6c7-442b29b1a9f8"
)

// BootsBy gives the host another boot loader.
func (c *Conn) BootsBy(loader string) error {
	return c.locked(func(h *host) error {
		for _, f := range []string{"/usr/sbin/update-grub", grubConfig} {
			if err := os.Remove(h.real(f, false)); err != nil {
				return err
			}
		}
		const options = "root=/dev/vda1 ro quiet"
		entry := func(release string) string {
			return fmt.Sprintf("title Linux (%s)\nversion %s\nlinux /vmlinuz-%s\noptions %s\n", release, release, release, options)
		}
		var files map[string]string
		switch loader {
		case RedHat:
			files = map[string]string{"/usr/sbin/grubby": "", grub2Config: "blscfg\n", redHatEntry + "m-6.1.0-13-amd64.conf": entry("6.1.0-13-amd64"), redHatEntry + "m-5.10.0-1-amd64.conf": entry("5.10.0-1-amd64")}
		case SystemdBoot:
			text := "\x07\x00\x00\x00"
			for _, r := range "systemd-boot 252" {
				text += string(r) + "\x00"
			}
			files = map[string]string{loaderInfo: text, efiEntry + "m-6.1.0-13-amd64.conf": entry("6.1.0-13-amd64"), "/etc/kernel/cmdline": options + "\n"}
		case Suse:
			files = map[string]string{"/usr/sbin/grub2-mkconfig": "", grub2Config: grubText("quiet")}
		default:
			return fmt.Errorf("the fake host has no boot loader %q", loader)
		}
		for name, text := range files {
			if err := h.put(name, text); err != nil {
				return err
			}
		}
		return h.put("/proc/cmdline", h.nextCmdline()+"\n")
	})
}

// nextCmdline is what the boot loader gives the kernel.
func (h *host) nextCmdline() string {
	for _, file := range []string{grubConfig, grub2Config} {
		for line := range strings.Lines(h.get(file)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "linux" {
				return "BOOT_IMAGE=" + strings.Join(f[1:], " ")
			}
		}
	}
	for _, dir := range []string{redHatEntry, efiEntry} {
		for line := range strings.Lines(h.get(dir + "m-6.1.0-13-amd64.conf")) {
			if rest, ok := strings.CutPrefix(line, "options "); ok {
				return strings.TrimSpace(rest)
			}
		}
	}
	return ""
}

func loaderPrograms() map[string]program {
	return map[string]program{"grubby": grubby, "grub2-mkconfig": func(h *host, r *run) int { return h.mkconfig(r, option(r.args, "-o")) }}
}

// grubby is the script of Fedora and RHEL: it knows one value of a name, but for console.
func grubby(h *host, r *run) int {
	var remove, add []string
	for _, a := range r.args[1:] {
		switch k, v, _ := strings.Cut(a, "="); k {
		case "--update-kernel":
		case "--remove-args":
			remove = strings.Fields(v)
		case "--args":
			add = strings.Fields(v)
		default:
			h.unknown(r.args)
			return r.fail(1, "grubby: the fake host does not know %s", a)
		}
	}
	entries, _ := filepath.Glob(h.real(redHatEntry, true) + "/*.conf")
	for _, e := range entries {
		file := redHatEntry + path.Base(e)
		var out strings.Builder
		for line := range strings.Lines(h.get(file)) {
			if rest, ok := strings.CutPrefix(line, "options "); ok {
				line = "options " + strings.Join(grubbyArgs(strings.Fields(rest), remove, add), " ") + "\n"
			}
			out.WriteString(line)
		}
		if err := h.put(file, out.String()); err != nil {
			return r.fail(1, "%v", err)
		}
	}
	return 0
}

func grubbyArgs(words, remove, add []string) []string {
	words = slices.DeleteFunc(words, func(w string) bool {
		k, _, _ := strings.Cut(w, "=")
		return slices.Contains(remove, w) || slices.Contains(remove, k)
	})
	for _, a := range add {
		k, _, valued := strings.Cut(a, "=")
		i := slices.IndexFunc(words, func(w string) bool { return w == a || valued && k != "console" && strings.HasPrefix(w, k+"=") })
		if i < 0 {
			words = append(words, a)
			continue
		}
		words[i] = a
	}
	return words
}
