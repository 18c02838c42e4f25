package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

// xdpPort is AF_XDP: a program on the interface and one socket for each of its receive queues.
type xdpPort struct {
	sockets  []*xsk
	program  link.Link
	native   bool
	zeroCopy bool
}

// openXDP tries zero-copy, then copies. Refused says why not zero-copy.
func openXDP(ctx context.Context, cfg Config, l iface) (_ *xdpPort, refused []string, err error) {
	if n := usedRxQueues(cfg.Interface, l); n != cfg.Queues {
		return nil, nil, fmt.Errorf("the interface receives on %d queues and %d are wanted: set queues = %d, or ethtool -L", n, cfg.Queues, n)
	}
	if cfg.Tagged && l.kind != "" {
		return nil, nil, fmt.Errorf("a %s interface carries VLAN tags beside the frame, where XDP does not see them", l.kind)
	}
	if l.xdp {
		return nil, nil, errors.New("it has an XDP program already, of somebody else (ip link show)")
	}
	shape := shapeOf(cfg)
	sockets, err := ebpf.NewMap(&ebpf.MapSpec{Name: "plumb_xsks", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(cfg.Queues)})
	if err != nil {
		return nil, nil, bpfError("make a map of sockets", err)
	}
	defer sockets.Close() // the program keeps it
	p := &xdpPort{}
	defer func() {
		if err != nil {
			_ = p.close()
		}
	}()
	var slow string
	if slow, err = p.attach(l.index, sockets, l.mtu > singleBuffer); err != nil {
		return nil, nil, err
	}
	if slow != "" {
		refused = append(refused, slow)
	}
	if cfg.ZeroCopy != Off {
		err = p.bind(ctx, cfg, l.index, shape, unix.XDP_ZEROCOPY)
		p.zeroCopy = err == nil
		if err != nil && cfg.ZeroCopy == On {
			return nil, nil, fmt.Errorf("zero-copy: %w", err)
		} else if err != nil {
			refused = append(refused, "not zero-copy: "+err.Error())
		}
	}
	if !p.zeroCopy {
		if err = p.bind(ctx, cfg, l.index, shape, unix.XDP_COPY); err != nil {
			return nil, nil, err
		}
	}
	for i, s := range p.sockets {
		if err = sockets.Put(uint32(i), uint32(s.fd)); err != nil {
			return nil, nil, fmt.Errorf("put the socket of queue %d into the map: %w", i, err)
		}
	}
	return p, refused, nil
}

// attach puts the program on the interface: in its driver, else in front of the kernel's stack.
func (p *xdpPort) attach(index int, sockets *ebpf.Map, frags bool) (refused string, err error) {
	program, err := ebpf.NewProgram(redirectProgram(sockets.FD(), frags))
	if err != nil {
		return "", bpfError("load the XDP program", err)
	}
	defer program.Close() // the link keeps it
	p.program, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: index, Flags: link.XDPDriverMode})
	if err == nil {
		p.native = true
		return "", nil
	}
	native := bpfError("attach the XDP program to the driver", err)
	if p.program, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: index, Flags: link.XDPGenericMode}); err != nil {
		p.program = nil
		return "", errors.Join(native, bpfError("attach the XDP program", err))
	}
	return "not native XDP: " + native.Error(), nil
}

// bind opens a socket for each queue, or none.
func (p *xdpPort) bind(ctx context.Context, cfg Config, index int, shape shape, flags uint16) error {
	for i := range cfg.Queues {
		s, err := newXSK(ctx, shape, index, i, flags)
		if err != nil {
			p.closeSockets()
			return fmt.Errorf("queue %d: %w", i, err)
		}
		p.sockets = append(p.sockets, s)
		if i > 0 {
			continue
		}
		if err := promiscuous(s.member, index); err != nil {
			p.closeSockets()
			return err
		}
	}
	return nil
}

// singleBuffer is an MTU with which every frame is surely in one buffer of a page, with headroom and what the kernel keeps behind it. For more, a
// driver takes only a program that has declared that it can live with several (Linux 5.18).
const singleBuffer = 3000

