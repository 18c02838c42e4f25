package fake

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// words splits flags from operands; what follows "--" are operands.
func words(args []string) (flags, operands []string) {
	for i, a := range args {
		switch {
		case a == "--":
			return flags, append(operands, args[i+1:]...)
		case strings.HasPrefix(a, "-") && a != "-":
			flags = append(flags, a)
		default:
			operands = append(operands, a)
		}
	}
	return flags, operands
}

func has(flags []string, short byte, long string) bool {
	return slices.ContainsFunc(flags, func(f string) bool {
		return f == long || !strings.HasPrefix(f, "--") && strings.IndexByte(f, short) > 0
	})
}

// reason is what a C program says of an error.
func reason(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	case !errors.As(err, &errno):
		return err.Error()
	}
	s := errno.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

func (h *host) allowed(r *run, name string) bool {
	if h.settings.Unprivileged && !strings.HasPrefix(clean(name), "/tmp/") {
		r.fail(1, "%s: cannot change '%s': Permission denied", r.args[0], name)
		return false
	}
	return true
}

func cat(h *host, r *run) int {
	_, files := words(r.args[1:])
	if len(files) == 0 {
		r.stdout.Write(r.stdin)
	}
	status := 0
	for _, f := range files {
		b, err := os.ReadFile(h.real(f, true))
		if err != nil {
			status = r.fail(1, "cat: %s: %s", f, reason(err))
		}
		r.stdout.Write(b)
	}
	return status
}

func printenv(_ *host, r *run) int {
	for i := len(r.env) - 1; i >= 0 && len(r.args) == 2; i-- {
		if v, ok := strings.CutPrefix(r.env[i], r.args[1]+"="); ok {
			r.printf("%s\n", v)
			return 0
		}
	}
	return 1
}

func id(h *host, r *run) int {
	if len(r.args) != 2 || r.args[1] != "-u" {
		return r.fail(1, "id: the fake host knows only -u")
	}
	if h.settings.Unprivileged {
		r.printf("1000\n")
	} else {
		r.printf("0\n")
	}
	return 0
}

func uname(h *host, r *run) int {
	switch strings.Join(r.args[1:], " ") {
	case "":
		r.printf("Linux\n")
	case "-r":
		r.printf("%s", h.get("/proc/sys/kernel/osrelease"))
	case "-n":
		r.printf("%s", h.get("/proc/sys/kernel/hostname"))
	case "-m":
		r.printf("x86_64\n")
	default:
		return r.fail(1, "uname: the fake host knows only -r, -n and -m")
	}
	return 0
}

func hostname(h *host, r *run) int {
	r.printf("%s", h.get("/proc/sys/kernel/hostname"))
	return 0
}

func test(h *host, r *run) int {
	if len(r.args) != 3 {
		return r.fail(2, "test: the fake host knows only -e, -f, -d, -s, -r, -w, -x, -S, -p, -L")
	}
	name := r.args[2]
	file := h.real(name, r.args[1] != "-L")
	fi, err := os.Lstat(file)
	ok := err == nil
	switch r.args[1] {
	case "-e", "-r", "-x":
	case "-w":
		ok = ok && !h.settings.Unprivileged
	case "-f":
		ok = ok && fi.Mode().IsRegular()
	case "-d":
		ok = ok && fi.IsDir()
	case "-s":
		ok = ok && fi.Size() > 0
	case "-L":
		ok = ok && fi.Mode()&fs.ModeSymlink != 0
	case "-S":
		ok = ok && h.listener(clean(name)) != nil
	case "-p":
		ok = ok && path.Base(name) == "stdin"
	default:
		return r.fail(2, "test: %s: unexpected operator", r.args[1])
	}
	if !ok {
		return 1
	}
	return 0
}

func which(h *host, r *run) int {
	status := 0
	for _, name := range r.args[1:] {
		if programs()[name] == nil || !h.installed(name) {
			status = 1
			continue
		}
		dir := "/usr/bin/"
		if name == "ovs-vswitchd" || name == "ovsdb-server" {
			dir = "/usr/sbin/"
		}
		r.printf("%s\n", dir+name)
	}
	return status
}

func mkdir(h *host, r *run) int {
	flags, dirs := words(r.args[1:])
	if len(flags) > 0 && has(flags, 'm', "") { // the mode comes as an operand
		dirs = slices.DeleteFunc(dirs, func(d string) bool { return !strings.HasPrefix(d, "/") })
	}
	status := 0
	for _, d := range dirs {
		if !h.allowed(r, d) {
			return 1
		}
		make := os.Mkdir
		if has(flags, 'p', "--parents") {
			make = os.MkdirAll
		}
		if err := make(h.real(d, true), 0o755); err != nil {
			status = r.fail(1, "mkdir: cannot create directory '%s': %s", d, reason(err))
		}
	}
	return status
}

func touch(h *host, r *run) int {
	_, files := words(r.args[1:])
	for _, f := range files {
		if !h.allowed(r, f) {
			return 1
		}
		if err := replace(h.real(f, true), []byte(h.get(f)), 0o644); err != nil {
			return r.fail(1, "touch: cannot touch '%s': %s", f, reason(err))
		}
	}
	return 0
}

