package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"plumb/providers"
	"plumb/providers/internal/pause"
	"plumb/providers/loadgen/frame"
	"plumb/providers/loadgen/port"
)

// trial is one Run while it is made and evaluated.
type trial struct {
	engine    *Engine
	req       Request
	run       *run
	threads   []*thread
	senders   []*sender // by their number, which is the stream of the frames
	of        []int     // by sender: index of its stream
	receivers []*receiver
	lent      int // tallies
}

// Run makes one trial: it waits until all ports are ready, as Ready does, sends, drains, and counts. While it runs, garbage collection is off in the whole process
// (up to a gigabyte more of memory), which is put back. One Run at a time.
//
// disturb, if not nil, is called once, after that time of the stream, while it goes on; when it fails the trial ends with its error. Run returns after it.
//
// When ctx ends, the threads stop within milliseconds, and what was counted until then is returned with the context's error. Nothing goes on after Run.
func (e *Engine) Run(ctx context.Context, req Request, disturb func(context.Context) error, after time.Duration) (Result, error) {
	if !e.busy.TryLock() {
		return Result{}, errors.New("a trial is running already")
	}
	defer e.busy.Unlock()
	if e.closed {
		return Result{}, errors.New("the engine is closed")
	}
	if err := e.check(req, disturb != nil, after); err != nil {
		return Result{}, err
	}
	if err := e.ready(ctx); err != nil {
		return Result{}, err
	}
	e.token++
	t, err := e.prepare(req)
	if err != nil {
		return Result{}, err
	}
	defer process.enter(len(t.threads))()
	before := e.stats()
	err = t.do(ctx, disturb, after)
	if cause := context.Cause(ctx); cause != nil {
		err = ctx.Err()
	}
	return t.result(before, e.stats()), err
}

func (e *Engine) check(req Request, disturbed bool, after time.Duration) error {
	if len(req.Streams) == 0 {
		return errors.New("there is no stream to send")
	}
	for i, s := range req.Streams {
		if s.From < 0 || s.From >= len(e.ports) || s.To < 0 || s.To >= len(e.ports) {
			return fmt.Errorf("stream %d goes from port %d to port %d, and there are %d", i, s.From, s.To, len(e.ports))
		}
	}
	for _, s := range append([]providers.Step{{Load: req.Load, Duration: req.Duration}}, req.Steps...) {
		switch {
		case math.IsNaN(s.Load) || s.Load < 0 || s.Load > maxLoad:
			return fmt.Errorf("a load of %g frames/s cannot be offered: from 0 to %g can", s.Load, float64(maxLoad))
		case req.Frames == 0 && s.Duration <= 0:
			return fmt.Errorf("a load lasts for %s: it needs a time above 0", s.Duration)
		}
	}
	if err := checkSlices(req); err != nil {
		return err
	}
	switch {
	case req.Frames > 0 && len(req.Steps) > 0:
		return errors.New("a number of frames cannot be sent in steps: steps have a duration")
	case req.Burst < 0 || req.Drain < 0:
		return errors.New("burst and drain cannot be negative")
	case req.Burst > 1 && req.Load == 0 && req.Frames == 0:
		return errors.New("bursts need a load, which says how long the pauses are")
	case disturbed && req.Frames == 0 && after >= length(req):
		return fmt.Errorf("the stream ends after %s, before it is to be disturbed at %s", length(req), after)
	}
	return nil
}

// prepare makes senders, receivers and threads of a request. Queues are dealt out to the CPUs in turns, first those that send.
func (e *Engine) prepare(req Request) (*trial, error) {
	t := &trial{engine: e, req: req, run: &run{stop: &e.stop, started: make(chan struct{}), sent: make(chan struct{})}}
	queues, err := t.makeSenders()
	if err != nil {
		return nil, err
	}
	type job struct { // what cannot be dealt to two threads
		senders   []*sender
		receivers []*receiver
	}
	var jobs []job
	for _, q := range queues {
		var job job
		for _, s := range t.senders {
			if s.queue == q {
				job.senders = append(job.senders, s)
			}
		}
		jobs = append(jobs, job)
	}
	for _, r := range t.makeReceivers() {
		jobs = append(jobs, job{receivers: []*receiver{r}})
	}
	for i := range min(len(e.config.CPUs), len(jobs)) {
		w := &thread{cpu: e.config.CPUs[i], priority: e.config.Realtime, idle: e.config.Idle, clock: e.clock, run: t.run}
		for j := i; j < len(jobs); j += len(e.config.CPUs) {
			w.senders, w.receivers = append(w.senders, jobs[j].senders...), append(w.receivers, jobs[j].receivers...)
		}
		for _, s := range w.senders {
			s.now = w.since
		}
		t.threads = append(t.threads, w)
	}
	t.run.waiting.Store(int64(len(t.threads)))
	t.run.sending.Store(int64(len(t.threads)))
	return t, nil
}

