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
	"fmt"
	"time"

	"plumb/providers/loadgen/engine"
)

// Tester is open ports and an engine on them.
type Tester interface {
	// Ready says what was opened.
	Ready() Ready
	// Run is as engine.Engine's: one trial at a time; disturb, if not nil, is called once, after that time of the stream, in the process that calls Run;
	// when ctx ends, the stream stops, and what was counted until then is returned beside the error.
	Run(ctx context.Context, r engine.Request, disturb func(context.Context) error, after time.Duration) (engine.Result, error)
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
	Ports []PortInfo `json:"ports"`
}

// PortInfo is what there is to know of an open port.
type PortInfo struct {
	Name     string `json:"name"` // for people
	Kind     string `json:"kind"` // what it is and how it is attached, for people
	MAC      string `json:"mac"`
	Queues   int    `json:"queues"`
	MaxFrame int    `json:"max_frame"` // bytes, without FCS
}

// Engine is what runs trials: engine.Engine, which owns its ports.
type Engine interface {
	Run(ctx context.Context, r engine.Request, disturb func(context.Context) error, after time.Duration) (engine.Result, error)
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
	return &local{e, ready}, nil
}

type local struct {
	Engine
	ready Ready
}

func (l *local) Ready() Ready { return l.ready }

func (l *local) Close(context.Context) error { return l.Engine.Close() }
