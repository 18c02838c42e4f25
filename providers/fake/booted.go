package fake

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// What a kernel and systemd make of their configuration when the host boots.

// reserve is what the kernel does with hugepagesz= and hugepages=: by node, or the same on each. A size that is named twice counts once.
func (h *host) reserve(cmdline string) error {
	size, named := "2048kB", map[string]bool{}
	for _, w := range strings.Fields(cmdline) {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "hugepagesz":
			size = map[string]string{"2M": "2048kB", "1G": "1048576kB"}[value]
			if named[size] {
				size = ""
			}
		case "hugepages":
			if size == "" {
				continue
			}
			named[size] = true
			want := map[int]int{}
			for i, part := range strings.Split(value, ",") {
				node, count, byNode := strings.Cut(part, ":")
				n, _ := strconv.Atoi(count)
				id, err := strconv.Atoi(node)
				switch {
				case err != nil:
				case byNode:
					want[id] = n
				case i == 0:
					for k := range nodes {
						want[k] = id / nodes
						if k < id%nodes {
							want[k]++
						}
					}
				}
			}
			if err := h.setPages(want, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// startUp is systemd: parameters of sysctl.d, modules of modules-load.d, file systems of hugepages in fstab, units that are enabled.
func (h *host) startUp() error {
	for _, line := range h.configLines("/etc/sysctl.d") {
		if k, v, ok := strings.Cut(line, "="); ok {
			name := "/proc/sys/" + strings.TrimLeft(strings.TrimSpace(k), "-")
			if !strings.Contains(k, "/") {
				name = strings.NewReplacer(".", "/").Replace(name)
			}
			if h.exists(name) {
				if err := h.writeParameter(h.real(name, true), strings.TrimSpace(v)); err != nil {
					return err
				}
			}
		}
	}
	for _, m := range h.configLines("/etc/modules-load.d") {
		r := &run{args: []string{"modprobe", "--", m}}
		modprobe(h, r)
	}
	for line := range strings.Lines(h.get("/etc/fstab")) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.HasPrefix(f[0], "#") || f[2] != "hugetlbfs" {
			continue
		}
		mount(h, &run{args: []string{"mount", "-t", f[2], "-o", f[3], f[0], f[1]}})
	}
	h.state.Settings.Invocations = map[string]string{}
	for _, u := range h.state.Settings.Units {
		u.Active = "inactive"
		if u.File == "enabled" && !u.Fails && !u.Ends {
			u.Active = "active"
		}
	}
	return nil
}

// configLines are the lines of a folder's .conf files that are no comments, file by file.
func (h *host) configLines(dir string) []string {
	entries, _ := os.ReadDir(h.real(dir, true))
	var out []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".conf") {
			continue
		}
		for line := range strings.Lines(h.get(dir + "/" + e.Name())) {
			if line = strings.TrimSpace(line); line != "" && !slices.Contains([]byte{'#', ';'}, line[0]) {
				out = append(out, line)
			}
		}
	}
	return out
}
