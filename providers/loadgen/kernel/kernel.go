// Package kernel attaches the load generator to kernel network interfaces (veth, tap, physical NICs) by AF_XDP or by AF_PACKET rings. Start
// reading at Config and Open; xdp.go and xsk*.go are AF_XDP, packet*.go is AF_PACKET, link.go and netns.go are about the interface itself.
//
// What is changed on an interface ends with the process: the XDP program is attached by a bpf_link, promiscuity is a membership of a socket.
// Nothing is left after SIGKILL, and nothing needs to be put back.
//
// # Who sees which frames
//
// AF_XDP takes all frames of the bound queues away from the kernel's stack except those which the kernel needs to stay a neighbour: ARP,
// ICMPv6 (neighbour discovery) and IPv6 with hop-by-hop options (MLD), and the link-local group 01:80:c2:00:00:xx (STP, LACP, LLDP). A
// tester never sends these as test frames. AF_PACKET copies every frame; the kernel's stack sees it too.
//
// An XDP program does not see a VLAN tag that a virtual interface carries beside the frame and not in it (see Config.Tagged); AF_PACKET puts
// such a tag back.
//
// # What sent means
//
// A frame is pending until the kernel has taken it out of the ring and given it to the interface. An interface may drop it then: a veth whose
// other side has an XDP program holds 256 frames in its own ring and counts what does not fit in its tx_dropped. With AF_PACKET such a frame
// stays pending and is tried again; AF_XDP counts it as sent, so it is lost on the way. Both are loss at an offered load.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"plumb/providers/loadgen/port"
)

// Modes of Config.Mode.
const (
	Auto     = "auto"
	AFXDP    = "af_xdp"
	AFPacket = "af_packet"
)

// Choices of Config.ZeroCopy, with Auto.
const (
	On  = "on"
	Off = "off"
)

// Config says which interface, and how.
type Config struct {
	Interface string
	// Netns is the network namespace that the interface is in: a name under /run/netns, or a path such as /proc/1234/ns/net. "": this one.
	Netns string
	// Mode is Auto, AFXDP or AFPacket. Auto, or "", is AF_XDP with zero-copy, else AF_XDP with copies, else AF_PACKET: Describe says which it
	// became and why.
	Mode string
	// ZeroCopy is for AF_XDP: Auto (or ""), Off, or On, with which Open fails where the driver has none.
	ZeroCopy string
	// Tagged says that test frames have VLAN tags. AF_XDP on a veth or another virtual interface would lose them on reception, so it is refused
	// there.
	Tagged bool
	// Queues is how many pairs of queues there are; 0: 1. AF_XDP needs one for each receive queue of the interface, since frames of another
	// queue would pass the tester by. AF_PACKET spreads flows over them.
	Queues int
	// RxSize and TxSize are frames in a ring, rounded up to a power of two of at least 64. 0: 8192 (2048 for frames of more than 2 KiB) and 1024.
	RxSize, TxSize int
	// MaxFrame is the longest frame without FCS. 0: what the MTU allows with one VLAN tag; more than that is an error.
	MaxFrame int
}

const (
	defaultRx      = 8192
	defaultRxJumbo = 2048
	defaultTx      = 1024
	smallestRing   = 64
	largestRing    = 1 << 18
	vlanTag        = 4
	etherHeader    = 14
)

// Port is an open kernel interface.
type Port struct {
	name      string
	maxFrame  int
	how       attachment
	described string

	mu      sync.Mutex // guards what follows
	link    *watch
	dropped uint64
	closed  bool
}

var _ port.Port = (*Port)(nil)

// attachment is one of the ways to send and receive.
type attachment interface {
	tx(queue int) port.TxQueue
	rx(queue int) port.RxQueue
	queues() int
	// drops are frames that found the ring full since it was opened.
	drops() (uint64, error)
	describe() string
	close() error
}

