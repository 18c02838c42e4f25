package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// CPUPower is host_cpu_power: how CPUs save power.
type CPUPower struct{}

var (
	_ providers.Resource = CPUPower{}
	_ providers.Preparer = CPUPower{}
	_ providers.Planner  = CPUPower{}
	_ providers.Claimer  = CPUPower{}
)

const (
	powerDir   = "/sys/devices/system/cpu"
	noTurbo    = powerDir + "/intel_pstate/no_turbo"
	boost      = powerDir + "/cpufreq/boost"
	governor   = "cpufreq/scaling_governor"
	minFreq    = "cpufreq/scaling_min_freq"
	maxFreq    = "cpufreq/scaling_max_freq"
	preference = "cpufreq/energy_performance_preference"
)

// Schema is constant.
func (CPUPower) Schema() *schema.Resource {
	word := func(v cty.Value) error {
		if !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(v.AsString()) {
			return fmt.Errorf("%q is not a word of small letters", v.AsString())
		}
		return nil
	}
	return &schema.Resource{
		Type: "host_cpu_power",
		Description: "Frequencies and idle states of CPUs (Linux, Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst, cpuidle.rst). What is not given is left alone; every file gets back what was found in it. " +
			"A virtual machine mostly offers none of it.",
		Example: `resource "host_cpu_power" "dut" {
  governor           = "performance"
  turbo              = false
  max_cstate_latency = 2
}`,
		Setting: true,
		After:   []string{"host_service", "host_module"},
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"cpus": {Type: cty.String, Optional: true, Cost: schema.Replace, Canonical: someCPUs,
				Description: "CPU list. Unset: all that are online. turbo is always the whole machine's."},
			"governor": optional(cty.String, schema.Live, word, "Governor: performance, powersave, schedutil, ...; those that scaling_available_governors names."),
			"turbo":    optional(cty.Bool, schema.Live, nil, "Whether CPUs may go faster than their base frequency (intel_pstate/no_turbo, cpufreq/boost)."),
			"min_mhz": optional(cty.Number, schema.Live, schema.Whole(1, 100000),
				"Least frequency in MHz, from cpuinfo_min_freq to cpuinfo_max_freq."),
			"max_mhz": optional(cty.Number, schema.Live, schema.Whole(1, 100000),
				"Greatest frequency in MHz, from cpuinfo_min_freq to cpuinfo_max_freq."),
			"energy_performance_preference": optional(cty.String, schema.Live, word,
				"Preference of the hardware's own control: performance, balance_performance, ...; those that energy_performance_available_preferences names."),
			"max_cstate_latency": optional(cty.Number, schema.Live, schema.Whole(0, 1000000),
				"Idle states from which a CPU takes longer than this to wake are disabled, in microseconds. 0 leaves polling alone."),
			"disabled_cstates": optional(cty.List(cty.String), schema.Live, each(oneLine), "Idle states that are disabled, by the names in cpuidle/state*/name: [\"C6\"]."),
		}},
	}
}

type powerKey struct{}

// powerOf reads all of it, once for all instances of a host.
func powerOf(ctx context.Context, h providers.Host) (*cache[values], values, error) {
	c, err := cacheOf[values](ctx, h, powerKey{})
	if err != nil {
		return nil, nil, err
	}
	v, err := c.get(ctx, func(ctx context.Context) (values, error) {
		patterns := []string{noTurbo, boost, powerDir + "/online"}
		for _, f := range []string{governor, minFreq, maxFreq, preference, "cpufreq/scaling_available_governors", "cpufreq/energy_performance_available_preferences", "cpufreq/cpuinfo_min_freq",
			"cpufreq/cpuinfo_max_freq", "cpuidle/state*/name", "cpuidle/state*/latency", "cpuidle/state*/disable"} {
			patterns = append(patterns, powerDir+"/cpu[0-9]*/"+f)
		}
		v, err := readValues(ctx, h, patterns...)
		if err != nil {
			return nil, fmt.Errorf("read how CPUs save power: %w", err)
		}
		return v, nil
	})
	return c, v, err
}

