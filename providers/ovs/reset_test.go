package ovs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/providers"
	"plumb/providers/internal/hostkit"
)

// A switch comes back as it was after each kind of reset, without its flows.
func TestReset(t *testing.T) {
	open := faked(t)
	b := &bed{t: t, host: open(t).(*hostkit.Host), mark: conformanceMark(), last: map[string]cty.Value{}, undo: map[string]json.RawMessage{}, typ: map[string]providers.Resource{}}
	t.Cleanup(func() { _ = b.host.Close() })
	reset(t, b, func() string { return strings.TrimSpace(onHost(t, b.host, "cat", daemonPid)) })
}

func TestRealReset(t *testing.T) {
	b := realBed(t)
	reset(t, b, func() string { return daemonPID(t) })
}

func reset(t *testing.T, b *bed, pid func() string) {
	for _, r := range []struct {
		typ  providers.Resource
		addr string
		cfg  attrs
	}{
		{switchType{}, "ovs_switch.s", attrs{"dpdk": dpdkBlock(attrs{"pmd_cores": str("1")})}},
		{bridgeType{}, "ovs_bridge.br0", attrs{"name": str("br0"), "datapath": str("netdev")}},
		{portType{}, "ovs_port.v0", attrs{"bridge": str("br0"), "name": str("v0"), "type": str(clientType), "ofport": num(3)}},
		{portType{}, "ovs_port.u0", attrs{"bridge": str("br0"), "name": str("u0"), "type": str(serverType), "ofport": num(4), "allow_deprecated": cty.True}},
	} {
		if _, err := b.try(r.typ, r.addr, r.cfg); err != nil {
			t.Fatal(err)
		}
	}
	sw := providers.Subject{Addr: addrs.Instance{Resource: addrs.Resource{Type: "ovs_switch", Name: "s"}}, Value: b.last["ovs_switch.s"]}
	for _, kind := range (switchType{}).Resets() {
		was := pid()
		if err := (switchType{}).Reset(b.ctx(), b.host, b.mark, sw, kind); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if is := pid(); is == was {
			t.Errorf("%s: ovs-vswitchd still has pid %s", kind, is)
		}
		for addr := range b.last {
			b.same(addr)
		}
		got, err := (portType{}).Count(b.ctx(), b.host, []providers.Subject{{Value: b.last["ovs_port.v0"]}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(uint64(0), got[0].Rx); diff != "" {
			t.Error(diff)
		}
	}
	if err := (switchType{}).Reset(b.ctx(), b.host, b.mark, sw, "reboot"); err == nil {
		t.Error("a reset that it does not know is taken")
	}
}
