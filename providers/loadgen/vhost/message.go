package vhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// request is a message's type (vhost-user.rst, "Front-end message types").
type request uint32

const (
	getFeatures         request = 1
	setFeatures         request = 2
	setOwner            request = 3
	setMemTable         request = 5
	setVringNum         request = 8
	setVringAddr        request = 9
	setVringBase        request = 10
	getVringBase        request = 11
	setVringKick        request = 12
	setVringCall        request = 13
	getProtocolFeatures request = 15
	setProtocolFeatures request = 16
	getQueueNum         request = 17
	setVringEnable      request = 18
	setStatus           request = 39
	getStatus           request = 40
)

func (r request) String() string {
	switch r {
	case getFeatures:
		return "GET_FEATURES"
	case setFeatures:
		return "SET_FEATURES"
	case setOwner:
		return "SET_OWNER"
	case setMemTable:
		return "SET_MEM_TABLE"
	case setVringNum:
		return "SET_VRING_NUM"
	case setVringAddr:
		return "SET_VRING_ADDR"
	case setVringBase:
		return "SET_VRING_BASE"
	case getVringBase:
		return "GET_VRING_BASE"
	case setVringKick:
		return "SET_VRING_KICK"
	case setVringCall:
		return "SET_VRING_CALL"
	case getProtocolFeatures:
		return "GET_PROTOCOL_FEATURES"
	case setProtocolFeatures:
		return "SET_PROTOCOL_FEATURES"
	case getQueueNum:
		return "GET_QUEUE_NUM"
	case setVringEnable:
		return "SET_VRING_ENABLE"
	case setStatus:
		return "SET_STATUS"
	case getStatus:
		return "GET_STATUS"
	}
	return fmt.Sprintf("request %d", uint32(r))
}

// A message is a header of three words, type, flags and size, and a payload of that size, in the machine's byte order: little endian on all that
// we build for.
const (
	headerLen = 12

	versionMask   = 0x3
	version       = 0x1
	flagReply     = 0x4
	flagNeedReply = 0x8
)

// appendMessage adds a message to b.
func appendMessage(b []byte, r request, flags uint32, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(r))
	b = binary.LittleEndian.AppendUint32(b, version|flags)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// readReply reads the answer to r. Every answer that we ask for has 8 bytes: a number, or two of 32 bits with the first in the low half. The
// peer isn't trusted: whatever else it sends is an error, and no more than one answer is read.
func readReply(from io.Reader, r request) (uint64, error) {
	var b [headerLen + 8]byte
	if _, err := io.ReadFull(from, b[:headerLen]); err != nil {
		return 0, ended(err)
	}
	got, flags, size := request(binary.LittleEndian.Uint32(b[0:])), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	switch {
	case flags&versionMask != version:
		return 0, fmt.Errorf("a message of version %d instead of %d: is this a vhost-user back-end?", flags&versionMask, version)
	case flags&flagReply == 0:
		return 0, fmt.Errorf("%v where a reply was due", got)
	case got != r:
		return 0, fmt.Errorf("a reply to %v instead of %v", got, r)
	case size != 8:
		return 0, fmt.Errorf("a reply of %d bytes instead of 8", size)
	}
	if _, err := io.ReadFull(from, b[headerLen:]); err != nil {
		return 0, ended(err)
	}
	return binary.LittleEndian.Uint64(b[headerLen:]), nil
}

// ended is errClosed for an end of the connection, within a message or not.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return errClosed
	}
	return err
}

// errClosed is how a connection ends when the back-end quits.
var errClosed = errors.New("the back-end closed the connection")

func number(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// vringState is the payload of everything that is one value of one ring.
func vringState(ring int, v uint32) []byte { return number(uint64(uint32(ring)) | uint64(v)<<32) }

// vringAddr says where a ring is, in addresses of the front-end.
func vringAddr(ring int, desc, used, avail uint64) []byte {
	b := vringState(ring, 0)                           // index, flags: no logging
	for _, v := range []uint64{desc, used, avail, 0} { // and no log address
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// region is a part of our memory that the back-end maps; its file descriptor goes with the message.
type region struct {
	guest uint64 // address in descriptors
	size  uint64
	user  uint64 // address in SET_VRING_ADDR
}

func memTable(regions []region) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(regions)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, r := range regions {
		for _, v := range []uint64{r.guest, r.size, r.user, 0} { // at offset 0 of the file
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}
