package frame

import "encoding/binary"

const (
	// SignatureSize is how many bytes at the end of a frame are the signature.
	SignatureSize = 18

	// MaxStream is the greatest stream id.
	MaxStream = 1<<streamBits - 1
	// MaxSeq is the greatest sequence number: enough for 33 hours at 148.8 million frames per second. Write wraps beyond it.
	MaxSeq = 1<<seqBits - 1

	streamBits = 12
	seqBits    = 44
)

// Parse looks for the signature at the end of a received frame (without FCS). It takes the same time for each frame. ok says that the frame was
// made by a Builder with this token; the package comment says how likely an error is.
func Parse(b []byte, token uint16) (stream uint16, seq, stamp uint64, ok bool) {
	if len(b) < SignatureSize {
		return 0, 0, 0, false
	}
	s := b[len(b)-SignatureSize:]
	word := binary.BigEndian.Uint64(s[2:10])
	id := word & (1<<(streamBits+seqBits) - 1)
	check := uint32(binary.BigEndian.Uint16(s)^token)<<8 | uint32(word>>(streamBits+seqBits))
	return uint16(id >> seqBits), id & MaxSeq, binary.BigEndian.Uint64(s[10:18]), check == hash(id)
}

// seal gives the first two fields of a signature. id is stream and sequence number.
func seal(id uint64, token uint16) (head uint16, word uint64) {
	check := hash(id)
	return uint16(check>>8) ^ token, uint64(check&0xff)<<(streamBits+seqBits) | id
}

// hash is multiplicative hashing to 24 bits (the upper ones depend on all bits of id). What is added keeps zeros, ones and any other repeated byte,
// the likeliest payloads of a stranger, from being right with any token.
func hash(id uint64) uint32 {
	return uint32((id + 0x5bd1e9955bd1e995) * 0x9e3779b97f4a7c15 >> 40)
}
