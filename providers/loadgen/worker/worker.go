// Package worker runs the load generator's engine where its ports are: in this process, or in one on another host.
//
// On another host, Start copies the running binary there, checks its checksum, and starts it as `plumb loadgen -worker SOCKET`; that process calls
// Listen. Both talk in lines of JSON (wire.go) over one connection of the host. The worker lives as long as that connection does: when the Plumb
// that started it is killed, or its network fails, the worker ends by itself.
//
// Start reading at Tester, which is the same for both.
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"plumb/providers/loadgen/engine"
)

// Tester is open ports and an engine on them.
type Tester interface {
	// Ready says what was opened.
	Ready() Ready
	// Run does one trial. One at a time: a second one meanwhile is an error. When ctx ends, the stream stops, and what was counted until then is
	// returned beside the error.
	Run(ctx context.Context, t Trial) (engine.Result, error)
	// Close gives back all that was taken, and waits until it has gone. A second Close does nothing.
	Close(ctx context.Context) error
}

// Open says which ports to open and how to run.
type Open struct {
	Ports  []PortSpec    `json:"ports"`
	Engine engine.Config `json:"engine"`
}

const maxPorts = 32

// Check says what is wrong, if anything is.
func (o Open) Check() error {
	if len(o.Ports) == 0 || len(o.Ports) > maxPorts {
		return fmt.Errorf("there are %d ports; want 1 to %d", len(o.Ports), maxPorts)
	}
	for i, p := range o.Ports {
		if err := p.Check(); err != nil {
			return fmt.Errorf("port %d: %w", i, err)
		}
	}
	return nil
}

// Ready says what was opened: one entry for each port, in their order.
type Ready struct {
	Describe string     `json:"describe"` // "loadgen 0.1.0"
	Ports    []PortInfo `json:"ports"`
}

// PortInfo is what there is to know of an open port.
type PortInfo struct {
	Name     string `json:"name"` // for people
	MAC      string `json:"mac"`
	Queues   int    `json:"queues"`
	MaxFrame int    `json:"max_frame"` // bytes, without FCS
}

// Trial is what to run.
type Trial struct {
	engine.Request
	// Disturb, if not nil, is called once, DisturbAfter into the stream, while the stream goes on. When it fails, so does the trial. It is always called
	// in the process that calls Run.
	Disturb      func(context.Context) error
	DisturbAfter time.Duration
}

// Engine is what runs trials: engine.Engine and the ports that it owns.
type Engine interface {
	Run(ctx context.Context, r engine.Request) (engine.Result, error)
	Close() error
}

// Opener opens ports and an engine on the machine that it is called on. When it fails nothing is left open. The engine's Close closes the ports.
type Opener func(ctx context.Context, o Open) (Engine, Ready, error)

// Local is a Tester in this process.
func Local(ctx context.Context, o Open, open Opener) (Tester, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	e, ready, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &local{engine: e, ready: ready}, nil
}

type local struct {
	engine Engine
	ready  Ready
	one    sync.Mutex // a trial runs, or the tester is being closed
	closed bool
}

var errBusy = errors.New("a trial is running already")

func (l *local) Ready() Ready { return l.ready }

func (l *local) Run(ctx context.Context, t Trial) (engine.Result, error) {
	if !l.one.TryLock() {
		return engine.Result{}, errBusy
	}
	defer l.one.Unlock()
	if l.closed {
		return engine.Result{}, errors.New("the generator is closed")
	}
	return runTrial(ctx, l.engine, t)
}

func (l *local) Close(context.Context) error {
	l.one.Lock()
	defer l.one.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return l.engine.Close()
}

// runTrial runs a trial and disturbs it when that is due.
func runTrial(ctx context.Context, e Engine, t Trial) (engine.Result, error) {
	if t.Disturb == nil {
		return e.Run(ctx, t.Request)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	outcome := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		due := time.NewTimer(t.DisturbAfter)
		defer due.Stop()
		select {
		case <-due.C:
		case <-over:
			outcome <- fmt.Errorf("the stream ended before it was to be disturbed, after %s", t.DisturbAfter)
			return
		}
		err := t.Disturb(running)
		if err != nil {
			stop() // no use in going on
		}
		outcome <- err
	}()
	res, err := e.Run(running, t.Request)
	close(over)
	if disturbed := <-outcome; disturbed != nil && ctx.Err() == nil && (err == nil || errors.Is(err, context.Canceled)) {
		return res, disturbed
	}
	return res, err
}
