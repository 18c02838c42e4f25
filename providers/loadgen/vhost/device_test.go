package vhost

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// device is the other half of a split virtqueue, for tests: it walks the memory on its own, by the specification and not by split.go.
type device struct {
	size        uint16
	desc        []byte
	avail, used []byte
	mem         func(addr uint64, n int) []byte // of guest addresses; nil: no such memory
	seen        uint16                          // avail entries taken
	done        uint16                          // used entries written

	frame []byte // arrive's, kept so that benchmarks count nobody else's allocations
	ids   []uint16
	bufs  [][]byte
}

func word(b []byte) *uint32 { return (*uint32)(unsafe.Pointer(&b[0])) }

// pop takes the next available buffer.
func (d *device) pop() (id uint16, buf []byte, ok bool) {
	if uint16(atomic.LoadUint32(word(d.avail))>>16) == d.seen {
		return 0, nil, false
	}
	id = binary.NativeEndian.Uint16(d.avail[4+2*int(d.seen%d.size):])
	d.seen++
	at := d.desc[16*int(id):]
	return id, d.mem(binary.NativeEndian.Uint64(at), int(binary.NativeEndian.Uint32(at[8:]))), true
}

// result writes an entry of the used ring that is skip entries on, which flush makes visible.
func (d *device) result(id uint32, length, skip int) {
	at := d.used[4+8*int(d.done%d.size):]
	binary.NativeEndian.PutUint32(at, id)
	binary.NativeEndian.PutUint32(at[4:], uint32(length))
	d.done += uint16(skip)
}

// flush shows what was used; with poll the driver need not kick.
func (d *device) flush(poll bool) {
	flags := uint32(0)
	if poll {
		flags = noNotify
	}
	atomic.StoreUint32(word(d.used), flags|uint32(d.done)<<16)
}

// interrupts says whether the driver wants any.
func (d *device) interrupts() bool { return atomic.LoadUint32(word(d.avail))&1 == 0 }
