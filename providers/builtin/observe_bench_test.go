package builtin

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

// BenchmarkRealObserving says whether observing disturbs: it measures windows of 2 s in pairs, one with all observers reading before and after it, as
// the bench stage has them, and one without, in alternating order. Two null ports receive without end and one PMD drops all of it. The rate
// is in frames for each second that the PMD was on a CPU, so that what else runs on the machine does not count. Run it as
//
//	PLUMB_REAL=1 go test -run none -bench RealObserving -benchtime 10x ./providers/builtin
func BenchmarkRealObserving(b *testing.B) {
	if os.Getenv("PLUMB_REAL") == "" {
		b.Skip("PLUMB_REAL is not set")
	}
	set := Set()
	h, err := set.OpenHost(b.Context(), "dut", conformance.Desired(set.HostSchema, nil), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	bed := &bed{t: b, set: set, host: h}
	defer bed.destroy()
	block := &find(set.Resources, "ovs_switch").Schema().Block.Blocks["dpdk"].Block
	bed.apply("host_hugepages", "h", values{"size": str("2M"), "pages": cty.MapVal(values{"0": num(300)})})
	sw := bed.apply("ovs_switch", "s", values{"dpdk": conformance.Desired(block, values{"socket_mem": list(num(256)), "socket_limit": list(num(256)), "pmd_cores": str("1"), "extra": str("--no-pci")})})
	bed.apply("ovs_bridge", "b", values{"name": str("br0"), "datapath": str("netdev")})
	for i := range 2 {
		bed.apply("ovs_port", fmt.Sprintf("n%d", i), values{"bridge": str("br0"), "name": str(fmt.Sprintf("n%d", i)), "type": str("dpdk"), "devargs": str(fmt.Sprintf("net_null%d", i))})
	}
	bed.apply("ovs_flows", "f", values{"bridge": str("br0"), "flows": list(str("actions=drop"))})
	observers := []providers.Observer{set.HostObserver, find(set.Resources, "ovs_switch").(providers.Observer)}
	window := func(observe bool) (rate float64) {
		var finish []func(context.Context) ([]providers.Observation, error)
		if observe {
			for _, o := range observers {
				f, err := o.Observe(b.Context(), h, []providers.Subject{sw})
				if err != nil {
					b.Fatal(err)
				}
				finish = append(finish, f)
			}
		}
		frames, busy := pmd(b, h)
		<-time.After(2 * time.Second)
		framesAfter, busyAfter := pmd(b, h)
		for _, f := range finish {
			if _, err := f(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		return (framesAfter - frames) / (busyAfter - busy)
	}
	var ratios []float64
	for n := 0; b.Loop(); n++ {
		first := window(n%2 == 0)
		second := window(n%2 != 0)
		with, without := first, second
		if n%2 != 0 {
			with, without = second, first
		}
		ratios = append(ratios, 100*(with/without-1))
		b.Logf("%.3f Mframes a CPU second observed, %.3f not: %+.2f %%", with/1e6, without/1e6, ratios[len(ratios)-1])
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "%median_difference")
	b.ReportMetric(ratios[0], "%least")
	b.ReportMetric(ratios[len(ratios)-1], "%greatest")
}

// pmd is how many frames the PMD thread has received, and for how many seconds it was on a CPU.
func pmd(b *testing.B, h providers.Host) (frames, seconds float64) {
	res, err := h.Conn().Run(b.Context(), providers.Cmd{Args: []string{"ovs-appctl", "dpif-netdev/pmd-stats-show"}})
	if err != nil {
		b.Fatal(err)
	}
	_, text, _ := strings.Cut(string(res.Stdout), "packets received: ")
	text, _, _ = strings.Cut(text, "\n")
	if frames, err = strconv.ParseFloat(text, 64); err != nil {
		b.Fatal(err)
	}
	pid, err := os.ReadFile("/run/openvswitch/ovs-vswitchd.pid")
	if err != nil {
		b.Fatal(err)
	}
	files, err := h.Conn().ReadFiles(b.Context(), "/proc/"+strings.TrimSpace(string(pid))+"/task/*/comm", "/proc/"+strings.TrimSpace(string(pid))+"/task/*/schedstat")
	if err != nil {
		b.Fatal(err)
	}
	for name, comm := range files {
		if strings.HasSuffix(name, "/comm") && strings.HasPrefix(string(comm), "pmd-") {
			ns, _, _ := strings.Cut(string(files[strings.TrimSuffix(name, "comm")+"schedstat"]), " ")
			if seconds, err = strconv.ParseFloat(ns, 64); err != nil {
				b.Fatal(err)
			}
			return frames, seconds / 1e9
		}
	}
	b.Fatal("there is no PMD thread")
	return 0, 0
}
