package bench

import (
	"fmt"
	"math"
	"net/netip"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// rfc2544Sizes are the frame sizes of RFC 2544 section 9.1 for Ethernet, in bytes with the FCS.
var rfc2544Sizes = []int{64, 128, 256, 512, 1024, 1280, 1518}

// headerBytes is how long the headers behind the Ethernet addresses and type are (RFC 791, 8200, 768, 9293).
var headerBytes = map[string]int{"l2": 0, "ipv4": 20, "ipv6": 40, "udp": 28, "udp6": 48, "tcp": 40}

// Sizes of the frame around the headers: Ethernet addresses and type, FCS, one VLAN tag, and what VXLAN puts in front (Ethernet, IPv4, UDP, VXLAN:
// RFC 7348).
const (
	ethernetBytes = 14
	fcsBytes      = 4
	vlanBytes     = 4
	vxlanBytes    = 50
)

func trafficSchema() schema.Block {
	mac := func(what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Validate: validMAC, Description: what}
	}
	ip := func(what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Validate: validIP, Description: what}
	}
	return schema.Block{
		Description: "The shape of the frames. A size includes the FCS: on a wire each frame takes 20 bytes more (preamble, start delimiter, gap), on a virtual port 4 less. VLAN tags and a VXLAN header are part of the size.",
		Attributes: map[string]*schema.Attribute{
			"frame_sizes": {Type: cty.List(cty.Number), Optional: true, Validate: eachWhole(64, 9216),
				Description: "Frame sizes in bytes with the FCS, 64 to 9216. Default: the seven sizes of RFC 2544 section 9.1: 64, 128, 256, 512, 1024, 1280, 1518."},
			"imix": {Type: cty.List(cty.Number), Optional: true, Validate: eachWhole(64, 9216),
				Description: "A mix of sizes instead of frame_sizes (RFC 6985): they are sent in this order, again and again, such as [64, 64, 64, 64, 64, 64, 64, 594, 594, 594, 594, 1518]. Results name the mean."},
			"flows": {Type: cty.List(cty.Number), Optional: true, Default: numbers(1), Validate: eachWhole(1, 16_000_000),
				Description: "Flow counts: the trials of each frame size are made with each of them."},
			"headers": {Type: cty.String, Optional: true, Default: cty.StringVal("ipv4"), OneOf: []string{"l2", "ipv4", "ipv6", "udp", "udp6", "tcp"},
				Description: "Headers of the frames: l2 (Ethernet only), ipv4, ipv6, udp (over IPv4), udp6 (over IPv6) or tcp (over IPv4)."},
			"vary": {Type: cty.String, Optional: true, OneOf: []string{"mac", "ip", "port"},
				Description: "What tells the flows apart. Default: mac for l2, ip for ipv4 and ipv6, port for the others."},
			"order": {Type: cty.String, Optional: true, Default: cty.StringVal("incremental"), OneOf: []string{"incremental", "random"},
				Description: "Order of the flows, frame by frame: one after the other, or random (RFC 2544 section 12 asks for destinations that are not in order)."},
			"seed": count(1, 0, math.MaxInt32, "Seed of a random order: the same seed gives the same order."),
			"vlans": {Type: cty.List(cty.Number), Optional: true, Validate: vlanTags,
				Description: "VLAN IDs of the tags, 1 to 4094, the outer one first: one is 802.1Q, two are QinQ (802.1ad outside)."},
			"bidirectional": {Type: cty.Bool, Optional: true, Default: cty.False,
				Description: "Send the same load against the path at the same time (RFC 2544 section 14). Rates of trials are then the sum of both directions; what a search finds is for each direction, and the direction that loses more decides."},
			"src_mac": mac("Source MAC address of the frames. Default: the generator's own."),
			"dst_mac": mac("Destination MAC address of the frames. Default: the generator's own choice."),
			"src_ip":  ip("First source address. Default: 198.18.0.1 (RFC 2544 appendix C.2.2) or 2001:2::1 (RFC 5180)."),
			"dst_ip":  ip("First destination address. Default: 198.19.0.1 or 2001:2:0:1::1."),
			"line_rate": {Type: cty.String, Optional: true, Validate: func(v cty.Value) error { _, err := parseRate(v.AsString()); return err },
				Description: "Bit rate of the slowest link of the path, such as 10G: searches then never offer more than its theoretical maximum, and reports compare with it. Leave it out where there is no link (vhost-user)."},
		},
		Blocks: map[string]*schema.NestedBlock{"vxlan": {Nesting: schema.Single, Block: schema.Block{
			Description: "Wraps the frames into VXLAN (RFC 7348) over UDP and IPv4. Frame sizes are then the outer frame's; VLAN tags are in it as well.",
			Attributes: map[string]*schema.Attribute{
				"vni":      {Type: cty.Number, Required: true, Validate: schema.Whole(0, 1<<24-1), Description: "VXLAN network identifier, 0 to 16777215."},
				"src_mac":  mac("Source MAC address of the outer frame. Default: the generator's own."),
				"dst_mac":  mac("Destination MAC address of the outer frame. Default: the generator's own choice."),
				"src_ip":   ip("Source address of the outer packet. Default: 198.18.0.1."),
				"dst_ip":   ip("Destination address of the outer packet. Default: 198.19.0.1."),
				"src_port": count(0, 0, 65535, "Source UDP port; 0: by a hash of the inner flow, so that a receiver can spread them (RFC 7348 section 5)."),
				"dst_port": count(4789, 1, 65535, "Destination UDP port (IANA: 4789)."),
			},
		}}},
	}
}

