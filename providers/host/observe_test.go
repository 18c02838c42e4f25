package host

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
)

var update = flag.Bool("update", false, "write the golden files")

// stat is a stat file of a thread.
func stat(tid int, comm string, minor, user, system, core, guest int) []byte {
	return fmt.Appendf(nil, "%d (%s) R 1 1 1 0 -1 0 %d 0 0 0 %d %d 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 %d 0 0 0 %d 0\n", tid, comm, minor, user, system, core, guest)
}

func status(voluntary, involuntary int) []byte {
	return fmt.Appendf(nil, "Name:\tx\nVmSize:\t  200 kB\nVmRSS:\t  100 kB\nHugetlbPages:\t  2048 kB\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", voluntary, involuntary)
}

// machine is a host at two moments, 10 s apart: OVS with a PMD on core 1, a VNF's testpmd, a guest, and others.
func machine() (before, after fileset) {
	before = fileset{
		"/proc/uptime": []byte("100.00 50.00\n"),
		"/proc/stat": []byte("cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 100 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 0 0 0 0 0\n" +
			"cpu3 0 0 0 0 0 0 0 0 0 0\nintr 5\n"),
		"/proc/interrupts": []byte("           CPU0       CPU1       CPU2       CPU3\n 24:  10 0 0 0 IO-APIC 5-edge virtio0-input.0\nLOC: 100 100 0 0 Local timer interrupts\nERR: 3\n"),
		"/proc/schedstat":  []byte("version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 5 5 100\ncpu1 0 0 0 0 0 0 5 5 40\ndomain0 3 0 0\n"),

		"/proc/7/task/7/stat": stat(7, "ovs-vswitchd", 5, 10, 0, 0, 0), "/proc/7/task/7/status": status(10, 0),
		"/proc/7/task/8/stat": stat(8, "pmd-c01/id:8", 0, 0, 0, 1, 0), "/proc/7/task/8/status": status(0, 10), "/proc/7/task/8/schedstat": []byte("1 1000000000 5\n"),
		"/proc/7/task/8/io": []byte("rchar: 1\nread_bytes: 0\nwrite_bytes: 4096\n"), "/proc/7/status": status(10, 0),
		"/proc/9/task/9/stat":   stat(9, "idle (x) y", 0, 5, 5, 0, 0),
		"/proc/20/task/20/stat": stat(20, "qemu-system-x86", 0, 0, 0, 0, 0), "/proc/20/cmdline": []byte("qemu-system-x86_64\x00-name\x00guest=vnf,debug-threads=on\x00"),
		"/proc/20/task/21/stat": stat(21, "CPU 0/KVM", 0, 0, 0, 2, 0),
		"/proc/30/task/30/stat": stat(30, "gone", 0, 1, 1, 0, 0),
	}
	after = maps.Clone(before)
	maps.Copy(after, fileset{
		"/proc/uptime":     []byte("110.00 50.00\n"),
		"/proc/stat":       []byte("cpu0 200 0 100 500 0 50 50 100 0 0\ncpu1 1100 0 0 0 0 0 0 0 0 0\ncpu2 900 0 0 100 0 0 0 0 900 0\ncpu3 0 0 0 1000 0 0 0 0 0 0\n"),
		"/proc/interrupts": []byte("           CPU0       CPU1       CPU2       CPU3\n 24:  60 0 0 0 IO-APIC 5-edge virtio0-input.0\nLOC: 2600 120 0 0 Local timer interrupts\nERR: 3\n"),
		"/proc/schedstat":  []byte("version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 5 5 10100\ncpu1 0 0 0 0 0 0 5 5 60\n"),

		"/proc/7/task/7/stat": stat(7, "ovs-vswitchd", 25, 12, 0, 0, 0), "/proc/7/task/7/status": status(30, 0),
		"/proc/7/task/8/stat": stat(8, "pmd-c01/id:8", 0, 900, 100, 1, 0), "/proc/7/task/8/status": status(0, 110), "/proc/7/task/8/schedstat": []byte("1 2000000000 5\n"),
		"/proc/7/task/8/io": []byte("rchar: 1\nread_bytes: 0\nwrite_bytes: 14336\n"), "/proc/7/environ": []byte("HOME=/\x00PLUMB_ADDRESS=ovs_switch.s\x00"),
		"/proc/7/numa_maps":     []byte("1000 default anon=3 dirty=3 N0=3 kernelpagesize_kB=4\n2000 default huge dirty=2 N0=1 N1=1 kernelpagesize_kB=2048\n3000 local\n"),
		"/proc/9/task/9/stat":   stat(9, "idle (x) y", 0, 5, 6, 0, 0),
		"/proc/20/task/21/stat": stat(21, "CPU 0/KVM", 0, 905, 5, 2, 900),
		"/proc/40/task/40/stat": stat(40, "stress-ng-cpu", 9, 100, 0, 3, 0), "/proc/41/task/41/stat": stat(41, "stress-ng-cpu", 9, 50, 0, 3, 0),
		cpuDir + "/cpu1/cpufreq/scaling_cur_freq": []byte("2400000\n"), cpuDir + "/cpu1/cpufreq/scaling_governor": []byte("performance\n"),
		cpuDir + "/cpu3/cpufreq/scaling_cur_freq":                     []byte("800000\n"),
		nodeDir + "/node0/hugepages/hugepages-2048kB/nr_hugepages":    []byte("512\n"),
		nodeDir + "/node0/hugepages/hugepages-2048kB/free_hugepages":  []byte("100\n"),
		nodeDir + "/node0/hugepages/hugepages-1048576kB/nr_hugepages": []byte("0\n"), nodeDir + "/node0/hugepages/hugepages-1048576kB/free_hugepages": []byte("0\n"),
	})
	delete(after, "/proc/30/task/30/stat")
	return before, after
}

