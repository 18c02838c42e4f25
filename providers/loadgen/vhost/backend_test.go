package vhost

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// backend is a small vhost-user back-end for tests: it maps the memory that it is given and sends every frame back on the same pair of queues.
type backend struct {
	t         testing.TB
	features  uint64
	protocol  uint64
	queues    uint64
	poll      bool // never sleeps and needs no kicks
	idle      bool // takes no frames
	reverse   bool // gives the buffers of a burst back last one first
	longFrame int  // not 0: what it sends back is stretched to this length
	// answer may change the answer to a request: raw bytes; nil: what is right. hangUp closes the connection instead.
	answer func(r request, right []byte) []byte

	conn     *net.UnixConn
	maps     []mapping
	rings    map[int]*backRing
	got      []request
	agreed   uint64
	status   uint64
	echoed   atomic.Uint64
	full     atomic.Uint64 // frames for which there was no buffer
	stop     chan struct{}
	workers  sync.WaitGroup
	finished chan struct{} // the connection is over
	bad      atomic.Pointer[error]
}

type mapping struct {
	guest, user uint64
	bytes       []byte
}

type backRing struct {
	device
	kick, call *os.File
	enabled    bool
	addr       []byte
}

func newBackend(t testing.TB) *backend {
	return &backend{
		t: t, queues: 8, features: featureVersion1 | featureMergeable | featureInOrder | featureProtocol | featureMQ | 1<<28,
		protocol: protocolMQ | protocolAck | protocolStatus | 1<<7,
	}
}

// serve handles a connection in the background, until either side closes it.
func (b *backend) serve(conn net.Conn) *backend {
	b.conn, b.rings, b.stop, b.finished = conn.(*net.UnixConn), map[int]*backRing{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(b.finished)
		defer b.end()
		for {
			if err := b.message(); err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
					b.bad.Store(&err)
				}
				return
			}
		}
	}()
	return b
}

// close is what a back-end that dies looks like; it waits until all is over.
func (b *backend) close() {
	b.conn.Close()
	<-b.finished
	if err := b.bad.Load(); err != nil {
		b.t.Errorf("back-end: %v", *err)
	}
}

func (b *backend) end() {
	b.conn.Close()
	b.halt()
	for _, r := range b.rings {
		r.kick.Close()
		r.call.Close()
	}
	for _, m := range b.maps {
		_ = unix.Munmap(m.bytes)
	}
	b.maps = nil
}

// halt ends the workers.
func (b *backend) halt() {
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	for _, r := range b.rings {
		if r.kick != nil {
			r.kick.Close()
		}
	}
	b.workers.Wait()
}

// message reads one message and answers it.
func (b *backend) message() error {
	head, oob := make([]byte, headerLen), make([]byte, 256)
	n, oobn, _, _, err := b.conn.ReadMsgUnix(head, oob)
	if err != nil {
		return err
	}
	if n == 0 {
		return io.EOF
	}
	if _, err := io.ReadFull(b.conn, head[n:]); err != nil {
		return err
	}
	var fds []int
	if oobn > 0 {
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return err
		}
		if fds, err = unix.ParseUnixRights(&messages[0]); err != nil {
			return err
		}
	}
	payload := make([]byte, binary.LittleEndian.Uint32(head[8:]))
	if _, err := io.ReadFull(b.conn, payload); err != nil {
		return err
	}
	r, flags := request(binary.LittleEndian.Uint32(head)), binary.LittleEndian.Uint32(head[4:])
	b.got = append(b.got, r)
	value, reply, err := b.handle(r, payload, fds)
	if err != nil {
		return err
	}
	if !reply {
		if flags&flagNeedReply == 0 {
			return nil
		}
		value = 0
	}
	out := appendMessage(nil, r, flagReply, number(value))
	if b.answer != nil {
		if out = b.answer(r, out); out == nil {
			return io.EOF
		}
	}
	_, err = b.conn.Write(out)
	return err
}

