package worker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePort(t *testing.T) {
	for _, c := range []struct {
		text string
		want PortSpec
	}{
		{"vhost-user:/tmp/a.sock", PortSpec{Kind: VhostUser, Socket: "/tmp/a.sock"}},
		{"vhost-user:/tmp/a.sock,server,queues=2,rx_size=32768,tx_size=1024,mac=02:00:00:00:00:01,frame=9216",
			PortSpec{Kind: VhostUser, Socket: "/tmp/a.sock", Server: true, Queues: 2, RxSize: 32768, TxSize: 1024, MAC: "02:00:00:00:00:01", Frame: 9216}},
		{"vhost-user:/tmp/a.sock,server,socket_mode=0666,hugepages", PortSpec{Kind: VhostUser, Socket: "/tmp/a.sock", Server: true, SocketMode: 0o666, Hugepages: true}},
		{"af_packet:veth0@/proc/12/ns/net", PortSpec{Kind: AFPacket, Interface: "veth0", Netns: "/proc/12/ns/net"}},
		{"af_xdp:veth0@ns1,mode=copy", PortSpec{Kind: AFXDP, Interface: "veth0", Netns: "ns1", Mode: "copy"}},
		{"af_packet:eth0", PortSpec{Kind: AFPacket, Interface: "eth0"}},
		{"kernel:eth0", PortSpec{Kind: Kernel, Interface: "eth0"}},
	} {
		got, err := ParsePort(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", c.text, d)
		}
	}
}

func TestParsePortRefuses(t *testing.T) {
	for _, c := range []struct{ text, why string }{
		{"", "want KIND:WHERE"},
		{"eth0", "want KIND:WHERE"},
		{"dpdk:0000:01:00.0", `kind "dpdk"`},
		{"vhost-user:", "absolute path"},
		{"vhost-user:a.sock", "absolute path"},
		{"vhost-user:/" + strings.Repeat("x", 107), "at most 107 bytes"},
		{"vhost-user:/a,mode=copy", "neither interface"},
		{"vhost-user:/a,mac=1", "not an address"},
		{"vhost-user:/a,queues=0", "whole number above 0"},
		{"vhost-user:/a,queues=65", "1 to 64"},
		{"vhost-user:/a,rx_size=100", "power of two"},
		{"vhost-user:/a,tx_size=65536", "power of two"},
		{"vhost-user:/a,frame=63", "64 to 9216"},
		{"vhost-user:/a,client", `no option "client"`},
		{"vhost-user:/a,server=yes", `no option "server=yes"`},
		{"vhost-user:/a,mac=", "needs a value"},
		{"vhost-user:/a,socket_mode=0666", "that this side makes"},
		{"vhost-user:/a,server,socket_mode=8", "octal number"},
		{"vhost-user:/a,server,socket_mode=7777", "permission bits"},
		{"af_xdp:eth0,hugepages", "nor hugepages"},
		{"af_xdp:", "not the name of an interface"},
		{"af_xdp:an-interface-too-long", "not the name of an interface"},
		{"af_xdp:eth0@../x", "not the name of a network namespace"},
		{"af_xdp:eth0,server", "neither socket"},
		{"af_xdp:eth0,mode=fast", "want zerocopy or copy"},
		{"af_packet:eth0,mode=copy", "no mode"},
	} {
		if got, err := ParsePort(c.text); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %+v, %v; want an error with %q", c.text, got, err, c.why)
		}
	}
}

// FuzzParsePort: what is taken is a port that Check takes.
func FuzzParsePort(f *testing.F) {
	f.Add("vhost-user:/tmp/a.sock,server,queues=2,rx_size=32768,tx_size=1024,mac=02:00:00:00:00:01,frame=9216")
	f.Add("af_xdp:veth0@ns1,mode=copy")
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParsePort(s); err == nil && p.Check() != nil {
			t.Fatalf("%q: %+v: %v", s, p, p.Check())
		}
	})
}
