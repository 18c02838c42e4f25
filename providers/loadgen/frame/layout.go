package frame

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"plumb/providers"
)

const (
	fcs      = 4
	minFrame = 64   // IEEE Std 802.3, FCS included
	maxFrame = 9216 // providers.Traffic

	ethernetLen, tagLen, ipv4Len, ipv6Len, udpLen, tcpLen, vxlanLen = 14, 4, 20, 40, 8, 20, 8
	tunnelLen                                                       = ethernetLen + ipv4Len + udpLen + vxlanLen

	typeIPv4, typeIPv6, typeTag, typeServiceTag = 0x0800, 0x86dd, 0x8100, 0x88a8
	typeExperiment                              = 0x88b5

	protoTCP, protoUDP, protoExperiment = 6, 17, 253

	hopLimit  = 10   // RFC 2544 appendix C.2.6.4
	vxlanPort = 4789 // RFC 7348 section 5
)

// kinds are the values of Traffic.Headers.
var kinds = map[string]kind{
	"l2":   {vary: "mac"},
	"ipv4": {ip: ipv4Len, proto: protoExperiment, vary: "ip mac"},
	"ipv6": {ip: ipv6Len, proto: protoExperiment, vary: "ip mac"},
	"udp":  {ip: ipv4Len, proto: protoUDP, l4: udpLen, vary: "port ip mac"},
	"udp6": {ip: ipv6Len, proto: protoUDP, l4: udpLen, vary: "port ip mac"},
	"tcp":  {ip: ipv4Len, proto: protoTCP, l4: tcpLen, vary: "port ip mac"},
}

type kind struct {
	ip, l4 int // lengths
	proto  uint8
	vary   string // what can vary, the default first
}

// MinSize is the least size, FCS included, that the headers of t leave room for the signature in. The frame without its tags and its tunnel is
// then of 64 bytes at least, so that nobody has to pad it where they are taken off: padding would hide the signature. The sizes of t do not
// matter; unknown headers count as none.
func MinSize(t providers.Traffic) int {
	k := kinds[t.Headers]
	least := max(minFrame, ethernetLen+k.ip+k.l4+SignatureSize+fcs) + tagLen*len(t.VLANs)
	if t.VXLAN != nil {
		least += tunnelLen
	}
	return least
}

// Reverse is t in the other direction: addresses change sides, those that are not given after they got their defaults. Empty MACs stay empty: they
// are for the other direction's Options. Ports stay, since RFC 2544 sends echo requests both ways. A tunnel goes the other way too.
func Reverse(t providers.Traffic) providers.Traffic {
	t.SrcMAC, t.DstMAC = t.DstMAC, t.SrcMAC
	src, dst := defaults(t)
	t.SrcIP, t.DstIP = dst, src
	if t.VXLAN != nil {
		x := *t.VXLAN
		x.SrcMAC, x.DstMAC = x.DstMAC, x.SrcMAC
		x.SrcIP, x.DstIP = x.DstIP, x.SrcIP
		t.VXLAN = &x
	}
	return t
}

// defaults are the addresses of t, those of the RFCs where it has none.
func defaults(t providers.Traffic) (src, dst string) {
	src, dst = t.SrcIP, t.DstIP
	given := [2]string{}
	switch kinds[t.Headers].ip {
	case ipv4Len:
		given = [2]string{"198.18.0.1", "198.19.0.1"}
	case ipv6Len:
		given = [2]string{"2001:2::1", "2001:2:0:1::1"}
	}
	if src == "" {
		src = given[0]
	}
	if dst == "" {
		dst = given[1]
	}
	return src, dst
}

// layout is what all frames of a stream have in common. Fields that vary are zero in headers: Builder.finish writes them.
type layout struct {
	traffic providers.Traffic
	kind
	headers []byte
	flows   int
	vary    variation
	outerIP int // offsets; 0: there is none
	innerIP int
	csum    int
}

