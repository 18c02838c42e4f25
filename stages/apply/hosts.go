package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/state"
)

// hosts opens each host once, just before its first use.
type hosts struct {
	open func(ctx context.Context, name string, config cty.Value, others providers.Hosts) (providers.Host, error)
	own  bool // the run closes them

	mu      sync.Mutex
	entries map[string]*hostEntry
}

type hostEntry struct {
	mu   sync.Mutex
	host providers.Host
}

func (h *hosts) entry(name string) *hostEntry {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entries[name]
	if e == nil {
		e = &hostEntry{}
		h.entries[name] = e
	}
	return e
}

func (h *hosts) close() {
	if !h.own {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.entries {
		if e.host != nil {
			e.host.Close()
		}
	}
}

// host gives the open host; nil for "". A host whose block became known only now is recorded in the journal before anything is done on it.
func (r *runner) host(ctx context.Context, name string) (providers.Host, error) {
	if name == "" {
		return nil, nil
	}
	e := r.hosts.entry(name)
	e.mu.Lock()
	open := e.host
	e.mu.Unlock()
	if open != nil {
		return open, nil
	}
	config, err := r.hostConfig(name)
	if err != nil {
		return nil, err
	}
	return r.openHost(ctx, e, name, config)
}

func (r *runner) openHost(ctx context.Context, e *hostEntry, name string, config cty.Value) (providers.Host, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.host != nil {
		return e.host, nil
	}
	if err := r.recordHost(name, config); err != nil {
		return nil, err
	}
	h, err := r.hosts.open(ctx, name, config, r.host)
	if err != nil {
		return nil, fmt.Errorf("open host %s: %w", name, err)
	}
	e.host = h
	return h, nil
}

// hostConfig is the value of a host block, or of the one that the state has.
func (r *runner) hostConfig(name string) (cty.Value, error) {
	if r.eval != nil {
		h, diags := r.eval.Host(name)
		if diags.HasErrors() {
			return cty.NilVal, fmt.Errorf("host %s: %w", name, diags)
		}
		if h != nil {
			v, _ := h.Config.UnmarkDeep()
			if !v.IsWhollyKnown() {
				return cty.NilVal, fmt.Errorf("host %s: where it is was not known until now and still is not; add depends_on to what makes it", name)
			}
			return v, nil
		}
	}
	r.mu.Lock()
	h, ok := r.draft.Base().Hosts[name]
	r.mu.Unlock()
	if !ok {
		return cty.NilVal, fmt.Errorf("host %s: neither the configuration nor the state says where it is", name)
	}
	v, err := value.Decode(h.Config, r.in.Providers.HostSchema.ImpliedType())
	if err != nil {
		return cty.NilVal, fmt.Errorf("host %s in the state: %w", name, err)
	}
	return v, nil
}

func (r *runner) recordHost(name string, config cty.Value) error {
	e, err := r.encodeHost(config)
	if err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	r.mu.Lock()
	known := string(r.draft.Base().Hosts[name].Config) == string(e.JSON)
	r.draft.Base().Hosts[name] = state.Host{Config: e.JSON}
	r.mu.Unlock()
	if known || r.journal == nil {
		return nil
	}
	return r.journal.Host(name, json.RawMessage(e.JSON))
}

// encodeHost is a host block as the state keeps it: without passwords, which a destroy takes from the configuration.
func (r *runner) encodeHost(config cty.Value) (value.Encoded, error) {
	secret := value.SchemaSensitive(r.in.Providers.HostSchema, config)
	public, err := cty.Transform(config, func(p cty.Path, v cty.Value) (cty.Value, error) {
		for _, s := range secret {
			if slices.Equal(s, value.PathOf(p)) {
				return cty.NullVal(v.Type()), nil
			}
		}
		return v, nil
	})
	if err != nil {
		return value.Encoded{}, err
	}
	return value.Encode(public, r.in.Providers.HostSchema.ImpliedType())
}

// setDown notes that a host went out of reach: its other steps are skipped instead of waiting for it one by one.
func (r *runner) setDown(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down[name] = true
}

func (r *runner) isDown(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return name != "" && r.down[name]
}

// facts is what the evaluator asks for host.NAME.facts.
func (r *runner) facts(ctx context.Context, name string) (cty.Value, hcl.Diagnostics) {
	config, err := r.hostConfig(name)
	if err == nil {
		var h providers.Host
		if h, err = r.openHost(ctx, r.hosts.entry(name), name, config); err == nil {
			var f *providers.Facts
			if f, err = h.Facts(ctx); err == nil {
				return f.Value, nil
			}
		}
	}
	return cty.NilVal, errorDiag("Host "+name+" cannot be examined", sentence(err), nil)
}

// keepHosts leaves in the state the hosts as the configuration has them now. Those that it does not name stay as long as the state has any
// instance: one of them may be what another is reached through.
func (r *runner) keepHosts(empty bool) {
	base := r.draft.Base()
	named := map[string]bool{}
	if r.eval != nil && r.in.Config != nil && !r.in.Plan.Destroy {
		for name := range r.in.Config.Root.Hosts {
			config, err := r.hostConfig(name)
			if err != nil {
				continue // deferred, and nothing was done on it
			}
			if e, err := r.encodeHost(config); err == nil {
				named[name] = true
				base.Hosts[name] = state.Host{Config: e.JSON}
			}
		}
	}
	for name := range base.Hosts {
		if empty && !named[name] {
			delete(base.Hosts, name)
		}
	}
}

// sentence makes an error's text a sentence for people.
func sentence(err error) string {
	if err == nil {
		err = errors.New("unknown error")
	}
	s := []rune(err.Error())
	if len(s) == 0 {
		return ""
	}
	if s[0] >= 'a' && s[0] <= 'z' {
		s[0] -= 'a' - 'A'
	}
	out := string(s)
	switch s[len(s)-1] {
	case '.', '!', '?', '\n':
		return out
	}
	return out + "."
}
