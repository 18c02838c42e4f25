package vhost

import (
	"sync/atomic"

	"plumb/providers/loadgen/port"
)

// end is what both ends of a queue pair share: the session that the queue's thread works on.
type end struct {
	link *link
	// session is the queue's own copy of using, which the link looks at before it frees a session's memory.
	session *session
	using   atomic.Pointer[session]
	ring    *ring // of session; nil before the first
}

// moved makes a newer session the queue's own, if there is one. The one before is freed by the link some time after.
func (e *end) moved() bool {
	for {
		s := e.link.current.Load()
		if s == nil || s == e.session {
			return false
		}
		e.using.Store(s)
		// Once more: the link may have given s up and looked at using before we stored it.
		if e.link.current.Load() == s {
			e.session = s
			return true
		}
		e.using.Store(e.session)
	}
}

// up says whether the queue's own session is the one that lasts.
func (e *end) up() bool { return e.session != nil && e.link.current.Load() == e.session }

// kick tells the back-end of what was made available, if it sleeps.
func (e *end) kick() error {
	if r := e.ring; r != nil && r.kick >= 0 && r.wantsKick() {
		return notify(r.kick, &r.one)
	}
	return nil
}

// txQueue is a port.TxQueue. slots has every entry of the ring twice in a row, so that n of them are contiguous from any position.
type txQueue struct {
	end
	index    int
	pool     pool
	max      int
	size     uint16
	slots    []port.Slot
	reserved []port.Slot
	unkicked bool
	probe    probe
	_        [line]byte // the next queue's thread writes elsewhere
}

var _ port.TxQueue = (*txQueue)(nil)

func newTxQueue(l *link, index int, p pool, size, max int) *txQueue {
	q := &txQueue{end: end{link: l}, index: index, pool: p, max: max, size: uint16(size), slots: make([]port.Slot, 2*size)}
	for i := range size {
		q.place(i, i)
	}
	return q
}

// place lets buffer id be sent by an entry of the ring.
func (q *txQueue) place(entry, id int) {
	s := port.Slot{Buf: q.pool.frame(id), ID: id}
	q.slots[entry], q.slots[entry+int(q.size)] = s, s
}

// Depth is the size of the ring.
func (q *txQueue) Depth() int { return int(q.size) }

// Reserve gives no slots while the back-end is away or when it gives back something wrong; the connection is then made anew. After that all
// slots are free: what the old back-end had not taken is lost.
func (q *txQueue) Reserve(n int) []port.Slot {
	if q.link.current.Load() != q.session || q.session == nil {
		if !q.follow() {
			q.reserved = nil
			return nil
		}
	}
	r := q.ring
	free := int(r.size - (r.next - r.taken))
	if free < n {
		q.reclaim()
		free = int(r.size - (r.next - r.taken))
	}
	at := int(r.next & r.mask)
	q.reserved = q.slots[at : at+min(n, free)]
	return q.reserved
}

// follow moves to a newer session.
func (q *txQueue) follow() bool {
	if q.moved() {
		q.ring, q.unkicked, q.probe.pending = q.session.tx[q.index], false, false
		for i := range int(q.size) {
			if q.slots[i].ID != i {
				q.place(i, i)
			}
		}
	}
	return q.up()
}

// reclaim takes back what the device has used.
func (q *txQueue) reclaim() {
	r := q.ring
	fresh, err := r.fresh()
	if err == nil && r.inOrder {
		r.taken += fresh // and the results need not be read
		return
	}
	for ; err == nil && fresh > 0; fresh-- {
		var id int
		if id, err = r.peek(); err == nil {
			q.free(id)
		}
	}
	if err != nil {
		q.session.fail(err)
	}
}

// free lets buffer id, which came back, be the next free one.
func (q *txQueue) free(id int) {
	r, entry := q.ring, int(q.ring.taken&q.ring.mask)
	r.with[id] = false
	r.taken++
	if q.slots[entry].ID != id {
		q.place(entry, id)
		r.entries[entry] = uint16(id)
	}
}

// Submit takes slots with a Len of up to MaxFrame: a longer one panics, as an index out of range does.
func (q *txQueue) Submit(n int) {
	if n == 0 {
		return
	}
	r := q.ring
	for i := range q.reserved[:n] {
		s := &q.reserved[i]
		if uint(s.Len) > uint(q.max) {
			panic("vhost: a frame longer than MaxFrame was submitted")
		}
		if d := &r.desc[s.ID]; d.len != uint32(virtioHeader+s.Len) {
			d.len = uint32(virtioHeader + s.Len) // rarely: the device reads this line
		}
		if !r.inOrder {
			r.with[s.ID] = true
		}
	}
	r.publish(uint16(n))
	q.reserved, q.unkicked = q.reserved[n:], true
}

// Flush wakes a back-end that does not poll.
func (q *txQueue) Flush() error {
	if !q.unkicked {
		return nil
	}
	q.unkicked = false
	return q.kick()
}

// Pending goes by the used index. What was pending when the connection broke stays so until there is a new one: then it is 0.
func (q *txQueue) Pending() int {
	if q.ring == nil {
		return 0
	}
	if s := q.link.current.Load(); s != nil && s != q.session {
		return 0
	}
	return q.ring.outstanding()
}
