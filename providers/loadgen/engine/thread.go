package engine

import (
	"runtime"
	"sync/atomic"
	"time"
)

// thread is one OS thread on one CPU, with all that it has to do.
type thread struct {
	cpu, priority int
	idle          time.Duration
	clock         clock
	run           *run
	senders       []*sender
	receivers     []*receiver

	start   int64         // when the stream starts, by clock
	rested  int64         // when it slept last, by clock
	left    int           // senders whose schedule is not over
	stop    time.Duration // the longest time in which it did not run, while frames were due
	shut    bool          // its queues have nothing pending after the end
	settled atomic.Bool   // shut, for others
}

// run is what the threads of one trial have in common.
type run struct {
	waiting atomic.Int64 // threads that do not run yet
	start   atomic.Int64 // when the stream starts, by clock; 0: not before all threads run
	halt    atomic.Bool  // all threads end
	stop    *atomic.Bool // all schedules end, and the drain follows
	sending atomic.Int64 // threads with senders whose schedule is not over
	started chan struct{}
	sent    chan struct{} // closed when the last schedule is over
}

// lead is how long before the stream all threads know when it starts.
const lead = int64(200e3)

// main is the thread from its begin to its end. It is a goroutine's function: the goroutine keeps its thread, which ends with it, and with the
// thread its CPU and priority.
func (w *thread) main() error {
	runtime.LockOSThread()
	if err := pin(w.cpu, w.priority); err != nil {
		return err
	}
	w.arrive()
	last, slept := w.clock(), time.Duration(0)
	for !w.run.halt.Load() {
		now := w.clock()
		w.gap(now, time.Duration(now-last)-slept)
		last, slept = now, 0
		worked, err := w.turn(now)
		if err != nil {
			return err
		}
		if w.mayRest(now, worked) {
			sleep(w.idle)
			slept = w.idle
		}
	}
	return nil
}

// busyFor is for how many times its sleep a thread works without one. Whoever shares the CPU, at a lower priority maybe, gets at least that part of it.
const busyFor = 10

// mayRest says whether to sleep after a turn: when it found nothing to do, and when it has been busy for long.
func (w *thread) mayRest(now int64, worked bool) bool {
	if w.idle == 0 || worked && now-w.rested < busyFor*int64(w.idle) {
		return false
	}
	w.rested = now
	return true
}

// arrive says that this thread runs. The last one sets when the stream starts.
func (w *thread) arrive() {
	w.left = len(w.senders)
	if w.left == 0 {
		w.run.sending.Add(-1)
	}
	if w.run.waiting.Add(-1) == 0 {
		w.run.start.Store(w.clock() + lead)
		close(w.run.started)
	}
}

// gap keeps the longest stop while frames are due. Before and after, a stop harms nothing.
func (w *thread) gap(now int64, stood time.Duration) {
	if stood > w.stop && w.start != 0 && now > w.start && w.run.sending.Load() > 0 {
		w.stop = min(stood, time.Duration(now-w.start))
	}
}

// turn does once all that there is to do, at most a batch of each, and says whether there was anything: a port that takes nothing is nothing.
func (w *thread) turn(now int64) (worked bool, err error) {
	for _, r := range w.receivers {
		if r.step(w.since) > 0 {
			worked = true
		}
	}
	if w.start == 0 {
		if w.start = w.run.start.Load(); w.start == 0 {
			return worked, nil
		}
	}
	t := now - w.start
	if t < 0 {
		return true, nil // about to start: no time to sleep
	}
	for _, s := range w.senders {
		if s.ended {
			continue
		}
		if w.run.stop.Load() {
			s.cut(t)
			w.end()
			continue
		}
		did, err := s.step(t)
		if err != nil {
			return worked, err
		}
		worked = worked || did
		if s.ended {
			w.end()
		}
	}
	if w.left == 0 && !w.shut {
		if err := w.settle(); err != nil {
			return worked, err
		}
	}
	return worked, nil
}

// since is the time since the start of the stream, in ns.
func (w *thread) since() int64 {
	if w.start == 0 {
		return 0
	}
	return w.clock() - w.start
}

// end is called for each sender whose schedule is over. The last one of the trial tells whoever waits.
func (w *thread) end() {
	if w.left--; w.left == 0 && w.run.sending.Add(-1) == 0 {
		close(w.run.sent)
	}
}

// settle looks whether the other side has taken everything.
func (w *thread) settle() error {
	for _, s := range w.senders {
		if s.queue.Pending() == 0 {
			continue
		}
		if err := s.queue.Flush(); err != nil {
			return err
		}
		if s.queue.Pending() > 0 {
			return nil
		}
	}
	w.shut = true
	w.settled.Store(true)
	return nil
}
