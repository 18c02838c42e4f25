package fake

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// mount is mount [-t TYPE] [-o OPTIONS] [--] SOURCE TARGET, and mount -o remount,OPTIONS [--] TARGET.
func mount(h *host, r *run) int {
	typ, opts := "", ""
	var rest []string
	for i := 1; i < len(r.args); i++ {
		switch {
		case r.args[i] == "-t" && i+1 < len(r.args):
			i++
			typ = r.args[i]
		case r.args[i] == "-o" && i+1 < len(r.args):
			i++
			opts = r.args[i]
		case r.args[i] == "--":
		default:
			rest = append(rest, r.args[i])
		}
	}
	if len(rest) == 0 {
		r.stdout.WriteString(h.get("/proc/mounts"))
		return 0
	}
	target := rest[len(rest)-1]
	if h.settings.Unprivileged {
		return r.fail(1, "mount: %s: must be superuser to use mount.", target)
	}
	lines := strings.SplitAfter(h.get("/proc/mounts"), "\n")
	if again, ok := strings.CutPrefix(opts, "remount,"); ok {
		i := mountedAt(lines, target)
		if i < 0 {
			return r.fail(32, "mount: %s: mount point not mounted or bad option.", target)
		}
		f := strings.Fields(lines[i])
		f[3] = mountOptions(f[3], again)
		lines[i] = strings.Join(f, " ") + "\n"
		return h.putMounts(r, lines)
	}
	if !strings.Contains(h.get("/proc/filesystems"), "\t"+typ+"\n") {
		return r.fail(32, "mount: %s: unknown filesystem type '%s'.", target, typ)
	}
	if len(rest) != 2 || !h.exists(target) {
		return r.fail(32, "mount: %s: mount point does not exist.", target)
	}
	start := "rw,relatime"
	if typ == "hugetlbfs" {
		start += ",pagesize=2M"
	}
	line := fmt.Sprintf("%s %s %s %s 0 0\n", mangle(rest[0]), mangle(path.Clean(target)), typ, mountOptions(start, opts))
	return h.putMounts(r, append(lines, line))
}

func (h *host) putMounts(r *run, lines []string) int {
	if err := h.put("/proc/mounts", strings.Join(lines, "")); err != nil {
		return r.fail(32, "mount: %v", err)
	}
	return 0
}

// mangle escapes as the kernel does.
func mangle(s string) string {
	return strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(s)
}

// mountedAt is the line of what is on top at a folder; -1 for nothing.
func mountedAt(lines []string, target string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if f := strings.Fields(lines[i]); len(f) > 1 && f[1] == mangle(target) {
			return i
		}
	}
	return -1
}

// mountOptions is how the kernel prints options after others were given.
func mountOptions(now, given string) string {
	have := strings.Split(now, ",")
	without := func(names ...string) {
		have = slices.DeleteFunc(have, func(o string) bool {
			k, _, _ := strings.Cut(o, "=")
			return slices.Contains(names, k)
		})
	}
	for o := range strings.SplitSeq(given, ",") {
		key, value, pair := strings.Cut(o, "=")
		switch {
		case o == "", o == "nofail":
		case pair:
			without(key)
			if n := len(value) - 1; key == "size" && n > 0 && value[n] == 'm' {
				var mb int
				if _, err := fmt.Sscanf(value, "%dm", &mb); err == nil {
					o = fmt.Sprintf("size=%dk", mb<<10)
				}
			}
			if key == "pagesize" {
				o = strings.TrimSuffix(strings.Replace(o, "1G", "1024M", 1), "B")
			}
			have = append(have, o)
		case o == "ro" || o == "rw":
			without("ro", "rw")
			have = append([]string{o}, have...)
		case o == "noatime":
			without("relatime", "noatime")
			have = append(have, o)
		case o == "atime" || o == "relatime":
			without("noatime", "relatime")
			have = append(have, "relatime")
		case slices.Contains([]string{"exec", "suid", "dev"}, o):
			without("no" + o)
		case slices.Contains([]string{"noexec", "nosuid", "nodev"}, o):
			without(o)
			have = append(have, o)
		default:
			have = append(have, o)
		}
	}
	return strings.Join(have, ",")
}

// mountinfo is /proc/self/mountinfo.
func (h *host) mountinfo() string {
	var b strings.Builder
	i := 0
	for line := range strings.Lines(h.get("/proc/mounts")) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		var flags, pairs []string
		for o := range strings.SplitSeq(f[3], ",") {
			if strings.Contains(o, "=") {
				pairs = append(pairs, o)
			} else {
				flags = append(flags, o)
			}
		}
		i++
		fmt.Fprintf(&b, "%d 1 0:%d / %s %s shared:1 - %s %s %s\n", 20+i, 20+i, f[1], strings.Join(flags, ","), f[2], f[0], strings.Join(append([]string{"rw"}, pairs...), ","))
	}
	return b.String()
}

func umount(h *host, r *run) int {
	_, dirs := words(r.args[1:])
	for _, d := range dirs {
		lines := strings.SplitAfter(h.get("/proc/mounts"), "\n")
		i := mountedAt(lines, d)
		if i < 0 {
			return r.fail(32, "umount: %s: not mounted.", d)
		}
		if status := h.putMounts(r, slices.Delete(lines, i, i+1)); status != 0 {
			return status
		}
	}
	return 0
}
