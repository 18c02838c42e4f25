// Command fakeworker is a worker whose engine sends nothing: a trial takes until it is cancelled, unless it is of a number of frames.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"plumb/providers"
	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/worker"
)

type silent struct{}

func (silent) Run(ctx context.Context, r engine.Request, _ func(context.Context) error, _ time.Duration) (engine.Result, error) {
	res := engine.Result{Directions: []providers.Direction{{Sent: r.Frames, Received: r.Frames}}}
	if r.Frames > 0 {
		return res, nil
	}
	<-ctx.Done()
	return res, ctx.Err()
}

func (silent) Close() error { return nil }

func open(_ context.Context, o worker.Open) (worker.Engine, worker.Ready, error) {
	ready := worker.Ready{}
	for _, p := range o.Ports {
		if p.Interface == "missing" {
			return nil, ready, fmt.Errorf("there is no interface %s", p.Interface)
		}
		if p.Interface == "panic" {
			panic("as asked")
		}
		ready.Ports = append(ready.Ports, worker.PortInfo{Name: p.Interface, Queues: 1})
	}
	return silent{}, ready, nil
}

func main() {
	if len(os.Args) != 4 || os.Args[1] != "loadgen" || os.Args[2] != "-worker" {
		fmt.Fprintln(os.Stderr, "usage: fakeworker loadgen -worker SOCKET")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := worker.Listen(ctx, os.Args[3], open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
