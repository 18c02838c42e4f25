// Package port is what the load generator asks of an attachment to the device under test: a vhost-user port or a kernel interface. The
// implementations are in vhost and kernel; the engine knows only this.
//
// Frames are without FCS here: a virtual port carries none. Buffers belong to the port and are filled and read in place. One queue is used by
// one thread at a time; nothing in Reserve, Submit, Receive and Release allocates or takes a lock.
package port

import (
	"context"
	"net"
)

// Port is an open attachment.
type Port interface {
	// Name is for people: "/run/plumb/vhost/t0", "veth0".
	Name() string
	// MAC is the address of the tester's side, made up by vhost-user ports (locally administered).
	MAC() net.HardwareAddr
	// Queues is how many pairs of a Tx and an Rx queue there are.
	Queues() int
	Tx(queue int) TxQueue
	Rx(queue int) RxQueue
	// MaxFrame is the longest frame in bytes, without FCS.
	MaxFrame() int
	// Ready waits, asleep, until the other side takes frames, or says why it does not. It may send a frame of its own that is no test frame
	// (a receiver counts it as surplus). Call it before a thread begins to poll: the other side may need this CPU to get ready.
	Ready(ctx context.Context) error
	// Stats are counters that the port itself keeps.
	Stats() Stats
	// Close gives back all that Open took. Queues must not be in use any more. It is safe to call it twice.
	Close() error
}

// Stats of a port since it was opened.
type Stats struct {
	// RxDrops are frames that had come as far as this port and found its ring full: lost by the tester.
	RxDrops uint64
	// Links is how often the other side came or went: 1 after the first connection, 3 after one restart of the device under test.
	Links uint64
	// Up says whether the other side is there now.
	Up bool
}

// TxQueue sends.
type TxQueue interface {
	// Depth is how many frames the queue holds.
	Depth() int
	// Reserve gives up to n free slots, in the order in which they will go out; fewer, or none, when the other side has not yet taken what
	// was sent or is away. The slice is the queue's and is valid until the next call.
	Reserve(n int) []Slot
	// Submit sends the first n of the slots that Reserve gave last, with the Len set in each.
	Submit(n int)
	// Flush makes sure that everything submitted is on its way without another call: system calls of kernel ports, a kick where one is
	// asked for. The engine calls it after each burst.
	Flush() error
	// Pending is how many submitted frames the other side has not taken yet. It is exact, and needed at the end of a stream: a frame that stays
	// pending was never sent.
	Pending() int
}

// Slot is a buffer for one frame.
type Slot struct {
	Buf []byte // whole, of at least Port.MaxFrame bytes
	ID  int    // which buffer it is, from 0 to less than IDs: what was written there before is there still
	Len int    // of the frame; set by the sender
}

// RxQueue receives.
type RxQueue interface {
	// Receive gives up to n frames that have come. They are valid until Release.
	Receive(n int) [][]byte
	// Release gives back all that Receive gave since the last Release.
	Release()
}