// plan checks all of t but its sizes.
func plan(t providers.Traffic, o Options) (*layout, error) {
	k, ok := kinds[t.Headers]
	if !ok {
		return nil, fmt.Errorf("headers %q are not known: l2, ipv4, ipv6, udp, udp6 or tcp", t.Headers)
	}
	l := &layout{traffic: t, kind: k, flows: max(t.Flows, 1)}
	if t.Flows < 0 || t.Flows > MaxFlows {
		return nil, fmt.Errorf("%d flows are not possible: 1 to %d", t.Flows, MaxFlows)
	}
	if len(t.VLANs) > 2 {
		return nil, fmt.Errorf("%d VLAN tags are not possible: at most two, the outer first", len(t.VLANs))
	}
	for _, id := range t.VLANs {
		if id < 1 || id > 4094 {
			return nil, fmt.Errorf("VLAN %d is not possible: 1 to 4094", id)
		}
	}
	tags := t.VLANs
	if t.VXLAN != nil {
		if err := l.tunnel(*t.VXLAN, tags, o); err != nil {
			return nil, err
		}
		tags = nil
	}
	etherType := uint16(typeExperiment)
	switch k.ip {
	case ipv4Len:
		etherType = typeIPv4
	case ipv6Len:
		etherType = typeIPv6
	}
	ethernet := len(l.headers)
	if err := l.ethernet(t.SrcMAC, t.DstMAC, o, tags, etherType); err != nil {
		return nil, err
	}
	if err := l.ip(); err != nil {
		return nil, err
	}
	if k.l4 > 0 {
		l.transport()
	}
	return l, l.varied(ethernet)
}

func (l *layout) ethernet(src, dst string, o Options, tags []int, etherType uint16) error {
	from, err := mac("source", src, o.SrcMAC)
	if err != nil {
		return err
	}
	if from[0]&1 != 0 {
		return fmt.Errorf("source MAC %s is a group address: switches discard frames from it", from)
	}
	to, err := mac("destination", dst, o.DstMAC)
	if err != nil {
		return err
	}
	h := append(append(l.headers, to...), from...)
	for i, id := range tags {
		tpid := uint16(typeTag)
		if i < len(tags)-1 {
			tpid = typeServiceTag
		}
		h = binary.BigEndian.AppendUint16(h, tpid)
		h = binary.BigEndian.AppendUint16(h, uint16(id))
	}
	l.headers = binary.BigEndian.AppendUint16(h, etherType)
	return nil
}

func mac(side, s string, own net.HardwareAddr) (net.HardwareAddr, error) {
	a := own
	if s != "" {
		var err error
		if a, err = net.ParseMAC(s); err != nil {
			return nil, fmt.Errorf("%s MAC: %w", side, err)
		}
	} else if a == nil {
		return nil, fmt.Errorf("%s MAC is neither given nor known from a port", side)
	}
	if len(a) != 6 {
		return nil, fmt.Errorf("%s MAC %s has %d bytes instead of 6", side, a, len(a))
	}
	return a, nil
}

// tunnel puts the outer headers down. Its tags are all the tags there are: RFC 7348 section 6.1.
func (l *layout) tunnel(x providers.VXLAN, tags []int, o Options) error {
	if x.VNI < 0 || x.VNI >= 1<<24 {
		return fmt.Errorf("VNI %d is not possible: 0 to %d", x.VNI, 1<<24-1)
	}
	for _, port := range []int{x.SrcPort, x.DstPort} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("VXLAN port %d is not possible: 0 to 65535", port)
		}
	}
	if err := l.ethernet(x.SrcMAC, x.DstMAC, o, tags, typeIPv4); err != nil {
		return fmt.Errorf("VXLAN %w", err)
	}
	src, dst, err := addresses(x.SrcIP, x.DstIP, ipv4Len)
	if err != nil {
		return fmt.Errorf("VXLAN %w", err)
	}
	l.outerIP = len(l.headers)
	h := ipv4(l.headers, protoUDP, src, dst)
	if x.DstPort == 0 {
		x.DstPort = vxlanPort
	}
	from := uint16(x.SrcPort)
	if from == 0 {
		from = tunnelPort(0)
		l.vary.outer = len(h)
	}
	h = binary.BigEndian.AppendUint16(h, from)
	h = binary.BigEndian.AppendUint16(h, uint16(x.DstPort))
	h = append(h, 0, 0, 0, 0)                                      // length, and no checksum
	h = append(h, 0x08, 0, 0, 0)                                   // the VNI is valid
	l.headers = binary.BigEndian.AppendUint32(h, uint32(x.VNI)<<8) // RFC 7348 section 5
	return nil
}

