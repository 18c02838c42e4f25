package kernel

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// attribute is a netlink attribute with its padding.
func attribute(typ uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, typ), value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func number(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// message is a netlink message.
func message(typ uint16, seq uint32, parts ...[]byte) []byte {
	b := make([]byte, unix.SizeofNlMsghdr)
	for _, p := range parts {
		b = append(b, p...)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], typ)
	binary.NativeEndian.PutUint32(b[8:], seq)
	return b
}

func infomsg(index, flags uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], index)
	binary.NativeEndian.PutUint32(b[8:], flags)
	return b
}

func vethMessage() []byte {
	stats := make([]byte, 8*24)
	binary.NativeEndian.PutUint64(stats[8*15:], 42)
	return message(unix.RTM_NEWLINK, 7, infomsg(3, unix.IFF_UP),
		attribute(unix.IFLA_IFNAME, []byte("t0\x00")), attribute(unix.IFLA_MTU, number(9000)), attribute(unix.IFLA_ADDRESS, []byte{2, 0, 0, 0, 0, 1}),
		attribute(unix.IFLA_CARRIER, []byte{1}), attribute(unix.IFLA_CARRIER_CHANGES, number(5)), attribute(unix.IFLA_NUM_RX_QUEUES, number(2)),
		attribute(unix.IFLA_STATS64, stats), attribute(unix.IFLA_LINKINFO|unix.NLA_F_NESTED, attribute(unix.IFLA_INFO_KIND, []byte("veth\x00"))),
		attribute(unix.IFLA_XDP, attribute(unix.IFLA_XDP_ATTACHED, []byte{1})))
}

func TestParseLink(t *testing.T) {
	want := iface{index: 3, mac: net.HardwareAddr{2, 0, 0, 0, 0, 1}, mtu: 9000, kind: "veth", up: true, carrier: true, carrierChanges: 5, missed: 42, rxQueues: 2, xdp: true}
	got, found, err := parseLink(append(message(unix.RTM_NEWLINK, 6, infomsg(9, 0)), vethMessage()...), 7)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(iface{})); diff != "" {
		t.Error(diff)
	}
	if _, found, err := parseLink(vethMessage(), 8); found || err != nil {
		t.Errorf("the answer to another question: %t, %v", found, err)
	}
	if _, _, err := parseLink(message(unix.NLMSG_ERROR, 7, number(^uint32(unix.ENODEV)+1)), 7); err == nil || !strings.Contains(err.Error(), "the interface is gone") {
		t.Errorf("an interface that is gone: %v", err)
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(vethMessage())
	f.Add(message(unix.NLMSG_ERROR, 7, number(1)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, found, err := parseLink(b, 7); found && err != nil {
			t.Errorf("found %+v with error %v", l, err)
		}
	})
}

func TestChangesOfTheLink(t *testing.T) {
	up := func(n uint32) iface { return iface{up: true, carrier: true, carrierChanges: n} }
	down := func(n uint32) iface { return iface{up: true, carrierChanges: n} }
	off := func(n uint32) iface { return iface{carrier: true, carrierChanges: n} }
	tests := map[string]struct {
		steps []iface // the first is at the beginning
		links uint64
		up    bool
	}{
		"stays":                     {[]iface{up(3), up(3)}, 1, true},
		"goes":                      {[]iface{up(3), down(4)}, 2, false},
		"comes back":                {[]iface{up(3), down(4), up(5)}, 3, true},
		"flaps unseen":              {[]iface{up(3), up(5)}, 3, true},
		"was away":                  {[]iface{down(3), up(4)}, 1, true},
		"taken down with a carrier": {[]iface{up(3), off(3), up(3)}, 3, true},
	}
	for name, test := range tests {
		var links uint64
		last := test.steps[0]
		isUp := last.up && last.carrier
		if isUp {
			links = 1
		}
		for _, now := range test.steps[1:] {
			links, isUp = changes(links, isUp, last, now)
			last = now
		}
		if links != test.links || isUp != test.up {
			t.Errorf("%s: %d links, up %t; want %d, %t", name, links, isUp, test.links, test.up)
		}
	}
}
