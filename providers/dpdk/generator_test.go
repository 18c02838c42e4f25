package dpdk

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/providers"
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
		"one flow":         {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "udp", DstMAC: "02:00:00:00:00:01"}, 0, true},
		"many flows":       {providers.Traffic{FrameSize: 1518, Flows: 1000000, Headers: "ipv4"}, 0, true},
		"rate":             {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "ipv4"}, 1000, false},
		"short":            {providers.Traffic{FrameSize: 60, Flows: 1, Headers: "ipv4"}, 0, false},
		"ports":            {providers.Traffic{FrameSize: 64, Flows: 2, Headers: "udp"}, 0, false},
		"MAC of many":      {providers.Traffic{FrameSize: 64, Flows: 2, Headers: "ipv4", SrcMAC: "02:00:00:00:00:01"}, 0, false},
		"no IP":            {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "l2"}, 0, false},
		"IPv6":             {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "ipv6"}, 0, false},
		"a mix":            {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "udp", Sizes: []int{64, 1518}}, 0, false},
		"tagged":           {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "udp", VLANs: []int{5}}, 0, false},
		"a tunnel":         {providers.Traffic{FrameSize: 128, Flows: 1, Headers: "udp", VXLAN: &providers.VXLAN{VNI: 1}}, 0, false},
		"addresses":        {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "udp", SrcIP: "192.0.2.1"}, 0, false},
		"by port":          {providers.Traffic{FrameSize: 64, Flows: 2, Headers: "ipv4", Vary: "port"}, 0, false},
		"by address":       {providers.Traffic{FrameSize: 64, Flows: 2, Headers: "ipv4", Vary: "ip", Order: "incremental"}, 0, true},
		"random":           {providers.Traffic{FrameSize: 64, Flows: 2, Headers: "ipv4", Order: "random"}, 0, false},
		"both ways, a MAC": {providers.Traffic{FrameSize: 64, Flows: 1, Headers: "ipv4", Bidirectional: true, DstMAC: "02:00:00:00:00:01"}, 0, false},
	} {
		if err := checkTraffic(c.traffic, c.load); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckTrial(t *testing.T) {
	for name, req := range map[string]providers.TrialRequest{
		"bursts": {Burst: 8}, "steps": {Steps: []providers.Step{{Load: 1}}}, "a reset": {Disturb: func(context.Context) error { return nil }},
	} {
		if checkTrial(req) == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := checkTrial(providers.TrialRequest{Frames: 32, Burst: 1}); err != nil {
		t.Error(err)
	}
	able := (&rig{}).Abilities()
	if able.RateControl || able.Latency || able.Bursts || able.Steps || able.Outage || able.Signed {
		t.Errorf("%+v", able)
	}
	for _, h := range able.Headers {
		if err := checkTraffic(providers.Traffic{FrameSize: 64, Flows: 1, Headers: h}, 0); err != nil {
			t.Errorf("headers %s: %v", h, err)
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
	if n, ok := txDropped(out); !done || !ok || n != 3920256 {
		t.Errorf("%t, %d, %t", done, n, ok)
	}
}

func TestLargestDivisor(t *testing.T) {
	for n, want := range map[int]int{1: 1, 8: 8, 512: 512, 1000: 500, 521: 1} {
		if got := largestDivisor(n, 512); got != want {
			t.Errorf("largestDivisor(%d) = %d; want %d", n, got, want)
		}
	}
}
