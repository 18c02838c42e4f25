package kernel

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"plumb/providers/loadgen/port"
)

// packetPort is AF_PACKET (packet(7)): a socket with mapped rings for each queue. TPACKET_V2, because a frame is seen at once; TPACKET_V3 shows
// a block of frames when it is full or a millisecond old, which would be in every latency.
type packetPort struct {
	sockets []*packetSocket
}

type packetSocket struct {
	fd      int
	rings   []byte
	rxq     packetRx
	_       [64]byte // another thread may send
	txq     packetTx
	dropped uint64
}

// blockSize is what ring memory is asked for in; the kernel wants whole frames in a block, and whole blocks in a ring.
const blockSize = 64 << 10

// headerSpace is more than the header and its padding before a frame.
const headerSpace = 128

func openPacket(cfg Config, l iface) (_ *packetPort, err error) {
	p := &packetPort{}
	defer func() {
		if err != nil {
			_ = p.close()
		}
	}()
	for range cfg.Queues {
		s, err := newPacketSocket(cfg, l.index)
		if err != nil {
			return nil, err
		}
		p.sockets = append(p.sockets, s)
	}
	return p, p.fanOut()
}

// fanOut spreads what is received over the sockets by flow, so that the frames of one stay in order.
func (p *packetPort) fanOut() error {
	if len(p.sockets) < 2 {
		return nil
	}
	const how = unix.PACKET_FANOUT_HASH | unix.PACKET_FANOUT_FLAG_IGNORE_OUTGOING
	first := p.sockets[0].fd
	if err := unix.SetsockoptInt(first, unix.SOL_PACKET, unix.PACKET_FANOUT, (how|unix.PACKET_FANOUT_FLAG_UNIQUEID)<<16); err != nil {
		return fmt.Errorf("make a fanout group: %w", err)
	}
	group, err := unix.GetsockoptInt(first, unix.SOL_PACKET, unix.PACKET_FANOUT)
	if err != nil {
		return fmt.Errorf("ask for the fanout group: %w", err)
	}
	for _, s := range p.sockets[1:] {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_FANOUT, how<<16|group&0xffff); err != nil {
			return fmt.Errorf("join the fanout group: %w", err)
		}
	}
	return nil
}

func newPacketSocket(cfg Config, index int) (_ *packetSocket, err error) {
	s := &packetSocket{fd: -1}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, socketError("AF_PACKET socket", err)
	}
	frame := powerOfTwo(cfg.MaxFrame + headerSpace)
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer(cfg.TxSize, frame))
	for _, o := range []struct {
		name          string
		option, value int
	}{
		{"TPACKET_V2", unix.PACKET_VERSION, unix.TPACKET_V2},
		{"PACKET_QDISC_BYPASS", unix.PACKET_QDISC_BYPASS, 1},
		{"PACKET_IGNORE_OUTGOING", unix.PACKET_IGNORE_OUTGOING, 1},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, o.option, o.value); err != nil {
			return nil, fmt.Errorf("set %s: %w", o.name, err)
		}
	}
	rxBytes, err := s.ask(unix.PACKET_RX_RING, cfg.RxSize, frame)
	if err != nil {
		return nil, err
	}
	txBytes, err := s.ask(unix.PACKET_TX_RING, cfg.TxSize, frame)
	if err != nil {
		return nil, err
	}
	if s.rings, err = unix.Mmap(s.fd, 0, rxBytes+txBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map the rings: %w", err)
	}
	s.rxq = newPacketRx(s.rings[:rxBytes], frame)
	s.txq = newPacketTx(s.fd, s.rings[rxBytes:], frame)
	if err := promiscuous(s.fd, index); err != nil {
		return nil, err
	}
	if err := unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return nil, fmt.Errorf("bind the socket: %w", err)
	}
	return s, nil
}

// ask makes a ring of at least so many frames, and says how long it is.
func (s *packetSocket) ask(option, frames, frame int) (bytes int, err error) {
	block := max(blockSize, frame)
	blocks := max(1, frames*frame/block)
	req := &unix.TpacketReq{Block_size: uint32(block), Block_nr: uint32(blocks), Frame_size: uint32(frame), Frame_nr: uint32(blocks * (block / frame))}
	if err := unix.SetsockoptTpacketReq(s.fd, unix.SOL_PACKET, option, req); err != nil {
		return 0, fmt.Errorf("make a ring of %d frames of %d bytes: %w", frames, frame, err)
	}
	return block * blocks, nil
}

// promiscuous is for as long as the socket is open.
func promiscuous(fd, index int) error {
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}); err != nil {
		return fmt.Errorf("make it promiscuous: %w", err)
	}
	return nil
}

// sendBuffer is room for a whole ring of frames and what the kernel adds to each.
func sendBuffer(frames, frame int) int { return min(frames*(frame+1024), 1<<30) }

func bigEndian(v uint16) uint16 {
	b := [2]byte{byte(v >> 8), byte(v)}
	return *(*uint16)(unsafe.Pointer(&b))
}

func socketError(doing string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w (needs root, or CAP_NET_RAW)", doing, err)
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("%s: this kernel has none: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func (p *packetPort) tx(queue int) port.TxQueue { return &p.sockets[queue].txq }
func (p *packetPort) rx(queue int) port.RxQueue { return &p.sockets[queue].rxq }
func (p *packetPort) queues() int               { return len(p.sockets) }

// drops adds up PACKET_STATISTICS, which are set back to 0 by each reading.
func (p *packetPort) drops() (uint64, error) {
	var n uint64
	for _, s := range p.sockets {
		st, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err != nil {
			return 0, err
		}
		s.dropped += uint64(st.Drops)
		n += s.dropped
	}
	return n, nil
}

func (p *packetPort) describe() string {
	return "AF_PACKET, TPACKET_V2 rings, " + countQueues(len(p.sockets))
}

func (p *packetPort) close() error {
	var errs []error
	for _, s := range p.sockets {
		errs = append(errs, s.close())
	}
	p.sockets = nil
	return errors.Join(errs...)
}

func (s *packetSocket) close() error {
	var errs []error
	if s.rings != nil {
		errs = append(errs, unix.Munmap(s.rings))
		s.rings = nil
	}
	if s.fd >= 0 {
		errs = append(errs, unix.Close(s.fd))
		s.fd = -1
	}
	return errors.Join(errs...)
}
