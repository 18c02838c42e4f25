package vhost

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppendMessage(t *testing.T) {
	tests := []struct {
		name    string
		request request
		flags   uint32
		payload []byte
		want    string
	}{
		{"no payload", setOwner, 0, nil, "03000000 01000000 00000000"},
		{"number", setFeatures, flagNeedReply, number(featureVersion1 | featureMergeable), "02000000 09000000 08000000 0080000001000000"},
		{"state", setVringNum, 0, vringState(3, 256), "08000000 01000000 08000000 03000000 00010000"},
		{"address", setVringAddr, 0, vringAddr(1, 0x10, 0x20, 0x30), "09000000 01000000 28000000 01000000 00000000 1000000000000000 2000000000000000 3000000000000000 0000000000000000"},
		{"memory", setMemTable, 0, memTable([]region{{guest: 1, size: 2, user: 3}}), "05000000 01000000 28000000 01000000 00000000 0100000000000000 0200000000000000 0300000000000000 0000000000000000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := hex.EncodeToString(appendMessage(nil, tt.request, tt.flags, tt.payload))
			if diff := cmp.Diff(strings.ReplaceAll(tt.want, " ", ""), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// raw is a message of any kind, also wrong ones.
func raw(r request, flags, size uint32, payload ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(r))
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint32(b, size)
	return append(b, payload...)
}

func TestReadReply(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		want uint64
		err  string
	}{
		{name: "number", in: raw(getFeatures, version|flagReply, 8, number(0xd7c66a7ca)...), want: 0xd7c66a7ca},
		{name: "nothing", in: nil, err: "closed the connection"},
		{name: "half a header", in: []byte{1, 0, 0}, err: "closed the connection"},
		{name: "half a payload", in: raw(getFeatures, version|flagReply, 8, 1, 2), err: "closed the connection"},
		{name: "no payload", in: raw(getFeatures, version|flagReply, 8), err: "closed the connection"},
		{name: "other version", in: raw(getFeatures, 2|flagReply, 8, number(1)...), err: "version 2"},
		{name: "no reply", in: raw(getFeatures, version, 8, number(1)...), err: "GET_FEATURES where a reply was due"},
		{name: "other request", in: raw(getQueueNum, version|flagReply, 8, number(1)...), err: "a reply to GET_QUEUE_NUM instead of GET_FEATURES"},
		{name: "unknown request", in: raw(77, version|flagReply, 8, number(1)...), err: "a reply to request 77"},
		{name: "too long", in: raw(getFeatures, version|flagReply, 1<<31, number(1)...), err: "2147483648 bytes"},
		{name: "too short", in: raw(getFeatures, version|flagReply, 4, 1, 2, 3, 4), err: "4 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readReply(bytes.NewReader(tt.in), getFeatures)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("got error %v, want %q", err, tt.err)
			}
			if got != tt.want {
				t.Errorf("got %#x, want %#x", got, tt.want)
			}
		})
	}
}

// FuzzMessage: whatever a back-end sends, an answer is what was asked for or an error, and not a byte more than it is read.
func FuzzMessage(f *testing.F) {
	f.Add(raw(getFeatures, version|flagReply, 8, number(1)...), uint32(getFeatures))
	f.Add(raw(getVringBase, version|flagReply, 8, vringState(1, 7)...), uint32(getVringBase))
	f.Add(raw(setFeatures, version|flagReply|flagNeedReply, 8, number(0)...), uint32(setFeatures))
	f.Add(raw(getFeatures, version, 1<<30), uint32(getFeatures))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint32(getFeatures))
	f.Fuzz(func(t *testing.T, in []byte, asked uint32) {
		from := bytes.NewReader(in)
		v, err := readReply(from, request(asked))
		if read := len(in) - from.Len(); read > headerLen+8 {
			t.Fatalf("read %d bytes", read)
		}
		if err != nil {
			if v != 0 {
				t.Fatalf("value %d with error %v", v, err)
			}
			if len(in) < headerLen && !errors.Is(err, errClosed) {
				t.Fatalf("the end of the connection gives %v", err)
			}
			return
		}
		want := appendMessage(nil, request(asked), binary.LittleEndian.Uint32(in[4:])&^versionMask, number(v))
		if !bytes.HasPrefix(in, want) {
			t.Fatalf("%x was read as %d", in, v)
		}
	})
}
