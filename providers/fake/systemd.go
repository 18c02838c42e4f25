package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unit is a unit of systemd.
type unit struct {
	Active string `json:"active"` // ActiveState
	File   string `json:"file"`   // UnitFileState
	Fails  bool   `json:"fails,omitempty"`
	Ends   bool   `json:"ends,omitempty"` // it does its work and is inactive again
}

func seedUnits() map[string]*unit {
	return map[string]*unit{
		"irqbalance.service": {Active: "active", File: "enabled"},
		"chrony.service":     {Active: "active", File: "enabled"},
		"lldpd.service":      {Active: "inactive", File: "disabled"},
		"broken.service":     {Active: "inactive", File: "disabled", Fails: true},
		"once.service":       {Active: "inactive", File: "disabled", Ends: true},
		"static.service":     {Active: "inactive", File: "static"},
		"masked.service":     {Active: "inactive", File: "masked"},
		"getty@.service":     {File: "enabled"},
	}
}

// booted says that systemd is process 1.
func (h *host) booted() bool { return strings.TrimSpace(h.get("/proc/1/comm")) == "systemd" }

// findUnit is a unit by its name. One of a template comes to be when it is named.
func (h *host) findUnit(name string) *unit {
	if u := h.state.Settings.Units[name]; u != nil {
		return u
	}
	if before, after, ok := strings.Cut(name, "@"); ok && h.state.Settings.Units[before+"@.service"] != nil && after != ".service" {
		return &unit{Active: "inactive", File: "disabled"}
	}
	return nil
}

// systemctl knows what Plumb asks of it. Options stand before "--".
func systemctl(h *host, r *run) int {
	if !h.booted() {
		return r.fail(1, "System has not been booted with systemd as init system (PID 1). Can't operate.\nFailed to connect to bus: Host is down")
	}
	_, args := words(r.args[1:])
	if len(args) == 0 {
		return r.fail(1, "systemctl: the fake host wants a command")
	}
	verb, names := args[0], args[1:]
	switch verb {
	case "show":
		return h.showUnits(r, names)
	case "is-system-running":
		r.printf("running\n")
		return 0
	case "is-active":
		for _, n := range names {
			u := h.findUnit(n)
			if u == nil || u.Active != "active" {
				r.printf("inactive\n")
				return 3
			}
			r.printf("active\n")
		}
		return 0
	case "is-enabled":
		for _, n := range names {
			u := h.findUnit(n)
			if u == nil {
				return r.fail(4, "not-found")
			}
			r.printf("%s\n", u.File)
			if u.File != "enabled" && u.File != "static" {
				return 1
			}
		}
		return 0
	case "list-unit-files":
		for _, n := range slices.Sorted(maps.Keys(h.state.Settings.Units)) {
			r.printf("%s %s enabled\n", n, h.state.Settings.Units[n].File)
		}
		return 0
	case "daemon-reload":
		return 0
	case "reboot":
		reboot := programs()["reboot"]
		if reboot == nil {
			return r.fail(1, "systemctl: the fake host does not reboot")
		}
		return reboot(h, r)
	}
	if h.settings.Unprivileged {
		return r.fail(1, "Failed to %s unit: Access denied", verb)
	}
	for _, n := range names {
		if status := h.changeUnit(r, verb, n); status != 0 {
			return status
		}
	}
	return 0
}

func (h *host) changeUnit(r *run, verb, name string) int {
	if !strings.Contains(name, ".") {
		name += ".service"
	}
	u := h.findUnit(name)
	switch {
	case u == nil:
		return r.fail(5, "Failed to %s %s: Unit %s not found.", verb, name, name)
	case u.File == "masked" && verb != "unmask" && verb != "stop":
		return r.fail(1, "Failed to %s %s: Unit %s is masked.", verb, name, name)
	}
	if h.state.Settings.Units[name] == nil && verb != "stop" && verb != "disable" {
		h.state.Settings.Units[name] = u // of a template
	}
	switch verb {
	case "start", "restart":
		if verb == "start" && u.Active == "active" {
			return 0
		}
		h.state.Settings.Starts++
		u.Active = "active"
		h.state.Settings.Invocations[name] = fmt.Sprintf("%032x", h.state.Settings.Starts)
		switch {
		case u.Fails:
			u.Active = "failed"
			return r.fail(1, "Job for %[1]s failed because the control process exited with error code.\nSee \"systemctl status %[1]s\" and \"journalctl -xeu %[1]s\" for details.", name)
		case u.Ends:
			u.Active = "inactive"
		}
	case "stop":
		u.Active = "inactive"
	case "enable":
		if u.File == "disabled" {
			u.File = "enabled"
		}
	case "disable":
		if u.File == "enabled" {
			u.File = "disabled"
		}
	case "mask":
		u.File = "masked"
	case "unmask":
		u.File = "disabled"
	default:
		return r.fail(1, "Unknown command verb %s.", verb)
	}
	if strings.Contains(name, "@") && u.Active == "inactive" && u.File == "disabled" {
		delete(h.state.Settings.Units, name)
	}
	return 0
}

func (h *host) showUnits(r *run, names []string) int {
	pattern := func(n string) bool { return strings.HasPrefix(n, "*") }
	if slices.ContainsFunc(names, pattern) {
		names = slices.DeleteFunc(slices.Clone(names), pattern)
		for _, n := range slices.Sorted(maps.Keys(h.state.Settings.Units)) {
			if h.state.Settings.Units[n].Active == "active" && !slices.Contains(names, n) { // what does not run is not loaded
				names = append(names, n)
			}
		}
	}
	for i, n := range names {
		if i > 0 {
			r.printf("\n")
		}
		if !strings.Contains(n, ".") {
			n += ".service"
		}
		u, load, result := h.findUnit(n), "loaded", "success"
		switch {
		case u == nil:
			u, load = &unit{Active: "inactive"}, "not-found"
		case u.File == "masked":
			load = "masked"
		}
		sub := map[string]string{"active": "running", "inactive": "dead", "failed": "failed"}[u.Active]
		if u.Active == "failed" {
			result = "exit-code"
		}
		r.printf("Result=%s\nId=%s\nNames=%s\nLoadState=%s\nActiveState=%s\nSubState=%s\nUnitFileState=%s\nInvocationID=%s\n", result, n, n, load, u.Active, sub, u.File, h.state.Settings.Invocations[n])
	}
	return 0
}

func journalctl(h *host, r *run) int {
	if u := h.findUnit(option(r.args, "--unit")); u != nil && u.Fails {
		r.printf("Starting a service that does not start...\nbroken: cannot open /etc/broken.conf: No such file or directory\nMain process exited, code=exited, status=1/FAILURE\n")
	}
	return 0
}
