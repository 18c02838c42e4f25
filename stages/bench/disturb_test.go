package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// log is what was done to the testbed, in order.
type log struct{ lines []string }

func (l *log) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// restartable is a type that can be reset; its counters start from zero then.
type restartable struct {
	plainType
	log  *log
	fail error
}

func (r restartable) Resets() []string { return []string{"restart", "kill"} }
func (r restartable) Reset(_ context.Context, h providers.Host, mark providers.Mark, of providers.Subject, kind string) error {
	r.log.add("reset %s on %s by %s, marked %s of %s", of.Addr, h.Name(), kind, mark.Address, mark.Testbed)
	for _, c := range r.counters {
		*c = providers.Counters{Drops: map[string]uint64{}, Through: c.Through, LinkResets: c.LinkResets + 2}
	}
	return r.fail
}

// dependant is a type that loses its effect by something.
type dependant struct {
	plainType
	log  *log
	lost []schema.Loss
	fail error
}

func (d dependant) Schema() *schema.Resource { return &schema.Resource{Type: d.typ, LostOn: d.lost} }
func (d dependant) Apply(_ context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	d.log.add("apply %s again %t, same %t, undo %s", req.Mark.Address, req.Reapply, req.Prior.RawEquals(req.Planned), req.Undo)
	return providers.ApplyResult{New: req.Planned}, d.fail
}

// resetBench is a benchmark that resets switch.sw, which takes flows away and with them what stands on those.
func resetBench(t *testing.T, m *model, l *log) (Input, *restartable, *dependant) {
	t.Helper()
	in, _ := bench(t, m, nil, nil, map[string]cty.Value{"target": cty.StringVal("switch.sw"), "kind": cty.StringVal("kill"), "throughput": cty.StringVal("1k"), "duration": cty.StringVal("10s")})
	in.Benchmarks[0].Method = "reset"
	m.able.Outage = true
	sw := &restartable{plainType: plainType{modelType{m, "switch"}}, log: l}
	flows := &dependant{plainType: plainType{modelType{m, "flows"}}, log: l, lost: []schema.Loss{{Type: "switch", Cost: schema.ServiceRestart}}}
	above := &dependant{plainType: plainType{modelType{m, "above"}}, log: l, lost: []schema.Loss{{Type: "flows", Cost: schema.Replace}}}
	never := &dependant{plainType: plainType{modelType{m, "never"}}, log: l, lost: []schema.Loss{{Type: "switch", Cost: schema.Replace}}}
	in.Set.Resources = append(in.Set.Resources[:2], sw, flows, above, never)
	in.Instances = append([]Instance{
		{Addr: addr("above", "a"), Host: "dut", Value: cty.EmptyObjectVal, DependsOn: []string{"flows.b"}},
		{Addr: addr("flows", "b"), Host: "dut", Value: cty.EmptyObjectVal, Undo: []byte(`"u"`)},
		{Addr: addr("flows", "elsewhere"), Host: "other", Value: cty.EmptyObjectVal},
		{Addr: addr("never", "n"), Host: "dut", Value: cty.EmptyObjectVal},
	}, in.Instances...)
	return in, sw, flows
}

func TestResetDisturbsTheTestbed(t *testing.T) {
	m, l := newModel(true), &log{}
	in, _, _ := resetBench(t, m, l)
	in.Benchmarks[0].Config = cty.ObjectVal(map[string]cty.Value{"repeat": cty.NumberIntVal(1), "traffic": cty.ObjectVal(map[string]cty.Value{"frame_sizes": numbers(64)})})
	b := measure(t, in).Benchmarks[0]
	if d := cmp.Diff([]string{"reset switch.sw on dut by kill, marked switch.sw of lineage", `apply flows.b again true, same true, undo "u"`, "apply above.a again true, same true, undo "}, l.lines); d != "" {
		t.Error(d)
	}
	// Counters went back and links flapped, as they must: the trial counts, without a ledger.
	if b.Error != "" || b.Trials[0].Verdict != Pass || b.Trials[0].Ledger != nil || len(b.Trials[0].Notes) != 1 || !strings.HasPrefix(b.Trials[0].Notes[0], "No ledger: the reset set counters back (") {
		t.Errorf("error %q, %+v", b.Error, b.Trials)
	}
	said := strings.Join(b.Phases, " ")
	if !strings.Contains(said, "Reset: kill of switch.sw; applied again within the interruption: flows.b, above.a.") {
		t.Errorf("phases %q", said)
	}
}