func cpuFile(id int, file string) string { return fmt.Sprintf("%s/cpu%d/%s", powerDir, id, file) }

// power is what an instance wants.
type power struct {
	obj  cty.Value
	cpus []int
}

// newPower takes the CPUs that are online where none are named.
func newPower(obj cty.Value, have values) (power, error) {
	list := attr.Text(obj, "cpus")
	if list == "" {
		list = have[powerDir+"/online"]
	}
	s, err := cpuset.Parse(list)
	return power{obj, s.List()}, err
}

// cell is one file that an attribute sets.
type cell struct {
	attribute, file, want string
	cpu                   int
}

// cells are all files that the instance manages and that are there.
func (p power) cells(have values) []cell {
	var out []cell
	add := func(attribute, file, want string, cpu int) {
		if _, there := have[file]; there {
			out = append(out, cell{attribute, file, want, cpu})
		}
	}
	if t := p.obj.GetAttr("turbo"); t.IsKnown() && !t.IsNull() {
		if _, intel := have[noTurbo]; intel {
			add("turbo", noTurbo, map[bool]string{true: "0", false: "1"}[t.True()], 0)
		} else {
			add("turbo", boost, map[bool]string{true: "1", false: "0"}[t.True()], 0)
		}
	}
	disabled, _ := texts(p.obj, "disabled_cstates")
	latency := attr.Number(p.obj, "max_cstate_latency", -1)
	for _, id := range p.cpus {
		for attribute, file := range map[string]string{"governor": governor, "energy_performance_preference": preference} {
			if want := attr.Text(p.obj, attribute); want != "" {
				add(attribute, cpuFile(id, file), want, id)
			}
		}
		for attribute, file := range map[string]string{"min_mhz": minFreq, "max_mhz": maxFreq} {
			if mhz := attr.Number(p.obj, attribute, 0); mhz > 0 {
				add(attribute, cpuFile(id, file), strconv.FormatInt(mhz*1000, 10), id)
			}
		}
		for _, s := range states(have, id) {
			switch {
			case slices.Contains(disabled, s.name):
				add("disabled_cstates", s.file, "1", id)
			case latency >= 0 && s.latency > latency:
				add("max_cstate_latency", s.file, "1", id)
			}
		}
	}
	slices.SortFunc(out, func(a, b cell) int { return strings.Compare(a.file, b.file) })
	return out
}

// idleState is one idle state of a CPU.
type idleState struct {
	name, file string // file: disable
	latency    int64  // microseconds
	disabled   bool
}

// states are the idle states of a CPU, the lightest first.
func states(have values, id int) []idleState {
	var out []idleState
	for i := 0; ; i++ {
		dir := cpuFile(id, fmt.Sprintf("cpuidle/state%d/", i))
		disable, there := have[dir+"disable"]
		if !there {
			return out
		}
		latency, err := strconv.ParseInt(have[dir+"latency"], 10, 64)
		if err != nil {
			latency = 0
		}
		out = append(out, idleState{have[dir+"name"], dir + "disable", latency, disable != "0"})
	}
}

// Read reports what differs, of the first CPU where it does.
func (CPUPower) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	_, have, err := powerOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	p, err := newPower(req.Prior, have)
	if err != nil {
		return providers.ReadResult{}, err
	}
	now := map[string]cty.Value{}
	for _, c := range p.cells(have) {
		if _, said := now[c.attribute]; said || have[c.file] == c.want {
			continue
		}
		switch c.attribute {
		case "turbo":
			now[c.attribute] = cty.BoolVal(!req.Prior.GetAttr("turbo").True())
		case "min_mhz", "max_mhz":
			khz, err := strconv.ParseInt(have[c.file], 10, 64)
			if err != nil {
				return providers.ReadResult{}, fmt.Errorf("%s: %w", c.file, err)
			}
			now[c.attribute] = cty.NumberIntVal(khz).Divide(cty.NumberIntVal(1000))
		case "max_cstate_latency":
			longest := int64(0)
			for _, s := range states(have, c.cpu) {
				if !s.disabled {
					longest = max(longest, s.latency)
				}
			}
			now[c.attribute] = cty.NumberIntVal(longest)
		case "disabled_cstates":
			var off []string
			names, _ := texts(req.Prior, c.attribute)
			for _, s := range states(have, c.cpu) {
				if s.disabled && slices.Contains(names, s.name) {
					off = append(off, s.name)
				}
			}
			now[c.attribute] = textList(off)
		default:
			now[c.attribute] = cty.StringVal(have[c.file])
		}
	}
	return providers.ReadResult{Current: with(req.Prior, now)}, nil
}

