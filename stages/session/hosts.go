package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

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

// Snapshot is the fingerprint of every host of the configuration, else of this machine, by host name.
func (s *Session) Snapshot(ctx context.Context) (map[string][]string, hcl.Diagnostics) {
	hosts := plan.NewHosts(s.Providers.OpenHost)
	defer hosts.Close()
	open := s.hostOpener(hosts)
	configs := map[string]cty.Value{}
	if s.Config != nil {
		for name := range s.Config.Root.Hosts {
			v, ok := s.hostConfig(name)
			if !ok {
				continue
			}
			configs[name] = v
		}
	}
	if len(configs) == 0 {
		configs[LocalHost] = cty.NullVal(s.Providers.HostSchema.ImpliedType())
	}
	out := make(map[string][]string, len(configs))
	results := make(chan struct {
		name  string
		lines []string
	}, len(configs))
	g, ctx := errgroup.WithContext(ctx)
	for name, config := range configs {
		g.Go(func() error {
			h, err := hosts.Get(ctx, name, config, open)
			if err != nil {
				return fmt.Errorf("host %s: %w", name, err)
			}
			lines, err := s.Providers.Snapshot(ctx, h)
			if err != nil {
				return fmt.Errorf("snapshot of host %s: %w", name, err)
			}
			results <- struct {
				name  string
				lines []string
			}{name, lines}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errorDiag("No snapshot", err)
	}
	close(results)
	for r := range results {
		out[r.name] = r.lines
	}
	return out, nil
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
