package settings

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

// powerWorld is a fake host that is no virtual machine: intel_pstate on CPUs 0 and 1 of eight.
func powerWorld(t *testing.T) *world {
	w := newWorld(t)
	w.write(t, powerDir+"/online", "0-1\n")
	w.write(t, noTurbo, "0\n")
	for id := range 2 {
		for file, text := range map[string]string{
			governor: "powersave", minFreq: "800000", maxFreq: "3500000", preference: "balance_power", "cpufreq/scaling_available_governors": "performance powersave",
			"cpufreq/energy_performance_available_preferences": "default performance balance_performance balance_power power", "cpufreq/cpuinfo_min_freq": "800000", "cpufreq/cpuinfo_max_freq": "3500000",
		} {
			w.write(t, cpuFile(id, file), text+"\n")
		}
		for i, s := range []struct{ name, latency, disable string }{{"POLL", "0", "0"}, {"C1", "2", "0"}, {"C1E", "10", "1"}, {"C6", "133", "0"}} {
			dir := cpuFile(id, fmt.Sprintf("cpuidle/state%d/", i))
			w.write(t, dir+"name", s.name+"\n")
			w.write(t, dir+"latency", s.latency+"\n")
			w.write(t, dir+"disable", s.disable+"\n")
		}
	}
	return w
}

func TestCPUPower(t *testing.T) {
	w := powerWorld(t)
	changed := func(file, to string) func(*testing.T, providers.Host) {
		return func(t *testing.T, h providers.Host) { put(t, h, cpuFile(1, file), to) }
	}
	conformance.Run(t, conformance.Case{
		Type: CPUPower{}, Open: w.open, Snapshot: w.snapshot,
		Config: attrs{"governor": str("performance"), "turbo": cty.False, "min_mhz": num(3000), "max_mhz": num(3000), "max_cstate_latency": num(2), "disabled_cstates": strs("C1")},
		Update: attrs{"min_mhz": num(900), "max_mhz": num(1000), "energy_performance_preference": str("power")},
		Drift: map[string]func(*testing.T, providers.Host){
			"governor": changed(governor, "powersave"), "frequency": changed(minFreq, "2000000"), "state": changed("cpuidle/state3/disable", "0"), "named state": changed("cpuidle/state1/disable", "0"),
			"turbo": func(t *testing.T, h providers.Host) { put(t, h, noTurbo, "0") },
		},
	})
	conformance.Run(t, conformance.Case{Type: CPUPower{}, Open: w.open, Snapshot: w.snapshot, Config: attrs{"cpus": str("1"), "energy_performance_preference": str("performance")}})
}

func TestBoost(t *testing.T) {
	w := newWorld(t)
	w.write(t, boost, "1\n")
	conformance.Run(t, conformance.Case{Type: CPUPower{}, Open: w.open, Snapshot: w.snapshot, Config: attrs{"turbo": cty.False}})
}

func TestCPUPowerRefusals(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	for name, v := range map[string]cty.Value{"governor": str("performance"), "min_mhz": num(1000), "energy_performance_preference": str("power"), "turbo": cty.True, "max_cstate_latency": num(1), "disabled_cstates": strs("C6")} {
		wantProblem(t, planOf(t, CPUPower{}, h, attrs{name: v}), "fake", "virtual machine")
	}
	h.Close()
	w = powerWorld(t)
	h = w.open(t)
	defer h.Close()
	wantProblem(t, planOf(t, CPUPower{}, h, attrs{"governor": str("ondemand")}), `"ondemand"`, "performance, powersave")
	wantProblem(t, planOf(t, CPUPower{}, h, attrs{"max_mhz": num(5000)}), "800 to 3500 MHz", "5000")
	wantProblem(t, planOf(t, CPUPower{}, h, attrs{"max_mhz": num(1000), "min_mhz": num(2000)}), "min_mhz is 2000 and max_mhz 1000")
	wantProblem(t, planOf(t, CPUPower{}, h, attrs{"disabled_cstates": strs("C9")}), `"C9"`, "POLL, C1, C1E, C6")
	wantProblem(t, planOf(t, CPUPower{}, h, attrs{"cpus": str("0,7"), "governor": str("powersave")}), "no CPU 7")
}
