// Package engine sends, receives and counts on open ports: the hot loops, pacing and threads of the load generator. It knows neither
// benchmarks nor hosts. Start reading at Config, Request and Result, which also go over the wire to a worker on another host.
package engine

import (
	"time"

	"plumb/providers"
)

// Config says how to run.
type Config struct {
	// CPUs that threads are pinned to, one thread each. The queues of all ports are dealt out to them; one thread may do everything.
	CPUs []int
	// Realtime is the SCHED_FIFO priority of the threads, 0: none. The threads end with the generator, and the priority with them.
	Realtime int
	// Idle is how long a thread sleeps when there was nothing to do: 0 polls. On a CPU that something else needs, such as the device under
	// test's own threads, polling starves it.
	Idle time.Duration
	// Window limits the frames in flight for each stream, 0: none. It makes an open loop a closed one, so a result with it says so.
	Window int
	// CatchUp is how many frames a sender that was held up may send at once to get back to its rate: it must be less than the smallest ring of
	// the path. 0: half the depth of the sending queue. What cannot be caught up is reported as behind, never hidden.
	CatchUp int
	// Sample is how many frames there are for each one whose latency is measured, a power of two; 0: 1024.
	Sample int
}

// Stream goes from one port to another.
type Stream struct {
	From, To int // indices of the ports
	Traffic  providers.Traffic
}

// Request is one trial.
type Request struct {
	Streams  []Stream // each at the same load
	Load     float64  // frames/s and stream; 0: as fast as possible
	Duration time.Duration
	Frames   uint64 // not 0: so many frames and stream instead of Duration
	Burst    int
	Steps    []providers.Step
	Drain    time.Duration
}

// Result is what was counted: one Direction for each stream, in their order.
type Result struct {
	Directions []providers.Direction
	Duration   time.Duration // from the first frame to the last of the longest sender
	// Behind is by how many frames the senders stayed below the offered load because their threads did not get to run; it is the tester's
	// fault and makes a trial invalid beyond the tolerance. Frames that the port refused are Unsent instead.
	Behind uint64
	// LongestStop is the longest time in which a sending or receiving thread did not run.
	LongestStop time.Duration
	// LinkChanges is how often a port's other side came or went meanwhile.
	LinkChanges uint64
}