// handle does what a message says; reply: it has an answer of its own.
func (b *backend) handle(r request, payload []byte, fds []int) (value uint64, reply bool, err error) {
	switch r {
	case getFeatures:
		return b.features, true, nil
	case getProtocolFeatures:
		return b.protocol, true, nil
	case getQueueNum:
		return b.queues, true, nil
	case getStatus:
		return b.status, true, nil
	case setFeatures:
		b.agreed = binary.LittleEndian.Uint64(payload)
		if b.agreed&^b.features != 0 {
			return 0, false, errors.New("features were set that were not offered")
		}
	case setStatus:
		b.status = binary.LittleEndian.Uint64(payload)
		if b.status&statusDriverOK != 0 {
			b.start()
		}
	case setMemTable:
		return 0, false, b.mapAll(payload, fds)
	}
	if len(payload) < 8 {
		return 0, false, nil
	}
	i, v := int(payload[0]), binary.LittleEndian.Uint32(payload[4:])
	ring := b.rings[i]
	switch r {
	case setVringNum:
		b.rings[i] = &backRing{device: device{size: uint16(v), mem: b.guest}}
	case setVringAddr:
		ring.addr = payload
		return 0, false, b.place(ring)
	case setVringCall:
		ring.call = os.NewFile(uintptr(fds[0]), "call")
	case setVringKick:
		ring.kick = os.NewFile(uintptr(fds[0]), "kick")
		if b.protocol&protocolStatus == 0 && i%2 == 1 && (b.features&featureProtocol == 0 || i == 2*int(b.queues)-1) {
			defer b.start() // nothing else says when, without the device status
		}
	case setVringEnable:
		ring.enabled = v == 1
		if !ring.enabled {
			b.halt()
		}
	case getVringBase:
		b.halt()
		return uint64(i) | uint64(ring.seen)<<32, true, nil
	}
	return 0, false, nil
}

func (b *backend) mapAll(payload []byte, fds []int) error {
	n := int(binary.LittleEndian.Uint32(payload))
	if n != len(fds) || len(payload) != 8+32*n {
		return errors.New("a memory table of another length")
	}
	for i, fd := range fds {
		f := func(k int) uint64 { return binary.LittleEndian.Uint64(payload[8+32*i+8*k:]) }
		m, err := unix.Mmap(fd, 0, int(f(1)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		// A front-end's memory can't be taken from under it.
		if err := unix.Ftruncate(fd, 0); !errors.Is(err, unix.EPERM) {
			return errors.New("the memory can be truncated")
		}
		unix.Close(fd)
		b.maps = append(b.maps, mapping{guest: f(0), user: f(2), bytes: m})
	}
	return nil
}

func (b *backend) guest(addr uint64, n int) []byte {
	for _, m := range b.maps {
		if addr >= m.guest && addr+uint64(n) <= m.guest+uint64(len(m.bytes)) {
			return m.bytes[addr-m.guest:][:n]
		}
	}
	return nil
}

func (b *backend) place(r *backRing) error {
	at := func(offset int) []byte {
		addr := binary.LittleEndian.Uint64(r.addr[offset:])
		for _, m := range b.maps {
			if addr >= m.user && addr < m.user+uint64(len(m.bytes)) {
				return m.bytes[addr-m.user:]
			}
		}
		return nil
	}
	r.desc, r.used, r.avail = at(8), at(16), at(24)
	if r.desc == nil || r.used == nil || r.avail == nil {
		return errors.New("a ring is outside the memory")
	}
	return nil
}

// start runs one worker for each pair of rings.
func (b *backend) start() {
	for i := 0; b.rings[i] != nil && b.rings[i+1] != nil; i += 2 {
		rx, tx := b.rings[i], b.rings[i+1]
		rx.flush(b.poll)
		tx.flush(b.poll)
		b.workers.Go(func() { b.work(rx, tx) })
	}
}

// work loops frames back, asleep until it is kicked, or not with poll.
func (b *backend) work(rx, tx *backRing) {
	var events [8]byte
	var ids []uint16
	for {
		if !b.poll {
			if _, err := tx.kick.Read(events[:]); err != nil {
				return
			}
		}
		select {
		case <-b.stop:
			return
		default:
		}
		if b.idle {
			continue
		}
		ids = ids[:0]
		for {
			id, frame, ok := tx.pop()
			if !ok {
				break
			}
			if len(frame) < virtioHeader {
				err := errors.New("a descriptor outside the memory")
				b.bad.Store(&err)
				return
			}
			frame = frame[virtioHeader:]
			if b.longFrame != 0 {
				frame = append(append([]byte(nil), frame...), make([]byte, b.longFrame-len(frame))...)
			}
			if rx.arrive(frame, b.agreed&featureMergeable != 0) {
				b.echoed.Add(1)
			} else {
				b.full.Add(1)
			}
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			runtime.Gosched()
			continue
		}
		rx.flush(b.poll)
		for i := range ids {
			if b.reverse {
				i = len(ids) - 1 - i
			}
			tx.result(uint32(ids[i]), 0, 1)
		}
		tx.flush(b.poll)
	}
}
