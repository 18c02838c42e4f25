package frame

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// MaxFlows is the most that a Builder tells apart: the lower half of a MAC address.
const MaxFlows = 1 << 24

type varyKind uint8

const (
	varyNone varyKind = iota
	varyMAC
	varyIPv4
	varyIPv6
	varyPort
)

const (
	// hosts is how many addresses are used of the /16 that an IPv4 address is in: all but the first and the last, which a router with such a
	// network takes for broadcasts.
	hosts = 1<<16 - 2
	// sourcePorts is how many source ports there are, from 1024 (RFC 4814 section 4).
	sourcePorts     = 1<<16 - firstSourcePort
	firstSourcePort = 1024
	// The ports of RFC 2544 appendix C.2.6.4.
	sourcePort = 0xc020
	echoPort   = 7
)

// variation says what tells the flows apart and where it is. Both ends vary together, flow by flow: the k-th address talks to the k-th of the
// other side, until the addresses are used up; then the k-th to the one after, and so on. So both sides are as large as each other, and what a
// switch learned from one direction serves the other.
type variation struct {
	kind     varyKind
	src, dst int    // offsets of the fields: 4 bytes each, ports 2
	a, b     uint32 // values of flow 0
	ipCsum   int    // offset of the IPv4 header's checksum
	outer    int    // offset of a VXLAN source port that follows the flow; 0: it does not
}

// write writes the fields of a flow, with the IPv4 header's checksum, and returns their sum.
func (v *variation) write(buf []byte, t *template, flow uint32) uint64 {
	if v.outer != 0 {
		binary.BigEndian.PutUint16(buf[v.outer:], tunnelPort(flow))
	}
	switch v.kind {
	case varyMAC: // the lower three bytes; offsets are of the last four
		binary.BigEndian.PutUint32(buf[v.src:], v.a&^0xffffff|(v.a+flow)&0xffffff)
		binary.BigEndian.PutUint32(buf[v.dst:], v.b&^0xffffff|(v.b+flow)&0xffffff)
		return 0
	case varyIPv4:
		round := flow / hosts
		src, dst := host(v.a, flow), host(v.b, flow+round)
		binary.BigEndian.PutUint32(buf[v.src:], src)
		binary.BigEndian.PutUint32(buf[v.dst:], dst)
		s := uint64(src) + uint64(dst)
		binary.BigEndian.PutUint16(buf[v.ipCsum:], ^fold(t.ipSum+s))
		return s
	case varyIPv6: // the lower four bytes
		src, dst := v.a+flow, v.b+flow
		binary.BigEndian.PutUint32(buf[v.src:], src)
		binary.BigEndian.PutUint32(buf[v.dst:], dst)
		return uint64(src) + uint64(dst)
	case varyPort:
		src, dst := ports(flow)
		binary.BigEndian.PutUint16(buf[v.src:], src)
		binary.BigEndian.PutUint16(buf[v.dst:], dst)
		return uint64(src) + uint64(dst)
	}
	return 0
}

// host is the i-th address after first in its /16, round and round.
func host(first, i uint32) uint32 {
	return first&^0xffff | (first&0xffff-1+i)%hosts + 1
}

// ports are a flow's: the destination stays 7 as long as source ports last.
func ports(flow uint32) (src, dst uint16) {
	return uint16(firstSourcePort + (sourcePort-firstSourcePort+flow)%sourcePorts), uint16(echoPort + flow/sourcePorts)
}

// tunnelPort is a VXLAN frame's source port by the inner flow, among the dynamic ports (RFC 7348 section 5).
func tunnelPort(flow uint32) uint16 { return uint16(0xc000 | (flow+1)*0x9e3779b1>>18) }

// order is the order of the flows; nil: as numbered.
func order(name string, seed uint64, flows int) ([]uint32, error) {
	switch name {
	case "", "incremental":
		return nil, nil
	case "random":
	default:
		return nil, fmt.Errorf(`order of flows %q is not known: "incremental" or "random"`, name)
	}
	if flows == 1 {
		return nil, nil
	}
	o := make([]uint32, flows)
	for i := range o {
		o[i] = uint32(i)
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(flows, func(i, j int) { o[i], o[j] = o[j], o[i] })
	return o, nil
}

// divisor divides without a division, which costs more than all the rest of a Restamp.
type divisor struct {
	d     uint64
	recip uint64 // floor(2^64 / d)
}

func newDivisor(d int) divisor {
	v := divisor{d: uint64(d)}
	if d > 1 {
		v.recip, _ = bits.Div64(1, 0, v.d)
	}
	return v
}

// div is n/d and n%d. The estimated quotient is at most one too small, since the reciprocal is less than one too small.
func (v divisor) div(n uint64) (q, r uint64) {
	if v.d == 1 {
		return n, 0
	}
	q, _ = bits.Mul64(n, v.recip)
	r = n - q*v.d
	if r >= v.d {
		return q + 1, r - v.d
	}
	return q, r
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
