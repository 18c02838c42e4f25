package openflow

import (
	"errors"
	"fmt"
	"iter"
	"math/big"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Template makes Count flows that differ in the fields that Vary names: flow i has base + i there. It is deterministic, so
// that a million flows are kept as a few words.
type Template struct {
	Count    int
	Headers  string // "l2", "ipv4", "ipv6", "udp", "tcp", "udp6", "tcp6"
	Table    int
	Priority int    // 0 is a priority too: DefaultPriority is the caller's to fill in
	InPort   string // "": not matched
	Src, Dst string // base addresses: MAC for l2, else IP; "": not matched
	SrcPort  int    // base transport ports; -1: not matched
	DstPort  int
	Vary     []string // of "src", "dst", "src_port", "dst_port"
	Actions  string
}

// Check says what is wrong with the template, with the arithmetic.
func (t Template) Check() error {
	if t.Count < 1 {
		return errors.New("count must be at least 1")
	}
	if t.transport() == "" && (t.SrcPort >= 0 || t.DstPort >= 0) {
		return fmt.Errorf("headers %q have no ports: src_port and dst_port need udp, tcp, udp6 or tcp6", t.Headers)
	}
	if len(t.Vary) == 0 && t.Count > 1 {
		return errors.New("vary names nothing: all flows would be one")
	}
	bits := t.addrBits()
	if bits == 0 {
		return fmt.Errorf("headers %q is not one of l2, ipv4, ipv6, udp, tcp, udp6, tcp6", t.Headers)
	}
	for name, s := range map[string]string{"src": t.Src, "dst": t.Dst} {
		if s != "" {
			if _, err := t.base(s); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, v := range t.Vary {
		var room *big.Int
		switch v {
		case "src", "dst":
			s := map[string]string{"src": t.Src, "dst": t.Dst}[v]
			if s == "" {
				return fmt.Errorf("vary names %s, which has no base address", v)
			}
			base, _ := t.base(s)
			room = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), base)
		case "src_port", "dst_port":
			base := map[string]int{"src_port": t.SrcPort, "dst_port": t.DstPort}[v]
			if base < 0 {
				return fmt.Errorf("vary names %s, which has no base port", v)
			}
			room = big.NewInt(int64(65536 - base))
		default:
			return fmt.Errorf("vary: %q is not one of src, dst, src_port, dst_port", v)
		}
		if room.Cmp(big.NewInt(int64(t.Count))) < 0 {
			return fmt.Errorf("%d flows need %d values of %s, but from its base there are only %s", t.Count, t.Count, v, room)
		}
	}
	return nil
}

func (t Template) transport() string {
	switch t.Headers {
	case "udp", "tcp", "udp6", "tcp6":
		return t.Headers
	}
	return ""
}

func (t Template) addrBits() int {
	switch t.Headers {
	case "l2":
		return 48
	case "ipv4", "udp", "tcp":
		return 32
	case "ipv6", "udp6", "tcp6":
		return 128
	}
	return 0
}

func (t Template) base(s string) (*big.Int, error) {
	f := field{bits: t.addrBits()}
	switch f.bits {
	case 48:
		f.kind = macAddr
	case 32:
		f.kind = ip4Addr
	case 128:
		f.kind = ip6Addr
	}
	return f.parseOne(s)
}

// Lines yields the flows as text for ovs-ofctl. The template has passed Check.
func (t Template) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		src, dst := t.counter("src", t.Src), t.counter("dst", t.Dst)
		srcPort, dstPort := t.portCounter("src_port", t.SrcPort), t.portCounter("dst_port", t.DstPort)
		head := fmt.Sprintf("table=%d,priority=%d", t.Table, t.Priority)
		if t.InPort != "" {
			head += ",in_port=" + t.InPort
		}
		names := [2]string{"nw_src", "nw_dst"}
		switch t.Headers {
		case "l2":
			names = [2]string{"dl_src", "dl_dst"}
		case "ipv4":
			head += ",ip"
		case "ipv6", "udp6", "tcp6":
			head += "," + t.Headers
			names = [2]string{"ipv6_src", "ipv6_dst"}
		default:
			head += "," + t.Headers
		}
		var b strings.Builder
		for i := range t.Count {
			b.Reset()
			b.WriteString(head)
			for _, part := range []struct{ name, val string }{
				{names[0], src(i)}, {names[1], dst(i)}, {"tp_src", srcPort(i)}, {"tp_dst", dstPort(i)},
			} {
				if part.val != "" {
					b.WriteByte(',')
					b.WriteString(part.name)
					b.WriteByte('=')
					b.WriteString(part.val)
				}
			}
			b.WriteString(" actions=")
			b.WriteString(t.Actions)
			if !yield(b.String()) {
				return
			}
		}
	}
}

func (t Template) varies(name string) bool {
	for _, v := range t.Vary {
		if v == name {
			return true
		}
	}
	return false
}

func (t Template) counter(name, base string) func(int) string {
	if base == "" {
		return func(int) string { return "" }
	}
	n, err := t.base(base)
	if err != nil || !t.varies(name) {
		return func(int) string { return base }
	}
	size := t.addrBits() / 8
	return func(i int) string {
		raw := new(big.Int).Add(n, big.NewInt(int64(i))).FillBytes(make([]byte, size))
		if size == 6 {
			return net.HardwareAddr(raw).String()
		}
		a, _ := netip.AddrFromSlice(raw)
		return a.String()
	}
}

func (t Template) portCounter(name string, base int) func(int) string {
	if base < 0 {
		return func(int) string { return "" }
	}
	if !t.varies(name) {
		return func(int) string { return strconv.Itoa(base) }
	}
	return func(i int) string { return strconv.Itoa(base + i) }
}
