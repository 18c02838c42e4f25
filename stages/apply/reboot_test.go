package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"plumb/providers"
	"plumb/stages/plan"
)

const lit = `
host "dut" { address = "192.0.2.7" }
host "way" { jump = host.dut }
host "vnf" { jump = host.way }
host "far" {}

resource "fuse" "g" {
  host  = host.dut
  name  = "g"
  value = "x"
}

resource "lamp" "dut" {
  host = host.dut
  name = "dut"
}

resource "box" "vnf" {
  host = host.vnf
  name = "vnf"
}

resource "box" "far" {
  host = host.far
  name = "far"
}
`

// run plans and applies a configuration, whatever comes of it.
func (l *line) run(t *testing.T, ctx context.Context, r *rig) *Result {
	t.Helper()
	s := r.open()
	defer s.Close()
	in, err := l.plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	in.Options.Graceful, in.Options.Events, in.Options.Parallelism = r.options.Graceful, r.options.Events, 1
	res, diags, err := s.Apply(ctx, in)
	if err != nil || diags.HasErrors() {
		t.Fatal(err, diags)
	}
	return res
}

func details(diags hcl.Diagnostics) string {
	var out strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&out, "%s: %s\n", d.Summary, d.Detail)
	}
	return out.String()
}

// One reboot; what was kept of the host, and of those behind it that are used, is dropped; the log reaches the events.
func TestReboot(t *testing.T) {
	r := newRig(t)
	rec := &recorder{}
	r.options.Events = rec
	before := r.w.snapshot()
	l := newLine(r.b.set, lit, nil)
	res := l.run(t, t.Context(), r)
	if !res.Applied {
		t.Fatal(res.Diagnostics())
	}
	want := []string{"started fuse.g", "done fuse.g", "started host.dut", "host.dut: it is back", "done host.dut"}
	for _, w := range want {
		if !strings.Contains(strings.Join(rec.lines, "\n"), w) {
			t.Errorf("not told: %s in %q", w, rec.lines)
		}
	}
	if d := cmp.Diff([]string{"dut"}, r.w.reboots); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"dut", "vnf"}, r.w.forgotten); d != "" {
		t.Error(d)
	}
	if res := newLine(r.b.set, "", nil).run(t, t.Context(), r); !res.Applied || len(res.State.Instances) > 0 {
		t.Error(res.Diagnostics())
	}
	if d := cmp.Diff(before, r.w.snapshot()); d != "" {
		t.Error(d)
	}
	if len(r.w.reboots) != 2 {
		t.Errorf("rebooted %q", r.w.reboots)
	}
}

// A setting that the reboot did not make effective is an error, the state has what was found, and the next apply tries again.
func TestRebootWithoutEffect(t *testing.T) {
	r := newRig(t)
	r.w.stubborn = true
	l := newLine(r.b.set, lit, nil)
	res := l.run(t, t.Context(), r)
	if got := details(res.Diagnostics()); !strings.Contains(got, "fuse.g on dut did not take effect: After the reboot of dut, active is false, and should be true.") {
		t.Errorf("%s", got)
	}
	want := map[string]Status{"create fuse.g": Done, "reboot host.dut": Failed, "create lamp.dut": Skipped, "create box.vnf": Skipped, "create box.far": Done}
	if d := cmp.Diff(want, statuses(res)); d != "" {
		t.Error(d)
	}
	for _, i := range res.State.Instances {
		if i.Addr.String() == "fuse.g" && !strings.Contains(compactJSON(i.Attributes), `"active":false`) {
			t.Errorf("the state has %s", i.Attributes)
		}
	}
	r.w.stubborn = false
	l.apply(t, r)
}

