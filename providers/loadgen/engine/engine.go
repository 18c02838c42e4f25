// Package engine sends, receives and counts on open ports: the hot loops, pacing and threads of the load generator. It knows neither
// benchmarks nor hosts. Start reading at Config, Request and Result, which also go over the wire to a worker on another host.
package engine

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"plumb/lang/cpuset"
	"plumb/providers"
	"plumb/providers/loadgen/port"
	"plumb/providers/loadgen/tally"
)

// Config says how to run.
type Config struct {
	// CPUs that threads are pinned to, one thread each. The queues of all ports are dealt out to them; one thread may do everything.
	CPUs []int
	// Realtime is the SCHED_FIFO priority of the threads, 0: none. The threads end with the generator, and the priority with them.
	Realtime int
	// Idle is how long a thread sleeps when there was nothing to do, and after it has been busy for ten times as long: 0 polls. On a CPU that something
	// else needs, such as the device under test's own threads, polling starves it. A frame that comes meanwhile is seen that much later.
	Idle time.Duration
	// Window limits the frames in flight for each stream and sending queue, 0: none. It makes an open loop a closed one, so a result with it says so: a
	// frame that finds the window closed waits; what then cannot be caught up is Unsent. When nothing comes back for 100 ms of a window that is
	// full, what was in flight is taken for lost.
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
	// Frames, when not 0, are so many frames and stream instead of Duration. With Load 0 they go back to back, and a port that takes nothing for a second
	// ends the stream.
	Frames uint64
	Burst  int // more than 1: so many back to back, at Load on average. A burst has until the next one is due to get into the port
	// Slice, when not 0, asks for the loss over time: Direction.LossSlices.
	Slice time.Duration
	Steps []providers.Step
	// Drain is how long to receive after the stream. It ends earlier when every frame that was sent has come back.
	Drain time.Duration
}

// Result is what was counted: one Direction for each stream, in their order.
type Result struct {
	Directions []providers.Direction
	// Duration is that of the schedule, or until the last frame when a sender was later, and also when the stream was stopped before its time. With Frames:
	// from the first frame to the last.
	Duration time.Duration
	// Behind is by how many frames the senders stayed below the offered load because their threads did not get to run; it is the tester's
	// fault and makes a trial invalid beyond the tolerance. Frames that the port refused are Unsent instead.
	Behind uint64
	// LongestStop is the longest time in which a sending or receiving thread did not run.
	LongestStop time.Duration
	// LinkChanges is how often a port's other side came or went meanwhile.
	LinkChanges uint64
	// Health says why the counts cannot be trusted, as providers.TrialResult's; Notes what a reader should know.
	Health, Notes []string
}

// Engine runs trials on open ports.
type Engine struct {
	config Config
	ports  []port.Port
	clock  clock

	stop    atomic.Bool // see Stop
	busy    sync.Mutex  // a trial runs, or the ports are waited for
	links   []uint64    // of each port, when its other side was last seen to take frames; 0: never
	closed  bool
	token   uint16         // of the last trial's frames
	tallies []*tally.Tally // lent to trials in turn: each is some megabytes
}

const (
	defaultSample = 1024
	maxPriority   = 99
	// readyLimit is how long the other side of a port may take: ovs-vswitchd looks for a socket once a second at first, then every eight.
	readyLimit = 45 * time.Second
)

// New checks that threads can run as the configuration says, on CPUs of this machine. It owns the ports from then on: Close closes them. When it
// fails, they are as they were.
func New(cfg Config, ports []port.Port) (*Engine, error) {
	e := &Engine{config: cfg, ports: ports, clock: newClock(), links: make([]uint64, len(ports)), token: uint16(rand.Uint32())}
	if _, err := cpuset.Of(cfg.CPUs...); err != nil {
		return nil, err
	}
	switch {
	case len(cfg.CPUs) == 0:
		return nil, errors.New("the generator has no CPU")
	case len(ports) == 0:
		return nil, errors.New("the generator has no port")
	case cfg.Realtime < 0 || cfg.Realtime > maxPriority:
		return nil, fmt.Errorf("real-time priorities go from 1 to %d, not %d (0: none)", maxPriority, cfg.Realtime)
	case cfg.Idle < 0 || cfg.Window < 0 || cfg.CatchUp < 0:
		return nil, errors.New("idle, window and catch_up cannot be negative")
	case cfg.Sample < 0 || bits.OnesCount(uint(cfg.Sample)) > 1:
		return nil, fmt.Errorf("one frame in %d cannot be sampled: it must be a power of two", cfg.Sample)
	}
	return e, e.tryThreads()
}

// tryThreads pins a thread to each CPU once, so that what is not permitted is said before the first trial.
func (e *Engine) tryThreads() error {
	outcome := make(chan error)
	for _, cpu := range e.config.CPUs {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			outcome <- pin(cpu, e.config.Realtime)
		}()
		if err := <-outcome; err != nil {
			return err
		}
	}
	return nil
}

// Ready waits, asleep, until the other sides of all ports take frames, 45 s at most. A port that did so already is asked again only when its other side
// came or went since: asking may send a frame, which the device under test counts.
func (e *Engine) Ready(ctx context.Context) error {
	e.busy.Lock()
	defer e.busy.Unlock()
	return e.ready(ctx)
}

func (e *Engine) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not within %s", readyLimit))
	defer cancel()
	for i, p := range e.ports {
		if s := p.Stats(); s.Up && s.Links == e.links[i] {
			continue
		}
		if err := p.Ready(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
				err = fmt.Errorf("%w (%w)", err, cause)
			}
			return fmt.Errorf("port %s: %w", p.Name(), err)
		}
		e.links[i] = p.Stats().Links
	}
	return nil
}

// Stop ends the stream of the running trial before its time, and that of every trial that is run later. Unlike after the end of Run's context, the drain
// follows, so that frames on their way are not taken for lost, and Run returns without an error. It is safe to call at any time.
func (e *Engine) Stop() { e.stop.Store(true) }

// Close closes the ports. It waits for a running trial. A second Close does nothing.
func (e *Engine) Close() error {
	e.busy.Lock()
	defer e.busy.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	var errs []error
	for _, p := range e.ports {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// sample is a mask: frames whose number has none of its bits are sampled.
func (e *Engine) sample() uint64 {
	if e.config.Sample == 0 {
		return defaultSample - 1
	}
	return uint64(e.config.Sample) - 1
}

// catchUp is how many frames may be sent at once.
func (e *Engine) catchUp(depth, burst int) uint64 {
	n := e.config.CatchUp
	if n == 0 {
		n = depth / 2
	}
	return uint64(max(n, burst, 1))
}

// lend gives a tally that is as new.
func (e *Engine) lend(n int) *tally.Tally {
	for len(e.tallies) <= n {
		e.tallies = append(e.tallies, tally.New(0))
	}
	e.tallies[n].Reset()
	return e.tallies[n]
}

// stats are those of all ports.
func (e *Engine) stats() []port.Stats {
	out := make([]port.Stats, len(e.ports))
	for i, p := range e.ports {
		out[i] = p.Stats()
	}
	return out
}
