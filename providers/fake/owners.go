package fake

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// stat is stat -c FORMAT -- FILES, with %a, %f, %s, %u, %g, %U, %G, %N and %n. It does not follow links.
func stat(h *host, r *run) int {
	if len(r.args) < 5 || r.args[1] != "-c" || r.args[3] != "--" {
		return r.fail(1, "stat: the fake host knows only stat -c FORMAT -- FILES")
	}
	status := 0
	for _, f := range r.args[4:] {
		fi, err := os.Lstat(h.real(f, false))
		if err != nil {
			status = r.fail(1, "stat: cannot statx '%s': %s", f, reason(err))
			continue
		}
		sys := fi.Sys().(*syscall.Stat_t)
		user, group, _ := strings.Cut(h.owner(clean(f)), ":")
		r.printf("%s\n", strings.NewReplacer("%a", strconv.FormatUint(uint64(sys.Mode&0o7777), 8), "%f", strconv.FormatUint(uint64(sys.Mode), 16), "%s", fmt.Sprint(fi.Size()),
			"%u", number(user), "%g", number(group), "%U", user, "%G", group, "%n", f).Replace(r.args[2]))
	}
	return status
}

// number is the id of a user or group: those of the fake host's passwd, in which a number stands for itself.
func number(name string) string {
	if id, ok := users()[name]; ok {
		return strconv.Itoa(id)
	}
	return name
}

func users() map[string]int { return map[string]int{"root": 0, "openvswitch": 110, "hugetlbfs": 120} }

func (h *host) owner(name string) string {
	if o := h.state.Settings.Owners[name]; o != "" {
		return o
	}
	return "root:root"
}

// chown is chown -- USER:GROUP FILES; either may be empty.
func chown(h *host, r *run) int {
	_, args := words(r.args[1:])
	if len(args) < 2 {
		return r.fail(1, "chown: missing operand")
	}
	user, group, _ := strings.Cut(args[0], ":")
	for _, n := range []string{user, group} {
		if _, known := users()[n]; n != "" && !known {
			if _, err := strconv.Atoi(n); err != nil {
				return r.fail(1, "chown: invalid user: '%s'", args[0])
			}
		}
	}
	for _, f := range args[1:] {
		if !h.allowed(r, f) {
			return 1
		}
		if !h.exists(f) {
			return r.fail(1, "chown: cannot access '%s': No such file or directory", f)
		}
		u, g, _ := strings.Cut(h.owner(clean(f)), ":")
		if user != "" {
			u = named(user)
		}
		if group != "" {
			g = named(group)
		}
		if h.state.Settings.Owners[clean(f)] = u + ":" + g; u == "root" && g == "root" {
			delete(h.state.Settings.Owners, clean(f))
		}
	}
	return 0
}

func named(id string) string {
	for name, n := range users() {
		if strconv.Itoa(n) == id {
			return name
		}
	}
	return id
}

// chmod is chmod -- MODE FILES, with a number for a mode.
func chmod(h *host, r *run) int {
	_, args := words(r.args[1:])
	if len(args) < 2 {
		return r.fail(1, "chmod: missing operand")
	}
	mode, err := strconv.ParseUint(args[0], 8, 12)
	if err != nil {
		return r.fail(1, "chmod: invalid mode: '%s'", args[0])
	}
	for _, f := range args[1:] {
		if err := os.Chmod(h.real(f, true), fs.FileMode(mode&0o777)); err != nil {
			return r.fail(1, "chmod: cannot access '%s': %s", f, reason(err))
		}
	}
	return 0
}
