package worker

import (
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Kinds of ports.
const (
	VhostUser = "vhost-user" // the virtio driver side of a vhost-user connection
	AFXDP     = "af_xdp"     // a kernel interface by AF_XDP
	AFPacket  = "af_packet"  // a kernel interface by an AF_PACKET ring
	Kernel    = "kernel"     // a kernel interface by AF_XDP where that works, else AF_PACKET
)

// PortSpec says how to open one port: plain data, which goes over the wire. Zero values stand for the port's own defaults.
type PortSpec struct {
	Kind string `json:"kind"`

	// Of vhost-user.
	Socket string `json:"socket,omitempty"` // absolute path
	Server bool   `json:"server,omitempty"` // makes the socket and waits for the switch, instead of connecting to it
	MAC    string `json:"mac,omitempty"`    // of the tester's side; "": made up of the path
	// SocketMode are the permission bits of a socket that it makes, for a switch of another user; 0: what the umask leaves.
	SocketMode uint32 `json:"socket_mode,omitempty"`
	Hugepages  bool   `json:"hugepages,omitempty"` // frames in hugepages instead of normal pages

	// Of kernel interfaces.
	Interface string `json:"interface,omitempty"`
	Netns     string `json:"netns,omitempty"`  // name of a network namespace (/run/netns), or a path such as /proc/1234/ns/net; "": that of the process
	Mode      string `json:"mode,omitempty"`   // of AF_XDP: "zerocopy", "copy", or "": what the driver has
	Tagged    bool   `json:"tagged,omitempty"` // test frames have VLAN tags, which AF_XDP on a virtual interface would lose

	Queues int `json:"queues,omitempty"`  // pairs
	RxSize int `json:"rx_size,omitempty"` // descriptors of each receiving queue, a power of two
	TxSize int `json:"tx_size,omitempty"` // descriptors of each sending queue, a power of two
	Frame  int `json:"frame,omitempty"`   // longest frame in bytes, with FCS
}

// Limits of a PortSpec.
const (
	maxQueues = 64
	maxSize   = 32768 // the longest split virtqueue (virtio 1.2 section 2.7)
	maxFrame  = 9216
	sunPath   = 107 // bytes of a unix socket's path (unix(7))
	ifName    = 15  // characters of an interface's name (IFNAMSIZ - 1)
)

// Check says what is wrong with a port, if anything is.
func (p PortSpec) Check() error {
	switch p.Kind {
	case VhostUser:
		switch {
		case !path.IsAbs(p.Socket):
			return fmt.Errorf("a vhost-user port needs the absolute path of its socket, not %q", p.Socket)
		case len(p.Socket) > sunPath:
			return fmt.Errorf("the path of a socket has at most %d bytes; %s has %d", sunPath, p.Socket, len(p.Socket))
		case p.Interface != "" || p.Netns != "" || p.Mode != "":
			return errors.New("a vhost-user port has neither interface, network namespace nor mode")
		case p.SocketMode > 0o777 || p.SocketMode != 0 && !p.Server:
			return fmt.Errorf("socket mode %#o: want permission bits such as 0666, of a socket that this side makes", p.SocketMode)
		}
		if _, err := net.ParseMAC(p.MAC); p.MAC != "" && err != nil {
			return fmt.Errorf("mac %q is not an address such as 02:00:00:00:00:01", p.MAC)
		}
	case AFXDP, AFPacket, Kernel:
		switch {
		case p.Interface == "" || len(p.Interface) > ifName || strings.ContainsAny(p.Interface, "/ \x00"):
			return fmt.Errorf("%q is not the name of an interface", p.Interface)
		case !path.IsAbs(p.Netns) && strings.ContainsAny(p.Netns, "/\x00") || p.Netns == "." || p.Netns == "..":
			return fmt.Errorf("%q is not the name of a network namespace", p.Netns)
		case p.Socket != "" || p.Server || p.MAC != "" || p.SocketMode != 0 || p.Hugepages:
			return fmt.Errorf("a port of kind %s has neither socket, server, mac nor hugepages", p.Kind)
		case !slices.Contains([]string{"", "zerocopy", "copy"}, p.Mode):
			return fmt.Errorf("mode %q: want zerocopy or copy", p.Mode)
		case p.Mode != "" && p.Kind == AFPacket:
			return errors.New("af_packet has no mode")
		}
	default:
		return fmt.Errorf("kind %q: want %s, %s, %s or %s", p.Kind, VhostUser, AFXDP, AFPacket, Kernel)
	}
	if p.Queues < 0 || p.Queues > maxQueues {
		return fmt.Errorf("queues must be 1 to %d, not %d", maxQueues, p.Queues)
	}
	for _, s := range []struct {
		name string
		n    int
	}{{"rx_size", p.RxSize}, {"tx_size", p.TxSize}} {
		if s.n != 0 && (s.n < 64 || s.n > maxSize || s.n&(s.n-1) != 0) {
			return fmt.Errorf("%s must be a power of two from 64 to %d, not %d", s.name, maxSize, s.n)
		}
	}
	if p.Frame != 0 && (p.Frame < 64 || p.Frame > maxFrame) {
		return fmt.Errorf("frame must be 64 to %d bytes, not %d", maxFrame, p.Frame)
	}
	return nil
}

// ParsePort reads a port as it is given by hand:
//
//	vhost-user:/run/tg.sock,server,queues=2,tx_size=1024
//	af_xdp:veth0@ns1,mode=copy
//	af_packet:eth1
func ParsePort(s string) (PortSpec, error) {
	kind, rest, ok := strings.Cut(s, ":")
	if !ok {
		return PortSpec{}, fmt.Errorf("port %q: want KIND:WHERE, such as vhost-user:/run/tg.sock,server or af_xdp:veth0@ns1", s)
	}
	words := strings.Split(rest, ",")
	p := PortSpec{Kind: kind}
	if kind == VhostUser {
		p.Socket = words[0]
	} else {
		p.Interface, p.Netns, _ = strings.Cut(words[0], "@")
	}
	for _, w := range words[1:] {
		if err := p.set(w); err != nil {
			return PortSpec{}, fmt.Errorf("port %q: %w", s, err)
		}
	}
	if err := p.Check(); err != nil {
		return PortSpec{}, fmt.Errorf("port %q: %w", s, err)
	}
	return p, nil
}

func (p *PortSpec) set(option string) error {
	name, value, given := strings.Cut(option, "=")
	if !given {
		switch name {
		case "server":
			p.Server = true
			return nil
		case "hugepages":
			p.Hugepages = true
			return nil
		}
	}
	var number *int
	switch name {
	case "queues":
		number = &p.Queues
	case "rx_size":
		number = &p.RxSize
	case "tx_size":
		number = &p.TxSize
	case "frame":
		number = &p.Frame
	case "mac":
		p.MAC = value
	case "mode":
		p.Mode = value
	case "socket_mode":
		n, err := strconv.ParseUint(value, 8, 32)
		if err != nil {
			return fmt.Errorf("socket_mode=%s: want an octal number such as 0666", value)
		}
		p.SocketMode = uint32(n)
		return nil
	default:
		return fmt.Errorf("there is no option %q: want server, socket_mode=, hugepages, mac=, mode=, queues=, rx_size=, tx_size= or frame=", option)
	}
	if number == nil {
		if value == "" {
			return fmt.Errorf("%s= needs a value", name)
		}
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Errorf("%s=%s: want a whole number above 0", name, value)
	}
	*number = n
	return nil
}

// String is the port as ParsePort would read its beginning.
func (p PortSpec) String() string {
	switch {
	case p.Kind == VhostUser:
		return p.Kind + ":" + p.Socket
	case p.Netns != "":
		return p.Kind + ":" + p.Interface + "@" + p.Netns
	}
	return p.Kind + ":" + p.Interface
}
