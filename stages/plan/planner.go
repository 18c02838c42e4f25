package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/internal/value"
	"plumb/stages/state"
)

// planner is one run of Make.
type planner struct {
	ctx        context.Context
	in         Input
	opt        Options
	resources  map[string]providers.Resource
	sources    map[string]providers.DataSource
	generators map[string]providers.GeneratorType
	schemas    map[schemaKey]*schema.Resource // asked for once: a provider may make its schema anew each time
	types      map[*schema.Block]cty.Type

	hosts       *Hosts
	hostConfigs map[string]cty.Value // unmarked; nil while host blocks are being evaluated
	hostRanges  map[string]hcl.Range

	prior   map[addrs.Instance]*entry // current instances of the state
	deposed []*entry
	old     map[addrs.Resource][]*entry // both, by static address
	scope   *targeting                  // nil: everything

	lost map[addrs.Instance]loss // found by earlier passes

	mu       sync.Mutex // guards what follows
	removals map[*entry]providers.RemovalResult
	diags    hcl.Diagnostics
	badHosts map[string]bool
	cut      map[string]error // hosts that cannot be reached: the bad ones that do not keep the others from being planned
}

// schemaKey names a resource type or data source.
type schemaKey struct {
	mode addrs.Mode
	typ  string
}

// entry is an instance of the state, as recorded and as found.
type entry struct {
	inst      *state.Instance
	schema    *schema.Resource
	typ       providers.Resource
	recorded  cty.Value // unmarked
	current   cty.Value // unmarked; recorded where it was not read
	sensitive [][]string
	unread    bool // could not be read: nothing can be planned for it
	differs   bool // current is not recorded
}

func (e *entry) gone() bool { return e.current.IsNull() }

// lineage is the testbed's mark; "" before there is a state.
func (p *planner) lineage() string {
	if p.in.Prior == nil {
		return ""
	}
	return p.in.Prior.Lineage
}

func (p *planner) mark(a addrs.Instance) providers.Mark {
	return providers.Mark{Testbed: p.lineage(), Address: a.String()}
}

// typeOf is the implied type of a block, kept: it is asked for each instance.
func (p *planner) typeOf(b *schema.Block) cty.Type {
	p.mu.Lock()
	defer p.mu.Unlock()
	ty, ok := p.types[b]
	if !ok {
		ty = b.ImpliedType()
		p.types[b] = ty
	}
	return ty
}

func (p *planner) report(diags ...*hcl.Diagnostic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.diags = append(p.diags, diags...)
}

func errorAt(at *hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at}
}

// host opens a host. nil: it cannot be had, which has been reported once, or its address is not known yet.
func (p *planner) host(name string) providers.Host {
	if name == "" || p.hostConfigs == nil {
		return nil
	}
	cfg, ok := p.hostConfigs[name]
	if !ok {
		p.hostError(name, fmt.Errorf("neither the configuration nor the state says what host %s is", name))
		return nil
	}
	if !cfg.IsWhollyKnown() {
		return nil // deferred: opened by apply, just before first use
	}
	if p.isCut(name) {
		return nil
	}
	h, err := p.hosts.Get(p.ctx, name, cfg, p.other)
	if err != nil {
		p.hostError(name, err)
		return nil
	}
	return h
}

// other opens a host that another one is reached through.
func (p *planner) other(ctx context.Context, name string) (providers.Host, error) {
	cfg, ok := p.hostConfigs[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("neither the configuration nor the state says what host %s is", name)
	case !cfg.IsWhollyKnown():
		return nil, fmt.Errorf("where host %s is is not known yet", name)
	}
	return p.hosts.Get(ctx, name, cfg, p.other)
}

// hostError reports what is wrong with a host, once for each host.
func (p *planner) hostError(name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.badHosts[name] {
		return
	}
	p.badHosts[name] = true
	if errors.Is(err, providers.ErrUnreachable) {
		p.cut[name] = err
		return
	}
	d := errorAt(nil, "Host cannot be used", "host.%s: %s. Nothing on this host can be planned.", name, err)
	if r, ok := p.hostRanges[name]; ok {
		d.Subject = r.Ptr()
	}
	p.diags = append(p.diags, d)
}

func (p *planner) bad(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.badHosts[name]
}

// facts is eval.Inputs.Facts.
func (p *planner) facts(name string) (cty.Value, hcl.Diagnostics) {
	h := p.host(name)
	if h == nil {
		return cty.NilVal, nil
	}
	f, err := h.Facts(p.ctx)
	if err != nil {
		p.hostError(name, err)
		return cty.NilVal, nil
	}
	return f.Value, nil
}

