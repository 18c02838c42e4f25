package loadgen

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/conformance"
	"plumb/providers/internal/hostkit"
	"plumb/providers/internal/transport"
	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/frame"
	"plumb/providers/loadgen/worker"
)

type values = map[string]cty.Value

// desired is a configuration with defaults, with these ports.
func desired(ports []values, more values) cty.Value {
	block := NewGenerator().Schema().Block
	var list []cty.Value
	inner := block.Blocks["port"].Block
	for _, p := range ports {
		list = append(list, conformance.Desired(&inner, p))
	}
	v := values{"cpus": cty.StringVal("1"), "port": cty.ListVal(list)}
	for k, x := range more {
		v[k] = x
	}
	return conformance.Desired(&block, v)
}

func sock(s string) values  { return values{"vhost_user": cty.StringVal(s)} }
func iface(s string) values { return values{"interface": cty.StringVal(s)} }

var two = []values{sock("/s/a"), sock("/s/b")}

func TestDecode(t *testing.T) {
	vhost := worker.PortSpec{Kind: worker.VhostUser, Socket: "/s/a", Server: true, Queues: 1, TxSize: 1024}
	other := vhost
	other.Socket = "/s/b"
	for name, c := range map[string]struct {
		ports []values
		more  values
		want  config
	}{
		"least": {two, nil, config{engine: engine.Config{CPUs: []int{1}, Sample: 1024}, ports: []worker.PortSpec{vhost, other}}},
		"a shared CPU": {two, values{"share_cores": cty.True}, config{engine: engine.Config{CPUs: []int{1}, Sample: 1024, Idle: 50 * time.Microsecond},
			ports: []worker.PortSpec{vhost, other}, shared: true}},
		"a shared CPU, polling": {two, values{"share_cores": cty.True, "idle": cty.StringVal("0s")}, config{engine: engine.Config{CPUs: []int{1}, Sample: 1024},
			ports: []worker.PortSpec{vhost, other}, shared: true}},
		"all": {[]values{iface("veth0"), {"interface": cty.StringVal("veth1"), "netns": cty.StringVal("x"), "mode": cty.StringVal("af_packet"), "queues": cty.NumberIntVal(2)}},
			values{"cpus": cty.StringVal("2-3,1"), "realtime": cty.NumberIntVal(1), "window": cty.NumberIntVal(800), "catch_up": cty.NumberIntVal(300), "sample": cty.NumberIntVal(16),
				"rx_queue_size": cty.NumberIntVal(4096), "tx_queue_size": cty.NumberIntVal(256), "max_frame": cty.NumberIntVal(9000), "idle": cty.StringVal("20us")},
			config{engine: engine.Config{CPUs: []int{1, 2, 3}, Realtime: 1, Idle: 20 * time.Microsecond, Window: 800, CatchUp: 300, Sample: 16}, maxFrame: 9000, ports: []worker.PortSpec{
				{Kind: worker.Kernel, Interface: "veth0", Queues: 1, RxSize: 4096, TxSize: 256},
				{Kind: worker.AFPacket, Interface: "veth1", Netns: "x", Queues: 2, RxSize: 4096, TxSize: 256}}}},
	} {
		got, err := decode(desired(c.ports, c.more))
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(config{})); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for want, ports := range map[string][]values{
		"exactly one":    {{}, sock("/a")},
		"port 1: exactl": {sock("/a"), {"vhost_user": cty.StringVal("/b"), "interface": cty.StringVal("b")}},
		"netns is for":   {{"vhost_user": cty.StringVal("/b"), "netns": cty.StringVal("b")}},
		"the same":       {sock("/a"), sock("/a")},
	} {
		if _, err := NewGenerator().Claims(t.Context(), nil, desired(ports, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestClaims(t *testing.T) {
	get := func(ports []values, more values) providers.Claims {
		c, err := NewGenerator().Claims(t.Context(), nil, desired(ports, more))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := get([]values{{"vhost_user": cty.StringVal("/s/a"), "queues": cty.NumberIntVal(2), "hugepages": cty.True}, {"vhost_user": cty.StringVal("/s/b"), "server": cty.False}}, nil)
	if !c.Cores[0].Polling || c.Cores[0].Shared || c.Cores[0].Cores[0] != 1 {
		t.Errorf("%+v", c.Cores)
	}
	if len(c.Sockets) != 2 || !c.Sockets[0].Server || c.Sockets[1].Server || c.Sockets[0].Queues != 2 || c.Sockets[0].Switch {
		t.Errorf("%+v", c.Sockets)
	}
	if len(c.Hugepages) != 1 || c.Hugepages[0].Bytes != 2*(32768+1024)*(64+1536) || c.Hugepages[0].Node != -1 {
		t.Errorf("%+v", c.Hugepages)
	}
	if c := get(two, values{"share_cores": cty.True}); c.Cores[0].Polling || !c.Cores[0].Shared {
		t.Errorf("shared: %+v", c.Cores)
	}
	if c := get([]values{{"vhost_user": cty.UnknownVal(cty.String)}, iface("eth0")}, values{"cpus": cty.UnknownVal(cty.String)}); len(c.Sockets) != 0 || len(c.Cores[0].Cores) != 0 {
		t.Errorf("unknown: %+v", c)
	}
}

// The example of the documentation and every default passes its own checks.
func TestSchema(t *testing.T) {
	s := NewGenerator().Schema()
	check := func(name string, v cty.Value, f func(cty.Value) error) {
		if f != nil && v != cty.NilVal && f(v) != nil {
			t.Errorf("default of %s: %v", name, f(v))
		}
	}
	for n, a := range s.Block.Attributes {
		check(n, a.Default, a.Validate)
	}
	for n, values := range map[string][]cty.Value{
		"idle":          {cty.StringVal("soon"), cty.StringVal("-1us"), cty.StringVal("1s")},
		"sample":        {cty.NumberIntVal(3), cty.NumberIntVal(0), cty.NumberFloatVal(1.5)},
		"realtime":      {cty.NumberIntVal(100)},
		"rx_queue_size": {cty.NumberIntVal(1000), cty.NumberIntVal(65536)},
		"cpus":          {cty.StringVal("")},
	} {
		for _, v := range values {
			if s.Block.Attributes[n].Validate(v) == nil {
				t.Errorf("%s takes %#v", n, v)
			}
		}
	}
}

// tester answers as it is told, and keeps what it was asked.
type tester struct {
	open    worker.Open
	asked   engine.Request
	result  engine.Result
	err     error
	closed  bool
	disturb bool
}

func (f *tester) Ready() worker.Ready {
	return worker.Ready{Ports: []worker.PortInfo{{Kind: "vhost-user"}, {Kind: "vhost-user"}}}
}

func (f *tester) Run(ctx context.Context, r engine.Request, disturb func(context.Context) error, _ time.Duration) (engine.Result, error) {
	f.asked, f.disturb = r, disturb != nil
	if disturb != nil {
		if err := disturb(ctx); err != nil {
			return engine.Result{}, err
		}
	}
	return f.result, f.err
}

func (f *tester) Close(context.Context) error { f.closed = true; return nil }

// newRig is a generator whose testers are made up; all of them are listed.
func newRig(t *testing.T, ports []values, more values) (*rig, *[]*tester) {
	t.Helper()
	c, err := decode(desired(ports, more))
	if err != nil {
		t.Fatal(err)
	}
	var made []*tester
	h := hostkit.New("here", transport.NewLocal("here"), nil)
	r := &rig{config: c, log: func(string) {}, from: 1, host: h, mark: providers.Mark{Testbed: "loadgen-test", Address: "generator.loadgen.tg"}}
	r.start = func(_ context.Context, o worker.Open) (worker.Tester, error) {
		made = append(made, &tester{open: o})
		return made[len(made)-1], nil
	}
	s, err := c.shapeOf(providers.Traffic{FrameSize: 64})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.reopen(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return r, &made
}

func TestRequest(t *testing.T) {
	r, made := newRig(t, two, nil)
	tr := providers.Traffic{FrameSize: 64, Flows: 2, Headers: "udp", SrcMAC: "02:00:00:00:00:01", SrcIP: "10.0.0.1", Bidirectional: true}
	back := tr
	back.SrcMAC, back.DstMAC, back.SrcIP, back.DstIP = "", "02:00:00:00:00:01", "198.19.0.1", "10.0.0.1"
	steps := []providers.Step{{Load: 1, Duration: 2}}
	if _, err := r.Trial(t.Context(), providers.TrialRequest{Traffic: tr, Load: 5, Duration: 6, Frames: 7, Burst: 8, Steps: steps, Drain: 9}); err != nil {
		t.Fatal(err)
	}
	want := engine.Request{Streams: []engine.Stream{{From: 1, To: 0, Traffic: tr}, {From: 0, To: 1, Traffic: back}}, Load: 5, Duration: 6, Frames: 7, Burst: 8, Steps: steps, Drain: 9}
	if diff := cmp.Diff(want, (*made)[0].asked); diff != "" {
		t.Error(diff)
	}
}

// The frames of the other direction can be made for all headers, and are those of the first with the ends exchanged.
func TestReversed(t *testing.T) {
	for _, headers := range (&rig{}).Abilities().Headers {
		tr := providers.Traffic{FrameSize: 128, Flows: 3, Headers: headers}
		a, b := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
		made := func(tr providers.Traffic, src, dst net.HardwareAddr) []byte {
			f, err := frame.New(tr, frame.Options{SrcMAC: src, DstMAC: dst})
			if err != nil {
				t.Fatalf("%s: %v", headers, err)
			}
			buf := make([]byte, 128)
			return buf[:f.Write(buf, 0, 1)]
		}
		there, back := made(tr, a, b), made(reversed(tr), b, a)
		if string(there[:6]) != string(back[6:12]) {
			t.Errorf("%s: MAC addresses\n%x\n%x", headers, there, back)
		}
		at, size := 0, 0
		switch headers {
		case "ipv4", "udp", "tcp":
			at, size = 26, 4
		case "ipv6", "udp6":
			at, size = 22, 16
		}
		if string(there[at:at+size]) != string(back[at+size:at+2*size]) || string(there[at+size:at+2*size]) != string(back[at:at+size]) {
			t.Errorf("%s: IP addresses\n%x\n%x", headers, there, back)
		}
	}
	v := reversed(providers.Traffic{VXLAN: &providers.VXLAN{SrcIP: "1.1.1.1", DstIP: "2.2.2.2", SrcMAC: "a", DstMAC: "b"}}).VXLAN
	if v.SrcIP != "2.2.2.2" || v.DstIP != "1.1.1.1" || v.SrcMAC != "b" || v.DstMAC != "a" {
		t.Errorf("%+v", v)
	}
}

// What a trial must not count for, and what a reader should know.
func TestHealth(t *testing.T) {
	r, made := newRig(t, two, values{"window": cty.NumberIntVal(800)})
	f := (*made)[0]
	f.result = engine.Result{Directions: []providers.Direction{{Sent: 1}}, Duration: time.Second, LinkChanges: 2, Behind: 3, LongestStop: 4 * time.Millisecond, Health: []string{"worse"}, Notes: []string{"odd"}}
	res, err := r.Trial(t.Context(), providers.TrialRequest{Traffic: providers.Traffic{FrameSize: 64}, Duration: time.Second})
	if err != nil || len(res.Health) != 2 || !strings.Contains(res.Health[1], "flapped") || len(res.Notes) != 4 || res.Duration != time.Second {
		t.Errorf("%+v, %v", res, err)
	}
	calm := func(context.Context) error { return nil }
	if res, err = r.Trial(t.Context(), providers.TrialRequest{Traffic: providers.Traffic{FrameSize: 64}, Duration: time.Second, Disturb: calm}); err != nil || len(res.Health) != 1 || !f.disturb {
		t.Errorf("disturbed: %+v, %v", res, err)
	}
	f.result.Duration = time.Nanosecond
	if res, err = r.Trial(t.Context(), providers.TrialRequest{Traffic: providers.Traffic{FrameSize: 64}, Duration: time.Second, Disturb: calm, DisturbAfter: time.Millisecond}); err != nil ||
		len(res.Health) != 2 || !strings.Contains(res.Health[1], "not known") {
		t.Errorf("disturbed too long: %+v, %v", res, err)
	}
	f.err = errors.New("broken")
	if _, err = r.Trial(t.Context(), providers.TrialRequest{Traffic: providers.Traffic{FrameSize: 64}}); !errors.Is(err, f.err) {
		t.Errorf("%v", err)
	}
}

// Ports are opened again for frames that they cannot carry, once.
func TestReopened(t *testing.T) {
	r, made := newRig(t, []values{sock("/s/a"), iface("eth0")}, nil)
	for _, tr := range []providers.Traffic{{FrameSize: 1518}, {FrameSize: 9000}, {FrameSize: 64}, {FrameSize: 700, Sizes: []int{64, 9000}}, {FrameSize: 64, VLANs: []int{5}}} {
		if _, err := r.Trial(t.Context(), providers.TrialRequest{Traffic: tr, Duration: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	type opened struct {
		frame, rx  [2]int
		tag, ended bool
	}
	var got []opened
	for _, m := range *made {
		p := m.open.Ports
		got = append(got, opened{[2]int{p[0].Frame, p[1].Frame}, [2]int{p[0].RxSize, p[1].RxSize}, p[1].Tagged, m.closed})
	}
	want := []opened{{[2]int{1526, 0}, [2]int{32768, 0}, false, true}, {[2]int{9000, 9000}, [2]int{8192, 0}, false, true}, {[2]int{9000, 9000}, [2]int{8192, 0}, true, true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(opened{})); diff != "" {
		t.Error(diff)
	}
	r, _ = newRig(t, two, values{"max_frame": cty.NumberIntVal(2000)})
	if _, err := r.Trial(t.Context(), providers.TrialRequest{Traffic: providers.Traffic{FrameSize: 2001}}); err == nil || !strings.Contains(err.Error(), "max_frame") {
		t.Errorf("%v", err)
	}
}

// What a generator in a killed Plumb has left goes away, but not a socket that somebody listens on. Without anything, nothing happens.
func TestSweep(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may write below /run/plumb")
	}
	dir := t.TempDir()
	dead, live := filepath.Join(dir, "dead"), filepath.Join(dir, "new", "live")
	r, _ := newRig(t, []values{sock(dead), sock(live)}, nil)
	if err := r.note(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, s := range []string{dead, live} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		if l.SetUnlinkOnClose(false); i == 0 {
			l.Close()
		} else {
			defer l.Close()
		}
	}
	for range 2 {
		if err := NewGenerator().Sweep(t.Context(), r.host, r.mark.Testbed); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(dead); err == nil {
		t.Error("the dead socket is still there")
	}
	if _, err := os.Lstat(live); err != nil {
		t.Error("the live socket is gone")
	}
	if _, err := os.Lstat(socketsGroup(r.mark.Testbed)); err == nil {
		t.Error("the list is still there")
	}
}
