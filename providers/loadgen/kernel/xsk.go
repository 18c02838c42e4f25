package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// shape is how frames lie in the memory of a socket (umem): first the chunks for receiving, then the slots for sending. A chunk is what one
// descriptor describes; a longer frame takes several descriptors (XDP_USE_SG, Linux 6.6).
type shape struct {
	chunk    uint32 // bytes, 2048 or 4096
	rxChunks uint32
	slots    uint32
	slot     uint32 // bytes, a power of two and whole chunks
	arena    int    // bytes for putting together received frames of several chunks; 0: they do not come
}

// shapeOf takes the smaller chunk where every frame fits: of a chunk for reception, 256 bytes are the kernel's (XDP_PACKET_HEADROOM).
func shapeOf(cfg Config) shape {
	s := shape{chunk: 2048, rxChunks: uint32(cfg.RxSize), slots: uint32(cfg.TxSize), slot: 2048}
	if cfg.MaxFrame <= int(s.chunk)-unix.XDP_PACKET_HEADROOM {
		return s
	}
	s.chunk = 4096
	s.slot = max(s.chunk, uint32(powerOfTwo(cfg.MaxFrame)))
	if room := int(s.chunk) - unix.XDP_PACKET_HEADROOM; cfg.MaxFrame > room {
		s.rxChunks *= uint32(powerOfTwo((cfg.MaxFrame + room - 1) / room))
		s.arena = int(s.rxChunks) * int(s.chunk)
	}
	return s
}

// multi says that there are frames of several chunks.
func (s shape) multi() bool { return s.arena > 0 }

// perSlot is how many descriptors a frame may need.
func (s shape) perSlot() uint32 { return s.slot / s.chunk }

func (s shape) txBase() uint64 { return uint64(s.rxChunks) * uint64(s.chunk) }

func (s shape) size() int { return int(s.txBase() + uint64(s.slots)*uint64(s.slot)) }

// xsk is an AF_XDP socket with its own memory.
type xsk struct {
	fd     int
	member int // AF_PACKET socket that receives nothing: the interface is promiscuous as long as it is open
	umem   []byte
	rings  [][]byte
	rxq    xskRx
	_      [64]byte // another thread may send
	txq    xskTx
}

// busyLimit is how long a queue may stay busy after another socket has left it: the kernel takes the old one down in the background.
const busyLimit = 2 * time.Second

// newXSK opens a socket on a queue. Flags is XDP_ZEROCOPY or XDP_COPY.
func newXSK(ctx context.Context, sh shape, index, queue int, flags uint16) (_ *xsk, err error) {
	s := &xsk{fd: -1, member: -1}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	if s.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, socketError("AF_XDP socket", err)
	}
	if s.member, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, socketError("AF_PACKET socket", err)
	}
	if s.umem, err = unix.Mmap(-1, 0, sh.size(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE); err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w", sh.size(), err)
	}
	// Room for every slot: the default stops a sender after about 100 frames that the other side has not freed.
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer(int(sh.slots), int(sh.slot)))
	if err := s.mapRings(sh); err != nil {
		return nil, err
	}
	flags |= unix.XDP_USE_NEED_WAKEUP
	if sh.multi() {
		flags |= unix.XDP_USE_SG
	}
	if err := s.bind(ctx, &unix.SockaddrXDP{Flags: flags, Ifindex: uint32(index), QueueID: uint32(queue)}); err != nil {
		return nil, err
	}
	s.rxq.fillAll()
	return s, nil
}

// maxTxBudget is XDP_MAX_TX_SKB_BUDGET (Linux 6.17): how many frames one system call sends in copy mode; before, always 32.
const maxTxBudget = 9

