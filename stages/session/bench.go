package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/diagfmt"
	"plumb/lang/eval"
	"plumb/providers"
	"plumb/stages/apply"
	"plumb/stages/bench"
	"plumb/stages/internal/value"
	"plumb/stages/plan"
	"plumb/stages/report"
	"plumb/stages/state"
)

// ResultsDir is the folder in the root module's folder that runs are kept in.
const ResultsDir = "results"

// BenchArgs say what is measured.
type BenchArgs struct {
	Names  []string // addresses or names of benchmarks; none: all
	Events bench.Events
	Plan   []byte // the plan that was applied, as JSON without secrets; nil: none
	Fresh  bool   // do not go on with a run that was interrupted
}

// Measured is what a bench left.
type Measured struct {
	Run   *bench.Run
	Dir   string   // its folder
	Files []string // the reports in it
}

// HasBenchmarks says whether the configuration has any.
func (s *Session) HasBenchmarks() bool {
	if s.Config == nil {
		return false
	}
	var any func(m *config.Module) bool
	any = func(m *config.Module) bool {
		if len(m.Benchmarks) > 0 {
			return true
		}
		for _, c := range m.Calls {
			if c.Module != nil && any(c.Module) {
				return true
			}
		}
		return false
	}
	return any(s.Config.Root)
}

// Bench runs benchmarks on the applied testbed, keeps the results and writes the reports; a run that was interrupted is gone on with. The state stays locked meanwhile; what
// was measured is returned also beside errors.
func (s *Session) Bench(ctx context.Context, as *apply.Session, args BenchArgs) (*Measured, hcl.Diagnostics) {
	if len(as.State.Instances) == 0 && len(s.Config.Root.Resources) > 0 {
		return nil, errorDiag("Nothing has been applied", fmt.Errorf("the state of this testbed is empty: run plumb apply first"))
	}
	applied, instances, err := s.applied(as.State)
	if err != nil {
		return nil, errorDiag("State does not fit this Plumb", err)
	}
	hosts := plan.NewHosts(s.Providers.OpenHost)
	defer hosts.Close()
	open := s.hostOpener(hosts)
	ev, diags := s.stateEvaluator(ctx, applied, open)
	if diags.HasErrors() {
		return nil, diags
	}
	benchmarks, more := ev.Benchmarks()
	diags = append(diags, more...)
	generators, more := ev.Generators()
	diags = append(diags, more...)
	if diags.HasErrors() {
		return nil, diags
	}
	if benchmarks, err = choose(benchmarks, args.Names); err != nil {
		return nil, append(diags, errorDiag("No such benchmark", err)...)
	}
	if err := s.Sweep(ctx, as, open); err != nil {
		return nil, append(diags, errorDiag("What an earlier run has left cannot be ended", err)...)
	}
	results := filepath.Join(s.Dir, ResultsDir)
	before := fingerprint(as.State)
	run, err := bench.Measure(ctx, bench.Input{
		Benchmarks: benchmarks, Generators: generators, Instances: instances, Set: &s.Providers, Host: open,
		Recorder: recorder{as}, Require: ev.EvalRequire, Events: args.Events, Now: s.Now,
		PlumbVersion: s.Version, Testbed: as.State.Lineage, Serial: as.State.Serial, Fingerprint: before, Fresh: args.Fresh,
		Results: results, Files: bench.Files{Sources: s.publicSources(), Plan: args.Plan},
	})
	if run == nil {
		return nil, append(diags, errorDiag("The benchmarks could not be run", err)...)
	}
	m := &Measured{Run: run, Dir: filepath.Join(results, run.ID)}
	if err != nil {
		diags = append(diags, errorDiag("The benchmarks did not come to their end", err)...)
	}
	if len(run.Benchmarks) == 0 {
		return m, diags
	}
	if m.Files, err = report.Write(m.Dir, run); err != nil {
		diags = append(diags, errorDiag("The reports could not be written", err)...)
	}
	return m, diags
}

