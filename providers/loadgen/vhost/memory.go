package vhost

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memory is anonymous memory that the back-end can map by its file descriptor. It is sealed against a change of size: otherwise the back-end
// could shrink it, and our next access would be the end of the process (SIGBUS).
type memory struct {
	fd    int
	bytes []byte
}

// newMemory gives at least size bytes of zeros, all of them there already: no page fault comes later. The page size is a hugepage's with huge.
func newMemory(name string, size int, huge bool) (_ *memory, err error) {
	flags, page := unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING, os.Getpagesize()
	if huge {
		flags |= unix.MFD_HUGETLB
	}
	fd, err := unix.MemfdCreate(name, flags)
	if err != nil {
		return nil, fmt.Errorf("make shared memory: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if huge {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return nil, fmt.Errorf("find the size of a hugepage: %w", err)
		}
		page = int(st.Blksize) // of hugetlbfs: the page size
	}
	size = (size + page - 1) / page * page
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("give shared memory %d bytes: %w", size, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, fmt.Errorf("seal shared memory: %w", err)
	}
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	switch {
	case huge && errors.Is(err, unix.ENOMEM):
		return nil, fmt.Errorf("map %d hugepages of %d bytes: %w: too few of them are free", size/page, page, err)
	case err != nil:
		return nil, fmt.Errorf("map %d bytes of shared memory: %w", size, err)
	}
	return &memory{fd: fd, bytes: b}, nil
}

// close gives the memory back; nobody may use it any more.
func (m *memory) close() error {
	return errors.Join(unix.Munmap(m.bytes), unix.Close(m.fd))
}

// The addresses that the back-end gets to see are made up, with nothing of this process in them. Descriptors hold the lower ones.
const (
	frameGuest = 1 << 32
	ringGuest  = 1 << 40
	userOffset = 1 << 44 // from a guest address to the "user" address of the same byte
)

func regionOf(m *memory, guest uint64) region {
	return region{guest: guest, size: uint64(len(m.bytes)), user: guest + userOffset}
}

// pool are the buffers of one ring, one for each entry. A frame begins at a cache line and its virtio header is in the bytes before: so a short
// frame to be sent costs the back-end one line.
type pool struct {
	mem   []byte
	guest uint64 // address of mem[0] to the back-end
	room  int    // bytes for a frame
}

const (
	line = 64
	// virtioHeader is the size of struct virtio_net_hdr with num_buffers, which VIRTIO_F_VERSION_1 always has (virtio 1.2, 5.1.6).
	virtioHeader = 12
)

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// poolSize is how many bytes n buffers take for frames of up to max bytes.
func poolSize(n, max int) int { return n * (line + roundUp(max, line)) }

// newPool takes poolSize(n, max) bytes off mem.
func newPool(mem []byte, guest uint64, n, max int) pool {
	return pool{mem: mem[:poolSize(n, max)], guest: guest, room: roundUp(max, line)}
}

func (p pool) stride() int { return line + p.room }

// frame is where a frame is in buffer id.
func (p pool) frame(id int) []byte {
	at := id*p.stride() + line
	return p.mem[at : at+p.room : at+p.room]
}

// whole is all of buffer id that the back-end may touch: virtio header and frame.
func (p pool) whole(id int) []byte {
	at := id*p.stride() + line
	return p.mem[at-virtioHeader : at+p.room : at+p.room]
}

// address is that of whole(id) to the back-end.
func (p pool) address(id int) uint64 {
	return p.guest + uint64(id*p.stride()+line-virtioHeader)
}
