package frame

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"plumb/providers"
)

// What strangers fill their frames with is no signature: not even with the one token that the upper half of the check would fit.
func TestFillingIsNoSignature(t *testing.T) {
	for fill := range 256 {
		b := bytes.Repeat([]byte{byte(fill)}, 60)
		id := binary.BigEndian.Uint64(b) & (1<<56 - 1)
		token := uint16(hash(id)>>8) ^ binary.BigEndian.Uint16(b)
		if _, _, _, ok := Parse(b, token); ok {
			t.Errorf("a frame of %#x passes with token %#x", fill, token)
		}
	}
}

func TestOtherTokensNeverPass(t *testing.T) {
	b := build(t, providers.Traffic{Headers: "udp", FrameSize: 64}, own)
	buf := make([]byte, 60)
	for _, n := range []uint64{0, 1, 77, 1 << 40, MaxSeq} {
		b.Write(buf, n, 12345)
		for token := range 1 << 16 {
			if _, _, _, ok := Parse(buf, uint16(token)); ok != (uint16(token) == own.Token) {
				t.Fatalf("frame %d passes with token %#x: %v", n, token, ok)
			}
		}
	}
}

// With 2^22 random strangers a quarter of a hit is expected; more than six would be a fault of the hash (likelihood 1e-8).
func TestRandomStraysAreRare(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	hits := 0
	buf := make([]byte, SignatureSize)
	for range 1 << 22 {
		binary.BigEndian.PutUint64(buf, r.Uint64())
		binary.BigEndian.PutUint16(buf[8:], uint16(r.Uint64()))
		if _, _, _, ok := Parse(buf, 0x1234); ok {
			hits++
		}
	}
	if hits > 6 {
		t.Errorf("%d hits", hits)
	}
}

func TestAnyChangeOfTheSequenceIsSeen(t *testing.T) {
	b := build(t, providers.Traffic{Headers: "udp", FrameSize: 64}, own)
	buf := make([]byte, 60)
	b.Write(buf, 1234567, 1)
	for bit := range 80 {
		at := len(buf) - SignatureSize + bit/8
		buf[at] ^= 1 << (bit % 8)
		if _, _, _, ok := Parse(buf, own.Token); ok {
			t.Errorf("bit %d may change", bit)
		}
		buf[at] ^= 1 << (bit % 8)
	}
}

func TestParseIsAtHomeAnywhere(t *testing.T) {
	b := build(t, providers.Traffic{Headers: "l2", FrameSize: 64}, own)
	buf := make([]byte, 60)
	b.Write(buf, 9, 10)
	tagged := append(append(append([]byte{}, buf[:12]...), 0x81, 0, 0, 5), buf[12:]...)
	if _, seq, stamp, ok := Parse(tagged, own.Token); !ok || seq != 9 || stamp != 10 {
		t.Error("a frame that got a tag on the way is not known again")
	}
	for n := range SignatureSize {
		if _, _, _, ok := Parse(buf[60-n:], own.Token); ok {
			t.Errorf("%d bytes are enough", n)
		}
	}
}

func FuzzParse(f *testing.F) {
	b := build(f, providers.Traffic{Headers: "udp", FrameSize: 64}, own)
	buf := make([]byte, 60)
	b.Write(buf, 3, 4)
	f.Add(buf, own.Token)
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, token uint16) {
		stream, seq, _, ok := Parse(b, token)
		if stream > MaxStream || seq > MaxSeq || ok && len(b) < SignatureSize {
			t.Fatal(stream, seq, ok)
		}
		if _, _, _, other := Parse(b, token+1); ok && other {
			t.Fatal("two tokens pass")
		}
	})
}

// FuzzWrite makes frames of any traffic that New takes, and has each looked through by somebody who trusts nothing.
func FuzzWrite(f *testing.F) {
	f.Add(uint8(3), uint8(1), uint16(64), uint32(1), uint8(0), false, false, uint64(0), uint64(0))
	f.Add(uint8(4), uint8(2), uint16(1519), uint32(70000), uint8(2), true, true, uint64(1<<43), ^uint64(0))
	f.Fuzz(func(t *testing.T, headers, vary uint8, size uint16, flows uint32, tags uint8, tunnel, random bool, n, stamp uint64) {
		tr := providers.Traffic{
			Headers: []string{"l2", "ipv4", "ipv6", "udp", "udp6", "tcp"}[headers%6], Vary: []string{"", "mac", "ip", "port"}[vary%4],
			FrameSize: int(size), Flows: int(flows % (MaxFlows + 1)), VLANs: []int{1, 2}[:tags%3], Seed: stamp,
		}
		if random {
			tr.Order, tr.Flows = "random", tr.Flows%1000
		}
		if tunnel {
			tr.VXLAN = &providers.VXLAN{SrcIP: "10.0.0.1", DstIP: "10.0.0.2"}
		}
		b, err := New(tr, own)
		if err != nil {
			return
		}
		n &= MaxSeq
		buf := make([]byte, b.Size(n))
		if b.Write(buf, n, stamp); len(buf) != int(size)-4 {
			t.Fatal(len(buf))
		}
		if _, err := dissect(buf); err != nil {
			t.Fatal(err)
		}
		again := make([]byte, len(buf))
		b.Write(again, n/2, stamp/3)
		if b.Restamp(again, n, stamp); !bytes.Equal(again, buf) {
			t.Fatal("Restamp differs from Write")
		}
		if stream, seq, st, ok := Parse(buf, own.Token); !ok || stream != own.Stream || seq != n || st != stamp {
			t.Fatal(stream, seq, st, ok)
		}
	})
}
