package network

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sync/errgroup"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/fake"
)

var testMark = providers.Mark{Testbed: "t", Address: "x.y"}

// makeIt applies an instance on a host without asking for its plan.
func makeIt(t *testing.T, h providers.Host, typ providers.Resource, given attrs) (providers.ApplyRequest, error) {
	t.Helper()
	object := conformance.Desired(&typ.Schema().Block, given).AsValueMap()
	for name, a := range typ.Schema().Block.Attributes {
		if a.Computed && object[name].IsNull() {
			object[name] = cty.UnknownVal(a.Type)
		}
	}
	want := cty.ObjectVal(object)
	req := providers.ApplyRequest{Host: h, Mark: testMark, Prior: cty.NullVal(want.Type()), Planned: want, Log: func(string) {}}
	if p, ok := typ.(providers.Preparer); ok {
		undo, err := p.Prepare(t.Context(), req)
		if err != nil {
			return req, err
		}
		req.Undo = undo
	}
	res, err := typ.Apply(t.Context(), req)
	req.Prior, req.Planned = res.New, cty.NullVal(want.Type())
	return req, err
}

func TestForeignPortKeepsBridge(t *testing.T) {
	h := fakePlace(bridged...).open(t)
	defer h.Close()
	req, err := makeIt(t, h, bridgeType{}, attrs{"name": str("br0"), "namespace": str("plt-net-a"), "ports": strs("p0")})
	if err != nil {
		t.Fatal(err)
	}
	shell(t, h.Conn(), "ip -n plt-net-a link set dev p3 master br0")
	_, err = bridgeType{}.Apply(t.Context(), req)
	if !errors.Is(err, providers.ErrForeign) || !strings.Contains(err.Error(), "hang on it: p3.") {
		t.Errorf("%v", err)
	}
	shell(t, h.Conn(), "ip -n plt-net-a link set dev p3 nomaster")
	if _, err = (bridgeType{}).Apply(t.Context(), req); err != nil {
		t.Error(err)
	}
}

func planOf(t *testing.T, h providers.Host, typ providers.Planner, given attrs) []string {
	t.Helper()
	b := &typ.(providers.Resource).Schema().Block
	want := conformance.Desired(b, given)
	res, err := typ.Plan(t.Context(), providers.PlanRequest{Host: h, Mark: testMark, Prior: cty.NullVal(want.Type()), Desired: want, Proposed: want})
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, p := range res.Problems {
		word := "error"
		if p.Warning {
			word = "warning"
		}
		out = append(out, word+": "+p.Summary+": "+p.Detail)
	}
	return out
}

