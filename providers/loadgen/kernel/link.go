package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// iface is what the kernel says of an interface (rtnetlink(7)).
type iface struct {
	index          int
	mac            net.HardwareAddr
	mtu            int
	kind           string // "veth", "tun", ...; "" for hardware
	up, carrier    bool
	carrierChanges uint32
	missed         uint64 // frames that the interface had no buffer for
	rxQueues       int    // that exist; may be more than are used
	xdp            bool   // a program is attached
}

// watch asks for one interface by its index, on a socket that stays in its network namespace.
type watch struct {
	fd    int
	seq   uint32
	buf   []byte
	first iface // when it was opened

	last  iface
	links uint64
	up    bool
}

// newWatch finds the interface in this thread's network namespace.
func newWatch(name string) (_ *watch, err error) {
	w := &watch{fd: -1, buf: make([]byte, 64<<10)}
	defer func() {
		if err != nil {
			_ = w.close()
		}
	}()
	if w.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE); err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, noSuchInterface(name)
	}
	w.first.index = ifi.Index
	w.first, err = w.read()
	return w, err
}

func noSuchInterface(name string) error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, ifi := range all {
		names[i] = ifi.Name
	}
	return fmt.Errorf("there is no %s here, only %s: is it in another network namespace?", name, strings.Join(names, ", "))
}

// begin counts from now: attaching an XDP program may have taken the link down and up.
func (w *watch) begin() error {
	l, err := w.read()
	if err != nil {
		return err
	}
	w.first, w.last = l, l
	w.up = l.up && l.carrier
	if w.up {
		w.links = 1
	}
	return nil
}

// update reads the state of the link and returns how many frames the interface missed since begin.
func (w *watch) update() (missed uint64) {
	l, err := w.read()
	if err != nil {
		l = w.last
		l.up, l.carrier = false, false
	}
	w.links, w.up = changes(w.links, w.up, w.last, l)
	w.last = l
	return l.missed - w.first.missed
}

// changes counts how often a link came or went. The kernel counts changes of the carrier; an interface that is taken down without one is seen
// by its state.
func changes(links uint64, wasUp bool, last, now iface) (uint64, bool) {
	up := now.up && now.carrier
	n := uint64(now.carrierChanges - last.carrierChanges)
	if (n%2 == 1) != (up != wasUp) {
		n++
	}
	return links + n, up
}

func (w *watch) close() error {
	if w.fd < 0 {
		return nil
	}
	fd := w.fd
	w.fd = -1
	return unix.Close(fd)
}

// read asks by RTM_GETLINK.
func (w *watch) read() (iface, error) {
	w.seq++
	req := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg)
	h := (*unix.NlMsghdr)(unsafe.Pointer(&req[0]))
	*h = unix.NlMsghdr{Len: uint32(len(req)), Type: unix.RTM_GETLINK, Flags: unix.NLM_F_REQUEST, Seq: w.seq}
	(*unix.IfInfomsg)(unsafe.Pointer(&req[unix.SizeofNlMsghdr])).Index = int32(w.first.index)
	if err := unix.Sendto(w.fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return iface{}, fmt.Errorf("ask for the link: %w", err)
	}
	for {
		n, _, err := unix.Recvfrom(w.fd, w.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return iface{}, fmt.Errorf("ask for the link: %w", err)
		}
		l, found, err := parseLink(w.buf[:n], w.seq)
		if found || err != nil {
			return l, err
		}
	}
}

// parseLink finds the answer to the question of this number in a datagram of netlink messages.
func parseLink(b []byte, seq uint32) (l iface, found bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return iface{}, false, fmt.Errorf("parse netlink messages: %w", err)
	}
	for _, m := range messages {
		switch {
		case m.Header.Seq != seq:
		case m.Header.Type == unix.NLMSG_ERROR:
			if len(m.Data) < 4 {
				return iface{}, false, errors.New("netlink error message is too short")
			}
			errno := unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
			if errno == unix.ENODEV {
				return iface{}, false, fmt.Errorf("the interface is gone: %w", errno)
			}
			return iface{}, false, fmt.Errorf("ask for the link: %w", errno)
		case m.Header.Type == unix.RTM_NEWLINK:
			l, err := parseNewLink(&m)
			return l, err == nil, err
		}
	}
	return iface{}, false, nil
}

// rxMissed is the place of rx_missed_errors in struct rtnl_link_stats64 (linux/if_link.h).
const rxMissed = 15

func parseNewLink(m *syscall.NetlinkMessage) (l iface, err error) {
	if len(m.Data) < unix.SizeofIfInfomsg {
		return iface{}, errors.New("netlink link message is too short")
	}
	l.index = int(int32(binary.NativeEndian.Uint32(m.Data[4:])))
	l.up = binary.NativeEndian.Uint32(m.Data[8:])&unix.IFF_UP != 0
	attributes, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return iface{}, fmt.Errorf("parse attributes of the link: %w", err)
	}
	u32 := func(b []byte) uint32 {
		if len(b) < 4 {
			return 0
		}
		return binary.NativeEndian.Uint32(b)
	}
	for _, a := range attributes {
		switch a.Attr.Type &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER) {
		case unix.IFLA_MTU:
			l.mtu = int(u32(a.Value))
		case unix.IFLA_ADDRESS:
			l.mac = append(net.HardwareAddr(nil), a.Value...)
		case unix.IFLA_CARRIER:
			l.carrier = len(a.Value) > 0 && a.Value[0] == 1
		case unix.IFLA_CARRIER_CHANGES:
			l.carrierChanges = u32(a.Value)
		case unix.IFLA_NUM_RX_QUEUES:
			l.rxQueues = int(u32(a.Value))
		case unix.IFLA_STATS64:
			if len(a.Value) >= 8*(rxMissed+1) {
				l.missed = binary.NativeEndian.Uint64(a.Value[8*rxMissed:])
			}
		case unix.IFLA_LINKINFO:
			l.kind = strings.TrimRight(string(nested(a.Value, unix.IFLA_INFO_KIND)), "\x00")
		case unix.IFLA_XDP:
			v := nested(a.Value, unix.IFLA_XDP_ATTACHED)
			l.xdp = len(v) > 0 && v[0] != 0 // XDP_ATTACHED_NONE is 0
		}
	}
	return l, nil
}

// nested finds an attribute among nested ones: u16 length with header, u16 type, value, padded to 4 bytes.
func nested(b []byte, typ uint16) []byte {
	for len(b) >= unix.SizeofNlAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofNlAttr || n > len(b) {
			return nil
		}
		if binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER) == typ {
			return b[unix.SizeofNlAttr:n]
		}
		b = b[min(len(b), (n+3)&^3):]
	}
	return nil
}

// ethtoolChannels is struct ethtool_channels of linux/ethtool.h.
type ethtoolChannels struct {
	cmd                                 uint32
	maxRx, maxTx, maxOther, maxCombined uint32
	rx, tx, other, combined             uint32
}

// usedRxQueues is how many receive queues of an interface are in use: ethtool -l, or all that exist when its driver does not say (tap).
func usedRxQueues(name string, l iface) int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return l.rxQueues
	}
	defer unix.Close(fd)
	channels := &ethtoolChannels{cmd: unix.ETHTOOL_GCHANNELS}
	var request struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(channels)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return l.rxQueues
	}
	if n := int(channels.rx + channels.combined); n > 0 {
		return n
	}
	return l.rxQueues
}