func bpfError(doing string, err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%s: %w (needs root, or CAP_NET_ADMIN and CAP_BPF)", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (p *xdpPort) tx(queue int) port.TxQueue { return &p.sockets[queue].txq }
func (p *xdpPort) rx(queue int) port.RxQueue { return &p.sockets[queue].rxq }
func (p *xdpPort) queues() int               { return len(p.sockets) }

func (p *xdpPort) drops() (uint64, error) {
	var n uint64
	for _, s := range p.sockets {
		d, err := s.drops()
		if err != nil {
			return 0, err
		}
		n += d
	}
	return n, nil
}

func (p *xdpPort) describe() string {
	copies, mode := "copy", "generic XDP program"
	if p.zeroCopy {
		copies = "zero-copy"
	}
	if p.native {
		mode = "native XDP program"
	}
	return fmt.Sprintf("AF_XDP %s, %s, %s", copies, mode, countQueues(len(p.sockets)))
}

func countQueues(n int) string {
	if n == 1 {
		return "1 queue"
	}
	return fmt.Sprintf("%d queues", n)
}

func (p *xdpPort) closeSockets() error {
	var errs []error
	for _, s := range p.sockets {
		errs = append(errs, s.close())
	}
	p.sockets = nil
	return errors.Join(errs...)
}

// close takes the program off first, so that no frame meets a socket that is going away.
func (p *xdpPort) close() error {
	var err error
	if p.program != nil {
		err = p.program.Close()
		p.program = nil
	}
	return errors.Join(err, p.closeSockets())
}

// redirectProgram gives every frame to the socket of its queue, except those that the kernel keeps (see the package's comment). A queue
// without a socket leaves its frames to the kernel too.
func redirectProgram(sockets int, frags bool) *ebpf.ProgramSpec {
	const (
		arp, ipv6       = 0x0806, 0x86dd
		icmpv6, options = 58, 0 // next header of IPv6
		passed          = 2     // XDP_PASS
		// struct xdp_md
		data, dataEnd, rxQueue = 0, 4, 16
	)
	flags := uint32(0)
	if frags {
		flags = unix.BPF_F_XDP_HAS_FRAGS
	}
	return &ebpf.ProgramSpec{
		Name: "plumb_redirect", Type: ebpf.XDP, License: "GPL", Flags: flags,
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R2, asm.R6, data, asm.Word),
			asm.LoadMem(asm.R3, asm.R6, dataEnd, asm.Word),
			asm.Mov.Reg(asm.R4, asm.R2),
			asm.Add.Imm(asm.R4, etherHeader),
			asm.JGT.Reg(asm.R4, asm.R3, "redirect"),
			// Destination 01:80:c2:00:00:xx.
			asm.LoadMem(asm.R5, asm.R2, 0, asm.Word),
			asm.HostTo(asm.BE, asm.R5, asm.Word),
			asm.JNE.Imm(asm.R5, 0x0180c200, "type"),
			asm.LoadMem(asm.R5, asm.R2, 4, asm.Byte),
			asm.JEq.Imm(asm.R5, 0, "pass"),
			asm.LoadMem(asm.R5, asm.R2, 12, asm.Half).WithSymbol("type"),
			asm.HostTo(asm.BE, asm.R5, asm.Half),
			asm.JEq.Imm(asm.R5, arp, "pass"),
			asm.JNE.Imm(asm.R5, ipv6, "redirect"),
			asm.Mov.Reg(asm.R4, asm.R2),
			asm.Add.Imm(asm.R4, etherHeader+40),
			asm.JGT.Reg(asm.R4, asm.R3, "redirect"),
			asm.LoadMem(asm.R5, asm.R2, etherHeader+6, asm.Byte),
			asm.JEq.Imm(asm.R5, icmpv6, "pass"),
			asm.JEq.Imm(asm.R5, options, "pass"),
			asm.LoadMapPtr(asm.R1, sockets).WithSymbol("redirect"),
			asm.LoadMem(asm.R2, asm.R6, rxQueue, asm.Word),
			asm.Mov.Imm(asm.R3, passed),
			asm.FnRedirectMap.Call(),
			asm.Return(),
			asm.Mov.Imm(asm.R0, passed).WithSymbol("pass"),
			asm.Return(),
		},
	}
}
