//go:build amd64 || arm64

package engine

import (
	"unsafe"

	"plumb/providers/loadgen/port"
)

// The other side of a port runs on another core, so the first touch of each frame waits for its cache line to come from there: about as long as all else
// that is done for the frame. Processors let stores become visible in order, so that those waits do not overlap. Asking for the lines of a whole batch beforehand
// makes them overlap.

// prefetchWrite asks for the lines that a sender writes: the first of each buffer, and that at offset last.
func prefetchWrite(slots []port.Slot, last int) {
	if len(slots) > 0 {
		prefetchForWrite(unsafe.Pointer(&slots[0]), len(slots), unsafe.Sizeof(slots[0]), uintptr(max(0, last)))
	}
}

// prefetchRead asks for the lines of the last bytes of each frame.
func prefetchRead(frames [][]byte) {
	if len(frames) > 0 {
		prefetchForRead(unsafe.Pointer(&frames[0]), len(frames))
	}
}

// prefetchForWrite takes n structures of a size that begin with a pointer, and asks for the lines at pointer and pointer + last. Prefetching never faults.
//
//go:noescape
func prefetchForWrite(first unsafe.Pointer, n int, size, last uintptr)

// prefetchForRead takes n slices of bytes, and asks for the line of the last byte of each and that 18 bytes (frame.SignatureSize) before its end.
//
//go:noescape
func prefetchForRead(first unsafe.Pointer, n int)