// choose keeps the benchmarks that are named.
func choose(all []*eval.Benchmark, names []string) ([]*eval.Benchmark, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []*eval.Benchmark
	var have []string
	for _, b := range all {
		have = append(have, b.Addr.Name)
	}
	for _, n := range names {
		found := false
		for _, b := range all {
			if b.Addr.Name == n || b.Addr.String() == n {
				found = true
				if !slices.Contains(out, b) {
					out = append(out, b)
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no benchmark %q.%s", n, diagfmt.DidYouMean(n, have))
		}
	}
	return out, nil
}

// applied decodes the state's instances, for references and for the bench.
func (s *Session) applied(st *state.State) (map[addrs.Instance]cty.Value, []bench.Instance, error) {
	byAddr := make(map[addrs.Instance]cty.Value, len(st.Instances))
	var list []bench.Instance
	for _, i := range st.Instances {
		if i.Deposed {
			continue
		}
		sch := s.Catalog.Resources[i.Addr.Resource.Type]
		if sch == nil {
			return nil, nil, fmt.Errorf("%s: there is no resource type %q", i.Addr, i.Addr.Resource.Type)
		}
		v, err := value.Decode(i.Attributes, sch.Block.ImpliedType())
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", i.Addr, err)
		}
		byAddr[i.Addr] = v
		list = append(list, bench.Instance{Addr: i.Addr, Host: i.Host, Value: v, Undo: i.Undo, DependsOn: i.DependsOn})
	}
	return byAddr, list, nil
}

// fingerprint is a digest of what is applied: a run that was interrupted is gone on with only while it is the same. The serial would not do: it grows with every
// generator that is opened, and the id of the applied plan would not: applying without changes gives it another one.
func fingerprint(st *state.State) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", st.Lineage)
	for _, i := range st.Instances {
		fmt.Fprintf(sum, "%q %q %q %t\n", i.Addr, i.Host, i.Attributes, i.Deposed)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// stateEvaluator evaluates the configuration with references seeing the state, and facts read from the hosts.
func (s *Session) stateEvaluator(ctx context.Context, applied map[addrs.Instance]cty.Value, open func(context.Context, string) (providers.Host, error)) (*eval.Evaluator, hcl.Diagnostics) {
	in := s.inputs()
	in.Resolve = func(a addrs.Instance) (cty.Value, hcl.Diagnostics) {
		if v, ok := applied[a]; ok {
			return v, nil
		}
		return cty.NilVal, errorDiag("Not applied yet", fmt.Errorf("%s is not in the state: run plumb apply first", a))
	}
	in.Facts = func(name string) (cty.Value, hcl.Diagnostics) {
		h, err := open(ctx, name)
		if err != nil {
			return cty.NilVal, errorDiag("Host "+name+" cannot be opened", err)
		}
		f, err := h.Facts(ctx)
		if err != nil {
			return cty.NilVal, errorDiag("Host "+name+" cannot be examined", err)
		}
		return f.Value, nil
	}
	return eval.New(in)
}

// Sweep ends what generators and loads were left by a Plumb that was killed while it measured.
func (s *Session) Sweep(ctx context.Context, as *apply.Session, open func(context.Context, string) (providers.Host, error)) error {
	var left []bench.Open
	for _, g := range as.State.Generators {
		left = append(left, bench.Open{Type: g.Type, Host: g.Host})
	}
	r := recorder{as}
	return bench.Sweep(ctx, &s.Providers, open, as.State.Lineage, left, func(o bench.Open) error { return r.Closed(o.Type, o.Host) })
}

// SweepAll is Sweep with hosts of its own.
func (s *Session) SweepAll(ctx context.Context, as *apply.Session) error {
	if len(as.State.Generators) == 0 {
		return nil
	}
	hosts := plan.NewHosts(s.Providers.OpenHost)
	defer hosts.Close()
	return s.Sweep(ctx, as, s.hostOpener(hosts))
}

// recorder keeps open generators in the state.
type recorder struct{ as *apply.Session }

func (r recorder) Opened(typ, host string) error {
	return r.change(func(gs []state.OpenGenerator) []state.OpenGenerator {
		return append(slices.Clone(gs), state.OpenGenerator{Type: typ, Host: host})
	})
}

func (r recorder) Closed(typ, host string) error {
	return r.change(func(gs []state.OpenGenerator) []state.OpenGenerator {
		i := slices.Index(gs, state.OpenGenerator{Type: typ, Host: host})
		if i < 0 {
			return gs
		}
		return slices.Delete(slices.Clone(gs), i, i+1)
	})
}

func (r recorder) change(f func([]state.OpenGenerator) []state.OpenGenerator) error {
	st := *r.as.State
	st.Generators = f(st.Generators)
	return r.as.Save(&st)
}
