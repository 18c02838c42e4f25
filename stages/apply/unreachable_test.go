package apply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/plan"
)

// A host that goes out of reach in a run costs its own steps and those that wait for them, and each is tried only until that is known.
func TestHostOutOfReach(t *testing.T) {
	r := newRig(t,
		item{addr: "box.a", host: "far", want: attrs("name", "a")},
		item{addr: "box.b", host: "far", want: attrs("name", "b")},
		item{addr: "box.c", host: "dut", needs: []string{"box.b"}, want: attrs("name", "c")},
		item{addr: "box.d", host: "dut", want: attrs("name", "d")})
	r.options.Parallelism = 1
	r.w.fail = map[string]error{"a": fmt.Errorf("192.0.2.9 %w", providers.ErrUnreachable)}
	res := r.apply(false)
	want := map[string]Status{"create box.a": Failed, "create box.b": Skipped, "create box.c": Skipped, "create box.d": Done}
	if d := cmp.Diff(want, statuses(res)); d != "" {
		t.Error(d)
	}
	for _, s := range res.Steps {
		if s.Status == Skipped && s.Because != "host.far" {
			t.Errorf("%s was skipped because of %q", s.Addr, s.Because)
		}
	}
	r.w.fail = nil
	r.must(false)
	r.noChanges()
}

// What planning left out because of such a host is in the table, and the run is not complete.
func TestLeftOutInTheResult(t *testing.T) {
	r := newRig(t, item{addr: "box.a", host: "dut", want: attrs("name", "a")})
	s := r.open()
	defer s.Close()
	p := r.b.plan(t, s, false)
	p.Unreachable = []plan.Unreachable{{Host: "far", Error: "gone", Left: []plan.Instance{{Addr: parse("box.z"), Host: "far"}}}}
	res, err := r.run(t.Context(), s, p)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]Status{"create box.a": Done, "no-op box.z": Skipped}, statuses(res)); d != "" || res.Applied {
		t.Errorf("applied %t: %s", res.Applied, d)
	}
}

// What is secret in a host block is neither in the state nor in the journal.
func TestHostSecretsAreNotKept(t *testing.T) {
	r := newRig(t, item{addr: "box.a", host: "dut", want: attrs("name", "a")})
	r.b.set.HostSchema = &schema.Block{Attributes: map[string]*schema.Attribute{"address": {Type: cty.String, Optional: true}},
		Blocks: map[string]*schema.NestedBlock{"ssh": {Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"user": {Type: cty.String, Optional: true}, "password": {Type: cty.String, Optional: true, Sensitive: true}}}}}}
	run := &runner{in: Input{Providers: r.b.set}}
	e, err := run.encodeHost(cty.ObjectVal(map[string]cty.Value{"address": cty.StringVal("192.0.2.9"),
		"ssh": cty.ObjectVal(map[string]cty.Value{"user": cty.StringVal("root"), "password": cty.StringVal("hunter2")})}))
	if err != nil || strings.Contains(string(e.JSON), "hunter2") || !strings.Contains(string(e.JSON), `"user":"root"`) {
		t.Errorf("%s, %v", e.JSON, err)
	}
}