func rm(h *host, r *run) int {
	flags, files := words(r.args[1:])
	recursive, force := has(flags, 'r', "--recursive") || has(flags, 'R', ""), has(flags, 'f', "--force")
	status := 0
	for _, f := range files {
		if !h.allowed(r, f) {
			return 1
		}
		file := h.real(f, false)
		fi, err := os.Lstat(file)
		switch {
		case err != nil:
			if !force {
				status = r.fail(1, "rm: cannot remove '%s': No such file or directory", f)
			}
		case fi.IsDir() && !recursive:
			status = r.fail(1, "rm: cannot remove '%s': Is a directory", f)
		default:
			if err := os.RemoveAll(file); err != nil {
				status = r.fail(1, "rm: cannot remove '%s': %s", f, reason(err))
			}
		}
	}
	return status
}

func rmdir(h *host, r *run) int {
	flags, dirs := words(r.args[1:])
	for _, d := range dirs {
		for d = path.Clean(d); d != "/"; d = path.Dir(d) {
			err := syscall.Rmdir(h.real(d, false))
			if errors.Is(err, syscall.ENOTEMPTY) && has(flags, 0, "--ignore-fail-on-non-empty") {
				break
			}
			if err != nil {
				return r.fail(1, "rmdir: failed to remove '%s': %s", d, reason(err))
			}
			if !has(flags, 'p', "--parents") {
				break
			}
		}
	}
	return 0
}

func readlink(h *host, r *run) int {
	flags, files := words(r.args[1:])
	for _, f := range files {
		switch {
		case has(flags, 'm', "--canonicalize-missing"):
			r.printf("%s\n", h.resolve(f, true))
		case has(flags, 'f', "--canonicalize"):
			if !h.exists(path.Dir(f)) {
				return 1
			}
			r.printf("%s\n", h.resolve(f, true))
		default:
			to, err := os.Readlink(h.real(f, false))
			if err != nil {
				return 1
			}
			r.printf("%s\n", to)
		}
	}
	return 0
}

func ls(h *host, r *run) int {
	flags, dirs := words(r.args[1:])
	status := 0
	for _, d := range dirs {
		entries, err := os.ReadDir(h.real(d, true))
		if err != nil {
			status = r.fail(2, "ls: cannot access '%s': %s", d, reason(err))
			continue
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") || has(flags, 'A', "--almost-all") || has(flags, 'a', "--all") {
				r.printf("%s\n", e.Name())
			}
		}
	}
	return status
}

func cp(h *host, r *run) int {
	_, f := words(r.args[1:])
	if len(f) != 2 {
		return r.fail(1, "cp: the fake host copies one file to another")
	}
	b, err := os.ReadFile(h.real(f[0], true))
	if err == nil {
		err = replace(h.real(f[1], true), b, 0o644)
	}
	if err != nil {
		return r.fail(1, "cp: cannot copy '%s': %s", f[0], reason(err))
	}
	return 0
}

func mv(h *host, r *run) int {
	_, f := words(r.args[1:])
	if len(f) != 2 {
		return r.fail(1, "mv: the fake host renames one file to another")
	}
	if err := os.Rename(h.real(f[0], false), h.real(f[1], false)); err != nil {
		return r.fail(1, "mv: cannot move '%s': %s", f[0], reason(err))
	}
	return 0
}

// find is find PATH... -printf FORMAT, with %y, %p and %l.
func find(h *host, r *run) int {
	i := slices.Index(r.args, "-printf")
	if i < 0 || i != len(r.args)-2 {
		return r.fail(1, "find: the fake host knows only -printf, at the end")
	}
	format := strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(r.args[i+1])
	status := 0
	for _, start := range r.args[1:i] {
		top := h.real(start, false)
		err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			kind, to := "f", ""
			switch {
			case d.IsDir():
				kind = "d"
			case d.Type()&fs.ModeSymlink != 0:
				kind = "l"
				if to, err = os.Readlink(file); err != nil {
					return err
				}
			}
			name := start + strings.TrimPrefix(file, top)
			r.stdout.WriteString(strings.NewReplacer("%y", kind, "%p", name, "%l", to).Replace(format))
			return nil
		})
		if err != nil {
			status = r.fail(1, "find: '%s': %s", start, reason(err))
		}
	}
	return status
}

// tail is tail -n N FILE.
func tail(h *host, r *run) int {
	n := 10
	args := r.args[1:]
	if len(args) > 1 && args[0] == "-n" {
		n, _ = strconv.Atoi(args[1])
		args = args[2:]
	}
	_, files := words(args)
	for _, f := range files {
		b, err := os.ReadFile(h.real(f, true))
		if err != nil {
			return r.fail(1, "tail: cannot open '%s' for reading: %s", f, reason(err))
		}
		lines := strings.SplitAfter(string(b), "\n")
		if len(lines) > 0 && lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		r.stdout.WriteString(strings.Join(lines[max(len(lines)-n, 0):], ""))
	}
	return 0
}

func mountpoint(h *host, r *run) int {
	_, dirs := words(r.args[1:])
	for _, d := range dirs {
		if !strings.Contains(h.get("/proc/mounts"), " "+d+" ") {
			return r.fail(32, "%s is not a mountpoint", d)
		}
	}
	return 0
}

// pgrep is pgrep -x NAME.
func pgrep(h *host, r *run) int {
	_, names := words(r.args[1:])
	found := 1
	for _, n := range names {
		for _, p := range h.byComm(n) {
			r.printf("%d\n", p.PID)
			found = 0
		}
	}
	return found
}