// makeSenders makes one for each stream and queue of its port, and the queues that they use.
func (t *trial) makeSenders() ([]*txQueue, error) {
	type place struct{ port, queue int }
	made := map[place]*txQueue{}
	var queues []*txQueue
	e := t.engine
	for i, stream := range t.req.Streams {
		from, to := e.ports[stream.From], e.ports[stream.To]
		parts := from.Queues()
		if t.req.Frames > 0 { // a queue without a frame would be no sender
			parts = int(min(uint64(parts), t.req.Frames))
		}
		for q := range parts {
			at := place{stream.From, q}
			if made[at] == nil {
				made[at] = &txQueue{TxQueue: from.Tx(q), held: make([]held, 2*from.Tx(q).Depth())}
				queues = append(queues, made[at])
			}
			n := len(t.senders)
			b, err := frame.New(stream.Traffic, frame.Options{Stream: uint16(min(n, math.MaxUint16)), Token: e.token, SrcMAC: from.MAC(), DstMAC: to.MAC()})
			if err != nil {
				return nil, fmt.Errorf("frames from %s to %s: %w", from.Name(), to.Name(), err)
			}
			if b.MaxSize() > from.MaxFrame() || b.MaxSize() > to.MaxFrame() {
				return nil, fmt.Errorf("frames of %d bytes and the FCS are longer than ports %s (%d) and %s (%d) take", b.MaxSize(), from.Name(), from.MaxFrame(), to.Name(), to.MaxFrame())
			}
			s := &sender{queue: made[at], builder: b, who: int32(n), pace: newPace(t.req, q, parts), sample: e.sample(), slices: newSlices(t.req)}
			s.catchUp = e.catchUp(made[at].Depth(), t.req.Burst)
			t.senders, t.of = append(t.senders, s), append(t.of, i)
		}
	}
	return queues, nil
}

// makeReceivers makes one for each queue of the ports that streams come to, and then of those that they only leave, where nothing of them may arrive.
func (t *trial) makeReceivers() []*receiver {
	e := t.engine
	arrives, used := map[int]bool{}, map[int]bool{}
	for _, s := range t.req.Streams {
		arrives[s.To], used[s.From], used[s.To] = true, true, true
	}
	for _, want := range []bool{true, false} {
		for i, p := range e.ports {
			if !used[i] || arrives[i] != want {
				continue
			}
			for q := range p.Queues() {
				t.receivers = append(t.receivers, t.makeReceiver(i, p.Rx(q)))
			}
		}
	}
	if e.config.Window > 0 {
		for n, s := range t.senders {
			s.window = &window{size: uint64(e.config.Window)}
			for _, r := range t.receivers {
				if r.flows[n] != nil {
					s.window.flows = append(s.window.flows, r.flows[n])
				}
			}
		}
	}
	return t.receivers
}

func (t *trial) makeReceiver(at int, q port.RxQueue) *receiver {
	r := &receiver{queue: q, port: at, token: t.engine.token, sample: t.engine.sample(), slices: map[int]*slices{}, flows: make([]*flow, len(t.senders))}
	for n, s := range t.senders {
		if t.req.Streams[t.of[n]].To == at {
			if t.req.Slice > 0 && r.slices[t.of[n]] == nil {
				r.slices[t.of[n]] = newSlices(t.req)
			}
			r.flows[n] = &flow{tally: t.engine.lend(t.lent), sent: &s.shared.count, slices: r.slices[t.of[n]]}
			t.lent++
		}
	}
	return r
}

// do runs the threads from start to end.
func (t *trial) do(ctx context.Context, disturb func(context.Context) error, after time.Duration) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range t.threads {
		group.Go(w.main)
	}
	over := make(chan struct{}) // the drain, too
	group.Go(func() error {
		defer close(over)
		defer t.run.halt.Store(true)
		return t.wait(ctx)
	})
	if disturb != nil {
		group.Go(func() error {
			if err := await(ctx, t.run.started, over); err != nil {
				return nil // the trial has ended, and not by this
			}
			if err := pause.For(ctx, after); err != nil {
				return nil
			}
			return disturb(ctx)
		})
	}
	return group.Wait()
}

// wait returns when the drain is over, or ctx ends.
func (t *trial) wait(ctx context.Context) error {
	if err := await(ctx, t.run.sent, nil); err != nil {
		return err
	}
	end := time.NewTimer(t.req.Drain)
	defer end.Stop()
	look := time.NewTicker(drainTick)
	defer look.Stop()
	for !t.complete() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return nil
		case <-look.C:
		}
	}
	return nil
}

// drainTick is how often the drain looks whether there is anything left to wait for.
const drainTick = time.Millisecond

// complete says that every frame that was sent has come back: a longer drain could find only duplicates.
func (t *trial) complete() bool {
	for _, w := range t.threads {
		if len(w.senders) > 0 && !w.settled.Load() {
			return false
		}
	}
	for n, s := range t.senders {
		var got uint64
		for _, r := range t.receivers {
			if f := r.flows[n]; f != nil {
				got += f.shared.received.Load()
			}
		}
		if got < s.shared.count.Load() {
			return false
		}
	}
	return true
}

func await(ctx context.Context, what, or <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-or:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}
