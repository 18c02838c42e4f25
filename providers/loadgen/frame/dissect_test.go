package frame

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// view is what a receiver that trusts nothing reads out of a frame.
type view struct {
	Src, Dst         string
	VLANs            []int
	TPIDs            []uint16
	EtherType        uint16
	SrcIP, DstIP     string
	Proto            uint8
	SrcPort, DstPort int
	VNI              int
	Inner            *view
	Payload          int
}

// dissect reads a whole frame and checks every length and checksum in it, byte by byte as RFC 1071 says, with nothing of the package's own arithmetic.
func dissect(b []byte) (*view, error) {
	if len(b) < 14 {
		return nil, fmt.Errorf("%d bytes are no Ethernet frame", len(b))
	}
	v := &view{Dst: net.HardwareAddr(b[:6]).String(), Src: net.HardwareAddr(b[6:12]).String()}
	b = b[12:]
	for {
		v.EtherType = binary.BigEndian.Uint16(b)
		if b = b[2:]; v.EtherType != 0x8100 && v.EtherType != 0x88a8 {
			break
		}
		v.TPIDs = append(v.TPIDs, v.EtherType)
		v.VLANs = append(v.VLANs, int(binary.BigEndian.Uint16(b)))
		b = b[2:]
	}
	var pseudo []byte
	switch v.EtherType {
	case 0x88b5:
		v.Payload = len(b)
		return v, nil
	case 0x0800:
		if b[0] != 0x45 || int(binary.BigEndian.Uint16(b[2:])) != len(b) {
			return nil, fmt.Errorf("IPv4 header %x over %d bytes", b[:20], len(b))
		}
		if s := ones(b[:20]); s != 0xffff {
			return nil, fmt.Errorf("IPv4 header sums up to %x", s)
		}
		v.Proto = b[9]
		v.SrcIP, v.DstIP = netip.AddrFrom4([4]byte(b[12:16])).String(), netip.AddrFrom4([4]byte(b[16:20])).String()
		pseudo = append(pseudo, b[12:20]...)
		b = b[20:]
	case 0x86dd:
		if b[0]>>4 != 6 || int(binary.BigEndian.Uint16(b[4:])) != len(b)-40 {
			return nil, fmt.Errorf("IPv6 header %x over %d bytes", b[:40], len(b))
		}
		v.Proto = b[6]
		v.SrcIP, v.DstIP = netip.AddrFrom16([16]byte(b[8:24])).String(), netip.AddrFrom16([16]byte(b[24:40])).String()
		pseudo = append(pseudo, b[8:40]...)
		b = b[40:]
	default:
		return nil, fmt.Errorf("EtherType %x", v.EtherType)
	}
	v.Payload = len(b)
	if v.Proto == 253 {
		return v, nil
	}
	v.SrcPort, v.DstPort = int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
	pseudo = append(pseudo, 0, v.Proto, byte(len(b)>>8), byte(len(b)))
	right := ones(append(pseudo, b...)) == 0xffff
	switch v.Proto {
	case 17:
		if n := int(binary.BigEndian.Uint16(b[4:])); n != len(b) {
			return nil, fmt.Errorf("UDP length %d of %d", n, len(b))
		}
		none := b[6] == 0 && b[7] == 0
		v.Payload -= 8
		if v.DstPort == 4789 {
			if !none {
				return nil, fmt.Errorf("VXLAN with an outer checksum")
			}
			if b[8] != 8 || b[15] != 0 {
				return nil, fmt.Errorf("VXLAN header %x", b[8:16])
			}
			v.VNI = int(binary.BigEndian.Uint32(b[12:]) >> 8)
			var err error
			v.Inner, err = dissect(b[16:])
			return v, err
		}
		if none {
			return nil, fmt.Errorf("UDP without a checksum")
		}
	case 6:
		if b[12] != 0x50 {
			return nil, fmt.Errorf("TCP data offset %x", b[12])
		}
		v.Payload -= 20
	}
	if !right {
		return nil, fmt.Errorf("checksum of protocol %d is wrong", v.Proto)
	}
	return v, nil
}

func ones(b []byte) uint32 {
	var s uint32
	for i, c := range b {
		if i%2 == 0 {
			s += uint32(c) << 8
		} else {
			s += uint32(c)
		}
		for s > 0xffff {
			s = s&0xffff + s>>16
		}
	}
	return s
}
