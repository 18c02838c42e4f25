package settings

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
)

func TestPackageArguments(t *testing.T) {
	for n, ok := range map[string]bool{"ethtool": true, "libc6:amd64": true, "g++": true, "a=1:2.3-4+deb12u1~bpo": true, "-y": false, "a b": false, "a/stable": false, "a=": false, "a=-1": false, "": false,
		"a\n": false, "$(id)": false, "a;b": false, "/tmp/a.deb": false, "a*": false} {
		if err := validPackage(str(n)); (err == nil) != ok {
			t.Errorf("%q: %v", n, err)
		}
	}
	p := parsePackages("a\tamd64\t1.0\tinstall\tinstalled\nb\tall\t2\thold\tinstalled\nc\tamd64\t1\tdeinstall\tconfig-files\nbroken\n", false)
	if !p.right("a") || !p.right("a:amd64") || p.right("a=1.0") || !p.right("b=2") || p.right("c") || p.right("b=3") {
		t.Errorf("%+v", p)
	}
	if got := removals("Reading...\nRemv a [1]\nPurg b:i386 [1]\nPurg a [1]\nInst x\n"); !slices.Equal(got, []string{"a", "b:i386"}) {
		t.Error(got)
	}
	for _, text := range []string{"E: Unable to locate package x", "E: Version '1' for 'x' was not found", "Err: 404  Not Found", "E: Package 'x' has no installation candidate"} {
		if !notFound(text) {
			t.Error(text)
		}
	}
}

func TestCompareRPM(t *testing.T) {
	ordered := []string{"1.0~rc1-1", "1.0-1", "1.0^git1-1", "1.0.1-1", "1.0.a-1", "1.0.10-1", "1.00.11-1", "2-1", "10-1"}
	ordered[3], ordered[4] = ordered[4], ordered[3] // letters before numbers
	for i, a := range ordered {
		for j, b := range ordered {
			got := compareRPM(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
}

func FuzzPackages(f *testing.F) {
	f.Add("a\tamd64\t1.0\tinstall\tinstalled\n", "1.0~rc1", "1.0^a")
	f.Fuzz(func(t *testing.T, out, a, b string) {
		parsePackages(out, false)
		if x, y := compareRPM(a, b), compareRPM(b, a); (x < 0) != (y > 0) {
			t.Errorf("%q and %q: %d, %d", a, b, x, y)
		}
	})
}

func TestPacked(t *testing.T) {
	want := packed{"a": true, "b-c": true}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got packed
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPackage(t *testing.T) {
	for family, s := range map[string]fake.Settings{"apt": {}, "dnf": {RPM: true}} {
		t.Run(family, func(t *testing.T) {
			w := newWorld(t)
			if err := w.conn(t).Set(s); err != nil {
				t.Fatal(err)
			}
			remove := []string{"apt-get", "-y", "purge", "--", "tuned"}
			if s.RPM {
				remove = []string{"rpm", "-e", "--", "tuned"}
			}
			conformance.Run(t, conformance.Case{
				Type: Package{}, Open: w.open, Snapshot: w.snapshot,
				Config: attrs{"names": strs("tuned", "hello=2.9-2", "python3-six"), "allow_downgrade": cty.True},
				Update: attrs{"names": strs("ethtool", "hello")},
				Drift: map[string]func(*testing.T, providers.Host){
					"removed": func(t *testing.T, h providers.Host) { do(t, h, remove...) },
				},
			})
		})
	}
}

func TestPackageServices(t *testing.T) {
	for _, start := range []bool{false, true} {
		w := newWorld(t)
		h := w.open(t)
		if _, err := create(t, Package{}, h, attrs{"names": strs("tuned"), "start_services": cty.BoolVal(start)}); err != nil {
			t.Fatal(err)
		}
		active := strings.TrimSpace(func() string {
			res, _ := h.Conn().Run(t.Context(), providers.Cmd{Args: []string{"systemctl", "is-active", "--", "tuned.service"}})
			return string(res.Stdout)
		}())
		if (active == "active") != start {
			t.Errorf("start_services = %v: it is %s", start, active)
		}
		h.Close()
	}
}

func TestPackageRefusals(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	wantProblem(t, planOf(t, Package{}, h, attrs{"names": strs("hello=2.9-2")}), "2.10-3", "allow_downgrade")
	_, err := create(t, Package{}, h, attrs{"names": strs("no-such-thing")})
	wantError(t, err, "no-such-thing", "Unable to locate")
}

// What somebody installed since and needs ours is not removed with it: ours stays, and goes with that.
func TestPackageThatOthersNeed(t *testing.T) {
	for family, s := range map[string]fake.Settings{"apt": {}, "dnf": {RPM: true}} {
		w := newWorld(t)
		if err := w.conn(t).Set(s); err != nil {
			t.Fatal(err)
		}
		h := w.open(t)
		req, err := create(t, Package{}, h, attrs{"names": strs("tuned")})
		if err != nil {
			t.Fatal(err)
		}
		if s.RPM {
			do(t, h, "dnf", "-y", "install", "tuned-utils")
		} else {
			do(t, h, "apt-get", "-y", "install", "tuned-utils")
		}
		req.Prior, req.Planned = req.Planned, cty.NullVal(req.Planned.Type())
		if _, err := (Package{}).Apply(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		_, p, err := packagesOf(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		if !p.right("tuned") || !p.right("tuned-utils") {
			t.Errorf("%s: %+v", family, p.have)
		}
		h.Close()
	}
}

// Two instances: what one brings along and the other names stays until both are gone.
func TestPackagesOfTwoInstances(t *testing.T) {
	w := newWorld(t)
	before := w.snapshot(t, nil)
	h := w.open(t)
	a, err := create(t, Package{}, h, attrs{"names": strs("ethtool")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := create(t, Package{}, h, attrs{"names": strs("libmnl0")})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []*providers.ApplyRequest{&b, &a} {
		req.Prior, req.Planned = req.Planned, cty.NullVal(req.Planned.Type())
		if _, err := (Package{}).Apply(t.Context(), *req); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	if diff := cmp.Diff(before, w.snapshot(t, nil)); diff != "" {
		t.Error(diff)
	}
}
