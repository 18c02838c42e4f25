package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	Fingerprint  string // of what is measured: a run that was interrupted is gone on with only while it is the same

	Results string // folder that results/<run>/ is made in; "": nothing is written
	Fresh   bool   // do not go on with a run that was interrupted
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

	Undo      json.RawMessage // as the state has it
	DependsOn []string        // resource addresses, in their printed form
}

// Recorder is told before a generator is opened, or a load block's load started, and after it was closed. An error of Opened stops the benchmark: what cannot be
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
// Run.Broken and Run.Unmet tell. Every generator that was opened is closed, with a context of its own.
//
// With Input.Results every trial is recorded durably as it is made, and the run is saved after each benchmark; the error also says when that fails. A run that
// did not come to its end (killed, interrupted, or a benchmark of it has an error) is gone on with by the next Measure of the same benchmarks on the same
// testbed: benchmarks that ended are kept, and of the others what was measured is kept while their definition is the same.
func Measure(ctx context.Context, in Input) (*Run, error) {
	if in.Wait == nil {
		in.Wait = wait
	}
	if in.Events == nil {
		in.Events = silent{}
	}
	if len(in.Benchmarks) == 0 {
		in.Results = "" // nothing to keep
	}
	run, j, old, err := begin(in)
	if err != nil {
		return nil, err
	}
	err = measureAll(ctx, in, run, j, old)
	return run, errors.Join(err, j.close())
}

func measureAll(ctx context.Context, in Input, run *Run, j *journal, old *account) error {
	done := true
	for i, b := range in.Benchmarks {
		if ctx.Err() != nil {
			break
		}
		r := newRunner(in, b, j, old)
		if err := r.run(ctx); err != nil {
			return fmt.Errorf("record the trials: %w", err)
		}
		done = done && r.out.Error == ""
		run.Hosts = addFacts(run.Hosts, r.facts)
		run.Benchmarks = append(run.Benchmarks, r.out)
		run.Ended = in.Now()
		in.Events.End(r.out)
		if i < len(in.Benchmarks)-1 {
			if err := save(in, run); err != nil {
				return err
			}
		}
	}
	run.Ended = in.Now()
	run.Done = done && len(run.Benchmarks) == len(in.Benchmarks)
	if err := save(in, run); err != nil {
		return err
	}
	return ctx.Err()
}

func save(in Input, run *Run) error {
	if in.Results == "" {
		return nil
	}
	if _, err := Save(in.Results, run, in.Files); err != nil {
		return fmt.Errorf("save results: %w", err)
	}
	return nil
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

// Sweep ends what generators and loads of the testbed were left by a Plumb that was killed: those that a Recorder was told of and that were not
// closed. closed is called for each that was swept.
func Sweep(ctx context.Context, set *providers.Set, host func(context.Context, string) (providers.Host, error), testbed string, open []Open, closed func(Open) error) error {
	for _, o := range open {
		var g sweeper = set.Loader
		if o.Type != loadType {
			g = generatorType(set, o.Type)
		}
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

// sweeper is what generator types and the Loader have in common.
type sweeper interface {
	Sweep(ctx context.Context, host providers.Host, testbed string) error
}

// Open is a generator that was opened, or a load that was started (Type "load"), as the Recorder was told.
type Open struct{ Type, Host string }

func generatorType(set *providers.Set, typ string) providers.GeneratorType {
	for _, g := range set.Generators {
		if g.Schema().Type == typ {
			return g
		}
	}
	return nil
}
