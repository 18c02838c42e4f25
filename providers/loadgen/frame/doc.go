// Package frame makes test frames out of a providers.Traffic and knows them again when they come back. It is pure: it opens nothing, holds no
// clock, and neither Write, Restamp nor Parse allocates. Start reading at New and Parse.
//
//	b, err := frame.New(traffic, frame.Options{Stream: 1, Token: trial, SrcMAC: from.MAC(), DstMAC: to.MAC()})
//	length := b.Write(slot.Buf, n, now) // or b.Restamp, where the slot holds a frame of b of this size
//	stream, n, stamp, ok := frame.Parse(received, trial)
//
// # What a frame looks like
//
// Headers are those of RFC 2544 appendix C: addresses of 198.18.0.0/15 (2001:2::/48 for IPv6, RFC 5180 section 8), UDP from port 49184 to
// port 7, echo (appendix C.2.6.4); TCP uses the same ports and looks like a bare ACK of an open connection. The headers "ipv4" and "ipv6" have
// nothing behind the IP header and say protocol 253, "l2" says EtherType 0x88B5: both numbers are reserved for experiments (RFC 3692, IEEE Std 802).
// VLAN tags and VXLAN go around that; with both, the tags are on the outer frame, because RFC 7348 section 6.1 lets a tunnel's end discard
// frames that are tagged inside. All checksums are right; a VXLAN frame's outer UDP checksum is 0 (RFC 7348 section 5).
//
// # Signature
//
// The last 18 bytes (without FCS) are the signature, so that a parser needs to know no headers, and tags and tunnels may come and go on the way:
//
//	0  2  upper 16 bits of the check, mixed with the token
//	2  8  lower 8 bits of the check, stream (12 bits), sequence number (44 bits)
//	10 8  time stamp
//
// The check is a hash of stream and sequence number. Whatever is no test frame passes for one with a likelihood of 2^-24, before the caller has
// looked whether there is such a stream (of 4096) and whether so many frames were sent. A frame of an earlier trial, with another token, never
// passes: with equal stream and sequence number the token alone decides.
//
// Behind the headers and before the signature are bytes that count up, since neither all zeros nor all ones are fit for it (appendix C.2.4.4).
package frame
