package dpdk

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/providers"
	"plumb/providers/conformance"
)

func hop(name, socket string) providers.Subject {
	v := cty.EmptyObjectVal
	if socket != "" {
		v = cty.ObjectVal(map[string]cty.Value{"vhost_server_path": cty.StringVal(socket)})
	}
	return providers.Subject{Addr: addrs.Instance{Resource: addrs.Resource{Type: "ovs_port", Name: name}}, Value: v}
}

func TestAssign(t *testing.T) {
	ports := []string{"/a", "/b"}
	for name, c := range map[string]struct {
		hops     []providers.Subject
		from, to string
		fails    bool
	}{
		"by order":         {hops: []providers.Subject{hop("x", ""), hop("y", "")}, from: "/a", to: "/b"},
		"no path":          {from: "/a", to: "/b"},
		"as listed":        {hops: []providers.Subject{hop("x", "/a"), hop("v", ""), hop("y", "/b")}, from: "/a", to: "/b"},
		"the other way":    {hops: []providers.Subject{hop("x", "/b"), hop("y", "/a")}, from: "/b", to: "/a"},
		"only last known":  {hops: []providers.Subject{hop("x", ""), hop("y", "/a")}, from: "/b", to: "/a"},
		"only first known": {hops: []providers.Subject{hop("x", "/b"), hop("y", "/else")}, from: "/b", to: "/a"},
		"same port":        {hops: []providers.Subject{hop("x", "/a"), hop("x", "/a")}, fails: true},
	} {
		from, to, err := assign(ports, c.hops)
		if from != c.from || to != c.to || (err != nil) != c.fails {
			t.Errorf("%s: %q, %q, %v; want %q, %q, error %t", name, from, to, err, c.from, c.to, c.fails)
		}
	}
}

func TestCheckTraffic(t *testing.T) {
	for name, c := range map[string]struct {
		traffic providers.Traffic
		load    float64
		ok      bool
	}{
		"one flow":         {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "l2", DstMAC: "02:00:00:00:00:01"}, 0, true},
		"many flows":       {providers.Traffic{FrameSize: 1518, Flows: 1000000, Headers: "ipv4"}, 0, true},
		"rate":             {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "ipv4"}, 1000, false},
		"short":            {providers.Traffic{FrameSize: 60, Flows: 1, Headers: "ipv4"}, 0, false},
		"ports":            {providers.Traffic{FrameSize: 64, Flows: 2, Headers: "udp"}, 0, false},
		"MAC of many":      {providers.Traffic{FrameSize: 64, Flows: 2, Headers: "ipv4", SrcMAC: "02:00:00:00:00:01"}, 0, false},
		"both ways, a MAC": {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "ipv4", Bidirectional: true, DstMAC: "02:00:00:00:00:01"}, 0, false},
	} {
		if err := checkTraffic(c.traffic, c.load); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResult(t *testing.T) {
	req := providers.TrialRequest{}
	got := result(req, counted{tx: stats{Tx: 10}, rx: stats{Rx: 5, Missed: 1}}, counted{tx: stats{Tx: 110}, rx: stats{Rx: 85, Missed: 4}}, time.Second, []uint64{7})
	want := providers.TrialResult{Duration: time.Second, Directions: []providers.Direction{{Sent: 100, Received: 80, RxDrops: 3, Unsent: 7}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = result(req, counted{tx: stats{Tx: 10}, rx: stats{Rx: 5}}, counted{tx: stats{Tx: 10}, rx: stats{Rx: 4}}, time.Second, nil)
	if len(got.Health) != 2 {
		t.Errorf("a counter that went back and a sender that sent nothing: %q", got.Health)
	}
}

func TestParseAnswer(t *testing.T) {
	const log = "set txpkts 60\ntestpmd> start\ntxonly packet forwarding\ntestpmd> stop\nTelling cores to stop...\n" +
		"  TX-packets: 5 TX-dropped: 1 TX-total: 6\n +++ Accumulated forward statistics for all ports+++\n  TX-packets: 7        TX-dropped: 3920256       TX-total: 9\nDone.\n"
	if _, done := parseAnswer(log, "stop"); done {
		t.Error("done before the prompt is back")
	}
	out, done := parseAnswer(log+"testpmd> ", "stop")
	if !done || unsent(out) != 3920256 {
		t.Errorf("%t, %d", done, unsent(out))
	}
}

func TestLargestDivisor(t *testing.T) {
	for n, want := range map[int]int{1: 1, 8: 8, 512: 512, 1000: 500, 521: 1} {
		if got := largestDivisor(n, 512); got != want {
			t.Errorf("largestDivisor(%d) = %d; want %d", n, got, want)
		}
	}
}

func dummy(t *testing.T, config map[string]cty.Value) providers.Generator {
	t.Helper()
	typ := NewDummy()
	g, err := typ.Open(t.Context(), providers.OpenRequest{Config: conformance.Desired(&typ.Schema().Block, config)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestDummy(t *testing.T) {
	noisy := map[string]cty.Value{"noise": cty.NumberFloatVal(0.05), "flow_cost": cty.NumberFloatVal(0.1)}
	trial := func(g providers.Generator, load float64, flows int) providers.TrialResult {
		res, err := g.Trial(t.Context(), providers.TrialRequest{Traffic: providers.Traffic{FrameSize: 64, Flows: flows}, Load: load, Duration: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	a, b := dummy(t, noisy), dummy(t, noisy)
	first := trial(a, 0, 1)
	if diff := cmp.Diff(first, trial(b, 0, 1)); diff != "" {
		t.Errorf("not the same for the same seed: %s", diff)
	}
	if first.Directions[0].Received == trial(a, 0, 1).Directions[0].Received {
		t.Error("a repeat has no noise")
	}
	quiet := dummy(t, map[string]cty.Value{"flow_cost": cty.NumberFloatVal(0.1)})
	if d := trial(quiet, 500000, 1).Directions[0]; d.Sent != 500000 || d.Received != 500000 {
		t.Errorf("below capacity: %+v", d)
	}
	if d := trial(quiet, 0, 1).Directions[0]; d.Sent != 10000000 || d.Received != 1001024 {
		t.Errorf("above capacity: %+v", d)
	}
	if d := trial(quiet, 0, 100).Directions[0]; d.Received != 811024 {
		t.Errorf("100 flows: %+v", d)
	}
	if low, high := trial(quiet, 100000, 1).Directions[0].Latency, trial(quiet, 900000, 1).Directions[0].Latency; low.P99 >= high.P99 || low.Min > low.P50 || high.P999 > high.Max {
		t.Errorf("latency: %+v, %+v", low, high)
	}
	if res := trial(quiet, 2e7, 1); len(res.Health) != 1 {
		t.Errorf("more than the tester can: %+v", res)
	}
}
