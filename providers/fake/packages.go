package fake

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// pkg is an installed package.
type pkg struct {
	Version string `json:"version"`
	Auto    bool   `json:"auto,omitempty"`
	Hold    bool   `json:"hold,omitempty"`
}

// offered is a package of the distribution.
type offered struct {
	versions []string // the newest first
	needs    []string
	unit     string // a service that it brings
}

func offers() map[string]offered {
	return map[string]offered{
		"libc6":                {versions: []string{"2.36-9"}},
		"hello":                {versions: []string{"2.10-3", "2.9-2"}, needs: []string{"libc6"}},
		"ethtool":              {versions: []string{"1:6.1-1"}, needs: []string{"libc6", "libmnl0"}},
		"libmnl0":              {versions: []string{"1.0.4-3"}, needs: []string{"libc6"}},
		"tuned":                {versions: []string{"2.20.0-1"}, needs: []string{"python3-linux-procfs"}, unit: "tuned.service"},
		"python3-linux-procfs": {versions: []string{"0.7.0-1"}, needs: []string{"libc6"}},
		"tuned-utils":          {versions: []string{"2.20.0-1"}, needs: []string{"tuned"}},
		"iproute2":             {versions: []string{"6.1.0-3"}, needs: []string{"libc6", "libmnl0"}},
	}
}

func seedPackages() map[string]*pkg {
	return map[string]*pkg{"libc6": {Version: "2.36-9"}, "hello": {Version: "2.10-3"}, "libbpf1": {Version: "1.1.0-1", Auto: true}, "python3-six": {Version: "1.16.0-4", Auto: true}}
}

func dpkgQuery(h *host, r *run) int {
	if h.settings.RPM {
		return r.fail(127, "dpkg-query: not found")
	}
	for _, n := range slices.Sorted(maps.Keys(h.state.Settings.Packages)) {
		p := h.state.Settings.Packages[n]
		want := "install"
		if p.Hold {
			want = "hold"
		}
		r.printf("%s\tamd64\t%s\t%s\tinstalled\n", n, p.Version, want)
	}
	r.printf("removed-once\tamd64\t1.0\tdeinstall\tconfig-files\n")
	return 0
}

func rpm(h *host, r *run) int {
	if !h.settings.RPM {
		return r.fail(127, "rpm: not found")
	}
	_, names := words(r.args[1:])
	switch r.args[1] {
	case "-qa":
		for _, n := range slices.Sorted(maps.Keys(h.state.Settings.Packages)) {
			r.printf("%s\tx86_64\t%s\tinstall\tinstalled\n", n, "0:"+strings.TrimPrefix(h.state.Settings.Packages[n].Version, "1:"))
		}
	case "-e":
		for _, n := range names {
			if h.state.Settings.Packages[n] == nil {
				return r.fail(1, "error: package %s is not installed", n)
			}
		}
		for n := range h.state.Settings.Packages {
			for _, need := range offers()[n].needs {
				if slices.Contains(names, need) && !slices.Contains(names, n) {
					return r.fail(1, "error: Failed dependencies:\n\t%s is needed by (installed) %s", need, n)
				}
			}
		}
		h.uninstall(names)
	}
	return 0
}

// dpkg is dpkg --compare-versions of what the tests compare, and dpkg --configure -a.
func dpkg(_ *host, r *run) int {
	if len(r.args) == 5 && r.args[1] == "--compare-versions" && r.args[3] == "lt" {
		older := slices.Index([]string{"2.9-2", "2.10-3"}, r.args[2]) < slices.Index([]string{"2.9-2", "2.10-3"}, r.args[4])
		if !older {
			return 1
		}
	}
	return 0
}

// aptScript is how package settings runs apt-get without services being started.
func aptScript(h *host, r *run) int {
	const policy = "/usr/sbin/policy-rc.d"
	own := h.exists(policy)
	if !own {
		if err := h.put(policy, "exit 101\n"); err != nil {
			return r.fail(1, "%v", err)
		}
	}
	r.args = r.args[1:]
	status := aptGet(h, r)
	if !own {
		if err := os.Remove(h.real(policy, false)); err != nil {
			return r.fail(1, "%v", err)
		}
	}
	return status
}

// aptWords are the command of apt-get, its operands and its options.
func aptWords(args []string) (verb string, operands, options []string) {
	for i := 1; i < len(args); i++ {
		switch {
		case args[i] == "-o":
			i++
		case strings.HasPrefix(args[i], "-"):
			options = append(options, args[i])
		case verb == "":
			verb = args[i]
		default:
			operands = append(operands, args[i])
		}
	}
	return verb, operands, options
}