func print(obs []providers.Observation) string {
	var b strings.Builder
	for _, o := range obs {
		fmt.Fprintf(&b, "%s | %s |", o.Kind, o.Subject)
		for _, m := range o.Metrics {
			fmt.Fprintf(&b, " %s %.4g%s", m.Name, m.Value, m.Unit)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestCompare(t *testing.T) {
	first, second := machine()
	before, err := parseReading(first)
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseReading(second)
	if err != nil {
		t.Fatal(err)
	}
	got := print(compare("dut", map[int]bool{}, before, after))
	golden := filepath.Join("testdata", "observations.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
	// An isolated core is shown although nothing runs on it.
	if got := print(compare("dut", map[int]bool{3: true}, before, after)); !strings.Contains(got, "cpu | core 3 | busy 0%") || !strings.Contains(got, "frequency | core 3 | frequency 800MHz") {
		t.Errorf("the isolated core is missing:\n%s", got)
	}
	if got := compare("dut", nil, before, before); len(got) != 2 {
		t.Errorf("readings of the same moment have rates: %s", print(got))
	}
}

// Whatever stands in /proc, a reading is made of it or refused, and comparing it does not fail.
func FuzzReading(f *testing.F) {
	first, _ := machine()
	f.Add(string(first["/proc/7/task/8/stat"]), string(first["/proc/stat"]), string(first["/proc/interrupts"]), string(first["/proc/schedstat"]), string(first["/proc/7/status"]), "1 default N0=3 kernelpagesize_kB=4\n")
	f.Fuzz(func(t *testing.T, stat, cores, irqs, sched, status, numa string) {
		before, after := machine()
		maps.Copy(after, fileset{"/proc/7/task/8/stat": []byte(stat), "/proc/stat": []byte(cores), "/proc/interrupts": []byte(irqs), "/proc/schedstat": []byte(sched),
			"/proc/7/status": []byte(status), "/proc/7/task/8/status": []byte(status), "/proc/7/numa_maps": []byte(numa), "/proc/7/cmdline": []byte(status)})
		a, err := parseReading(before)
		b, err2 := parseReading(after)
		if err != nil || err2 != nil {
			return
		}
		for _, o := range compare("h", nil, a, b) {
			for _, m := range o.Metrics {
				if m.Value < 0 {
					t.Errorf("%s %s: %s is %g", o.Kind, o.Subject, m.Name, m.Value)
				}
			}
		}
	})
}
