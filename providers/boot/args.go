package boot

import (
	"fmt"
	"slices"
	"strings"
)

// words takes a kernel command line apart. Double quotes hold spaces together and stay part of the word, as the kernel's parser has it (lib/cmdline.c, next_arg).
func words(cmdline string) []string {
	var out []string
	var b strings.Builder
	quoted := false
	flush := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	for _, r := range cmdline {
		switch {
		case r == '"':
			quoted = !quoted
			b.WriteRune(r)
		case !quoted && (r == ' ' || r == '\t' || r == '\n'):
			flush()
		default:
			b.WriteRune(r)
		}
	}
	flush()
	return out
}

// key is the name of an argument, in which - and _ are the same to the kernel.
func key(arg string) string {
	k, _, _ := strings.Cut(arg, "=")
	return strings.ReplaceAll(k, "-", "_")
}

// many are the keys that may stand several times and mean something each time.
func many(k string) bool {
	return slices.Contains([]string{"console", "earlycon", "hugepagesz", "hugepages", "default_hugepagesz", "memmap", "pci", "blacklist", "modprobe.blacklist", "systemd.mask", "rd.driver.blacklist"}, k)
}

// validArg says whether a word can be an argument. What a shell, GRUB's own language or the kernel's parser would take for more than a letter is refused.
func validArg(s string) error {
	if s == "" {
		return fmt.Errorf("an argument is empty")
	}
	if bad := strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+@/%-"); bad != "" {
		return fmt.Errorf("%q has %q, and only letters, digits and _ . , : = + @ / %% - can be given to the kernel through its boot loader", s, bad[:1])
	}
	if s[0] == '-' || s[0] == '=' {
		return fmt.Errorf("%q has no name", s)
	}
	switch key(s) {
	case "root", "init", "rdinit", "initrd", "BOOT_IMAGE", "ro", "rw":
		return fmt.Errorf("%q: the host may not boot any more with another %s: set that by hand", s, key(s))
	}
	return nil
}

// missing lists the arguments that a command line does not have.
func missing(cmdline string, args []string) []string {
	have := words(cmdline)
	var out []string
	for _, a := range args {
		if !slices.Contains(have, a) {
			out = append(out, a)
		}
	}
	return out
}

// count says how often a command line has an argument.
func count(cmdline, arg string) int {
	n := 0
	for _, w := range words(cmdline) {
		if w == arg {
			n++
		}
	}
	return n
}
