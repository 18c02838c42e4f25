package settings

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// unitName is the name with its suffix, if it is one that can be started and stopped without a danger to the rest of the host.
func unitName(s string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9_:][A-Za-z0-9_:.\\@-]{0,240}$`).MatchString(s) { // systemd.unit(5)
		return "", fmt.Errorf("%q is not the name of a unit", s)
	}
	switch i := strings.LastIndexByte(s, '.'); {
	case i > 0 && slices.Contains([]string{"service", "socket", "timer", "path"}, s[i+1:]):
		return s, nil
	case i > 0 && slices.Contains([]string{"target", "mount", "automount", "swap", "slice", "scope", "device"}, s[i+1:]):
		return "", fmt.Errorf("%q: services, sockets, timers and paths are supported", s)
	}
	return s + ".service", nil
}

func canonicalUnit(v cty.Value) (cty.Value, error) {
	s, err := unitName(v.AsString())
	return cty.StringVal(s), err
}

// unit is what systemd says of a unit.
type unit struct {
	load, active, sub, file string // LoadState, ActiveState, SubState, UnitFileState
	invocation              string // changes with each start
	result                  string
}

func (u unit) running() bool {
	return slices.Contains([]string{"active", "reloading", "activating", "refreshing"}, u.active)
}

const unitProperties = "--property=Id,Names,LoadState,ActiveState,SubState,UnitFileState,InvocationID,Result"

type unitsKey struct{}

// unitsSeen is what was seen of the units of one host and run, by name.
type unitsSeen struct {
	batch *batch[unit]
	mu    sync.Mutex
	known map[string]unit
	asked int
	all   bool
}

// few is how many units are asked for by name; whoever has more asks for all that systemd has loaded, which takes longer once.
const few = 16

func unitsOf(ctx context.Context, h providers.Host) (*unitsSeen, error) {
	if h == nil {
		return nil, errNoHost
	}
	v, err := h.Shared(ctx, unitsKey{}, func(context.Context) (any, error) {
		u := &unitsSeen{known: map[string]unit{}}
		u.batch = newBatch(func(ctx context.Context, names []string) (map[string]unit, error) { return u.ask(ctx, h, names) })
		return u, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*unitsSeen), nil
}

// ask asks systemd for units, and for all that are loaded when it has been asked for many.
func (u *unitsSeen) ask(ctx context.Context, h providers.Host, names []string) (map[string]unit, error) {
	args := append([]string{"systemctl", "show", "--no-pager", unitProperties, "--"}, names...)
	u.mu.Lock()
	u.asked += len(names)
	if u.asked > few && !u.all {
		u.all = true
		args = append(args, "*.service", "*.socket", "*.timer", "*.path")
	}
	u.mu.Unlock()
	out, err := run(ctx, h, args...)
	if err != nil {
		return nil, fmt.Errorf("look at the units of systemd: %w", err)
	}
	found := parseUnits(out)
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.Copy(u.known, found)
	return found, nil
}

// changed makes whoever looks next ask again.
func (u *unitsSeen) changed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known, u.all = map[string]unit{}, false
}

// find is one unit, as it was seen in this run.
func find(ctx context.Context, h providers.Host, name string) (unit, error) {
	all, err := unitsOf(ctx, h)
	if err != nil {
		return unit{}, err
	}
	all.mu.Lock()
	u, known := all.known[name]
	all.mu.Unlock()
	if known {
		return u, nil
	}
	return all.batch.get(ctx, name)
}

// ask asks for one unit now.
func ask(ctx context.Context, h providers.Host, name string) (unit, error) {
	out, err := run(ctx, h, "systemctl", "show", "--no-pager", unitProperties, "--", name)
	if err != nil {
		return unit{}, fmt.Errorf("look at unit %s: %w", name, err)
	}
	u, _ := parseUnit(out)
	return u, nil
}

// parseUnits reads blocks "Key=Value" separated by blank lines.
func parseUnits(out string) map[string]unit {
	all := map[string]unit{}
	for block := range strings.SplitSeq(out, "\n\n") {
		u, names := parseUnit(block)
		for _, n := range names {
			all[n] = u
		}
	}
	return all
}

func parseUnit(block string) (u unit, names []string) {
	for line := range strings.Lines(block) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch k {
		case "Id":
			names = append(names, v)
		case "Names":
			names = append(names, strings.Fields(v)...)
		case "LoadState":
			u.load = v
		case "ActiveState":
			u.active = v
		case "SubState":
			u.sub = v
		case "UnitFileState":
			u.file = v
		case "InvocationID":
			u.invocation = v
		case "Result":
			u.result = v
		}
	}
	return u, names
}
