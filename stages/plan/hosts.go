package plan

import (
	"context"
	"errors"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// Hosts opens each host once and keeps it for the length of a run. It is safe for concurrent use.
type Hosts struct {
	open Opener
	mu   sync.Mutex
	m    map[string]*openHost
}

type openHost struct {
	done chan struct{}
	host providers.Host
	err  error
}

// Opener is Set.OpenHost.
type Opener = func(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Host, error)

// NewHosts makes an empty collection; open is Set.OpenHost.
func NewHosts(open Opener) *Hosts {
	return &Hosts{open: open, m: map[string]*openHost{}}
}

// Get returns the host, opening it the first time. Those who ask meanwhile wait for it. A host that could not be opened stays so: the error is
// kept and given to all. others gives the hosts that this one is reached through.
func (h *Hosts) Get(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Host, error) {
	h.mu.Lock()
	o, ok := h.m[name]
	if !ok {
		o = &openHost{done: make(chan struct{})}
		h.m[name] = o
	}
	h.mu.Unlock()
	if !ok {
		defer close(o.done)
		o.host, o.err = h.open(ctx, name, config, others)
		return o.host, o.err
	}
	select {
	case <-o.done:
		return o.host, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Reads is what reading each open host cost so far.
func (h *Hosts) Reads() map[string]providers.Reads {
	out := map[string]providers.Reads{}
	for name, host := range h.opened() {
		out[name] = host.Reads()
	}
	return out
}

// Close closes all hosts.
func (h *Hosts) Close() error {
	var errs []error
	for _, host := range h.opened() {
		errs = append(errs, host.Close())
	}
	return errors.Join(errs...)
}

func (h *Hosts) opened() map[string]providers.Host {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]providers.Host{}
	for name, o := range h.m {
		select {
		case <-o.done:
			if o.err == nil && o.host != nil {
				out[name] = o.host
			}
		default:
		}
	}
	return out
}