// loadHosts evaluates the host blocks and adds those that only the state knows.
func (p *planner) loadHosts(ev *eval.Evaluator) {
	configs, ranges := map[string]cty.Value{}, map[string]hcl.Range{}
	if ev != nil {
		hosts, diags := ev.Hosts()
		p.report(diags...)
		for name, h := range hosts {
			configs[name], _ = h.Config.UnmarkDeep()
			ranges[name] = h.Range
		}
	}
	if p.in.Prior != nil && p.in.Set.HostSchema != nil {
		for name, h := range p.in.Prior.Hosts {
			if _, ok := configs[name]; ok {
				continue
			}
			v, err := value.Decode(h.Config, p.typeOf(p.in.Set.HostSchema))
			if err != nil {
				p.report(errorAt(nil, "State cannot be used", "The state's record of host %s: %s.", name, err))
				continue
			}
			configs[name] = v
		}
	}
	p.hostRanges, p.hostConfigs = ranges, configs
}

// loadPrior decodes the instances of the state.
func (p *planner) loadPrior() {
	p.prior, p.old = map[addrs.Instance]*entry{}, map[addrs.Resource][]*entry{}
	if p.in.Prior == nil {
		return
	}
	for _, i := range p.in.Prior.Instances {
		typ := p.resources[i.Addr.Resource.Type]
		if typ == nil {
			p.report(errorAt(nil, "Unknown resource type in the state", "The state has %s, and this Plumb has no resource type %s. It was made by another version of Plumb, which has to destroy it.",
				i.Addr, i.Addr.Resource.Type))
			continue
		}
		sch := p.schemaOf(i.Addr.Resource)
		if i.SchemaVersion > sch.Version {
			p.report(errorAt(nil, "State of a newer Plumb", "The state has %s with schema version %d; this Plumb knows versions up to %d. Use the Plumb that wrote it, or a newer one.",
				i.Addr, i.SchemaVersion, sch.Version))
			continue
		}
		v, err := value.Decode(i.Attributes, p.typeOf(&sch.Block))
		if err != nil {
			p.report(errorAt(nil, "State cannot be used", "The state's record of %s does not fit its resource type: %s.", i.Addr, err))
			continue
		}
		e := &entry{inst: i, schema: sch, typ: typ, recorded: v, current: v, sensitive: value.Union(i.Sensitive, value.SchemaSensitive(&sch.Block, v))}
		r := i.Addr.Resource.Static()
		p.old[r] = append(p.old[r], e)
		if i.Deposed {
			p.deposed = append(p.deposed, e)
		} else {
			p.prior[i.Addr] = e
		}
	}
}

// problems turns what a provider found into diagnostics. at finds the place of a path in the configuration.
func (p *planner) problems(addr string, list []providers.Problem, at func(cty.Path) *hcl.Range) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, pr := range list {
		d := errorAt(at(pr.Path), pr.Summary, "%s", pr.Detail)
		if pr.Warning {
			d.Severity = hcl.DiagWarning
		}
		d.Extra = note{addr: addr, host: pr.Host}
		out = append(out, d)
	}
	return out
}

// note is what a diagnostic of this package carries beside its text. With a host, it is shown once for each host.
type note struct{ addr, host string }

// providerError is a diagnostic about an error of a provider.
func providerError(at *hcl.Range, doing string, a addrs.Instance, err error) *hcl.Diagnostic {
	if errors.Is(err, providers.ErrForeign) {
		return errorAt(at, "Object is not ours", "%s: %s.", a, err) // the provider says what to do about it
	}
	return errorAt(at, "Cannot "+doing+" "+a.Resource.Type, "%s: %s.", a, err)
}

// bugs reports how a provider broke the contract.
func bugs(at *hcl.Range, a addrs.Instance, list []value.Broken) hcl.Diagnostics {
	var out hcl.Diagnostics
	for _, b := range list {
		out = append(out, errorAt(at, "Bug of provider "+a.Resource.Type, "%s: %s. This is not a mistake in the configuration: please report it.", a, b))
	}
	return out
}

// configOf finds the block of a resource; nil when it is not configured.
func configOf(c *config.Config, r addrs.Resource) *config.Resource {
	if m := moduleOf(c, r.Module); m != nil {
		return m.Resources[r.Local()]
	}
	return nil
}

// moduleOf finds a module by its path, whatever its keys; nil when it is not configured.
func moduleOf(c *config.Config, a addrs.Module) *config.Module {
	if c == nil {
		return nil
	}
	m := c.Root
	for _, s := range a.Steps() {
		call := m.Calls[s.Name]
		if call == nil || call.Module == nil {
			return nil
		}
		m = call.Module
	}
	return m
}
