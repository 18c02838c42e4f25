package openflow

import (
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// kind says how the value of a field is written.
type kind uint8

const (
	number kind = iota
	macAddr
	ip4Addr
	ip6Addr
	port  // 16 bits: a number, a name or a reserved name
	flags // +a-b or value/mask
	word  // closed set of words: kept as it stands
)

// field is one match field. Names are those of ovs-fields(7), in one spelling.
type field struct {
	name string
	kind kind
	bits int
	bit  map[string]uint // kind flags: bit numbers by name
}

// fields lists the fields by their canonical names.
func fields() map[string]field {
	out := map[string]field{}
	add := func(k kind, bits int, names ...string) {
		for _, n := range names {
			out[n] = field{name: n, kind: k, bits: bits}
		}
	}
	add(port, 16, "in_port", "actset_output")
	add(macAddr, 48, "eth_src", "eth_dst", "arp_sha", "arp_tha", "nd_sll", "nd_tll")
	add(ip4Addr, 32, "ip_src", "ip_dst", "arp_spa", "arp_tpa", "tun_src", "tun_dst", "ct_nw_src", "ct_nw_dst")
	add(ip6Addr, 128, "ipv6_src", "ipv6_dst", "nd_target", "tun_ipv6_src", "tun_ipv6_dst", "ct_ipv6_src", "ct_ipv6_dst")
	add(number, 16, "eth_type", "vlan_tci", "tp_src", "tp_dst", "arp_op", "ct_zone", "ct_tp_src", "ct_tp_dst", "nsh_flags", "tun_gbp_id")
	add(number, 64, "tun_id", "metadata")
	add(number, 32, "skb_priority", "pkt_mark", "recirc_id", "dp_hash", "conj_id", "ct_mark", "nd_reserved", "nsh_spi",
		"nsh_c1", "nsh_c2", "nsh_c3", "nsh_c4", "packet_type")
	add(number, 128, "ct_label")
	add(number, 20, "mpls_label", "ipv6_label")
	add(number, 3, "mpls_tc", "vlan_pcp")
	add(number, 1, "mpls_bos")
	add(number, 13, "vlan_vid")
	add(number, 8, "ip_proto", "nw_ttl", "icmp_type", "icmp_code", "ct_nw_proto", "nd_options_type", "tun_tos", "tun_ttl", "tun_gbp_flags", "nsh_si", "nsh_ttl", "mpls_ttl")
	add(number, 6, "ip_dscp")
	add(number, 2, "ip_ecn")
	add(word, 0, "ip_frag")
	for i := range 16 {
		add(number, 32, "reg"+strconv.Itoa(i))
	}
	for i := range 8 {
		add(number, 64, "xreg"+strconv.Itoa(i))
	}
	for i := range 4 {
		add(number, 128, "xxreg"+strconv.Itoa(i))
	}
	for i := range 64 {
		add(number, 992, "tun_metadata"+strconv.Itoa(i))
	}
	out["tcp_flags"] = field{name: "tcp_flags", kind: flags, bits: 12, bit: map[string]uint{
		"fin": 0, "syn": 1, "rst": 2, "psh": 3, "ack": 4, "urg": 5, "ece": 6, "cwr": 7, "ns": 8}}
	out["ct_state"] = field{name: "ct_state", kind: flags, bits: 32, bit: map[string]uint{
		"new": 0, "est": 1, "rel": 2, "rpl": 3, "inv": 4, "trk": 5, "snat": 6, "dnat": 7}}
	out["tun_flags"] = field{name: "tun_flags", kind: flags, bits: 16, bit: map[string]uint{"oam": 0}}
	return out
}

// aliases maps other spellings to canonical names (ovs-fields(7)).
func aliases() map[string]string {
	return map[string]string{
		"dl_src": "eth_src", "dl_dst": "eth_dst", "dl_type": "eth_type",
		"nw_src": "ip_src", "nw_dst": "ip_dst", "nw_proto": "ip_proto", "nw_ecn": "ip_ecn", "nw_frag": "ip_frag",
		"ipv4_src": "ip_src", "ipv4_dst": "ip_dst",
		"tcp_src": "tp_src", "tcp_dst": "tp_dst", "udp_src": "tp_src", "udp_dst": "tp_dst", "sctp_src": "tp_src", "sctp_dst": "tp_dst",
		"icmpv6_type": "icmp_type", "icmpv6_code": "icmp_code", "icmpv4_type": "icmp_type", "icmpv4_code": "icmp_code",
		"tunnel_id": "tun_id", "dl_vlan_pcp": "vlan_pcp", "in_port_oxm": "in_port", "ip_ttl": "nw_ttl",
		"nsh_path_id": "nsh_spi",
	}
}

// nxm maps the names of the NXM and OXM registries to canonical names, so that load and set_field agree.
func nxm() map[string]string {
	m := map[string]string{
		"NXM_OF_IN_PORT": "in_port", "NXM_OF_ETH_DST": "eth_dst", "NXM_OF_ETH_SRC": "eth_src", "NXM_OF_ETH_TYPE": "eth_type",
		"NXM_OF_VLAN_TCI": "vlan_tci", "NXM_OF_IP_PROTO": "ip_proto", "NXM_OF_IP_SRC": "ip_src", "NXM_OF_IP_DST": "ip_dst",
		"NXM_OF_TCP_SRC": "tp_src", "NXM_OF_TCP_DST": "tp_dst", "NXM_OF_UDP_SRC": "tp_src", "NXM_OF_UDP_DST": "tp_dst",
		"NXM_OF_ICMP_TYPE": "icmp_type", "NXM_OF_ICMP_CODE": "icmp_code", "NXM_OF_ARP_OP": "arp_op", "NXM_OF_ARP_SPA": "arp_spa",
		"NXM_OF_ARP_TPA": "arp_tpa", "NXM_NX_TUN_ID": "tun_id", "NXM_NX_ARP_SHA": "arp_sha", "NXM_NX_ARP_THA": "arp_tha",
		"NXM_NX_IPV6_SRC": "ipv6_src", "NXM_NX_IPV6_DST": "ipv6_dst", "NXM_NX_ND_TARGET": "nd_target", "NXM_NX_ND_SLL": "nd_sll",
		"NXM_NX_ND_TLL": "nd_tll", "NXM_NX_IPV6_LABEL": "ipv6_label", "NXM_NX_IP_ECN": "ip_ecn", "NXM_NX_IP_TTL": "nw_ttl",
		"NXM_NX_PKT_MARK": "pkt_mark", "NXM_NX_TUN_IPV4_SRC": "tun_src", "NXM_NX_TUN_IPV4_DST": "tun_dst",
		"NXM_NX_CT_MARK": "ct_mark", "NXM_NX_CT_LABEL": "ct_label", "NXM_NX_CT_ZONE": "ct_zone",
		"OXM_OF_METADATA": "metadata", "OXM_OF_IN_PORT": "in_port", "OXM_OF_ETH_DST": "eth_dst", "OXM_OF_ETH_SRC": "eth_src",
		"OXM_OF_VLAN_VID": "vlan_vid", "OXM_OF_VLAN_PCP": "vlan_pcp", "OXM_OF_IP_DSCP": "ip_dscp", "OXM_OF_IP_ECN": "ip_ecn",
		"OXM_OF_IPV4_SRC": "ip_src", "OXM_OF_IPV4_DST": "ip_dst", "OXM_OF_IPV6_SRC": "ipv6_src", "OXM_OF_IPV6_DST": "ipv6_dst",
		"OXM_OF_TCP_SRC": "tp_src", "OXM_OF_TCP_DST": "tp_dst", "OXM_OF_UDP_SRC": "tp_src", "OXM_OF_UDP_DST": "tp_dst",
		"OXM_OF_TUNNEL_ID": "tun_id", "OXM_OF_MPLS_LABEL": "mpls_label", "OXM_OF_MPLS_TC": "mpls_tc", "OXM_OF_MPLS_BOS": "mpls_bos",
	}
	for i := range 16 {
		m["NXM_NX_REG"+strconv.Itoa(i)] = "reg" + strconv.Itoa(i)
	}
	for i := range 8 {
		m["OXM_OF_PKT_REG"+strconv.Itoa(i)] = "xreg" + strconv.Itoa(i)
	}
	for i := range 4 {
		m["NXM_NX_XXREG"+strconv.Itoa(i)] = "xxreg" + strconv.Itoa(i)
	}
	return m
}

// value is a field's value and mask.
type value struct{ v, m *big.Int }

func ones(bits int) *big.Int {
	return new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(1))
}

