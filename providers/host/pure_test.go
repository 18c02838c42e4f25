package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

// twoNodes is a machine with two nodes of two cores with two threads each; CPU 7 is offline.
func twoNodes() fileset {
	f := fileset{
		cpuDir + "/present": []byte("0-7\n"), cpuDir + "/online": []byte("0-6\n"), cpuDir + "/isolated": []byte("2-3\n"),
		nodeDir + "/node0/cpulist": []byte("0-3\n"), nodeDir + "/node1/cpulist": []byte("4-7\n"),
		nodeDir + "/node0/meminfo": []byte("Node 0 MemTotal:        1048576 kB\nNode 0 MemFree: 1 kB\n"), nodeDir + "/node1/meminfo": []byte("Node 1 MemTotal: 2097152 kB\n"),
		nodeDir + "/node0/hugepages/hugepages-2048kB/nr_hugepages": []byte("10\n"), nodeDir + "/node0/hugepages/hugepages-2048kB/free_hugepages": []byte("4\n"),
		nodeDir + "/node1/hugepages/hugepages-2048kB/nr_hugepages": []byte("0\n"), nodeDir + "/node1/hugepages/hugepages-2048kB/free_hugepages": []byte("0\n"),
		hugeDir + "/hugepages-2048kB/nr_hugepages": []byte("10\n"), hugeDir + "/hugepages-2048kB/free_hugepages": []byte("4\n"),
		"/proc/self/status": []byte("Name:\tplumb\nUid:\t0\t0\t0\t0\n"), "/proc/1/comm": []byte("systemd\n"), "/etc/os-release": []byte("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
	}
	for id, t := range []struct{ core, pkg, siblings string }{{"0", "0", "0,2"}, {"1", "0", "1,3"}, {"0", "0", "0,2"}, {"1", "0", "1,3"}, {"0", "1", "4,6"}, {"1", "1", "5"}, {"0", "1", "4,6"}} {
		dir := cpuDir + "/cpu" + string(rune('0'+id)) + "/topology/"
		f[dir+"core_id"], f[dir+"physical_package_id"], f[dir+"thread_siblings_list"] = []byte(t.core+"\n"), []byte(t.pkg+"\n"), []byte(t.siblings+"\n")
	}
	return f
}

func TestParseFacts(t *testing.T) {
	f, err := parseFacts(twoNodes(), "=== end\n", "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(providers.CPU{ID: 2, Node: 0, Core: 0, Socket: 0, Online: true, Isolated: true, Siblings: []int{0}}, f.CPUs[2]); diff != "" {
		t.Error(diff)
	}
	if last := f.CPUs[7]; last.Online || last.Node != 1 {
		t.Errorf("an offline CPU: %+v", last)
	}
	want := []providers.Node{{ID: 0, MemoryBytes: 1 << 30, Hugepages: []providers.Hugepages{{Size: 2 << 20, Total: 10, Free: 4}}},
		{ID: 1, MemoryBytes: 2 << 30, Hugepages: []providers.Hugepages{{Size: 2 << 20}}}}
	if diff := cmp.Diff(want, f.Nodes); diff != "" {
		t.Error(diff)
	}
	if !f.Root || !f.Systemd || f.Distribution != "Debian GNU/Linux 12" {
		t.Errorf("%+v", f)
	}
	if errs := f.Value.Type().TestConformance(factsSchema().Block.ImpliedType()); len(errs) > 0 {
		t.Errorf("the value is not of the schema's type: %v", errs)
	}
	if got := f.Value.GetAttr("online_cpus").AsString(); got != "0-6" {
		t.Errorf("online_cpus is %q", got)
	}
}

// A kernel without NUMA has no node folder.
func TestParseFactsWithoutNUMA(t *testing.T) {
	files := fileset{cpuDir + "/present": []byte("0\n"), cpuDir + "/online": []byte("0\n"), "/proc/meminfo": []byte("MemTotal: 1024 kB\n"),
		hugeDir + "/hugepages-2048kB/nr_hugepages": []byte("3"), hugeDir + "/hugepages-2048kB/free_hugepages": []byte("3")}
	f, err := parseFacts(files, "=== end\n", "")
	if err != nil {
		t.Fatal(err)
	}
	want := []providers.Node{{ID: 0, MemoryBytes: 1 << 20, Hugepages: []providers.Hugepages{{Size: 2 << 20, Total: 3, Free: 3}}}}
	if diff := cmp.Diff(want, f.Nodes); diff != "" || f.Root {
		t.Error(diff, f.Root)
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]string{"2M": "2M", "2MB": "2M", "2048kB": "2M", "1g": "1G", "1024M": "1G", "64K": "64K", "": "", "3M": "", "2": "", "M": "", "999999999G": ""} {
		n, err := parseSize(in)
		got := ""
		if err == nil {
			got = formatSize(n)
		}
		if got != want {
			t.Errorf("parseSize(%q): %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestParseMounts(t *testing.T) {
	const mounts = "proc /proc proc rw 0 0\nnone /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\nx /mnt/with\\040blank hugetlbfs rw,pagesize=1024M 0 0\n"
	want := []mount{{"/dev/hugepages", 2 << 20}, {"/mnt/with blank", 1 << 30}}
	if diff := cmp.Diff(want, parseMounts(mounts), cmp.AllowUnexported(mount{})); diff != "" {
		t.Error(diff)
	}
}

func TestProblems(t *testing.T) {
	f, err := parseFacts(twoNodes(), "=== end\n", "")
	if err != nil {
		t.Fatal(err)
	}
	user := *f
	user.Root = false
	for name, c := range map[string]struct {
		facts *providers.Facts
		want  want
		sum   string
	}{
		"fine":     {f, want{size: 2 << 20, pages: map[int]uint64{0: 5, 1: 5}}, ""},
		"not root": {&user, want{size: 2 << 20, pages: map[int]uint64{0: 5}}, "Not root"},
		"size":     {f, want{size: 1 << 30, pages: map[int]uint64{0: 1}}, "Page size not supported"},
		"node":     {f, want{size: 2 << 20, pages: map[int]uint64{2: 1}}, "No such NUMA node"},
		"memory":   {f, want{size: 2 << 20, pages: map[int]uint64{0: 513}}, "More hugepages than memory"},
	} {
		got := problems(c.facts, "dut", c.want)
		if c.sum == "" && len(got) > 0 || c.sum != "" && (len(got) != 1 || got[0].Summary != c.sum) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestClaims(t *testing.T) {
	v := conformance.Desired(&Hugepages{}.Schema().Block, map[string]cty.Value{"size": cty.StringVal("1G"),
		"pages": cty.MapVal(map[string]cty.Value{"0": cty.NumberIntVal(4), "1": cty.UnknownVal(cty.Number)})})
	c, err := Hugepages{}.Claims(t.Context(), nil, v)
	if err != nil || len(c.Grants) != 1 || c.Grants[0].Size != 1<<30 || c.Grants[0].Pages != 4 || c.Grants[0].Node != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}
