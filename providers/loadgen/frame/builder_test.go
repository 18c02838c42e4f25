package frame

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/providers"
)

var own = Options{
	Stream: 5, Token: 0xbeef,
	SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2},
}

// traffics is one of each sort.
func traffics() map[string]providers.Traffic {
	all := map[string]providers.Traffic{}
	tunnel := &providers.VXLAN{VNI: 0xabcdef, SrcIP: "10.0.0.1", DstIP: "10.0.0.2", SrcMAC: "02:00:00:00:01:01", DstMAC: "02:00:00:00:01:02"}
	for headers, k := range kinds {
		for _, vary := range strings.Fields(k.vary) {
			for order, counts := range map[string][]int{"incremental": {1, 3, 256, 200000}, "random": {300}} {
				for _, flows := range counts {
					for tags, vlans := range [][]int{nil, {7}, {100, 4094}} {
						for _, vx := range []*providers.VXLAN{nil, tunnel} {
							t := providers.Traffic{Headers: headers, Vary: vary, Flows: flows, Order: order, Seed: 42, VLANs: vlans, VXLAN: vx}
							all[fmt.Sprintf("%s by %s, %d flows %s, %d tags, tunnel %v", headers, vary, flows, order, tags, vx != nil)] = t
						}
					}
				}
			}
		}
	}
	return all
}