// undoPower is what was found.
type undoPower struct {
	undoValues
	// Along are files that the kernel changes with others: the preference goes with the governor. They are put back by destroy only.
	Along values `json:"along,omitempty"`
}

// Prepare records what is in the files.
func (CPUPower) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	u, err := recorded[undoPower](req.Undo)
	if err != nil {
		return nil, err
	}
	c, _, err := powerOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	c.drop()
	_, have, err := powerOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	p, err := newPower(req.Planned, have)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, x := range p.cells(have) {
		files = append(files, x.file)
		along := path.Join(path.Dir(x.file), path.Base(preference))
		if v, there := have[along]; there && x.attribute == "governor" {
			if u.Along == nil {
				u.Along = values{}
			}
			if _, noted := u.Along[along]; !noted {
				u.Along[along] = v
			}
		}
	}
	found := have
	if len(u.Along) > 0 { // one that changed along since was recorded before
		found = undoValues{have}.target(u.Along)
	}
	u.note(found, files)
	return json.Marshal(u)
}

// Apply writes what differs, or puts back what was found.
func (CPUPower) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := recorded[undoPower](req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c, _, err := powerOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	c.drop()
	defer c.drop()
	_, have, err := powerOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	want := values{}
	if req.Planned.IsNull() {
		want = u.Along
	} else {
		p, err := newPower(req.Planned, have)
		if err != nil {
			return providers.ApplyResult{}, err
		}
		for _, x := range p.cells(have) {
			want[x.file] = x.want
		}
	}
	target := u.target(want)
	for f := range u.Along {
		_, itself := want[f]
		if _, governed := want[path.Join(path.Dir(f), path.Base(governor))]; governed && !itself {
			delete(target, f) // the governor has its say
		}
	}
	return providers.ApplyResult{New: req.Planned}, setPower(ctx, req.Host, have, target)
}

// setPower writes in an order that the kernel takes: turbo and governors first, then limits so that the least is never above the greatest, then the rest.
// What goes along with a governor is looked at again after it was changed.
func setPower(ctx context.Context, h providers.Host, have, target values) error {
	exact := func(_, a, b string) bool { return a == b }
	var first, raised, least, lowered, rest []string
	for _, f := range sortedFiles(target) {
		switch {
		case f == noTurbo || f == boost || strings.HasSuffix(f, governor):
			first = append(first, f)
		case strings.HasSuffix(f, minFreq):
			least = append(least, f)
		case strings.HasSuffix(f, maxFreq):
			now, err1 := strconv.ParseInt(have[f], 10, 64)
			then, err2 := strconv.ParseInt(target[f], 10, 64)
			if err1 == nil && err2 == nil && then > now {
				raised = append(raised, f)
			} else {
				lowered = append(lowered, f)
			}
		default:
			rest = append(rest, f)
		}
	}
	if err := setValues(ctx, h, first, have, target, exact); err != nil {
		return fmt.Errorf("set how CPUs save power: %w", err)
	}
	if rest = append(slices.Concat(raised, least, lowered), rest...); len(rest) == 0 {
		return nil
	}
	now, err := readValues(ctx, h, rest...)
	if err != nil {
		return err
	}
	if err := setValues(ctx, h, rest, now, target, exact); err != nil {
		return fmt.Errorf("set how CPUs save power: %w", err)
	}
	return nil
}