func parseNumber(s string) (*big.Int, error) {
	n, ok := new(big.Int), false
	if len(s) > 300 {
		return nil, fmt.Errorf("%.20q… is too long for a number", s)
	}
	if h, isHex := strings.CutPrefix(strings.ToLower(s), "0x"); isHex {
		n, ok = n.SetString(h, 16)
	} else {
		n, ok = n.SetString(s, 10)
	}
	if !ok || n.Sign() < 0 || strings.ContainsAny(s, "_+-") {
		return nil, fmt.Errorf("%q is not a number", s)
	}
	return n, nil
}

// parseOne reads one value (or mask) of the field as a number.
func (f field) parseOne(s string) (*big.Int, error) {
	switch f.kind {
	case macAddr:
		if strings.HasPrefix(s, "0x") { // load writes addresses as numbers
			return parseNumber(s)
		}
		hw, err := net.ParseMAC(padMAC(s))
		if err != nil || len(hw) != 6 {
			return nil, fmt.Errorf("%q is not a MAC address", s)
		}
		return new(big.Int).SetBytes(hw), nil
	case ip4Addr, ip6Addr:
		if strings.HasPrefix(s, "0x") {
			return parseNumber(s)
		}
		a, err := netip.ParseAddr(s)
		if err != nil || a.Is4() != (f.kind == ip4Addr) || a.Zone() != "" {
			return nil, fmt.Errorf("%q is not an IPv%d address", s, map[kind]int{ip4Addr: 4, ip6Addr: 6}[f.kind])
		}
		return new(big.Int).SetBytes(a.AsSlice()), nil
	}
	return parseNumber(s)
}

