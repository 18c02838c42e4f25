// Package bootargs keeps arguments for the kernel where a host's boot loader finds them, for whatever needs a part of the command line.
//
// Every instance has arguments of its own, beside those that are there, and takes out its own only. Nothing here reboots: Boot tells what the running kernel
// has and what the next one will get. Start reading at Loader.
//
// Sources: Documentation/admin-guide/kernel-parameters.rst of Linux, the manual of GRUB ("Simple configuration handling"), grubby(8), the Boot Loader Specification of the UAPI group.
package bootargs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// Words takes a command line apart. Double quotes hold blanks together and stay part of the word, as the kernel's parser has it (lib/cmdline.c, next_arg).
func Words(cmdline string) []string {
	var out []string
	var b strings.Builder
	quoted := false
	flush := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	for i := range len(cmdline) {
		switch c := cmdline[i]; {
		case c == '"':
			quoted = !quoted
			b.WriteByte(c)
		case !quoted && (c == ' ' || c == '\t' || c == '\n'):
			flush()
		default:
			b.WriteByte(c)
		}
	}
	flush()
	return out
}

// Key is the name of an argument, in which - and _ are the same to the kernel.
func Key(arg string) string {
	k, _, _ := strings.Cut(arg, "=")
	return strings.ReplaceAll(k, "-", "_")
}

// same says whether two words are the same argument.
func same(a, b string) bool {
	_, x, given := strings.Cut(a, "=")
	_, y, also := strings.Cut(b, "=")
	return Key(a) == Key(b) && x == y && given == also
}

// Many says whether a key may stand several times and means something each time. For all others one value counts.
func Many(key string) bool {
	return slices.Contains([]string{"console", "earlycon", "hugepagesz", "hugepages", "hugetlb_cma", "memmap", "pci", "module_blacklist", "modprobe.blacklist", "rd.driver.blacklist", "systemd.mask",
		"systemd.wants", "systemd.setenv", "systemd.mount_extra", "dyndbg", "ip", "nameserver"}, key)
}

// firstCounts are the keys of which the kernel takes the first and warns of others (kernel/sched/isolation.c); for most it is the last.
func firstCounts(key string) bool { return key == "isolcpus" || key == "nohz_full" }

// unit is what belongs together: mostly one word. The size of hugepages and their number follow one another.
type unit []string

func (u unit) String() string { return strings.Join(u, " ") }

// key is what two units that set the same thing have in common.
func (u unit) key() string {
	if k := Key(u[0]); !Many(k) {
		return k
	}
	return u.String()
}

// units puts words together.
func units(args []string) []unit {
	var out []unit
	for i := 0; i < len(args); i++ {
		if Key(args[i]) == "hugepagesz" && i+1 < len(args) && Key(args[i+1]) == "hugepages" {
			out = append(out, unit{args[i], args[i+1]})
			i++
			continue
		}
		out = append(out, unit{args[i]})
	}
	return out
}

// at is where a unit begins among words; -1: it is not there.
func (u unit) at(words []string) int {
	for i := 0; i+len(u) <= len(words); i++ {
		if slices.EqualFunc(u, words[i:i+len(u)], same) {
			return i
		}
	}
	return -1
}

// Missing lists the arguments that words lack. A number of hugepages that does not follow its size is missing.
func Missing(words, args []string) []string {
	var out []string
	for _, u := range units(args) {
		if u.at(words) < 0 {
			out = append(out, u...)
		}
	}
	return out
}

// has lists the arguments that words have.
func has(words, args []string) []string {
	var out []string
	for _, u := range units(args) {
		if u.at(words) >= 0 {
			out = append(out, u...)
		}
	}
	return out
}

// ofKey are the words of a key.
func ofKey(words []string, key string) []string {
	var out []string
	for _, w := range words {
		if Key(w) == key {
			out = append(out, w)
		}
	}
	return out
}

// Valid says whether a word can be an argument. What a shell, GRUB's own language or the kernel's parser would take for more than a letter is refused, and so is
// what the host needs to come back.
func Valid(s string) error {
	if s == "" {
		return fmt.Errorf("an argument is empty")
	}
	if bad := strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+@/%-"); bad != "" {
		return fmt.Errorf("%q has %q, and only letters, digits and _ . , : = + @ / %% - can be given to the kernel through its boot loader", s, string([]rune(bad)[:1]))
	}
	if s[0] == '-' || s[0] == '=' {
		return fmt.Errorf("%q has no name", s)
	}
	switch k := Key(s); k {
	case "root", "init", "rdinit", "initrd", "BOOT_IMAGE", "ro", "rw":
		return fmt.Errorf("%q: with another %s the host may not boot any more. Set it by hand", s, k)
	}
	return nil
}

// Uniques are what an instance sets that nothing else on the host may: the kernel takes one value of most keys, and each size of hugepages once. path says which argument
// of the configuration a word comes from.
func Uniques(args []string, path func(i int) cty.Path) []providers.Unique {
	var out []providers.Unique
	for i, a := range args {
		switch k := Key(a); {
		case k == "hugepagesz":
			out = append(out, UniqueSize(a, path(i)))
		case !Many(k):
			out = append(out, providers.Unique{Scope: "kernel argument", Value: k, Path: path(i)})
		}
	}
	return out
}

// UniqueSize is the claim of a size of hugepages: hugepagesz=1G.
func UniqueSize(arg string, path cty.Path) providers.Unique {
	return providers.Unique{Scope: "kernel argument", Value: arg, Path: path}
}
