package openflow

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"sort"
	"strconv"
	"strings"
)

// shorthand is what words like tcp stand for: Ethernet type, and IP protocol where there is one (ovs-fields(7)).
func shorthand(word string) (ethType, ipProto int64, ok bool) {
	switch word {
	case "ip", "ipv4":
		return 0x0800, -1, true
	case "ipv6":
		return 0x86dd, -1, true
	case "icmp":
		return 0x0800, 1, true
	case "tcp":
		return 0x0800, 6, true
	case "udp":
		return 0x0800, 17, true
	case "sctp":
		return 0x0800, 132, true
	case "icmp6", "icmpv6":
		return 0x86dd, 58, true
	case "tcp6":
		return 0x86dd, 6, true
	case "udp6":
		return 0x86dd, 17, true
	case "sctp6":
		return 0x86dd, 132, true
	case "arp":
		return 0x0806, -1, true
	case "rarp":
		return 0x8035, -1, true
	case "mpls":
		return 0x8847, -1, true
	case "mplsm":
		return 0x8848, -1, true
	}
	return 0, 0, false
}

// builder collects the fields of a match.
type builder struct {
	p      *Parser
	fields map[string]value  // by canonical name
	words  map[string]string // ports, words, and fields that are not known: as text
}

func exact(v int64, bits int) value { return value{v: big.NewInt(v), m: ones(bits)} }

func (b *builder) add(name, val string, hasVal bool) error {
	if !hasVal {
		eth, proto, ok := shorthand(name)
		if !ok {
			if name == "eth" {
				return nil
			}
			return errors.New("is neither field=value nor a known protocol")
		}
		if err := b.merge("eth_type", exact(eth, 16)); err != nil {
			return err
		}
		if proto >= 0 {
			return b.merge("ip_proto", exact(proto, 8))
		}
		return nil
	}
	if val == "" {
		return errors.New("has no value")
	}
	if canon, ok := b.p.aliases[name]; ok {
		name = canon
	}
	if val == "*" {
		return nil
	}
	if done, err := b.special(name, val); done || err != nil {
		return err
	}
	f, ok := b.p.fields[name]
	if !ok {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || name == "" {
			return errors.New("is not the name of a field")
		}
		b.words[name] = val
		return nil
	}
	switch f.kind {
	case port:
		b.words[name] = b.p.ports.ref(val)
		return nil
	case word:
		b.words[name] = strings.ToLower(val)
		return nil
	}
	v, err := f.parse(val)
	if err != nil {
		return err
	}
	return b.merge(name, v)
}

