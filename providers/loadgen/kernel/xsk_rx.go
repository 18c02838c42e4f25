package kernel

import "golang.org/x/sys/unix"

// xskRx receives on an AF_XDP socket. Descriptors stay in the receive ring until Release gives their chunks to the fill ring.
type xskRx struct {
	fd     int
	rx     ring[unix.XDPDesc]
	fill   ring[uint64]
	umem   []byte
	chunks uint64   // mask of an address: which chunk
	frames [][]byte // given since the last Release
	held   uint32   // descriptors of these
	arena  []byte   // where frames of several chunks are put together
	used   int      // of arena
}

func newXSKRx(fd int, sh shape, umem []byte, rx ring[unix.XDPDesc], fill ring[uint64]) xskRx {
	return xskRx{fd: fd, rx: rx, fill: fill, umem: umem, chunks: ^uint64(sh.chunk - 1), frames: make([][]byte, 0, sh.rxChunks), arena: make([]byte, sh.arena)}
}

// fillAll gives the kernel all chunks for receiving.
func (q *xskRx) fillAll() {
	for i := range len(q.fill.entries) {
		q.fill.put(uint64(i) * (^q.chunks + 1))
	}
	q.fill.publish()
}

func (q *xskRx) Receive(n int) [][]byte {
	ready := q.rx.filled()
	if ready == 0 {
		q.wake()
		return nil
	}
	first := len(q.frames)
	for ; n > 0 && ready > 0; n-- {
		d := q.rx.at(q.rx.own)
		if d.Options&unix.XDP_PKT_CONTD == 0 {
			q.frames = append(q.frames, q.umem[d.Addr:d.Addr+uint64(d.Len):d.Addr+uint64(d.Len)])
			q.rx.own++
			q.held++
			ready--
			continue
		}
		took := q.join(ready)
		if took == 0 {
			break
		}
		ready -= took
	}
	return q.frames[first:]
}

// join puts the chunks of one frame together, or takes none when its end has not come yet.
func (q *xskRx) join(ready uint32) (took uint32) {
	start := q.used
	for i := range ready {
		d := q.rx.at(q.rx.own + i)
		q.used += copy(q.arena[q.used:], q.umem[d.Addr:d.Addr+uint64(d.Len)])
		if d.Options&unix.XDP_PKT_CONTD == 0 {
			q.frames = append(q.frames, q.arena[start:q.used:q.used])
			q.rx.own += i + 1
			q.held += i + 1
			return i + 1
		}
	}
	q.used = start
	return 0
}

func (q *xskRx) Release() {
	if q.held == 0 {
		return
	}
	for i := q.rx.own - q.held; i != q.rx.own; i++ {
		q.fill.put(q.rx.at(i).Addr & q.chunks)
	}
	q.fill.publish()
	q.rx.release()
	q.held, q.used, q.frames = 0, 0, q.frames[:0]
	q.wake()
}

// wake calls a driver that ran out of chunks; it asks for that, in zero-copy mode only.
func (q *xskRx) wake() {
	if q.fill.needsWakeup() {
		kick(unix.SYS_RECVFROM, q.fd)
	}
}
