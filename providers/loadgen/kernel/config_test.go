package kernel

import (
	"strings"
	"testing"
)

func TestConfigIsChecked(t *testing.T) {
	tests := []struct {
		cfg  Config
		says string // "": nothing
	}{
		{Config{Interface: "t0"}, ""},
		{Config{Interface: "t0", Mode: Auto, ZeroCopy: On}, ""},
		{Config{}, "no interface is given"},
		{Config{Interface: "t0", Mode: "dpdk"}, `mode "dpdk" of interface t0 is none of auto, af_xdp, af_packet`},
		{Config{Interface: "t0", ZeroCopy: "yes"}, "is none of auto, on, off"},
		{Config{Interface: "t0", Mode: AFPacket, ZeroCopy: On}, "no zero-copy with af_packet"},
		{Config{Interface: "t0", Queues: -1}, "must be 0 to 1024"},
		{Config{Interface: "t0", RxSize: 1 << 19}, "must be 0 to 262144"},
		{Config{Interface: "t0", MaxFrame: -1}, "is negative"},
	}
	for _, test := range tests {
		err := test.cfg.check()
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v, want %q", test.cfg, err, test.says)
		}
	}
}

func TestConfigSettles(t *testing.T) {
	tests := map[string]struct {
		cfg  Config
		mtu  int
		want Config
	}{
		"defaults": {Config{}, 1500, Config{Queues: 1, RxSize: 8192, TxSize: 1024, MaxFrame: 1518}},
		"jumbo":    {Config{}, 9000, Config{Queues: 1, RxSize: 2048, TxSize: 1024, MaxFrame: 9018}},
		"rounded":  {Config{Queues: 2, RxSize: 1000, TxSize: 3, MaxFrame: 60}, 9000, Config{Queues: 2, RxSize: 1024, TxSize: 64, MaxFrame: 60}},
	}
	for name, test := range tests {
		got, err := test.cfg.settle(iface{mtu: test.mtu})
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, test.want)
		}
	}
	if _, err := (Config{MaxFrame: 1519}).settle(iface{mtu: 1500}); err == nil {
		t.Error("a frame longer than the MTU allows")
	}
}