// cell is one combination of frame size and flow count: what a method is run for.
type cell struct {
	size  int // bytes with FCS; of a mix the mean, rounded
	flows int
}

// traffic fills the settings from a traffic block.
func (s *settings) decodeTraffic(f *fields) {
	s.sizes, s.flows, s.mix = f.ints("frame_sizes"), f.ints("flows"), f.ints("imix")
	s.mean = math.NaN()
	switch {
	case s.mix != nil && s.sizes != nil:
		f.fail(fmt.Errorf("frame_sizes and imix exclude each other: a mix is measured in a benchmark of its own"))
	case s.mix != nil:
		s.mean = 0
		for _, n := range s.mix {
			s.mean += float64(n) / float64(len(s.mix))
		}
		s.sizes = []int{int(math.Round(s.mean))}
	case s.sizes == nil:
		s.sizes = rfc2544Sizes
	}
	t := providers.Traffic{Sizes: s.mix, Headers: f.str("headers"), Vary: f.str("vary"), Order: f.str("order"), Seed: uint64(f.num("seed")), VLANs: f.ints("vlans"),
		Bidirectional: f.flag("bidirectional"), SrcMAC: f.str("src_mac"), DstMAC: f.str("dst_mac"), SrcIP: f.str("src_ip"), DstIP: f.str("dst_ip")}
	if v := f.block1("vxlan"); v != cty.NilVal && !v.IsNull() {
		x := fields{v: v, block: &f.block.Blocks["vxlan"].Block}
		f.fail(x.open("vxlan"))
		t.VXLAN = &providers.VXLAN{VNI: int(x.num("vni")), SrcMAC: x.str("src_mac"), DstMAC: x.str("dst_mac"), SrcIP: x.str("src_ip"), DstIP: x.str("dst_ip"),
			SrcPort: int(x.num("src_port")), DstPort: int(x.num("dst_port"))}
		f.fail(x.err)
	}
	if r := f.str("line_rate"); r != "" {
		rate, err := parseRate(r)
		s.lineRate = rate
		f.fail(err)
	}
	s.traffic = t
	if f.err == nil {
		f.fail(s.fits())
	}
}

// fits says what of the traffic does not go together.
func (s *settings) fits() error {
	t := s.traffic
	hasIP, hasPort := t.Headers != "l2", t.Headers == "udp" || t.Headers == "udp6" || t.Headers == "tcp"
	switch {
	case t.Vary == "ip" && !hasIP:
		return fmt.Errorf("vary = \"ip\" needs headers with IP addresses, not %q", t.Headers)
	case t.Vary == "port" && !hasPort:
		return fmt.Errorf("vary = \"port\" needs headers with ports, udp, udp6 or tcp, not %q", t.Headers)
	}
	six := t.Headers == "ipv6" || t.Headers == "udp6"
	for name, a := range map[string]string{"src_ip": t.SrcIP, "dst_ip": t.DstIP} {
		switch {
		case a == "":
		case !hasIP:
			return fmt.Errorf("%s is of no use: headers = \"l2\" has no IP addresses", name)
		case netip.MustParseAddr(a).Is4() == six: // validIP has seen it
			return fmt.Errorf("%s %s is not of the family of headers = %q", name, a, t.Headers)
		}
	}
	if x := t.VXLAN; x != nil {
		for name, a := range map[string]string{"src_ip": x.SrcIP, "dst_ip": x.DstIP} {
			if a != "" && !netip.MustParseAddr(a).Is4() {
				return fmt.Errorf("vxlan: %s %s is not an IPv4 address; the outer header is IPv4", name, a)
			}
		}
	}
	least, parts := ethernetBytes+fcsBytes+headerBytes[t.Headers], []string{"Ethernet with FCS", t.Headers}
	if t.VXLAN != nil {
		least, parts = least+vxlanBytes, append(parts, "vxlan")
	}
	if n := len(t.VLANs); n > 0 {
		least, parts = least+n*vlanBytes, append(parts, fmt.Sprintf("%d VLAN tag(s)", n))
	}
	sizes := s.sizes
	if s.mix != nil {
		sizes = s.mix
	}
	for _, n := range sizes {
		if n < least {
			return fmt.Errorf("a frame of %d bytes is too short: the headers alone take %d (%s)", n, least, strings.Join(parts, ", "))
		}
	}
	return nil
}

// shapes are what a generator must be able to make, in the words of Abilities.Shapes.
func (s *settings) shapes() []string {
	var out []string
	for _, c := range []struct {
		asked bool
		word  string
	}{{s.mix != nil, "imix"}, {s.traffic.Vary != "", "vary"}, {s.traffic.Order == "random", "random"}, {len(s.traffic.VLANs) > 0, "vlan"},
		{s.traffic.VXLAN != nil, "vxlan"}, {s.traffic.SrcIP != "" || s.traffic.DstIP != "", "ip"}} {
		if c.asked {
			out = append(out, c.word)
		}
	}
	return out
}

func vlanTags(v cty.Value) error {
	if n := v.LengthInt(); n > 2 {
		return fmt.Errorf("%d VLAN tags; there can be one or two", n)
	}
	return eachWhole(1, 4094)(v)
}

func validIP(v cty.Value) error {
	if a, err := netip.ParseAddr(v.AsString()); err != nil || a.Zone() != "" || a.Is4In6() {
		return fmt.Errorf("%q is not an IP address such as 198.18.0.1 or 2001:2::1", v.AsString())
	}
	return nil
}
