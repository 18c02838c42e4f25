package frame

import (
	"encoding/binary"
	"math/bits"
)

// Sums here are ones' complement sums of big endian 16-bit words (RFC 1071), not yet folded: 2^16 is 1 in that arithmetic, so that words of 32 bits may be added
// as they are, and a 64-bit accumulator does not overflow for any frame.

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

// fold brings a sum down to 16 bits.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}

// swap is what a sum becomes when its bytes start at an odd place (RFC 1071 section 2 B).
func swap(s uint64) uint64 { return uint64(bits.ReverseBytes16(fold(s))) }