// padMAC lets octets of one digit stand, as ovs-ofctl does.
func padMAC(s string) string {
	parts := strings.Split(s, ":")
	for i, p := range parts {
		if len(p) == 1 {
			parts[i] = "0" + p
		}
	}
	return strings.Join(parts, ":")
}

// parse reads value[/mask].
func (f field) parse(s string) (value, error) {
	if f.kind == flags && (strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-")) {
		return f.parseFlags(s)
	}
	text, maskText, masked := strings.Cut(s, "/")
	v, err := f.parseOne(text)
	if err != nil {
		return value{}, err
	}
	full := ones(f.bits)
	m := full
	if masked {
		if n, err := strconv.Atoi(maskText); err == nil && (f.kind == ip4Addr || f.kind == ip6Addr) {
			if n < 0 || n > f.bits {
				return value{}, fmt.Errorf("/%d is not a prefix length of %d bits", n, f.bits)
			}
			m = new(big.Int).Xor(full, ones(f.bits-n))
		} else if m, err = f.parseOne(maskText); err != nil {
			return value{}, fmt.Errorf("mask: %w", err)
		}
	}
	if v.Cmp(full) > 0 || m.Cmp(full) > 0 {
		return value{}, fmt.Errorf("%q does not fit %d bits", s, f.bits)
	}
	return value{v: new(big.Int).And(v, m), m: m}, nil
}

func (f field) parseFlags(s string) (value, error) {
	out := value{v: new(big.Int), m: new(big.Int)}
	for s != "" {
		sign := s[0]
		if sign != '+' && sign != '-' {
			return value{}, fmt.Errorf("%q: + or - is missing", s)
		}
		end := strings.IndexAny(s[1:], "+-")
		if end < 0 {
			end = len(s) - 1
		}
		name := s[1 : end+1]
		bit, ok := f.bit[strings.ToLower(name)]
		if !ok {
			return value{}, fmt.Errorf("%q is not a flag", name)
		}
		out.m.SetBit(out.m, int(bit), 1)
		if sign == '+' {
			out.v.SetBit(out.v, int(bit), 1)
		}
		s = s[end+1:]
	}
	return out, nil
}
