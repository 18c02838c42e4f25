package engine

import (
	"testing"
	"unsafe"

	"plumb/providers/loadgen/frame"
	"plumb/providers/loadgen/port"
)

// The assembler takes for granted how slots and slices lie in memory, and how long a signature is. Asking for a line that is not there does no harm.
func TestPrefetch(t *testing.T) {
	if unsafe.Offsetof(port.Slot{}.Buf) != 0 || unsafe.Sizeof([]byte{}) != 24 || frame.SignatureSize != 18 {
		t.Error("what the assembler takes for granted is not so")
	}
	slots := []port.Slot{{Buf: make([]byte, 64)}, {}, {Buf: make([]byte, 64)}}
	frames := [][]byte{make([]byte, 60), nil, {1}}
	for n := range 4 {
		prefetchWrite(slots[:n], 1<<40)
		prefetchWrite(slots[:n], -5)
		prefetchRead(frames[:n])
	}
}
