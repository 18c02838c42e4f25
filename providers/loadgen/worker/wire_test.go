package worker

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
	"plumb/providers/loadgen/engine"
)

func ptr[T any](v T) *T { return &v }

// every is one full message of each kind.
func every() []message {
	return []message{
		{Hello: &hello{Version: version}},
		{Open: &Open{
			Ports: []PortSpec{
				{Kind: VhostUser, Socket: "/run/a.sock", Server: true, MAC: "02:00:00:00:00:01", Queues: 2, RxSize: 32768, TxSize: 1024, Frame: 9216},
				{Kind: AFXDP, Interface: "veth0", Netns: "ns1", Mode: "copy"},
			},
			Engine: engine.Config{CPUs: []int{1, 3}, Realtime: 1, Idle: 50 * time.Microsecond, Window: 800, CatchUp: 256, Sample: 1024},
		}},
		{Ready: &Ready{Ports: []PortInfo{{Name: "veth0", MAC: "02:00:00:00:00:01", Queues: 1, MaxFrame: 1514}}}},
		{Run: &run{
			Request: engine.Request{
				Streams: []engine.Stream{{From: 0, To: 1, Traffic: providers.Traffic{FrameSize: 64, Sizes: []int{64, 1518}, Flows: 1000, Headers: "udp", Vary: "port", Order: "random",
					Seed: math.MaxUint64, VLANs: []int{1, 2}, VXLAN: &providers.VXLAN{VNI: 7}}}},
				Load: 1e6, Duration: time.Minute, Burst: 2, Drain: 2 * time.Second, Steps: []providers.Step{{Load: 5e5, Duration: time.Second}},
			},
			Disturb: ptr(10 * time.Second),
		}},
		{Due: &struct{}{}},
		{Disturbed: &disturbed{Error: "it did not end"}},
		{Result: &result{Error: "stopped", Result: engine.Result{
			Directions: []providers.Direction{{Offered: 1e6, Sent: math.MaxUint64, Received: 1, Latency: &providers.Latency{Samples: 3, P50: 1.5, IPDV: &providers.IPDV{Max: 2}}, LastLoss: ptr(time.Second)}},
			Duration:   time.Second, Behind: 3, LongestStop: time.Millisecond, LinkChanges: 2,
		}}},
		{Error: &failed{Error: "no"}},
		{Cancel: &struct{}{}},
		{Close: &struct{}{}},
		{Ping: &struct{}{}},
	}
}

func TestMessagesComeBack(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range every() {
		b, err := encode(m)
		if err != nil {
			t.Fatalf("%s: %v", m.name(), err)
		}
		if bytes.Count(b, []byte("\n")) != 1 {
			t.Errorf("%s is not one line", m.name())
		}
		got, err := decode(b)
		if err != nil {
			t.Fatalf("%s: %v", m.name(), err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Errorf("%s: -want +got\n%s", m.name(), d)
		}
		seen[m.name()] = true
	}
	if len(seen) != 11 {
		t.Errorf("only %d kinds of messages were tried: %v", len(seen), seen)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ line, why string }{
		{``, "not understood"},
		{`{}`, "not exactly one"},
		{`null`, "not exactly one"},
		{`[]`, "not understood"},
		{`{"cancel":null}`, "not exactly one"},
		{`{"cancel":{},"close":{}}`, "not exactly one"},
		{`{"cancel":{}} {}`, "something follows"},
		{`{"shell":{}}`, "unknown field"},
		{`{"cancel":{"now":true}}`, "unknown field"},
		{`{"hello":{"version":2}}`, "speaks version 2, this one 1"},
		{`{"open":{"ports":[],"engine":{}}}`, "there are 0 ports"},
		{`{"open":{"ports":[{"kind":"dpdk"}],"engine":{}}}`, `port 0: kind "dpdk"`},
		{`{"run":{"request":{}}}`, "no stream"},
		{`{"run":{"request":{"Streams":[{"From":0,"To":99}]}}}`, "from port 0 to port 99"},
		{`{"run":{"request":{"Streams":[{}],"Load":-1}}}`, "negative"},
		{`{"run":{"request":{"Streams":[{}],"Duration":-1}}}`, "duration is negative"},
		{`{"run":{"request":{"Streams":[{}],"Load":1e999}}}`, "not understood"},
		{`{"error":{"error":"` + strings.Repeat("x", maxLine) + `"}}`, "longer than"},
	} {
		if m, err := decode([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.60s: %+v, %v; want an error with %q", c.line, m, err, c.why)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, m := range []message{
		{},
		{Cancel: &struct{}{}, Close: &struct{}{}},
		{Open: &Open{}},
		{Result: &result{Result: engine.Result{Directions: []providers.Direction{{Offered: math.Inf(1)}}}}},
		{Error: &failed{Error: strings.Repeat("x", maxLine)}},
	} {
		if _, err := encode(m); err == nil {
			t.Errorf("%s was sent", m.name())
		}
	}
}

// FuzzDecode: nothing that comes in is taken halfway, and what is taken can be sent on.
func FuzzDecode(f *testing.F) {
	for _, m := range every() {
		b, err := encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"ping":{},"ping":{}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := decode(line)
		if err != nil {
			return
		}
		b, err := encode(m)
		if err != nil {
			// Only what is longer once it is written with escapes.
			if len(line) < maxLine/8 {
				t.Fatalf("%s was taken and cannot be sent: %v", m.name(), err)
			}
			return
		}
		again, err := decode(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		x, _ := json.Marshal(m)
		y, _ := json.Marshal(again)
		if !bytes.Equal(x, y) {
			t.Fatalf("%s\n%s", x, y)
		}
	})
}