func TestProblems(t *testing.T) {
	h := fakePlaceWith(func(c *fake.Conn) error {
		return c.AddNIC(fake.NIC{PCI: "0000:01:00.0", ID: "8086:10C9", Driver: "igb", Interface: "ens1", MAC: "52:54:00:00:01:00", Group: 1})
	}, routed...).open(t)
	defer h.Close()
	shell(t, h.Conn(), "ip -n plt-net-a route add 203.0.113.0/24 via 198.51.100.9")
	eth0 := func(more attrs) attrs { return with(attrs{"interface": str("eth0")}, more) }
	ens1 := func(more attrs) attrs { return with(attrs{"pci": str("01:00.0")}, more) }
	for name, c := range map[string]struct {
		typ   providers.Planner
		given attrs
		want  string // in the only problem; "" for none
	}{
		"own interface down":      {nicType{}, eth0(attrs{"up": cty.False}), "error: Interface is what the host is reached by: eth0 on dut has the default route. Taken down"},
		"own interface's address": {nicType{}, eth0(attrs{"addresses": strs("192.0.2.11/24")}), "would lose 192.0.2.10/24"},
		"its address kept":        {nicType{}, eth0(attrs{"addresses": strs("192.0.2.11/24", "192.0.2.10/24")}), ""},
		"own interface's mac":     {nicType{}, eth0(attrs{"mac": str("02:00:00:00:00:01")}), "With another MAC address"},
		"own interface's mtu":     {nicType{}, eth0(attrs{"mtu": num(1400)}), "warning: Interface is what the host is reached by"},
		"own interface bridged":   {bridgeType{}, attrs{"name": str("br0"), "ports": strs("eth0")}, "As a port of a bridge"},
		"ring too large":          {nicType{}, ens1(attrs{"ring_rx": num(8192)}), "takes 4096 at most, and ring_rx asks for 8192"},
		"no such channels":        {nicType{}, ens1(attrs{"channels_rx": num(2)}), "has no channels_rx"},
		"no rings":                {nicType{}, attrs{"interface": str("r0"), "namespace": str("plt-net-a"), "ring_rx": num(64)}, "has no settings of ring: netlink error: Operation not supported"},
		"mtu too large":           {nicType{}, ens1(attrs{"mtu": num(9711)}), "takes an MTU from 68 to 9710, and 9711 is asked for"},
		"fixed offload":           {nicType{}, ens1(attrs{"offloads": cty.MapVal(attrs{"lro": cty.True})}), "keeps large-receive-offload off"},
		"unknown offload":         {nicType{}, ens1(attrs{"offloads": cty.MapVal(attrs{"warp": cty.True})}), "has no offload warp"},
		"mtu without IPv6":        {nicType{}, ens1(attrs{"mtu": num(1000), "addresses": strs("2001:db8::7/64")}), "IPv6 needs an MTU of 1280"},
		"not there yet":           {nicType{}, attrs{"interface": str("ens9"), "up": cty.False}, ""},
		"both names":              {nicType{}, ens1(attrs{"interface": str("ens1")}), "Set interface or pci"},
		"route to nowhere":        {routeType{}, attrs{"destination": str("default")}, "Set via or device"},
		"another family":          {routeType{}, attrs{"destination": str("203.0.113.0/24"), "via": str("2001:db8::1")}, "another family"},
		"another route":           {routeType{}, attrs{"destination": str("203.0.113.0/24"), "namespace": str("plt-net-a"), "via": str("198.51.100.2")}, "exists and is not ours: it is \"203.0.113.0/24 via 198.51.100.9 dev r0"},
		"two ends, one name":      {vethType{}, attrs{"name": str("a"), "peer_name": str("a")}, "Two links cannot both be called a"},
		"another's link":          {vethType{}, attrs{"name": str("eth0"), "peer_name": str("a")}, "the link eth0 on dut exists and is not ours"},
	} {
		got := planOf(t, h, c.typ, c.given)
		if len(got) > 1 || (c.want == "") != (len(got) == 0) || len(got) == 1 && !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

// What a tool says of a line is told with that line.
func TestRefusal(t *testing.T) {
	h := fakePlace(bed...).open(t)
	defer h.Close()
	for want, given := range map[string]attrs{
		`tap t0 in namespace plt-net-a: dut (namespace plt-net-a) refuses "ip link set dev t0 mtu 65522": mtu greater than device maximum.`:     {"name": str("t0"), "namespace": str("plt-net-a"), "mtu": num(65522)},
		"tap t0 in namespace nowhere: there is no network namespace nowhere on dut: make it with a net_namespace, and refer to that one's name": {"name": str("t0"), "namespace": str("nowhere")},
	} {
		if _, err := makeIt(t, h, tapType{}, given); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestMissingNamespace(t *testing.T) {
	h := fakePlace(bed...).open(t)
	defer h.Close()
	c, err := vethType{}.Claims(t.Context(), h, conformance.Desired(&vethType{}.Schema().Block, attrs{"name": str("a"), "namespace": str("nowhere"), "peer_name": str("b"), "peer_namespace": str("plt-net-b")}))
	if err != nil || len(c.Needs) != 1 || c.Needs[0].Name != "nowhere" || !strings.Contains(c.Needs[0].Hint, "dut has now: plt-net-a, plt-net-b.") {
		t.Errorf("%+v, %v", c, err)
	}
}

// A look at hundreds of instances, ten at a time as the plan does it, is one round trip; what ethtool tells costs a few more.
func TestRoundTrips(t *testing.T) {
	const instances = 200
	h := fakePlace(routed...).open(t)
	defer h.Close()
	read := func(typ providers.Resource, given func(int) attrs) providers.Reads {
		t.Helper()
		before := h.Reads()
		var g errgroup.Group
		g.SetLimit(10)
		for i := range instances {
			g.Go(func() error {
				_, err := typ.Read(t.Context(), providers.ReadRequest{Host: h, Mark: testMark, Prior: conformance.Desired(&typ.Schema().Block, given(i))})
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		after := h.Reads()
		return providers.Reads{Commands: after.Commands - before.Commands, Files: after.Files - before.Files}
	}
	if r := read(vethType{}, func(i int) attrs {
		return attrs{"name": str(fmt.Sprintf("v%d", i)), "peer_name": str(fmt.Sprintf("w%d", i))}
	}); r.Commands != 1 || r.Files != 0 {
		t.Errorf("veths: %+v", r)
	}
	if r := read(tapType{}, func(i int) attrs { return attrs{"name": str(fmt.Sprintf("t%d", i))} }); r.Commands != 0 {
		t.Errorf("taps after veths: %+v", r)
	}
	if r := read(nicType{}, func(i int) attrs {
		return attrs{"interface": str([]string{"r0", "r1"}[i%2]), "namespace": str("plt-net-a"), "channels_rx": num(1)}
	}); r.Commands > 2 {
		t.Errorf("interfaces: %+v", r)
	}
}

func TestNamesAndAddresses(t *testing.T) {
	for name, ok := range map[string]bool{"eth0": true, "ovs-netdev": true, "a.b_c": true, "": false, "-x": false, "0123456789abcdef": false, "a/b": false, "..": false, "a b": false, "lo": false, "a\x00": false, "a\n": false, "default": false} {
		if err := linkName(str(name)); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	for in, want := range map[string]string{"198.51.100.1/24": "198.51.100.1/24", "2001:DB8:0::1/64": "2001:db8::1/64", "198.51.100.1": "", "198.51.100.1/33": "", "0.0.0.0/0": "", "224.0.0.1/4": "", "::ffff:1.2.3.4/128": "", "fe80::1%eth0/64": ""} {
		p, err := parseAddress(in)
		if got := p.String(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %s, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{"default": "default", "198.51.100.0/24": "198.51.100.0/24", "198.51.100.7": "198.51.100.7/32", "2001:DB8::/32": "2001:db8::/32", "198.51.100.7/24": "", "x": "", "": ""} {
		v, err := canonicalDestination(str(in))
		if (err == nil) != (want != "") || err == nil && v.AsString() != want {
			t.Errorf("%q: %#v, %v", in, v, err)
		}
	}
	a, err := canonicalAddresses(strs("198.51.100.2/24", "198.51.100.1/24", "198.51.100.2/24"))
	if err != nil || !a.RawEquals(strs("198.51.100.1/24", "198.51.100.2/24")) {
		t.Errorf("%#v, %v", a, err)
	}
}

func FuzzParseLook(f *testing.F) {
	f.Add([]byte("=== space\n[]\n[]\n[]\n=== devices\neth0 /sys/devices/pci0000:00/0000:00:03.0/virtio0\n=== end\n"))
	f.Add([]byte(`=== space
[{"ifindex":3,"link":"v1","ifname":"v0","flags":["UP"],"mtu":1500,"linkinfo":{"info_kind":"veth"},"ifalias":"plumb:t:x","addr_info":[{"local":"fd00::1","prefixlen":64}]}]
[{"type":"1","dst":"default","gateway":"fd00::5","dev":"v0","table":"254","protocol":"3","scope":"0","metric":1024,"flags":[],"pref":"medium"}]
[{"dst":"10.0.0.9","dev":"v0","lladdr":"02:00:00:00:00:02","state":["PERMANENT"]}]
=== space a
=== space b
{
=== end
`))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := parseLook(b)
		if err != nil {
			return
		}
		if w.spaces[""] == nil {
			t.Fatal("no namespace")
		}
		for _, s := range w.spaces {
			for name, l := range s.links {
				if l.Name != name {
					t.Errorf("%q is %q", name, l.Name)
				}
				l.given()
				l.prefixes(nil)
			}
			for _, r := range s.routes {
				r.destination()
				r.line("replace")
			}
		}
	})
}

func FuzzParseDrivers(f *testing.F) {
	f.Add("=== link v0 a\n=== -g\nnetlink error: Operation not supported\n=== -l\nChannel parameters for v0:\nPre-set maximums:\nRX:\t\t2\nTX:\t\tn/a\nCurrent hardware settings:\nRX:\t\t1\n=== -c\nAdaptive RX: off  TX: n/a\nrx-usecs:\t3\n=== -k\nFeatures for v0:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\ttx-checksum-ipv4: off [requested on]\n=== end\n")
	f.Fuzz(func(t *testing.T, s string) {
		found, err := parseDrivers(s)
		if err != nil {
			return
		}
		for _, d := range found {
			for _, name := range d.order {
				if _, ok := d.features[strings.TrimSpace(name)]; !ok {
					t.Errorf("%q is not known", name)
				}
			}
			for _, k := range knobs() {
				k.value(d.values[k.attr])
			}
		}
	})
}

func TestParseDrivers(t *testing.T) {
	found, err := parseDrivers("=== link eth0 \n=== -g\nRing parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t256\nTX:\t\t512\nTX Push:\toff\n" +
		"=== -l\nnetlink error: Operation not supported\n=== -a\nPause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\toff\nTX:\t\ton\n\n=== -c\nCoalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nstats-block-usecs: n/a\n\nrx-usecs: 3\nrx-frames: n/a\n" +
		"=== -k\nFeatures for eth0:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\ttx-checksum-ipv4: off [requested on]\nhighdma: on\n=== end\n")
	if err != nil {
		t.Fatal(err)
	}
	d := found[end{"", "eth0"}]
	want := []string{"coalesce_adaptive_rx=off", "coalesce_rx_usecs=3", "pause_autoneg=on", "pause_rx=off", "pause_tx=on", "ring_rx=256", "ring_tx=512"}
	var got []string
	for k, v := range d.values {
		got = append(got, k+"="+v)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || d.most["ring_rx"] != "4096" || d.why["channels"] != "netlink error: Operation not supported" || d.why["ring"] != "" {
		t.Errorf("%q %v %v", got, d.most, d.why)
	}
	for name, f := range map[string]feature{"rx-checksumming": {true, true, true, true}, "tx-checksumming": {on: true, wanted: true}, "tx-checksum-ipv4": {wanted: true, single: true}, "highdma": {on: true, wanted: true, single: true}} {
		if d.features[name] != f {
			t.Errorf("%s: %+v", name, d.features[name])
		}
	}
}

// Processes in a namespace keep it.
func TestRealOccupiedNamespace(t *testing.T) {
	h := realPlace(t).open(t)
	defer h.Close()
	req, err := makeIt(t, h, namespaceType{}, attrs{"name": str("plt-net-c")})
	if err != nil {
		t.Fatal(err)
	}
	p := providers.Process{Dir: filepath.Join(t.TempDir(), "sleep"), Args: []string{"ip", "netns", "exec", "plt-net-c", "sleep", "600"}}
	if err := h.Conn().Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s, err := sessionOf(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for len(pids) == 0 { // until it has come in
		if pids, err = s.pids(t.Context(), "plt-net-c"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.occupied(t.Context(), "plt-net-c", pids); err == nil || !strings.Contains(err.Error(), "still in it: "+pids[0]+" (") {
		t.Error(err)
	}
	said := 0
	req.Log = func(string) { // it waits: the process ends meanwhile
		said++
		shell(t, h.Conn(), "kill "+pids[0])
		for exit := filepath.Join(p.Dir, "exit"); ; { // what started it writes its end there
			if files, err := h.Conn().ReadFiles(t.Context(), exit); err != nil || files[exit] != nil {
				break
			}
		}
	}
	if _, err := (namespaceType{}).Apply(t.Context(), req); err != nil || said != 1 {
		t.Error(said, err)
	}
}
