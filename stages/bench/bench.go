package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/providers"
)

// FormatVersion of run.json: "major.minor"; a minor adds only.
const FormatVersion = "1.0"

// Input is what a run of benchmarks needs.
type Input struct {
	Benchmarks []*eval.Benchmark // run in this order
	Generators []*eval.Generator // at least those that the benchmarks name
	Instances  []Instance        // the applied testbed
	Set        *providers.Set
	// Host gives an open host by name; the caller closes it.
	Host func(ctx context.Context, name string) (providers.Host, error)
	// Recorder keeps which generators are open, so that a later run can sweep after a kill.
	Recorder Recorder
	// Require evaluates one require block; self is as Self says. Diagnostics with errors mean that it could not be evaluated.
	Require func(b *eval.Benchmark, rule *config.CheckRule, self cty.Value) (holds bool, message string, diags hcl.Diagnostics)
	Events  Events // nil: nobody watches
	Now     func() time.Time
	// Wait waits for the settle phase; it returns early with the context's error. nil: a timer.
	Wait func(context.Context, time.Duration) error

	PlumbVersion string
	Testbed      string // lineage of the state
	Serial       uint64 // of the state that is measured

	Results string // folder that results/<run>/ is made in; "": nothing is written
	Files   Files  // goes into the results folder
}

// Files is what a results folder keeps beside the measurements. The caller has taken secrets out.
type Files struct {
	Sources map[string][]byte // the configuration: name to content
	Plan    []byte            // plan.json; nil: none
}

// Instance is an applied resource instance.
type Instance struct {
	Addr  addrs.Instance
	Host  string
	Value cty.Value // known; marks are dropped
}

// Recorder is told before a generator is opened and after it was closed. An error of Opened stops the benchmark: what cannot be
// recorded is not started.
type Recorder interface {
	Opened(generatorType, host string) error
	Closed(generatorType, host string) error
}

// Events watches a run. Methods are called one at a time.
type Events interface {
	Begin(benchmark string, trials int) // trials 0: it depends on what is found
	Step(benchmark, text string)        // what happens now, one line
	Trial(benchmark string, t Trial, counted, trials int)
	End(b Benchmark)
}

// Measure runs the benchmarks one after the other and returns what they measured, also when the context ends in between: then what was
// measured is kept and the error is the context's. A benchmark that cannot be run says so in Benchmark.Error, and the next one is tried;
// Run.Broken and Run.Unmet tell. Every generator that was opened is closed, with a context of its own. With Input.Results the run is
// saved after each benchmark; the error also says when that fails.
func Measure(ctx context.Context, in Input) (*Run, error) {
	if in.Wait == nil {
		in.Wait = wait
	}
	if in.Events == nil {
		in.Events = silent{}
	}
	run := &Run{Format: FormatVersion, ID: runID(in), PlumbVersion: in.PlumbVersion, Started: in.Now(), Testbed: in.Testbed, Serial: in.Serial,
		Hosts: []HostFacts{}, Benchmarks: []Benchmark{}}
	for _, b := range in.Benchmarks {
		if ctx.Err() != nil {
			break
		}
		r := &runner{in: in, b: b, out: Benchmark{Addr: b.Addr.String(), Method: b.Method, Generator: b.Generator.String(),
			Trials: []Trial{}, Summary: []Summary{}, Requires: []Require{}}}
		r.run(ctx)
		run.Hosts = addFacts(run.Hosts, r.facts)
		run.Benchmarks = append(run.Benchmarks, r.out)
		run.Ended = in.Now()
		in.Events.End(r.out)
		if in.Results != "" {
			if _, err := Save(in.Results, run, in.Files); err != nil {
				return run, fmt.Errorf("save results: %w", err)
			}
		}
	}
	run.Ended = in.Now()
	return run, ctx.Err()
}

// Broken lists the benchmarks that an infrastructure error ended.
func (r *Run) Broken() []string {
	var out []string
	for _, b := range r.Benchmarks {
		if b.Error != "" {
			out = append(out, b.Addr+": "+b.Error)
		}
	}
	return out
}

// Unmet lists the require blocks that do not hold: "benchmark.pvp: message (file:line)".
func (r *Run) Unmet() []string {
	var out []string
	for _, b := range r.Benchmarks {
		for _, q := range b.Requires {
			if !q.Holds {
				out = append(out, fmt.Sprintf("%s: %s (%s)", b.Addr, q.Message, q.Where))
			}
		}
	}
	return out
}

// runID is the time with a few digits that tell runs of one second apart. It sorts by time.
func runID(in Input) string {
	t := in.Now().UTC()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", in.Testbed, in.Serial, t.UnixNano()))
	return t.Format("20060102T150405Z") + "-" + hex.EncodeToString(sum[:2])
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type silent struct{}

func (silent) Begin(string, int)             {}
func (silent) Step(string, string)           {}
func (silent) Trial(string, Trial, int, int) {}
func (silent) End(Benchmark)                 {}

// Sweep ends what generators of the testbed were left by a Plumb that was killed: those that a Recorder was told of and that were not
// closed. closed is called for each that was swept.
func Sweep(ctx context.Context, set *providers.Set, host func(context.Context, string) (providers.Host, error), testbed string, open []Open, closed func(Open) error) error {
	for _, o := range open {
		g := generatorType(set, o.Type)
		if g == nil {
			return fmt.Errorf("sweep generator of type %s: there is no such type", o.Type)
		}
		var h providers.Host
		if o.Host != "" {
			var err error
			if h, err = host(ctx, o.Host); err != nil {
				return fmt.Errorf("sweep generator of type %s on %s: %w", o.Type, o.Host, err)
			}
		}
		if err := g.Sweep(ctx, h, testbed); err != nil {
			return fmt.Errorf("sweep generator of type %s on %s: %w", o.Type, o.Host, err)
		}
		if err := closed(o); err != nil {
			return err
		}
	}
	return nil
}

// Open is a generator that was opened, as the Recorder was told.
type Open struct{ Type, Host string }

func generatorType(set *providers.Set, typ string) providers.GeneratorType {
	for _, g := range set.Generators {
		if g.Schema().Type == typ {
			return g
		}
	}
	return nil
}