func build(t testing.TB, tr providers.Traffic, o Options) *Builder {
	t.Helper()
	b, err := New(tr, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryFrameIsRight(t *testing.T) {
	for name, tr := range traffics() {
		for _, more := range []int{0, 1, 2, 511, 1454} {
			tr.FrameSize = MinSize(tr) + more
			b := build(t, tr, own)
			buf, again := make([]byte, 9216), make([]byte, 9216)
			r := rand.New(rand.NewPCG(1, uint64(more)))
			b.Write(again, 0, 0)
			for i := range 12 {
				n, stamp := r.Uint64()>>(r.Uint64N(44)+20), r.Uint64()>>r.Uint64N(64)
				size := b.Write(buf, n, stamp)
				if size != tr.FrameSize-4 || size != b.Size(n) {
					t.Fatalf("%s: frame of %d bytes, want %d", name, size, tr.FrameSize-4)
				}
				v, err := dissect(buf[:size])
				if err != nil {
					t.Fatalf("%s, size %d, frame %d: %v", name, tr.FrameSize, i, err)
				}
				if stream, seq, st, ok := Parse(buf[:size], own.Token); !ok || stream != own.Stream || seq != n || st != stamp {
					t.Fatalf("%s: parsed %d %d %d %v, want %d %d %d", name, stream, seq, st, ok, own.Stream, n, stamp)
				}
				if b.Restamp(again, n, stamp); !bytes.Equal(again[:size], buf[:size]) {
					t.Fatalf("%s: Restamp differs from Write:\n%x\n%x", name, again[:size], buf[:size])
				}
				inner := v
				if tr.VXLAN != nil {
					inner = v.Inner
					if v.VNI != tr.VXLAN.VNI || v.SrcPort < 49152 || len(inner.VLANs) > 0 {
						t.Fatalf("%s: tunnel %+v", name, v)
					}
				}
				if !slices.Equal(v.VLANs, tr.VLANs) {
					t.Fatalf("%s: tags %v", name, v.VLANs)
				}
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	tunnel := &providers.VXLAN{VNI: 5, SrcIP: "10.0.0.1", DstIP: "10.0.0.2", DstMAC: "02:00:00:00:01:02", SrcPort: 50000}
	for _, c := range []struct {
		traffic providers.Traffic
		least   int
		want    view
	}{
		{providers.Traffic{Headers: "l2"}, 64, view{EtherType: 0x88b5, Payload: 46}},
		{providers.Traffic{Headers: "ipv4"}, 64, view{EtherType: 0x800, SrcIP: "198.18.0.1", DstIP: "198.19.0.1", Proto: 253, Payload: 26}},
		{providers.Traffic{Headers: "udp"}, 64, view{EtherType: 0x800, SrcIP: "198.18.0.1", DstIP: "198.19.0.1", Proto: 17, SrcPort: 0xc020, DstPort: 7, Payload: 18}},
		{providers.Traffic{Headers: "tcp", SrcIP: "192.0.2.1", DstIP: "192.0.2.9"}, 76, view{EtherType: 0x800, SrcIP: "192.0.2.1", DstIP: "192.0.2.9", Proto: 6, SrcPort: 0xc020, DstPort: 7, Payload: 18}},
		{providers.Traffic{Headers: "ipv6"}, 76, view{EtherType: 0x86dd, SrcIP: "2001:2::1", DstIP: "2001:2:0:1::1", Proto: 253, Payload: 18}},
		{providers.Traffic{Headers: "udp6"}, 84, view{EtherType: 0x86dd, SrcIP: "2001:2::1", DstIP: "2001:2:0:1::1", Proto: 17, SrcPort: 0xc020, DstPort: 7, Payload: 18}},
		{providers.Traffic{Headers: "l2", VLANs: []int{9}}, 68, view{EtherType: 0x88b5, VLANs: []int{9}, TPIDs: []uint16{0x8100}, Payload: 46}},
		{providers.Traffic{Headers: "udp", VLANs: []int{9, 10}}, 72, view{EtherType: 0x800, VLANs: []int{9, 10}, TPIDs: []uint16{0x88a8, 0x8100}, SrcIP: "198.18.0.1", DstIP: "198.19.0.1", Proto: 17, SrcPort: 0xc020, DstPort: 7, Payload: 18}},
		{providers.Traffic{Headers: "udp", VXLAN: tunnel}, 114, view{
			EtherType: 0x800, Dst: "02:00:00:00:01:02", SrcIP: "10.0.0.1", DstIP: "10.0.0.2", Proto: 17, SrcPort: 50000, DstPort: 4789, VNI: 5, Payload: 76 - 8,
			Inner: &view{Src: "02:00:00:00:00:01", Dst: "02:00:00:00:00:02", EtherType: 0x800, SrcIP: "198.18.0.1", DstIP: "198.19.0.1", Proto: 17, SrcPort: 0xc020, DstPort: 7, Payload: 18},
		}},
	} {
		name := (&layout{traffic: c.traffic}).describe()
		if got := MinSize(c.traffic); got != c.least {
			t.Errorf("%s: least size %d, want %d", name, got, c.least)
		}
		c.traffic.FrameSize = c.least
		buf := make([]byte, 200)
		n := build(t, c.traffic, own).Write(buf, 1, 2)
		v, err := dissect(buf[:n])
		if err != nil {
			t.Fatal(name, err)
		}
		c.want.Src = "02:00:00:00:00:01"
		if c.want.Dst == "" {
			c.want.Dst = "02:00:00:00:00:02"
		}
		if diff := cmp.Diff(&c.want, v); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The checker would be worth nothing if it let errors pass.
func TestDissectSeesEachWrongBit(t *testing.T) {
	for _, headers := range []string{"udp", "udp6", "tcp"} {
		b := build(t, providers.Traffic{Headers: headers, FrameSize: 101}, own)
		buf := make([]byte, 97)
		b.Write(buf, 1, 2)
		unseen := map[int]bool{}
		for bit := 14 * 8; bit < len(buf)*8; bit++ {
			buf[bit/8] ^= 1 << (bit % 8)
			if _, err := dissect(buf); err == nil {
				unseen[bit/8] = true
			}
			buf[bit/8] ^= 1 << (bit % 8)
		}
		want := map[int]bool{}
		if headers == "udp6" { // traffic class, flow label and hop limit are under no checksum
			want = map[int]bool{14: true, 15: true, 16: true, 17: true, 21: true}
		}
		if diff := cmp.Diff(want, unseen); diff != "" {
			t.Error(headers, diff)
		}
	}
}

// A checksum of zero has a meaning of its own in UDP, and comes up once in 65536 frames.
func TestZeroChecksum(t *testing.T) {
	for _, headers := range []string{"udp", "udp6", "tcp"} {
		b := build(t, providers.Traffic{Headers: headers, FrameSize: 100}, own)
		buf := make([]byte, 96)
		for n := range uint64(1 << 17) {
			b.Write(buf, n, n*n)
			if c := buf[b.csum : b.csum+2]; (c[0] == 0 && c[1] == 0) || (c[0] == 0xff && c[1] == 0xff) {
				if _, err := dissect(buf); err != nil {
					t.Fatalf("%s frame %d: %v", headers, n, err)
				}
				if headers != "tcp" && c[0] == 0 {
					t.Fatalf("%s frame %d has no checksum", headers, n)
				}
			}
		}
	}
}

func TestFlowsAreDistinctAndStayInTheirNetworks(t *testing.T) {
	for _, c := range []struct{ headers, vary string }{{"l2", ""}, {"udp", "mac"}, {"ipv4", ""}, {"udp", "ip"}, {"ipv6", ""}, {"udp6", "ip"}, {"udp", ""}, {"tcp", "port"}, {"udp6", ""}} {
		for _, order := range []string{"incremental", "random"} {
			const flows = 70000 // more than there are ports or hosts
			b := build(t, providers.Traffic{Headers: c.headers, Vary: c.vary, FrameSize: 100, Flows: flows, Order: order, Seed: 7}, own)
			seen, of := map[[62]byte]bool{}, make([]bool, flows) // by all headers: only addresses, ports and checksums differ
			buf := make([]byte, 96)
			inOrder := 0
			for n := range uint64(flows) {
				b.Write(buf, n, 0)
				var headers [62]byte
				copy(headers[:], buf)
				if b.csum != 0 { // it would tell all frames apart
					headers[b.csum], headers[b.csum+1] = 0, 0
				}
				if seen[headers] {
					t.Fatalf("%v %s: flow %d occurs twice: %x", c, order, b.Flow(n), headers)
				}
				seen[headers], of[b.Flow(n)] = true, true
				if uint64(b.Flow(n)) == n {
					inOrder++
				}
				if b.Flow(n) != b.Flow(n+3*flows) {
					t.Fatalf("%v: the next round has another order", c)
				}
				if n%97 != 0 && n < flows-3 {
					continue
				}
				v, err := dissect(buf)
				if err != nil {
					t.Fatal(err)
				}
				ok := true
				switch c.headers {
				case "ipv4", "tcp":
					ok = strings.HasPrefix(v.SrcIP, "198.18.") && strings.HasPrefix(v.DstIP, "198.19.") && !strings.HasSuffix(v.SrcIP, ".0.0") && !strings.HasSuffix(v.DstIP, ".255.255")
				case "ipv6", "udp6":
					ok = strings.HasPrefix(v.SrcIP, "2001:2::") && strings.HasPrefix(v.DstIP, "2001:2:0:1::")
				case "l2":
					ok = strings.HasPrefix(v.Src, "02:00:00:") && strings.HasPrefix(v.Dst, "02:00:00:")
				}
				if c.vary != "ip" && c.vary != "mac" && v.SrcPort > 0 && v.SrcPort < 1024 {
					ok = false
				}
				if !ok {
					t.Fatalf("%v: flow %d is %+v", c, b.Flow(n), v)
				}
			}
			if slices.Contains(of, false) {
				t.Errorf("%v %s: not each flow in a round", c, order)
			}
			if order == "incremental" != (inOrder == flows) {
				t.Errorf("%v %s: %d of %d in order", c, order, inOrder, flows)
			}
		}
	}
}

func TestFlowZeroIsTheAddressGiven(t *testing.T) {
	tr := providers.Traffic{FrameSize: 100, Headers: "udp", SrcMAC: "02:aa:bb:ff:ff:ff", DstMAC: "02:aa:cc:ff:ff:ff", SrcIP: "10.1.255.254", DstIP: "10.2.0.1", Flows: 2}
	got := map[string][]string{}
	for _, vary := range []string{"mac", "ip", "port"} {
		tr.Vary = vary
		b := build(t, tr, own)
		for n := range uint64(2) {
			buf := make([]byte, 96)
			b.Write(buf, n, 0)
			v, err := dissect(buf)
			if err != nil {
				t.Fatal(err)
			}
			got[vary] = append(got[vary], fmt.Sprint(v.Src, " ", v.SrcIP, ":", v.SrcPort, " ", v.Dst, " ", v.DstIP, ":", v.DstPort))
		}
	}
	want := map[string][]string{
		"mac":  {"02:aa:bb:ff:ff:ff 10.1.255.254:49184 02:aa:cc:ff:ff:ff 10.2.0.1:7", "02:aa:bb:00:00:00 10.1.255.254:49184 02:aa:cc:00:00:00 10.2.0.1:7"},
		"ip":   {"02:aa:bb:ff:ff:ff 10.1.255.254:49184 02:aa:cc:ff:ff:ff 10.2.0.1:7", "02:aa:bb:ff:ff:ff 10.1.0.1:49184 02:aa:cc:ff:ff:ff 10.2.0.2:7"},
		"port": {"02:aa:bb:ff:ff:ff 10.1.255.254:49184 02:aa:cc:ff:ff:ff 10.2.0.1:7", "02:aa:bb:ff:ff:ff 10.1.255.254:49185 02:aa:cc:ff:ff:ff 10.2.0.1:7"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMixIsKeptForEachFlow(t *testing.T) {
	mix, err := IMIX("simple")
	if err != nil {
		t.Fatal(err)
	}
	for _, flows := range []int{1, 2, 3, 5, 12, 24, 1000} {
		b := build(t, providers.Traffic{Headers: "udp", Sizes: mix, Flows: flows}, own)
		buf := make([]byte, b.MaxSize())
		count := map[[2]int]int{}
		for n := range uint64(12 * flows) {
			size := b.Write(buf, n, 1)
			if _, err := dissect(buf[:size]); err != nil {
				t.Fatal(err)
			}
			count[[2]int{b.Flow(n), size + 4}]++
		}
		for flow := range flows {
			got := [3]int{count[[2]int{flow, 64}], count[[2]int{flow, 594}], count[[2]int{flow, 1518}]}
			if got != [3]int{7, 4, 1} {
				t.Fatalf("%d flows: flow %d has %v", flows, flow, got)
			}
		}
	}
}

func TestReverse(t *testing.T) {
	got := Reverse(providers.Traffic{Headers: "udp", SrcMAC: "a", SrcIP: "10.0.0.1", VXLAN: &providers.VXLAN{SrcIP: "x", DstIP: "y", SrcMAC: "z"}})
	want := providers.Traffic{Headers: "udp", DstMAC: "a", SrcIP: "198.19.0.1", DstIP: "10.0.0.1", VXLAN: &providers.VXLAN{SrcIP: "y", DstIP: "x", DstMAC: "z"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(providers.Traffic{Headers: "l2"}, Reverse(providers.Traffic{Headers: "l2"})); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	vx := func(x providers.VXLAN) *providers.VXLAN { return &x }
	for _, c := range []struct {
		traffic providers.Traffic
		opts    Options
		want    string
	}{
		{providers.Traffic{FrameSize: 64, Headers: "udp6"}, own, "a size of 64 bytes is not possible with udp6 headers: 84 to 9216, FCS included, of which 18 are Plumb's signature"},
		{providers.Traffic{FrameSize: 64, Headers: "udp", VLANs: []int{1}}, own, "udp headers, a VLAN tag: 68 to 9216"},
		{providers.Traffic{Sizes: []int{64, 9217}, Headers: "udp"}, own, "a size of 9217 bytes"},
		{providers.Traffic{Sizes: []int{}, Headers: "udp"}, own, "the mix of sizes is empty"},
		{providers.Traffic{FrameSize: 64, Headers: "gre"}, own, `headers "gre" are not known`},
		{providers.Traffic{FrameSize: 64, Headers: "l2", Vary: "ip"}, own, `cannot vary by "ip", only by mac`},
		{providers.Traffic{FrameSize: 64, Headers: "ipv4", Vary: "port"}, own, `only by ip or mac`},
		{providers.Traffic{FrameSize: 64, Headers: "udp", Flows: 1<<24 + 1}, own, "16777217 flows are not possible"},
		{providers.Traffic{FrameSize: 64, Headers: "udp", Flows: -1}, own, "-1 flows are not possible"},
		{providers.Traffic{FrameSize: 64, Headers: "udp", Order: "sorted"}, own, `order of flows "sorted"`},
		{providers.Traffic{FrameSize: 99, Headers: "udp", VLANs: []int{4095}}, own, "VLAN 4095 is not possible"},
		{providers.Traffic{FrameSize: 99, Headers: "udp", VLANs: []int{1, 2, 3}}, own, "3 VLAN tags"},
		{providers.Traffic{FrameSize: 64, Headers: "udp", SrcIP: "2001:2::1"}, own, "source IP 2001:2::1 is of the wrong family for an IPv4 header"},
		{providers.Traffic{FrameSize: 99, Headers: "udp6", DstIP: "10.0.0.1"}, own, "destination IP 10.0.0.1 is of the wrong family for an IPv6 header"},
		{providers.Traffic{FrameSize: 99, Headers: "udp6", DstIP: "fe80::1%eth0"}, own, "has a zone"},
		{providers.Traffic{FrameSize: 64, Headers: "udp", SrcIP: "10.0.0"}, own, "source IP: "},
		{providers.Traffic{FrameSize: 64, Headers: "l2", SrcIP: "10.0.0.1"}, own, `headers "l2" have no IP addresses`},
		{providers.Traffic{FrameSize: 64, Headers: "udp", Vary: "ip", Flows: 2, DstIP: "10.0.0.0"}, own, "10.0.0.0 is the first or last address"},
		{providers.Traffic{FrameSize: 64, Headers: "udp", SrcMAC: "nonsense"}, own, "source MAC: "},
		{providers.Traffic{FrameSize: 64, Headers: "udp", SrcMAC: "01:00:5e:00:00:01"}, own, "is a group address"},
		{providers.Traffic{FrameSize: 64, Headers: "udp", DstMAC: "00:00:00:00:00:00:00:01"}, own, "has 8 bytes instead of 6"},
		{providers.Traffic{FrameSize: 64, Headers: "udp"}, Options{SrcMAC: own.SrcMAC}, "destination MAC is neither given nor known"},
		{providers.Traffic{FrameSize: 64, Headers: "udp"}, Options{Stream: 4096}, "stream 4096 is above 4095"},
		{providers.Traffic{FrameSize: 200, Headers: "udp", VXLAN: vx(providers.VXLAN{VNI: 1 << 24})}, own, "VNI 16777216"},
		{providers.Traffic{FrameSize: 200, Headers: "udp", VXLAN: vx(providers.VXLAN{DstPort: 65536})}, own, "VXLAN port 65536"},
		{providers.Traffic{FrameSize: 200, Headers: "udp", VXLAN: vx(providers.VXLAN{})}, own, "VXLAN source IP is not given"},
		{providers.Traffic{FrameSize: 200, Headers: "udp", VXLAN: vx(providers.VXLAN{SrcIP: "::1"})}, own, "VXLAN source IP ::1 is of the wrong family"},
		{providers.Traffic{FrameSize: 113, Headers: "udp", VXLAN: vx(providers.VXLAN{SrcIP: "1.1.1.1", DstIP: "1.1.1.2"})}, own, "udp headers and VXLAN: 114 to 9216"},
	} {
		_, err := New(c.traffic, c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.traffic, err, c.want)
		}
	}
}

func TestDivisor(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		d := 1 + int(r.Uint64()>>(r.Uint64N(63)+1)>>1)
		n := r.Uint64() >> r.Uint64N(64)
		if q, rest := newDivisor(d).div(n); q != n/uint64(d) || rest != n%uint64(d) {
			t.Fatalf("%d / %d = %d, %d", n, d, q, rest)
		}
	}
	for _, d := range []int{1, 2, 3, 1 << 24} {
		for _, n := range []uint64{0, 1, 2, 3, ^uint64(0), ^uint64(0) - 1} {
			if q, rest := newDivisor(d).div(n); q != n/uint64(d) || rest != n%uint64(d) {
				t.Fatalf("%d / %d = %d, %d", n, d, q, rest)
			}
		}
	}
}
