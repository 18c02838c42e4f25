package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
)

func TestUnits(t *testing.T) {
	for name, want := range map[string]string{"irqbalance": "irqbalance.service", "a.socket": "a.socket", "getty@tty1": "getty@tty1.service", `dev\x2d1.service`: `dev\x2d1.service`,
		"openvpn.eu": "openvpn.eu.service", "--now": "", "": "", "a b": "", "a/b": "", "x.mount": "", "a\n": "", "$(id)": "", "*": ""} {
		if got, err := unitName(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	all := parseUnits("Id=a.service\nNames=a.service alias.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n\nId=b.service\nActiveState=failed\n\nId=d.service\nLoadState=masked\n")
	if all["alias.service"].active != "active" || all["b.service"].active != "failed" || all["a.service"].file != "enabled" || all["d.service"].load != "masked" {
		t.Errorf("%+v", all)
	}
}

func FuzzUnits(f *testing.F) {
	f.Add("Id=a.service\nNames=a.service b.service\nActiveState=active\n\nId=c.service\n")
	f.Fuzz(func(t *testing.T, out string) { parseUnits(out) })
}

func serviceCase(open func(*testing.T) providers.Host, running string) conformance.Case {
	return conformance.Case{
		Type: Service{}, Open: open,
		Config: attrs{"name": str(running), "state": str("stopped"), "enabled": cty.False},
		Update: attrs{"name": str(running), "state": str("running"), "restart_on": strs("a")},
		Drift: map[string]func(*testing.T, providers.Host){
			"started": func(t *testing.T, h providers.Host) { do(t, h, "systemctl", "start", running) },
			"enabled": func(t *testing.T, h providers.Host) { do(t, h, "systemctl", "enable", running) },
		},
	}
}

func TestService(t *testing.T) {
	for _, name := range []string{"irqbalance", "lldpd.service"} {
		w := newWorld(t)
		c := serviceCase(w.open, name)
		c.Snapshot = w.snapshot
		conformance.Run(t, c)
	}
	w := newWorld(t)
	conformance.Run(t, conformance.Case{Type: Service{}, Open: w.open, Snapshot: w.snapshot, Config: attrs{"name": str("getty@tty7"), "enabled": cty.True}})
}

// invocation is the run of a unit.
func invocation(t *testing.T, h providers.Host, name string) string {
	t.Helper()
	return strings.TrimSpace(strings.TrimPrefix(do(t, h, "systemctl", "show", "--property=InvocationID", "--", name), "InvocationID="))
}

// A change of restart_on restarts the unit once, also when Plumb was killed between the record and the restart.
func TestServiceRestarts(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	typ := Service{}
	req, err := create(t, typ, h, attrs{"name": str("chrony"), "restart_on": strs("old")})
	if err != nil {
		t.Fatal(err)
	}
	do(t, h, "systemctl", "restart", "chrony") // by hand, so that there is an invocation
	before := invocation(t, h, "chrony.service")
	req.Prior = req.Planned
	req.Planned = conformance.Desired(&typ.Schema().Block, attrs{"name": str("chrony"), "restart_on": strs("new")})
	if req.Undo, err = typ.Prepare(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	req.Prior = req.Planned // as after a kill
	if req.Undo, err = typ.Prepare(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	apply := func() string {
		t.Helper()
		if _, err := typ.Apply(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		return invocation(t, h, "chrony.service")
	}
	once := apply()
	if once == before {
		t.Error("it was not restarted")
	}
	if twice := apply(); twice != once {
		t.Error("it was restarted twice")
	}
}

func TestServiceRefusals(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	wantProblem(t, planOf(t, Service{}, h, attrs{"name": str("masked")}), "masked.service", "systemctl unmask")
	wantProblem(t, planOf(t, Service{}, h, attrs{"name": str("static"), "enabled": cty.True}), "static", "[Install]")
	wantProblem(t, planOf(t, Service{}, h, attrs{"name": str("none")}), "none.service", "host_package")
	_, err := create(t, Service{}, h, attrs{"name": str("broken")})
	wantError(t, err, "start unit broken.service", "cannot open /etc/broken.conf")
	_, err = create(t, Service{}, h, attrs{"name": str("once")})
	wantError(t, err, "oneshot", "host_command")
	_, err = create(t, Service{}, h, attrs{"name": str("none")})
	wantError(t, err, "none.service", "there is none")
	_, err = create(t, Service{}, h, attrs{"name": str("masked")})
	wantError(t, err, "masked.service", "unmask")

	w.write(t, "/proc/1/comm", "tini\n")
	again := w.open(t)
	defer again.Close()
	wantProblem(t, planOf(t, Service{}, again, attrs{"name": str("chrony")}), "No systemd", "host_command")
}

// Many instances cost few looks, whether systemd has loaded their units or not.
func TestServicesShareTheirLooks(t *testing.T) {
	w := newWorld(t)
	h := w.open(t)
	defer h.Close()
	if _, err := h.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := h.Reads().Commands
	names := []string{"chrony", "irqbalance", "lldpd", "getty@tty7", "none"}
	for range 100 {
		for _, n := range names {
			if _, err := (Service{}).Read(t.Context(), providers.ReadRequest{Host: h, Prior: conformance.Desired(&Service{}.Schema().Block, attrs{"name": str(n)})}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := h.Reads(); r.Commands != before+len(names) {
		t.Errorf("%+v", r)
	}
	all, err := unitsOf(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	var many []string
	for i := range few + 1 {
		many = append(many, fmt.Sprintf("none%d.service", i))
	}
	all.changed()
	if got, err := all.ask(t.Context(), h, many); err != nil || got["chrony.service"].active != "active" || got["none1.service"].load != "not-found" {
		t.Error(got, err)
	}
}