// special adds the fields that are parts of others: VLAN fields of the TCI, nw_tos of the DSCP, wide registers of narrow ones.
func (b *builder) special(name, val string) (bool, error) {
	tci := func(bits int, shift uint, set int64) (bool, error) {
		v, err := field{bits: bits}.parse(val)
		if err != nil {
			return true, err
		}
		v.v = new(big.Int).Or(new(big.Int).Lsh(v.v, shift), big.NewInt(set))
		v.m = new(big.Int).Or(new(big.Int).Lsh(v.m, shift), big.NewInt(set))
		return true, b.merge("vlan_tci", v)
	}
	switch {
	case name == "dl_vlan":
		n, err := parseNumber(val)
		if err == nil && n.IsInt64() && n.Int64() == 0xffff { // OpenFlow 1.0's OFP_VLAN_NONE: no tag
			return true, b.merge("vlan_tci", exact(0, 16))
		}
		return tci(12, 0, 0x1000)
	case name == "vlan_vid":
		return tci(13, 0, 0)
	case name == "vlan_pcp":
		return tci(3, 13, 0x1000)
	case name == "nw_tos":
		n, err := small(val, 255)
		if err != nil {
			return true, err
		}
		if n&3 != 0 {
			return true, fmt.Errorf("%d has ECN bits set: match them with nw_ecn", n)
		}
		return true, b.merge("ip_dscp", exact(int64(n>>2), 6))
	case strings.HasPrefix(name, "xxreg") || strings.HasPrefix(name, "xreg"):
		f, ok := b.p.fields[name]
		if !ok {
			return false, nil
		}
		v, err := f.parse(val)
		if err != nil {
			return true, err
		}
		n, _ := strconv.Atoi(strings.TrimLeft(name, "xreg"))
		parts := f.bits / 32
		for i := range parts {
			shift := uint(32 * (parts - 1 - i))
			low := value{
				v: new(big.Int).And(new(big.Int).Rsh(v.v, shift), ones(32)),
				m: new(big.Int).And(new(big.Int).Rsh(v.m, shift), ones(32)),
			}
			if err := b.merge("reg"+strconv.Itoa(n*parts+i), low); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	return false, nil
}

// merge joins v into the field; a second value for the same bits must agree.
func (b *builder) merge(name string, v value) error {
	if v.m.Sign() == 0 {
		return nil
	}
	old, ok := b.fields[name]
	if !ok {
		b.fields[name] = v
		return nil
	}
	both := new(big.Int).And(old.m, v.m)
	if new(big.Int).And(old.v, both).Cmp(new(big.Int).And(v.v, both)) != 0 {
		return fmt.Errorf("%s is given two values", name)
	}
	b.fields[name] = value{v: new(big.Int).Or(old.v, v.v), m: new(big.Int).Or(old.m, v.m)}
	return nil
}

// String writes the match: sorted by field name, in spellings that ovs-ofctl takes, what others need first.
func (b *builder) String() string {
	eth := int64(-1)
	if v, ok := b.fields["eth_type"]; ok && v.m.Cmp(ones(16)) == 0 {
		eth = v.v.Int64()
	}
	if eth == 0x0806 || eth == 0x8035 { // in ARP the IPv4 fields are others
		for from, to := range map[string]string{"ip_src": "arp_spa", "ip_dst": "arp_tpa", "ip_proto": "arp_op"} {
			if v, ok := b.fields[from]; ok {
				delete(b.fields, from)
				if to == "arp_op" { // 16 bits, where nw_proto has 8
					v.m = new(big.Int).Or(v.m, big.NewInt(0xff00))
				}
				b.fields[to] = v
			}
		}
	}
	var out []string
	for name, v := range b.fields {
		out = append(out, spelling(name)+"="+b.p.show(name, v))
	}
	for name, v := range b.words {
		out = append(out, spelling(name)+"="+v)
	}
	rank := func(s string) int {
		name, _, _ := strings.Cut(s, "=")
		switch name {
		case "dl_type":
			return 0
		case "nw_proto":
			return 1
		case "icmp_type", "icmpv6_type":
			return 2
		}
		return 3
	}
	if eth == 0x86dd {
		for i, s := range out {
			if rest, ok := strings.CutPrefix(s, "icmp_"); ok {
				out[i] = "icmpv6_" + rest
			}
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if a, b := rank(out[i]), rank(out[j]); a != b {
			return a < b
		}
		return out[i] < out[j]
	})
	return strings.Join(out, ",")
}

// spelling is the name under which every version of ovs-ofctl takes the field.
func spelling(name string) string {
	switch name {
	case "eth_type":
		return "dl_type"
	case "eth_src":
		return "dl_src"
	case "eth_dst":
		return "dl_dst"
	case "ip_src":
		return "nw_src"
	case "ip_dst":
		return "nw_dst"
	case "ip_proto":
		return "nw_proto"
	case "ip_ecn":
		return "nw_ecn"
	case "ip_frag":
		return "nw_frag"
	}
	return name
}

// show writes a value with its mask; a full mask is left out.
func (p *Parser) show(name string, v value) string {
	f := p.fields[name]
	s := f.text(v.v)
	if v.m.Cmp(ones(f.bits)) == 0 {
		return s
	}
	if f.kind == ip4Addr || f.kind == ip6Addr {
		if n, ok := prefixLen(v.m, f.bits); ok {
			return s + "/" + strconv.Itoa(n)
		}
	}
	return s + "/" + f.text(v.m)
}

func (f field) text(n *big.Int) string {
	switch f.kind {
	case macAddr:
		return net.HardwareAddr(n.FillBytes(make([]byte, 6))).String()
	case ip4Addr:
		a, _ := netip.AddrFromSlice(n.FillBytes(make([]byte, 4)))
		return a.String()
	case ip6Addr:
		a, _ := netip.AddrFromSlice(n.FillBytes(make([]byte, 16)))
		return a.String()
	}
	if n.IsInt64() && f.bits <= 8 {
		return n.String()
	}
	return "0x" + n.Text(16)
}

// prefixLen is the length of a mask whose ones all come first.
func prefixLen(m *big.Int, bits int) (int, bool) {
	zeros := int(m.TrailingZeroBits())
	if m.Sign() == 0 {
		zeros = bits
	}
	return bits - zeros, new(big.Int).Xor(ones(bits), ones(zeros)).Cmp(m) == 0
}
