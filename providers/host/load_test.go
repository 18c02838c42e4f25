package host

import (
	"context"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/marked"
)

func loadConfig(given map[string]cty.Value) cty.Value {
	return conformance.Desired(Load{}.Schema(), given)
}

func str(s string) cty.Value { return cty.StringVal(s) }

func TestLoadArguments(t *testing.T) {
	for name, c := range map[string]struct {
		given      map[string]cty.Value
		want, fail string
	}{
		"cpu":          {given: map[string]cty.Value{"kind": str("cpu")}, want: "--cpu 1 --cpu-load 100"},
		"cpu pinned":   {given: map[string]cty.Value{"kind": str("cpu"), "cores": str("1,3-4"), "load": cty.NumberIntVal(40), "method": str("fft")}, want: "--cpu 3 --taskset 1,3-4 --cpu-load 40 --cpu-method fft"},
		"memory":       {given: map[string]cty.Value{"kind": str("memory"), "workers": cty.NumberIntVal(2), "size": str("1G"), "method": str("flip")}, want: "--vm 2 --vm-bytes 1073741824 --vm-method flip"},
		"cache":        {given: map[string]cty.Value{"kind": str("cache"), "cores": str("0")}, want: "--cache 1 --taskset 0 --cache-no-affinity"},
		"cache size":   {given: map[string]cty.Value{"kind": str("cache"), "size": str("1G")}, fail: "a load of kind cache has no size: that is for kind memory"},
		"memory load":  {given: map[string]cty.Value{"kind": str("memory"), "load": cty.NumberIntVal(5)}, fail: "a load of kind memory has no load: that is for kind cpu"},
		"cache method": {given: map[string]cty.Value{"kind": str("cache"), "method": str("x")}, fail: "a load of kind cache has no method: that is for kind cpu and memory"},
	} {
		s, err := readLoad(loadConfig(c.given))
		if c.fail != "" {
			if err == nil || err.Error() != c.fail {
				t.Errorf("%s: %v; want %s", name, err, c.fail)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff("stress-ng --timeout 0 --temp-path /d "+c.want, strings.Join(s.argv("/d"), " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLoadValidation(t *testing.T) {
	a := Load{}.Schema().Attributes
	for name, bad := range map[string][]cty.Value{
		"workers": {cty.NumberIntVal(0), cty.NumberFloatVal(1.5), cty.NumberIntVal(5000)}, "load": {cty.NumberIntVal(101)},
		"size": {str("lots"), str("0"), str("9999999T"), str("-1M")}, "cores": {str("a"), str("")}, "method": {str("--exec"), str("")},
	} {
		for _, v := range bad {
			if a[name].Validate(v) == nil {
				t.Errorf("%s = %#v is taken", name, v)
			}
		}
	}
	for name, good := range map[string]cty.Value{"workers": cty.NumberIntVal(2), "load": cty.NumberIntVal(100), "size": str("512M"), "cores": str("0,2-3"), "method": str("all")} {
		if err := a[name].Validate(good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A load runs, is pinned, and ends; one that Plumb left, even without its parent, is swept.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	c, err := fake.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := hostkit.New("dut", c, Gather)
	defer h.Close()
	loadLife(t, h, func(pid int) string { return "" })
	if err := c.Set(fake.Settings{NoStress: true}); err != nil {
		t.Fatal(err)
	}
	_, err = Load{}.Start(t.Context(), h, loadMark(), loadConfig(map[string]cty.Value{"kind": str("cpu")}))
	if err == nil || !strings.Contains(err.Error(), "apt-get install stress-ng") {
		t.Errorf("without stress-ng: %v", err)
	}
	if unknown := c.Unknown(); len(unknown) > 0 {
		t.Errorf("commands that the fake host does not know: %q", unknown)
	}
}

func TestRealLoad(t *testing.T) {
	real(t)
	h := local(t)
	defer h.Close()
	loadLife(t, h, func(pid int) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, cpus, _ := strings.Cut(string(b), "Cpus_allowed_list:\t")
		cpus, _, _ = strings.Cut(cpus, "\n")
		return cpus
	})
}

func loadMark() providers.Mark {
	return providers.Mark{Testbed: "load-test", Address: "benchmark.b.load[0]"}
}

// running lists the workers of the test's load.
func running(t *testing.T, h providers.Host) []int {
	t.Helper()
	r := stress{marked.Process{Conn: h.Conn(), Mark: loadMark(), Dir: path.Join(marked.Group("load-test", "load"), marked.Name(loadMark().Address))}}
	session, err := r.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pids, err := r.workers(t.Context(), session, stressName+"-")
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

func loadLife(t *testing.T, h providers.Host, allowed func(pid int) string) {
	ctx := t.Context()
	free := func(pids ...int) {
		t.Helper()
		want := []string{"/run/plumb/load-test/*/*/*"}
		for _, p := range pids {
			want = append(want, fmt.Sprintf("/proc/%d/stat", p))
		}
		files, err := h.Conn().ReadFiles(ctx, want...)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range files {
			if s, ok := parseStat(string(b)); !ok || s.state != 'Z' { // one that nobody has waited for yet
				t.Errorf("left: %s %s", name, b)
			}
		}
	}
	for kind, c := range map[string]cty.Value{
		"cpu":    loadConfig(map[string]cty.Value{"kind": str("cpu"), "workers": cty.NumberIntVal(2), "load": cty.NumberIntVal(20), "cores": str("0")}),
		"memory": loadConfig(map[string]cty.Value{"kind": str("memory"), "size": str("64M"), "cores": str("0")}),
		"cache":  loadConfig(map[string]cty.Value{"kind": str("cache"), "cores": str("0")}),
	} {
		stop, err := Load{}.Start(ctx, h, loadMark(), c)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		pids := running(t, h)
		if want := map[string]int{"cpu": 2, "memory": 1, "cache": 1}[kind]; len(pids) < want {
			t.Errorf("%s: %d workers run; want %d", kind, len(pids), want)
		}
		for _, p := range pids {
			if got := allowed(p); got != "" && got != "0" {
				t.Errorf("%s: worker %d may run on %s; want 0", kind, p, got)
			}
		}
		if err := stop(ctx); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := stop(ctx); err != nil {
			t.Errorf("%s: stop again: %v", kind, err)
		}
		free(pids...)
	}
	for name, hurt := range map[string]func(){
		"plumb was killed": func() {},
		"and stress-ng": func() {
			pid, err := marked.Process{Conn: h.Conn(), Mark: loadMark(), Dir: path.Join(marked.Group("load-test", "load"), marked.Name(loadMark().Address))}.Find(ctx)
			if err != nil || pid == 0 {
				t.Fatalf("find: %d, %v", pid, err)
			}
			if _, err := h.Conn().Run(ctx, providers.Cmd{Args: []string{"kill", "-KILL", strconv.Itoa(pid)}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if _, err := (Load{}).Start(ctx, h, loadMark(), loadConfig(map[string]cty.Value{"kind": str("cpu"), "load": cty.NumberIntVal(5)})); err != nil {
			t.Fatal(err)
		}
		pids := running(t, h)
		hurt()
		for range 2 {
			if err := (Load{}).Sweep(ctx, h, "load-test"); err != nil {
				t.Errorf("%s: sweep: %v", name, err)
			}
		}
		free(pids...)
	}
	for want, given := range map[string]map[string]cty.Value{
		"no CPU 4000 online": {"kind": str("cpu"), "cores": str("4000")},
		"MiB available":      {"kind": str("memory"), "size": str("900T")},
	} {
		if _, err := (Load{}).Start(context.WithoutCancel(ctx), h, loadMark(), loadConfig(given)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q in it", err, want)
		}
	}
	free()
}