func TestResetRefused(t *testing.T) {
	for _, tc := range []struct {
		config map[string]cty.Value
		change func(sw *restartable, flows *dependant)
		want   string
	}{
		{config: map[string]cty.Value{"target": cty.StringVal("switch.none")}, want: "switch.none, which is to be reset, is not applied; run plumb apply first"},
		{config: map[string]cty.Value{"target": cty.StringVal("port.t0")}, want: "port.t0 cannot be reset: a port does not know how; it can be switch"},
		{config: map[string]cty.Value{"kind": cty.StringVal("unplug")}, want: `switch.sw cannot be reset by kind = "unplug"; a switch knows restart, kill`},
		{config: map[string]cty.Value{"target": cty.NullVal(cty.String)}, want: "reset does not say what is reset: write target = and a reference to a resource, such as ovs_switch.dut"},
		{change: func(sw *restartable, _ *dependant) { sw.fail = errors.New("it stays down") },
			want: "trial with 64-byte frames: reset switch.sw (kill): it stays down; run plumb apply to mend the testbed"},
		{change: func(_ *restartable, flows *dependant) { flows.fail = errors.New("no bridge") },
			want: "trial with 64-byte frames: apply flows.b again after the reset of switch.sw: no bridge; run plumb apply to mend the testbed"},
	} {
		m, l := newModel(true), &log{}
		in, sw, flows := resetBench(t, m, l)
		if tc.change != nil {
			tc.change(sw, flows)
		}
		config := in.Benchmarks[0].MethodCfg.AsValueMap()
		for k, v := range tc.config {
			config[k] = v
		}
		in.Benchmarks[0].MethodCfg = cty.ObjectVal(config)
		if b := measure(t, in).Benchmarks[0]; b.Error != tc.want || m.closed != m.opened {
			t.Errorf("%q, want %q", b.Error, tc.want)
		}
	}
}

// loader is the Loader.
type loader struct {
	log    *log
	starts error // of the second start
	ends   error
	n      int
	swept  []string
}

func (l *loader) Schema() *schema.Block {
	return &schema.Block{Description: "A load.", Attributes: map[string]*schema.Attribute{"workers": {Type: cty.Number, Required: true, Description: "How many."}}}
}
func (l *loader) Start(_ context.Context, h providers.Host, mark providers.Mark, config cty.Value) (func(context.Context) error, error) {
	if l.n++; l.n == 2 && l.starts != nil {
		return nil, l.starts
	}
	what := fmt.Sprintf("%s of %s on %s: %s", mark.Address, mark.Testbed, h.Name(), scalar(config.GetAttr("workers")))
	l.log.add("start %s", what)
	return func(ctx context.Context) error {
		l.log.add("end %s, context %v", what, ctx.Err())
		return l.ends
	}, nil
}
func (l *loader) Sweep(_ context.Context, h providers.Host, testbed string) error {
	l.swept = append(l.swept, testbed+" on "+h.Name())
	return nil
}

func (j *diary) tee(l *log) *teed { return &teed{j, l} }

// teed is a Recorder whose records stand among what was done.
type teed struct {
	*diary
	log *log
}

func (j *teed) Opened(typ, host string) error {
	j.log.add("opened %s on %s", typ, host)
	return nil
}
func (j *teed) Closed(typ, host string) error {
	j.log.add("closed %s on %s", typ, host)
	return nil
}

