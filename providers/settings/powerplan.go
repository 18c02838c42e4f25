package settings

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// Plan finds what this machine does not offer.
func (CPUPower) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, f, err := planned(ctx, req)
	if err != nil || f == nil || unchanged(req) || !req.Proposed.IsWhollyKnown() {
		return res, err
	}
	_, have, err := powerOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	p, err := newPower(req.Proposed, have)
	if err != nil {
		return res, err
	}
	res.Problems = append(res.Problems, p.problems(have, req.Host.Name())...)
	return res, nil
}

func (p power) problems(have values, host string) []providers.Problem {
	var out []providers.Problem
	refuse := func(attribute, summary, detail string, args ...any) {
		out = append(out, problem(attribute, summary, detail, args...))
	}
	set := func(attribute string) bool { return !p.obj.GetAttr(attribute).IsNull() }
	if len(p.cpus) == 0 {
		return out
	}
	online, err := cpuset.Parse(have[powerDir+"/online"])
	for _, id := range p.cpus {
		if err == nil && !online.Contains(id) {
			refuse("cpus", "CPU is not online", "%s has no CPU %d that is online: it has %s.", host, id, online)
			return out
		}
	}
	first := p.cpus[0]
	lacks := func(attribute, file, what string) bool {
		if _, there := have[cpuFile(first, file)]; set(attribute) && !there {
			refuse(attribute, "Not offered by this machine", "CPU %d of %s has no %s: %s. A virtual machine has no frequency of its own: set it on the machine that it runs on.", first, host, cpuFile(first, file), what)
			return true
		}
		return !set(attribute)
	}
	const noDriver = "no cpufreq driver is in charge of it (intel_pstate, acpi-cpufreq, amd-pstate), or the firmware keeps control of frequencies to itself"
	choice := func(attribute, file, offered string) {
		want, all := attr.Text(p.obj, attribute), have[cpuFile(first, offered)]
		if !lacks(attribute, file, noDriver) && all != "" && !slices.Contains(strings.Fields(all), want) {
			refuse(attribute, "Not offered by this machine", "CPU %d of %s does not offer %q: it has %s.", first, host, want, strings.Join(strings.Fields(all), ", "))
		}
	}
	choice("governor", governor, "cpufreq/scaling_available_governors")
	choice("energy_performance_preference", preference, "cpufreq/energy_performance_available_preferences")
	least, err1 := strconv.ParseInt(have[cpuFile(first, "cpufreq/cpuinfo_min_freq")], 10, 64)
	most, err2 := strconv.ParseInt(have[cpuFile(first, "cpufreq/cpuinfo_max_freq")], 10, 64)
	for attribute, file := range map[string]string{"min_mhz": minFreq, "max_mhz": maxFreq} {
		mhz := attr.Number(p.obj, attribute, 0)
		if !lacks(attribute, file, noDriver) && errors.Join(err1, err2) == nil && (mhz*1000 < least || mhz*1000 > most) {
			refuse(attribute, "Frequency out of range", "CPU %d of %s goes from %d to %d MHz, and %d MHz are asked for.", first, host, least/1000, most/1000, mhz)
		}
	}
	if low, high := attr.Number(p.obj, "min_mhz", 0), attr.Number(p.obj, "max_mhz", 1<<30); low > high {
		refuse("min_mhz", "Frequencies contradict one another", "min_mhz is %d and max_mhz %d.", low, high)
	}
	if _, intel := have[noTurbo]; set("turbo") && !intel {
		if _, there := have[boost]; !there {
			refuse("turbo", "Not offered by this machine", "%s has neither %s nor %s: its CPUs have no turbo, the firmware has turned it off, or it is a virtual machine.", host, noTurbo, boost)
		}
	}
	lacks("max_cstate_latency", "cpuidle/state0/disable", "no cpuidle driver is in charge of it (intel_idle, acpi_idle), or idle=poll is on the kernel command line")
	if names, _ := texts(p.obj, "disabled_cstates"); !lacks("disabled_cstates", "cpuidle/state0/disable", "no cpuidle driver is in charge of it (intel_idle, acpi_idle), or idle=poll is on the kernel command line") {
		var offered []string
		for _, s := range states(have, first) {
			offered = append(offered, s.name)
		}
		for _, n := range names {
			if !slices.Contains(offered, n) {
				refuse("disabled_cstates", "No such idle state", "CPU %d of %s has no idle state %q: it has %s.", first, host, n, strings.Join(offered, ", "))
			}
		}
	}
	slices.SortFunc(out, func(a, b providers.Problem) int { return strings.Compare(a.Detail, b.Detail) })
	return out
}

// Claims says that each attribute of each CPU is one instance's.
func (CPUPower) Claims(ctx context.Context, host providers.Host, planned cty.Value) (providers.Claims, error) {
	if host == nil || !planned.IsWhollyKnown() {
		return providers.Claims{}, nil
	}
	_, have, err := powerOf(ctx, host)
	if err != nil {
		return providers.Claims{}, err
	}
	p, err := newPower(planned, have)
	if err != nil {
		return providers.Claims{}, err
	}
	var c providers.Claims
	for _, x := range p.cells(have) {
		c.Unique = append(c.Unique, providers.Unique{Scope: "power setting", Value: strings.TrimPrefix(x.file, powerDir+"/"), Path: cty.GetAttrPath(x.attribute)})
	}
	return c, nil
}
