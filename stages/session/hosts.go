package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sync/errgroup"

	"plumb/lang/eval"
	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/plan"
)

// LocalHost is the name of this machine where no configuration names one.
const LocalHost = "localhost"

// hostConfig evaluates a host block without looking at any resource; marks are dropped.
func (s *Session) hostConfig(name string) (cty.Value, bool) {
	if s.Config == nil || s.Config.Root.Hosts[name] == nil {
		return cty.NilVal, false
	}
	ev, diags := eval.New(s.inputs())
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	h, diags := ev.Host(name)
	if diags.HasErrors() || h == nil {
		return cty.NilVal, false
	}
	v, _ := h.Config.UnmarkDeep()
	return v, true
}

// hostOpener opens hosts by the configuration, else by what the state has.
func (s *Session) hostOpener(hosts *plan.Hosts) func(context.Context, string) (providers.Host, error) {
	var open providers.Hosts
	open = func(ctx context.Context, name string) (providers.Host, error) {
		if v, ok := s.hostConfig(name); ok {
			return hosts.Get(ctx, name, v, open)
		}
		st, err := s.State()
		if err != nil {
			return nil, err
		}
		if st != nil {
			if h, ok := st.Hosts[name]; ok {
				v, err := value.Decode(h.Config, s.Providers.HostSchema.ImpliedType())
				if err != nil {
					return nil, fmt.Errorf("host %s in the state: %w", name, err)
				}
				return hosts.Get(ctx, name, v, open)
			}
		}
		return nil, fmt.Errorf("neither the configuration nor the state has a host %s", name)
	}
	return open
}

// onHosts does something on every host of the configuration at once, or on this machine where there is none. One that fails does not keep the others from it: its error is in the second map.
func onHosts[T any](ctx context.Context, s *Session, do func(context.Context, providers.Host) (T, error)) (map[string]T, map[string]error) {
	hosts := plan.NewHosts(s.Providers.OpenHost)
	defer hosts.Close()
	open := s.hostOpener(hosts)
	configs := map[string]cty.Value{}
	done, failed := map[string]T{}, map[string]error{}
	if s.Config != nil {
		for name := range s.Config.Root.Hosts {
			if v, ok := s.hostConfig(name); ok {
				configs[name] = v
			} else {
				failed[name] = errors.New("its block has no value before resources are made")
			}
		}
	}
	if len(configs)+len(failed) == 0 {
		configs[LocalHost] = cty.NullVal(s.Providers.HostSchema.ImpliedType())
	}
	var mu sync.Mutex
	var g errgroup.Group
	for name, config := range configs {
		g.Go(func() error {
			var v T
			h, err := hosts.Get(ctx, name, config, open)
			if err == nil {
				v, err = do(ctx, h)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[name] = err
			} else {
				done[name] = v
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in failed
	return done, failed
}

// Snapshot is the fingerprint of every host of the configuration, else of this machine, by host name.
func (s *Session) Snapshot(ctx context.Context) (map[string][]string, hcl.Diagnostics) {
	snap, failed := onHosts(ctx, s, s.Providers.Snapshot)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		return nil, errorDiag("No snapshot", fmt.Errorf("host %s: %w", name, failed[name]))
	}
	return snap, nil
}

// Examination is what was found on one host.
type Examination struct {
	Findings []providers.Finding `json:"findings,omitempty"`
	Error    string              `json:"error,omitempty"` // why there are none
}

// Examine holds every host of the configuration, else this machine, against what a DPDK testbed needs, by host name. A host that cannot be examined has its error and does not keep the
// others from it.
func (s *Session) Examine(ctx context.Context) map[string]Examination {
	found, failed := onHosts(ctx, s, s.Providers.Examine)
	out := map[string]Examination{}
	for name, f := range found {
		out[name] = Examination{Findings: f}
	}
	for name, err := range failed {
		out[name] = Examination{Error: err.Error()}
	}
	return out
}

// PrintSnapshot writes a snapshot as JSON.
func PrintSnapshot(w io.Writer, snap map[string][]string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(snap)
}

// WriteSnapshot writes a snapshot to a file.
func WriteSnapshot(path string, snap map[string][]string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	if err := PrintSnapshot(f, snap); err != nil {
		f.Close()
		return fmt.Errorf("write snapshot: %w", err)
	}
	return f.Close()
}

// ReadSnapshot reads a file that WriteSnapshot wrote.
func ReadSnapshot(path string) (map[string][]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	var snap map[string][]string
	if err := json.Unmarshal(data, &snap); err != nil {
		return nil, fmt.Errorf("%s is not a snapshot: %w", path, err)
	}
	return snap, nil
}