func TestLoadsRunWhileItIsMeasured(t *testing.T) {
	block := func(workers int64) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"host": cty.StringVal("noisy"), "workers": cty.NumberIntVal(workers)})
	}
	start := []string{"opened model on dut", "trial 32", "opened load on noisy", "start benchmark.b.load[0] of lineage on noisy: 1", "opened load on noisy", "start benchmark.b.load[1] of lineage on noisy: 2"}
	end := []string{"end benchmark.b.load[1] of lineage on noisy: 2, context <nil>", "closed load on noisy", "end benchmark.b.load[0] of lineage on noisy: 1, context <nil>", "closed load on noisy", "closed model on dut"}
	for _, tc := range []struct {
		name  string
		set   func(m *model, l *loader, cancel func())
		want  []string
		error string
	}{
		{name: "measured", want: append(append(append([]string{}, start...), "trial 0", "trial 0"), end...)},
		{name: "interrupted", set: func(m *model, _ *loader, cancel func()) {
			m.before = func(int) error { cancel(); return context.Canceled }
		}, want: append(append(append([]string{}, start...), "trial 0"), end...), error: "interrupted: context canceled"},
		{name: "one does not start", set: func(_ *model, l *loader, _ func()) { l.starts = errors.New("no stress-ng") },
			want: append(append(append([]string{}, start[:5]...), "closed load on noisy"), end[2:]...), error: "start the load on noisy: no stress-ng"},
		{name: "one does not end", set: func(_ *model, l *loader, _ func()) { l.ends = errors.New("it clings") },
			want:  append(append(append([]string{}, start...), "trial 0", "trial 0"), end[0], end[2], end[4]), // and stays recorded
			error: "end the load on noisy: it clings\nend the load on noisy: it clings"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, l := newModel(true), &log{}
			in, j := bench(t, m, nil, map[string]cty.Value{"repeat": cty.NumberIntVal(2), "load": cty.ListVal([]cty.Value{block(1), block(2)})}, nil)
			ld := &loader{log: l}
			in.Set.Loader, in.Recorder = ld, j.tee(l)
			in.Set.Generators = []providers.GeneratorType{loggedGen{modelGen{m}, l}}
			ctx, cancel := context.WithCancel(t.Context())
			if tc.set != nil {
				tc.set(m, ld, cancel)
			}
			run, _ := Measure(ctx, in)
			cancel()
			if d := cmp.Diff(tc.want, l.lines); d != "" {
				t.Error(d)
			}
			if b := run.Benchmarks[0]; b.Error != tc.error {
				t.Errorf("error %q, want %q", b.Error, tc.error)
			}
		})
	}
}

// loggedGen logs trials.
type loggedGen struct {
	modelGen
	log *log
}

func (g loggedGen) Open(ctx context.Context, req providers.OpenRequest) (providers.Generator, error) {
	_, err := g.modelGen.Open(ctx, req)
	return g, err
}
func (g loggedGen) Trial(ctx context.Context, req providers.TrialRequest) (providers.TrialResult, error) {
	g.log.add("trial %d", req.Frames)
	return g.modelGen.Trial(ctx, req)
}

func TestLoadsNeedALoader(t *testing.T) {
	l := &loader{log: &log{}}
	set := &providers.Set{Loader: l}
	host := func(_ context.Context, name string) (providers.Host, error) { return modelHost{name: name}, nil }
	if err := Sweep(t.Context(), set, host, "lineage", []Open{{loadType, "noisy"}}, func(Open) error { return nil }); err != nil || len(l.swept) != 1 || l.swept[0] != "lineage on noisy" {
		t.Errorf("%v, swept %v", err, l.swept)
	}
	set.Loader = nil
	if err := Sweep(t.Context(), set, host, "lineage", []Open{{loadType, "noisy"}}, nil); err == nil {
		t.Error("a load was swept without a Loader")
	}
}