// addresses parses a pair of one family.
func addresses(src, dst string, length int) (a, b netip.Addr, err error) {
	version := 6
	if length == ipv4Len {
		version = 4
	}
	parse := func(side, s string) (netip.Addr, error) {
		ip, err := netip.ParseAddr(s)
		switch {
		case s == "":
			return ip, fmt.Errorf("%s IP is not given", side)
		case err != nil:
			return ip, fmt.Errorf("%s IP: %w", side, err)
		case ip.Zone() != "":
			return ip, fmt.Errorf("%s IP %s has a zone, which no frame can carry", side, s)
		case ip.Is4() != (version == 4):
			return ip, fmt.Errorf("%s IP %s is of the wrong family for an IPv%d header", side, s, version)
		}
		return ip, nil
	}
	if a, err = parse("source", src); err != nil {
		return a, b, err
	}
	b, err = parse("destination", dst)
	return a, b, err
}

// ipv4 appends a header without lengths and checksum. DF is set, unlike in RFC 2544, so that
// the identification may be the same in all frames (RFC 6864).
func ipv4(h []byte, proto uint8, src, dst netip.Addr) []byte {
	h = append(h, 0x45, 0, 0, 0, 0, 0, 0x40, 0, hopLimit, proto, 0, 0)
	return append(append(h, src.AsSlice()...), dst.AsSlice()...)
}

func (l *layout) ip() error {
	if l.kind.ip == 0 {
		if l.traffic.SrcIP != "" || l.traffic.DstIP != "" {
			return fmt.Errorf("headers %q have no IP addresses: leave them out, or ask for other headers", l.traffic.Headers)
		}
		return nil
	}
	from, to := defaults(l.traffic)
	src, dst, err := addresses(from, to, l.kind.ip)
	if err != nil {
		return err
	}
	l.innerIP = len(l.headers)
	if l.kind.ip == ipv4Len {
		l.headers = ipv4(l.headers, l.proto, src, dst)
		return nil
	}
	h := append(l.headers, 0x60, 0, 0, 0, 0, 0, l.proto, hopLimit)
	l.headers = append(append(h, src.AsSlice()...), dst.AsSlice()...)
	return nil
}

func (l *layout) transport() {
	h := binary.BigEndian.AppendUint16(l.headers, sourcePort)
	h = binary.BigEndian.AppendUint16(h, echoPort)
	if l.proto == protoUDP {
		l.csum = len(h) + 2
		l.headers = append(h, 0, 0, 0, 0)
		return
	}
	h = append(h, 0, 0, 0, 1, 0, 0, 0, 1, tcpLen/4<<4, 0x10, 0xff, 0xff) // sequence numbers, ACK, window
	l.csum = len(h)
	l.headers = append(h, 0, 0, 0, 0)
}