// Open attaches to an interface, which must be there and up; it need not have a carrier (see Ready). It needs CAP_NET_RAW, and for AF_XDP
// CAP_NET_ADMIN and CAP_BPF as well. A queue that another AF_XDP socket has just left is waited for, for at most two seconds.
func Open(ctx context.Context, cfg Config) (port.Port, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	var p *Port
	err := inNetns(cfg.Netns, func() (err error) {
		p, err = open(ctx, cfg)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open interface %s: %w", cfg.name(), err)
	}
	return p, nil
}

func (c Config) name() string {
	if c.Netns == "" {
		return c.Interface
	}
	return c.Interface + " in network namespace " + c.Netns
}

func (c Config) check() error {
	switch {
	case c.Interface == "":
		return errors.New("no interface is given")
	case c.Mode != "" && c.Mode != Auto && c.Mode != AFXDP && c.Mode != AFPacket:
		return fmt.Errorf("mode %q of interface %s is none of %s, %s, %s", c.Mode, c.Interface, Auto, AFXDP, AFPacket)
	case c.ZeroCopy != "" && c.ZeroCopy != Auto && c.ZeroCopy != On && c.ZeroCopy != Off:
		return fmt.Errorf("zero-copy %q of interface %s is none of %s, %s, %s", c.ZeroCopy, c.Interface, Auto, On, Off)
	case c.ZeroCopy == On && c.Mode == AFPacket:
		return fmt.Errorf("interface %s: there is no zero-copy with %s", c.Interface, AFPacket)
	case c.Queues < 0 || c.Queues > 1024:
		return fmt.Errorf("%d queues of interface %s: must be 0 to 1024", c.Queues, c.Interface)
	case c.RxSize < 0 || c.RxSize > largestRing || c.TxSize < 0 || c.TxSize > largestRing:
		return fmt.Errorf("rings of %d and %d frames of interface %s: must be 0 to %d", c.RxSize, c.TxSize, c.Interface, largestRing)
	case c.MaxFrame < 0:
		return fmt.Errorf("longest frame %d of interface %s is negative", c.MaxFrame, c.Interface)
	}
	return nil
}

// settle fills in what the interface decides.
func (c Config) settle(l iface) (Config, error) {
	most := l.mtu + etherHeader + vlanTag
	switch {
	case c.MaxFrame == 0:
		c.MaxFrame = most
	case c.MaxFrame > most:
		return c, fmt.Errorf("frames of %d bytes do not fit its MTU of %d: set the MTU to %d", c.MaxFrame, l.mtu, c.MaxFrame-etherHeader)
	}
	if c.Queues == 0 {
		c.Queues = 1
	}
	if c.RxSize == 0 {
		c.RxSize = defaultRx
		if c.MaxFrame > 2048 {
			c.RxSize = defaultRxJumbo
		}
	}
	if c.TxSize == 0 {
		c.TxSize = defaultTx
	}
	c.RxSize, c.TxSize = powerOfTwo(max(c.RxSize, smallestRing)), powerOfTwo(max(c.TxSize, smallestRing))
	return c, nil
}

// open runs in the interface's network namespace.
func open(ctx context.Context, cfg Config) (_ *Port, err error) {
	w, err := newWatch(cfg.Interface)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = w.close()
		}
	}()
	l, err := w.read()
	if err != nil {
		return nil, err
	}
	if !l.up {
		return nil, fmt.Errorf("it is down: ip link set %s up", cfg.Interface)
	}
	if cfg, err = cfg.settle(l); err != nil {
		return nil, err
	}
	how, refused, err := attach(ctx, cfg, l)
	if err != nil {
		return nil, err
	}
	if err := w.begin(); err != nil {
		_ = how.close()
		return nil, err
	}
	return &Port{name: cfg.name(), maxFrame: cfg.MaxFrame, how: how, link: w, described: strings.Join(append([]string{how.describe()}, refused...), "; ")}, nil
}

// attach goes from the best way down to the first that works. Refused says why the better ones do not.
func attach(ctx context.Context, cfg Config, l iface) (how attachment, refused []string, err error) {
	if cfg.Mode != AFPacket {
		how, refused, err := openXDP(ctx, cfg, l)
		if err == nil {
			return how, refused, nil
		}
		if cfg.Mode == AFXDP || cfg.ZeroCopy == On || ctx.Err() != nil {
			return nil, nil, fmt.Errorf("AF_XDP: %w", err)
		}
		packet, perr := openPacket(cfg, l)
		if perr != nil {
			return nil, nil, fmt.Errorf("AF_XDP: %w; AF_PACKET: %w", err, perr)
		}
		return packet, []string{"not AF_XDP: " + err.Error()}, nil
	}
	packet, err := openPacket(cfg, l)
	if err != nil {
		return nil, nil, fmt.Errorf("AF_PACKET: %w", err)
	}
	return packet, nil, nil
}

// Name is the interface and its network namespace.
func (p *Port) Name() string { return p.name }

// MAC is the interface's own address.
func (p *Port) MAC() net.HardwareAddr { return p.link.first.mac }

// Queues is Config.Queues.
func (p *Port) Queues() int { return p.how.queues() }

// Tx is the sending half of a queue.
func (p *Port) Tx(queue int) port.TxQueue { return p.how.tx(queue) }

// Rx is the receiving half of a queue.
func (p *Port) Rx(queue int) port.RxQueue { return p.how.rx(queue) }

// MaxFrame is the longest frame without FCS.
func (p *Port) MaxFrame() int { return p.maxFrame }

// Describe says for people how the port is attached, and why not in a better way: "AF_XDP copy, native XDP program; not zero-copy: ...".
func (p *Port) Describe() string { return p.described }

// Ready waits until the interface has a carrier. A veth has one when both ends are up. That the other side forwards is not known here.
func (p *Port) Ready(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := p.read()
		switch {
		case err != nil:
			return fmt.Errorf("interface %s: %w", p.name, err)
		case !l.up:
			return fmt.Errorf("interface %s was taken down", p.name)
		case l.carrier:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interface %s has no carrier, is the other end up?: %w", p.name, ctx.Err())
		case <-tick.C:
		}
	}
}

func (p *Port) read() (iface, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return iface{}, errors.New("the port is closed")
	}
	return p.link.read()
}

// Stats asks the kernel. An interface that is gone is not Up; what could not be read stays as it was.
func (p *Port) Stats() port.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return port.Stats{RxDrops: p.dropped, Links: p.link.links}
	}
	missed := p.link.update()
	if drops, err := p.how.drops(); err == nil {
		p.dropped = drops + missed
	}
	return port.Stats{RxDrops: p.dropped, Links: p.link.links, Up: p.link.up}
}

// Close ends the sockets, and with them program and promiscuity.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return errors.Join(p.how.close(), p.link.close())
}

// powerOfTwo rounds up.
func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p <<= 1
	}
	return p
}
