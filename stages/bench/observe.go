package bench

import (
	"context"
	"fmt"

	"plumb/providers"
)

// observe starts all watchers and returns how to end them. One that fails costs its observations, not the measurement; a note says so.
func (r *runner) observe(ctx context.Context) func(context.Context) []providers.Observation {
	if !r.set.observe {
		return func(context.Context) []providers.Observation { return nil }
	}
	type running struct {
		watcher
		finish func(context.Context) ([]providers.Observation, error)
	}
	var started []running
	failed := func(w watcher, err error) {
		if ctx.Err() == nil {
			r.note("Not observed: %s on %s: %v.", w.name, w.host.Name(), err)
		}
	}
	for _, w := range r.bed.watchers {
		finish, err := w.observer.Observe(ctx, w.host, w.of)
		if err != nil {
			failed(w, err)
			continue
		}
		started = append(started, running{w, finish})
	}
	return func(ctx context.Context) []providers.Observation {
		var out []providers.Observation
		for _, s := range started {
			got, err := s.finish(ctx)
			if err != nil {
				failed(s.watcher, err)
			}
			out = append(out, got...)
		}
		return out
	}
}

// facts describes the hosts that take part.
func (d *bed) facts(ctx context.Context) ([]HostFacts, error) {
	var out []HostFacts
	for _, h := range d.hosts {
		f, err := h.Facts(ctx)
		if err != nil {
			return nil, fmt.Errorf("examine host %s: %w", h.Name(), err)
		}
		out = append(out, HostFacts{Name: h.Name(), Rows: factRows(f)})
	}
	return out, nil
}

// addFacts adds hosts that are not there yet.
func addFacts(to, more []HostFacts) []HostFacts {
	for _, f := range more {
		known := false
		for _, have := range to {
			known = known || have.Name == f.Name
		}
		if !known {
			to = append(to, f)
		}
	}
	return to
}