// A host that does not come back takes what waits for it along, and nothing else. What was deleted for the reboot stays in doubt until there is one.
func TestRebootFails(t *testing.T) {
	r := newRig(t)
	before := r.w.snapshot()
	l := newLine(r.b.set, lit, nil)
	l.apply(t, r)
	r.w.rebootFails = fmt.Errorf("dut %w: it has not come back within 20m0s", providers.ErrUnreachable)
	res := newLine(r.b.set, "", nil).run(t, t.Context(), r)
	want := map[string]Status{"delete fuse.g": Done, "delete lamp.dut": Done, "delete box.vnf": Done, "delete box.far": Done, "reboot host.dut": Failed}
	if d := cmp.Diff(want, statuses(res)); d != "" || res.Applied {
		t.Errorf("applied %t: %s", res.Applied, d)
	}
	if got := details(res.Diagnostics()); !strings.Contains(got, "host.dut was not rebooted: Dut cannot be reached: it has not come back within 20m0s.") {
		t.Error(got)
	}
	if len(res.State.Instances) != 1 || res.State.Instances[0].Addr.String() != "fuse.g" {
		t.Errorf("the state has %d instances", len(res.State.Instances))
	}
	r.w.rebootFails = nil
	if res := newLine(r.b.set, "", nil).run(t, t.Context(), r); !res.Applied || len(res.State.Instances)+len(res.State.Hosts) > 0 {
		t.Error(res.Diagnostics(), res.State)
	}
	if d := cmp.Diff(before, r.w.snapshot()); d != "" {
		t.Error(d)
	}
}

// The first interrupt lets a reboot finish, the second stops the wait for it. Both are gone on from.
func TestRebootInterrupted(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		r := newRig(t)
		graceful, stop := context.WithCancel(t.Context())
		r.options.Graceful = graceful
		r.w.during = func(_ context.Context, name string) {
			if name == "reboot" {
				stop()
			}
		}
		l := newLine(r.b.set, lit, nil)
		res := l.run(t, t.Context(), r)
		if got := statuses(res); got["reboot host.dut"] != Done || got["create lamp.dut"] != NotStarted || !res.Stopped || res.Cancelled {
			t.Errorf("%v, stopped %t, cancelled %t", got, res.Stopped, res.Cancelled)
		}
		r.w.during, r.options.Graceful = nil, nil
		l.apply(t, r)
		if len(r.w.reboots) != 1 {
			t.Errorf("rebooted %d times", len(r.w.reboots))
		}
	})
	t.Run("second", func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		reboot := r.b.set.Reboot
		r.b.set.Reboot = func(ctx context.Context, h providers.Host, log func(string)) error {
			return errors.Join(reboot(ctx, h, log), ctx.Err())
		}
		r.w.during = func(_ context.Context, name string) {
			if name == "reboot" {
				cancel()
			}
		}
		l := newLine(r.b.set, lit, nil)
		res := l.run(t, ctx, r)
		if got := statuses(res); got["reboot host.dut"] != Unfinished || !res.Cancelled {
			t.Errorf("%v, cancelled %t", got, res.Cancelled)
		}
		if got := details(res.Diagnostics()); !strings.Contains(got, "host.dut was not waited for") {
			t.Error(got)
		}
		r.w.during = nil
		l.apply(t, r)
		if len(r.w.reboots) != 1 {
			t.Errorf("rebooted %d times", len(r.w.reboots))
		}
	})
}

// A plan with a reboot is refused by a Plumb that cannot do it.
func TestRebootNotPossible(t *testing.T) {
	r := newRig(t)
	s := r.open()
	defer s.Close()
	p := &plan.Plan{ID: "p", Prior: s.Prior(), Steps: []plan.Step{{Addr: plan.HostAddr("dut"), Host: "dut", Action: plan.Reboot}}}
	r.b.set.Reboot = nil
	_, diags, err := s.Apply(t.Context(), Input{Plan: p, Config: r.b.config(), Evaluator: r.b.evaluator, Providers: r.b.set, Options: r.options})
	if err != nil || !strings.Contains(details(diags), "The plan reboots host.dut, and this Plumb cannot do that.") {
		t.Error(err, diags)
	}
}