// mapRings registers the memory and makes the four rings.
func (s *xsk) mapRings(sh shape) error {
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&s.umem[0]))), Len: uint64(len(s.umem)), Size: sh.chunk}
	if _, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(s.fd), unix.SOL_XDP, unix.XDP_UMEM_REG, uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0); errno != 0 {
		return fmt.Errorf("register memory: %w", errno)
	}
	txDescs := sh.slots * sh.perSlot()
	sizes := []struct {
		option int
		n      uint32
	}{{unix.XDP_UMEM_FILL_RING, sh.rxChunks}, {unix.XDP_UMEM_COMPLETION_RING, txDescs}, {unix.XDP_RX_RING, sh.rxChunks}, {unix.XDP_TX_RING, txDescs}}
	for _, r := range sizes {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, r.option, int(r.n)); err != nil {
			return fmt.Errorf("make a ring of %d entries: %w", r.n, err)
		}
	}
	_ = unix.SetsockoptInt(s.fd, unix.SOL_XDP, maxTxBudget, int(min(txDescs, 256)))
	var at unix.XDPMmapOffsets
	n := uint32(unsafe.Sizeof(at))
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS, uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&n)), 0); errno != 0 {
		return fmt.Errorf("ask where the rings are: %w", errno)
	}
	if n != uint32(unsafe.Sizeof(at)) {
		return errors.New("this kernel is older than Linux 5.4 and has no AF_XDP wakeup flags")
	}
	fill, err := mapRing[uint64](s, unix.XDP_UMEM_PGOFF_FILL_RING, at.Fr, sh.rxChunks)
	if err != nil {
		return err
	}
	done, err := mapRing[uint64](s, unix.XDP_UMEM_PGOFF_COMPLETION_RING, at.Cr, txDescs)
	if err != nil {
		return err
	}
	rx, err := mapRing[unix.XDPDesc](s, unix.XDP_PGOFF_RX_RING, at.Rx, sh.rxChunks)
	if err != nil {
		return err
	}
	tx, err := mapRing[unix.XDPDesc](s, unix.XDP_PGOFF_TX_RING, at.Tx, txDescs)
	if err != nil {
		return err
	}
	s.rxq = newXSKRx(s.fd, sh, s.umem, rx, fill)
	s.txq = newXSKTx(s.fd, sh, s.umem, tx, done)
	return nil
}

// mapRing maps one ring; the mapping is undone by close.
func mapRing[T any](s *xsk, page int64, at unix.XDPRingOffset, n uint32) (ring[T], error) {
	var entry T
	m, err := unix.Mmap(s.fd, page, int(at.Desc)+int(n)*int(unsafe.Sizeof(entry)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ring[T]{}, fmt.Errorf("map a ring: %w", err)
	}
	s.rings = append(s.rings, m)
	return ring[T]{
		producer: (*uint32)(unsafe.Pointer(&m[at.Producer])),
		consumer: (*uint32)(unsafe.Pointer(&m[at.Consumer])),
		flags:    (*uint32)(unsafe.Pointer(&m[at.Flags])),
		entries:  unsafe.Slice((*T)(unsafe.Pointer(&m[at.Desc])), n),
	}, nil
}

// bind tries again while the queue is busy.
func (s *xsk) bind(ctx context.Context, to *unix.SockaddrXDP) error {
	ctx, cancel := context.WithTimeout(ctx, busyLimit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Bind(s.fd, to)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINVAL) && to.Flags&unix.XDP_USE_SG != 0:
			return fmt.Errorf("bind the socket for frames of several chunks: %w (needs Linux 6.6)", err)
		case !errors.Is(err, unix.EBUSY):
			return fmt.Errorf("bind the socket: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bind the socket: %w (another AF_XDP socket has it)", err)
		case <-tick.C:
		}
	}
}

// drops are frames that found no free chunk or no room in the ring. XDP_STATISTICS counts them apart.
func (s *xsk) drops() (uint64, error) {
	var st unix.XDPStatistics
	n := uint32(unsafe.Sizeof(st))
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_XDP, unix.XDP_STATISTICS, uintptr(unsafe.Pointer(&st)), uintptr(unsafe.Pointer(&n)), 0); errno != 0 {
		return 0, errno
	}
	return st.Rx_dropped + st.Rx_ring_full, nil
}

func (s *xsk) close() error {
	var errs []error
	for _, m := range s.rings {
		errs = append(errs, unix.Munmap(m))
	}
	s.rings = nil
	for _, fd := range []*int{&s.fd, &s.member} {
		if *fd >= 0 {
			errs = append(errs, unix.Close(*fd))
			*fd = -1
		}
	}
	if s.umem != nil {
		errs = append(errs, unix.Munmap(s.umem))
		s.umem = nil
	}
	return errors.Join(errs...)
}

// kick tells the kernel to look at a ring. It never waits in the kernel, so the scheduler need not know of it.
func kick(call uintptr, fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(call, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}