// varied finds the fields that vary, takes flow 0's values out of them, and puts zeros there.
func (l *layout) varied(ethernet int) error {
	what := l.traffic.Vary
	if what == "" {
		what, _, _ = strings.Cut(l.kind.vary, " ")
	}
	if !strings.Contains(" "+l.kind.vary+" ", " "+what+" ") {
		return fmt.Errorf("flows with headers %q cannot vary by %q, only by %s", l.traffic.Headers, what, strings.ReplaceAll(l.kind.vary, " ", " or "))
	}
	v := &l.vary
	if l.flows == 1 {
		v.outer = 0
		return nil
	}
	width := 4
	switch {
	case what == "mac":
		v.kind, v.dst, v.src = varyMAC, ethernet+2, ethernet+8
	case what == "port":
		v.kind, v.src, v.dst, width = varyPort, len(l.headers)-l.l4, len(l.headers)-l.l4+2, 2
	case l.kind.ip == ipv4Len:
		v.kind, v.src, v.dst, v.ipCsum = varyIPv4, l.innerIP+12, l.innerIP+16, l.innerIP+10
	default:
		v.kind, v.src, v.dst = varyIPv6, l.innerIP+20, l.innerIP+36
	}
	if width == 4 {
		v.a, v.b = binary.BigEndian.Uint32(l.headers[v.src:]), binary.BigEndian.Uint32(l.headers[v.dst:])
	}
	if v.kind == varyIPv4 {
		for i, a := range []uint32{v.a, v.b} {
			if low := a & 0xffff; low == 0 || low == 0xffff {
				ip := netip.AddrFrom4([4]byte(l.headers[v.src+4*i:]))
				return fmt.Errorf("%s is the first or last address of its /16, where flows do not begin: take another", ip)
			}
		}
	}
	clear(l.headers[v.src : v.src+width])
	clear(l.headers[v.dst : v.dst+width])
	return nil
}

// template makes the frame of a size, FCS included.
func (l *layout) template(size int) (*template, error) {
	if least := MinSize(l.traffic); size < least || size > maxFrame {
		return nil, fmt.Errorf("a size of %d bytes is not possible with %s: %d to %d, FCS included, of which %d are Plumb's signature",
			size, l.describe(), least, maxFrame, SignatureSize)
	}
	f := make([]byte, size-fcs)
	copy(f, l.headers)
	for i := range f[len(l.headers) : len(f)-SignatureSize] {
		f[len(l.headers)+i] = byte(i)
	}
	t := &template{frame: f, sig: len(f) - SignatureSize}
	if l.outerIP > 0 {
		l.finishIPv4(f, l.outerIP, false)
		binary.BigEndian.PutUint16(f[l.outerIP+ipv4Len+4:], uint16(len(f)-l.outerIP-ipv4Len))
	}
	if l.kind.ip == 0 {
		return t, nil
	}
	l4 := l.innerIP + l.kind.ip
	rest := len(f) - l4
	if l.kind.ip == ipv4Len {
		t.ipSum = l.finishIPv4(f, l.innerIP, l.vary.kind == varyIPv4)
	} else {
		binary.BigEndian.PutUint16(f[l.innerIP+4:], uint16(rest))
	}
	if l.csum == 0 {
		return t, nil
	}
	if l.proto == protoUDP {
		binary.BigEndian.PutUint16(f[l4+4:], uint16(rest))
	}
	t.odd = (t.sig-l4)%2 != 0
	addrs := f[l4-8 : l4]
	if l.kind.ip == ipv6Len {
		addrs = f[l4-32 : l4]
	}
	t.sum = sum(addrs) + uint64(l.proto) + uint64(rest) + sum(f[l4:])
	return t, nil
}

// finishIPv4 writes length and, unless it varies, checksum of the header at i, and returns the header's sum.
func (l *layout) finishIPv4(f []byte, i int, varies bool) uint64 {
	binary.BigEndian.PutUint16(f[i+2:], uint16(len(f)-i))
	s := sum(f[i : i+ipv4Len])
	if !varies {
		binary.BigEndian.PutUint16(f[i+10:], ^fold(s))
	}
	return s
}

func (l *layout) describe() string {
	s := l.traffic.Headers + " headers"
	switch len(l.traffic.VLANs) {
	case 1:
		s += ", a VLAN tag"
	case 2:
		s += ", two VLAN tags"
	}
	if l.traffic.VXLAN != nil {
		s += " and VXLAN"
	}
	return s
}
