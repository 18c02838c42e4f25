package frame

import (
	"encoding/binary"
	"math/bits"
)

// Sums here are ones' complement sums of big endian 16-bit words (RFC 1071), not yet folded: 2^16 is 1 in that arithmetic, so that words of 32
// bits may be added as they are, and 64 bits do not overflow for any frame.

// sum adds up b; an odd last byte is an upper half.
func sum(b []byte) uint64 {
	var s uint64
	for ; len(b) >= 4; b = b[4:] {
		s += uint64(binary.BigEndian.Uint32(b))
	}
	if len(b) >= 2 {
		s += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

// fold brings a sum down to 16 bits. A number plus itself with its halves swapped has in its upper half the sum of both, with the carry out of
// the lower half: just the end-around carry that is wanted.
func fold(s uint64) uint16 {
	half := uint32((s + bits.RotateLeft64(s, 32)) >> 32)
	return uint16((half + bits.RotateLeft32(half, 16)) >> 16)
}

// swap is what a sum becomes when its bytes start at an odd place (RFC 1071 section 2 B).
func swap(s uint64) uint64 { return uint64(bits.ReverseBytes16(fold(s))) }