func aptGet(h *host, r *run) int {
	if h.settings.RPM {
		return r.fail(127, "apt-get: not found")
	}
	verb, names, options := aptWords(r.args)
	if h.settings.Unprivileged {
		return r.fail(100, "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)")
	}
	simulated := slices.Contains(options, "-s")
	switch verb {
	case "update":
		h.state.Settings.Indexed = true
		return 0
	case "install":
		for _, n := range names {
			name, version, fixed := strings.Cut(n, "=")
			o, known := offers()[name]
			have := h.state.Settings.Packages[name]
			switch {
			case !known || !h.state.Settings.Indexed:
				return r.fail(100, "E: Unable to locate package %s", name)
			case fixed && !slices.Contains(o.versions, version):
				return r.fail(100, "E: Version '%s' for '%s' was not found", version, name)
			case fixed && have != nil && slices.Index(o.versions, version) > slices.Index(o.versions, have.Version) && !slices.Contains(options, "--allow-downgrades"):
				return r.fail(100, "E: Packages were downgraded and -y was used without --allow-downgrades.")
			}
		}
		for _, n := range names {
			name, version, _ := strings.Cut(n, "=")
			h.install(name, version, false)
		}
		return 0
	case "purge", "remove":
		gone := h.dependants(names)
		if simulated {
			for _, n := range gone {
				r.printf("Purg %s [%s]\n", n, h.state.Settings.Packages[n].Version)
			}
			return 0
		}
		h.uninstall(gone)
		return 0
	case "autoremove":
		for _, n := range h.unneeded() {
			r.printf("Remv %s [%s]\n", n, h.state.Settings.Packages[n].Version)
			if !simulated {
				h.uninstall([]string{n})
			}
		}
		return 0
	}
	return r.fail(100, "E: Invalid operation %s", verb)
}

// install installs a package with what it needs.
func (h *host) install(name, version string, auto bool) {
	o := offers()[name]
	for _, n := range o.needs {
		if h.state.Settings.Packages[n] == nil {
			h.install(n, "", true)
		}
	}
	if version == "" {
		version = o.versions[0]
	}
	p := h.state.Settings.Packages[name]
	if p == nil {
		p = &pkg{Auto: auto}
		h.state.Settings.Packages[name] = p
		if o.unit != "" {
			u := &unit{Active: "active", File: "enabled"}
			if h.exists("/usr/sbin/policy-rc.d") || h.settings.RPM {
				u.Active = "inactive"
			}
			h.state.Settings.Units[o.unit] = u
		}
	}
	p.Version = version
	if !auto {
		p.Auto = false
	}
}

// dependants are packages with all that need them.
func (h *host) dependants(names []string) []string {
	out := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return h.state.Settings.Packages[n] == nil })
	for again := true; again; {
		again = false
		for _, n := range slices.Sorted(maps.Keys(h.state.Settings.Packages)) {
			if !slices.Contains(out, n) && slices.ContainsFunc(offers()[n].needs, func(need string) bool { return slices.Contains(out, need) }) {
				out, again = append(out, n), true
			}
		}
	}
	return out
}

func (h *host) uninstall(names []string) {
	for _, n := range names {
		delete(h.state.Settings.Packages, n)
		delete(h.state.Settings.Units, offers()[n].unit)
	}
}

// unneeded are packages that came for others, which are gone.
func (h *host) unneeded() []string {
	needed := map[string]bool{}
	var need func(string)
	need = func(n string) {
		if !needed[n] {
			needed[n] = true
			for _, m := range offers()[n].needs {
				need(m)
			}
		}
	}
	for n, p := range h.state.Settings.Packages {
		if !p.Auto {
			need(n)
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(h.state.Settings.Packages)), func(n string) bool { return needed[n] })
}

func aptMark(h *host, r *run) int {
	if h.settings.RPM {
		return r.fail(127, "apt-mark: not found")
	}
	_, args := words(r.args[1:])
	for _, n := range args[1:] {
		p := h.state.Settings.Packages[n]
		if p == nil {
			return r.fail(100, "E: Can't select installed nor candidate version from package '%s' as it has neither of them", n)
		}
		switch args[0] {
		case "showauto":
			if p.Auto {
				r.printf("%s\n", n)
			}
		case "auto":
			p.Auto = true
		case "manual":
			p.Auto = false
		case "hold":
			p.Hold = true
		case "unhold":
			p.Hold = false
		}
	}
	return 0
}

// dnf is dnf install and dnf repoquery --unneeded.
func dnf(h *host, r *run) int {
	if !h.settings.RPM {
		return r.fail(127, "dnf: not found")
	}
	_, args := words(r.args[1:])
	switch {
	case slices.Contains(r.args, "repoquery"):
		for _, n := range h.unneeded() {
			r.printf("%s\n", n)
		}
	case slices.Contains(r.args, "install"):
		for _, a := range slices.DeleteFunc(args, func(a string) bool { return a == "install" }) {
			found := false
			for name, o := range offers() {
				for _, v := range append([]string{""}, o.versions...) {
					if a == name && v == "" || strings.Replace(a, "-0:", "-", 1) == name+"-"+v && v != "" {
						h.install(name, v, false)
						found = true
					}
				}
			}
			if !found {
				return r.fail(1, "No match for argument: %s\nError: Unable to find a match: %s", a, a)
			}
		}
	}
	return 0
}

// findFresh is find DIR -maxdepth 0 -mtime -1, which says whether the lists of packages were updated of late; find otherwise.
func findFresh(h *host, r *run) int {
	if !slices.Contains(r.args, "-mtime") {
		return find(h, r)
	}
	if h.state.Settings.Indexed {
		r.printf("%s\n", r.args[1])
	}
	return 0
}
