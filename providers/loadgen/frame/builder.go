package frame

import (
	"encoding/binary"
	"fmt"
	"net"

	"plumb/providers"
)

// Options are what Traffic does not say.
type Options struct {
	Stream uint16 // up to MaxStream
	// Token differs from trial to trial, so that late frames of an earlier one are strays.
	Token uint16
	// SrcMAC and DstMAC are used where Traffic (or its VXLAN) has none: the tester's own ports.
	SrcMAC, DstMAC net.HardwareAddr
}

// Builder makes the frames of one stream. It does not change after New: any number of threads may use it at once.
type Builder struct {
	id       uint64 // the stream, in its place
	token    uint16
	perSize  []*template // in the order of the mix
	sizes    divisor
	skew     uint64 // by how much the mix moves on after all flows had their turn
	flows    divisor
	order    []uint32 // of the flows; nil: as numbered
	vary     variation
	csum     int  // where the UDP or TCP checksum is; 0: there is none
	zeroIsFF bool // UDP: a checksum of 0 says that there is none, so it is sent as 0xffff (RFC 768)
}

// template is a frame of one size, of flow 0 and with zeros where the signature comes.
type template struct {
	frame []byte
	sig   int    // where the signature begins
	odd   bool   // an odd number of bytes after the begin of what the checksum covers
	sum   uint64 // of all that the checksum covers, without what changes
	ipSum uint64 // likewise of the IPv4 header
}

// New checks the traffic and prepares to make its frames: memory is one frame per distinct size, and four bytes per flow with a random order.
// Errors name what is wrong and what is possible: a size below MinSize, addresses of the wrong family, more flows than there are.
func New(t providers.Traffic, o Options) (*Builder, error) {
	if o.Stream > MaxStream {
		return nil, fmt.Errorf("stream %d is above %d", o.Stream, MaxStream)
	}
	l, err := plan(t, o)
	if err != nil {
		return nil, err
	}
	b := &Builder{id: uint64(o.Stream) << seqBits, token: o.Token, vary: l.vary, csum: l.csum, zeroIsFF: l.proto == protoUDP}
	b.flows = newDivisor(l.flows)
	if b.order, err = order(t.Order, t.Seed, l.flows); err != nil {
		return nil, err
	}
	sizes := t.Sizes
	if sizes == nil {
		sizes = []int{t.FrameSize}
	}
	if len(sizes) == 0 {
		return nil, fmt.Errorf("the mix of sizes is empty")
	}
	b.sizes = newDivisor(len(sizes))
	// Else a flow would get the same sizes again and again when the two cycles have a common factor.
	for gcd(uint64(l.flows)+b.skew, uint64(len(sizes))) != 1 && l.flows > 1 {
		b.skew++
	}
	made := map[int]*template{}
	for _, size := range sizes {
		if made[size] == nil {
			if made[size], err = l.template(size); err != nil {
				return nil, err
			}
		}
		b.perSize = append(b.perSize, made[size])
	}
	return b, nil
}

// Size is the length in bytes of the n-th frame, without FCS. Sizes of a mix follow each other in the order given; it is shifted after a round of
// all flows if that is needed for each flow to get all sizes.
func (b *Builder) Size(n uint64) int { return len(b.template(n).frame) }

// MaxSize is the length of the longest frame, without FCS.
func (b *Builder) MaxSize() int {
	most := 0
	for _, t := range b.perSize {
		most = max(most, len(t.frame))
	}
	return most
}

// Flow is the flow of the n-th frame, from 0 to less than Flows. Each round of Flows frames has each flow once, with a random order too.
func (b *Builder) Flow(n uint64) int {
	if b.flows.d == 1 {
		return 0
	}
	_, r := b.flows.div(n)
	if b.order != nil {
		return int(b.order[r])
	}
	return int(r)
}

// Flows is how many there are.
func (b *Builder) Flows() int { return int(b.flows.d) }

// Write writes the n-th frame, whole, and returns its length. The stamp is the caller's: nanoseconds of a monotonic clock. It panics when buf is
// shorter than Size(n).
func (b *Builder) Write(buf []byte, n, stamp uint64) int {
	t := b.template(n)
	copy(buf[:len(t.frame)], t.frame)
	b.finish(buf, t, n, stamp)
	return len(t.frame)
}

// Restamp is Write for a buf that holds a frame of the same Builder and of the same Size already, of whatever sequence number and flow: it writes
// only what differs. Checksums are made from sums prepared by New, not from what buf holds, so that no error can add up.
func (b *Builder) Restamp(buf []byte, n, stamp uint64) int {
	t := b.template(n)
	b.finish(buf, t, n, stamp)
	return len(t.frame)
}

func (b *Builder) template(n uint64) *template {
	if len(b.perSize) == 1 {
		return b.perSize[0]
	}
	return b.inMix(n)
}

func (b *Builder) inMix(n uint64) *template {
	if b.skew != 0 {
		q, _ := b.flows.div(n)
		n += b.skew * q
	}
	_, r := b.sizes.div(n)
	return b.perSize[r]
}

// finish writes flow, signature and checksums.
func (b *Builder) finish(buf []byte, t *template, n, stamp uint64) {
	buf = buf[:len(t.frame)]
	var s uint64
	if b.vary.kind != varyNone {
		s = b.vary.write(buf, t, uint32(b.Flow(n)))
	}
	head, word := seal(b.id|n&MaxSeq, b.token)
	sig := buf[t.sig : t.sig+SignatureSize]
	binary.BigEndian.PutUint16(sig, head)
	binary.BigEndian.PutUint64(sig[2:], word)
	binary.BigEndian.PutUint64(sig[10:], stamp)
	if b.csum == 0 {
		return
	}
	own := uint64(head) + word>>32 + word&0xffffffff + stamp>>32 + stamp&0xffffffff
	if t.odd {
		own = swap(own)
	}
	c := ^fold(t.sum + s + own)
	if c == 0 && b.zeroIsFF {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(buf[b.csum:], c)
}
