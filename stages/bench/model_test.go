package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/lang/config"
	"plumb/lang/eval"
	"plumb/lang/schema"
	"plumb/providers"
)

// model is a switch with a VNF and the generator at both ends. Frames walk its ways; where one is lost, the hop counts it as said.
type model struct {
	mu       sync.Mutex
	counters map[string]*providers.Counters
	ways     [][]string // by direction: "port rx", "port tx", "vnf"
	rate     float64    // frames/s that the generator can send
	// lose says how many of n frames are lost before the passage, and under which cause ("" for none) they are counted.
	lose    func(passage string, n uint64) (lost uint64, cause string)
	after   func(trial int, m *model, r *providers.TrialResult) // mends or breaks the result
	before  func(trial int) error
	trials  int
	opened  int
	closed  int
	swept   []string
	closeIn []error // ctx.Err() seen by Close
	able    providers.Abilities
	asked   []providers.TrialRequest
}

func newModel(vnf bool) *model {
	m := &model{counters: map[string]*providers.Counters{}, rate: 1e6, able: providers.Abilities{RateControl: true, Bidirectional: true, Signed: true, Describe: "model 1.0"}}
	m.ways = [][]string{{"t0 rx", "t1 tx"}, {"t1 rx", "t0 tx"}}
	if vnf {
		m.ways = [][]string{{"t0 rx", "v0 tx", "vnf", "v1 rx", "t1 tx"}, {"t1 rx", "v1 tx", "vnf", "v0 rx", "t0 tx"}}
	}
	for _, n := range []string{"t0", "t1", "v0", "v1", "vnf"} {
		m.counters[n] = &providers.Counters{Drops: map[string]uint64{}, Through: n == "vnf"}
	}
	return m
}

func (m *model) send(direction int, n uint64) uint64 {
	for _, passage := range m.ways[direction] {
		var name, side string
		fmt.Sscan(passage, &name, &side)
		c := m.counters[name]
		if m.lose != nil {
			lost, cause := m.lose(passage, n)
			if lost > n {
				lost = n
			}
			if cause != "" {
				c.Drops[cause] += lost
			}
			if side == "" { // a VNF takes frames in and loses them inside
				c.Rx += n
				n -= lost
				c.Tx += n
				continue
			}
			n -= lost
		} else if side == "" {
			c.Rx, c.Tx = c.Rx+n, c.Tx+n
		}
		switch side {
		case "rx":
			c.Rx += n
		case "tx":
			c.Tx += n
		}
	}
	return n
}

// The generator.

func (m *model) Abilities() providers.Abilities { return m.able }

func (m *model) Trial(ctx context.Context, req providers.TrialRequest) (providers.TrialResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, req)
	if err := ctx.Err(); err != nil {
		return providers.TrialResult{}, err
	}
	if req.Frames == 0 {
		m.trials++
		if m.before != nil {
			if err := m.before(m.trials); err != nil {
				return providers.TrialResult{}, err
			}
		}
	}
	res := providers.TrialResult{Duration: req.Duration}
	n := uint64(req.Frames)
	if n == 0 {
		rate := m.rate
		if req.Load > 0 {
			rate = min(rate, req.Load)
		}
		n = uint64(rate * req.Duration.Seconds())
	}
	for d := range 2 {
		if d == 0 || req.Bidirectional {
			res.Directions = append(res.Directions, providers.Direction{Offered: req.Load, Sent: n, Received: m.send(d, n)})
		}
	}
	if req.Disturb != nil {
		if err := req.Disturb(ctx); err != nil {
			return res, err
		}
		res.Directions[0].Outage = &req.DisturbAfter
	}
	if req.Frames == 0 && m.after != nil {
		m.after(m.trials, m, &res)
	}
	return res, nil
}

func (m *model) Close(ctx context.Context) error {
	m.closed++
	m.closeIn = append(m.closeIn, ctx.Err())
	return nil
}

// The generator type.

type modelGen struct{ *model }

func (g modelGen) Schema() *schema.Generator { return &schema.Generator{Type: "model"} }
func (g modelGen) Claims(context.Context, providers.Host, cty.Value) (providers.Claims, error) {
	return providers.Claims{}, nil
}
func (g modelGen) Open(_ context.Context, req providers.OpenRequest) (providers.Generator, error) {
	if req.Config.ContainsMarked() {
		return nil, errors.New("the configuration is marked")
	}
	g.opened++
	return g.model, nil
}
func (g modelGen) Sweep(_ context.Context, h providers.Host, testbed string) error {
	g.swept = append(g.swept, testbed)
	return nil
}

// The resource types.

type modelType struct {
	*model
	typ string
}

func (r modelType) Schema() *schema.Resource { return &schema.Resource{Type: r.typ} }
func (r modelType) Read(context.Context, providers.ReadRequest) (providers.ReadResult, error) {
	return providers.ReadResult{}, errors.New("not asked for")
}
func (r modelType) Apply(context.Context, providers.ApplyRequest) (providers.ApplyResult, error) {
	return providers.ApplyResult{}, errors.New("not asked for")
}
func (r modelType) Count(_ context.Context, _ providers.Host, of []providers.Subject) ([]providers.Counters, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []providers.Counters
	for _, s := range of {
		c := *r.counters[s.Addr.Resource.Name]
		c.Drops = map[string]uint64{}
		for k, v := range r.counters[s.Addr.Resource.Name].Drops {
			c.Drops[k] = v
		}
		out = append(out, c)
	}
	return out, nil
}

type plainType struct{ modelType }

func (plainType) Count() {} // hides Count: no Counter

// watching is a type with an observer.
type watching struct {
	plainType
	observed *[]string
	fail     error
}

func (w watching) Observe(_ context.Context, h providers.Host, of []providers.Subject) (func(context.Context) ([]providers.Observation, error), error) {
	*w.observed = append(*w.observed, fmt.Sprintf("start %d on %s", len(of), h.Name()))
	return func(context.Context) ([]providers.Observation, error) {
		*w.observed = append(*w.observed, "finish")
		return []providers.Observation{{Host: h.Name(), Kind: "pmd", Subject: "core 1", Metrics: []providers.Metric{{Name: "busy", Value: 97.4, Unit: "%"}}}}, w.fail
	}, nil
}

type modelHost struct {
	providers.Host
	name string
}

func (h modelHost) Name() string { return h.name }
func (h modelHost) Facts(context.Context) (*providers.Facts, error) {
	return &providers.Facts{Hostname: "box", Kernel: "6.1", Distribution: "Debian 12", CPUs: []providers.CPU{{Online: true}, {ID: 1, Online: true, Isolated: true}},
		Nodes: []providers.Node{{MemoryBytes: 8 << 30, Hugepages: []providers.Hugepages{{Size: 2 << 20, Total: 512, Free: 100}}}},
		Value: cty.ObjectVal(map[string]cty.Value{"versions": cty.ObjectVal(map[string]cty.Value{"ovs": cty.StringVal("3.1.0"), "dpdk": cty.NullVal(cty.String)})})}, nil
}

// diary is the Recorder.
type diary struct{ lines []string }

func (j *diary) Opened(typ, host string) error {
	j.lines = append(j.lines, "opened "+typ+" on "+host)
	return nil
}
func (j *diary) Closed(typ, host string) error {
	j.lines = append(j.lines, "closed "+typ+" on "+host)
	return nil
}

func addr(typ, name string) addrs.Instance {
	return addrs.Resource{Type: typ, Name: name}.Instance(addrs.Key{})
}

// bench is an Input for the model with one benchmark along its first way.
func bench(t *testing.T, m *model, traffic, shared, method map[string]cty.Value) (Input, *diary) {
	t.Helper()
	gen := addrs.Object{Kind: "generator", Type: "model", Name: "tg"}
	var path []addrs.Instance
	for _, passage := range m.ways[0] {
		var name, side string
		fmt.Sscan(passage, &name, &side)
		typ := "port"
		if side == "" {
			typ = "fwd"
		}
		path = append(path, addr(typ, name))
	}
	if traffic == nil {
		traffic = map[string]cty.Value{"frame_sizes": numbers(64)}
	}
	all := map[string]cty.Value{"traffic": cty.ObjectVal(traffic), "warm_up": cty.StringVal("0s"), "settle": cty.StringVal("1s")}
	for k, v := range shared {
		all[k] = v
	}
	if method == nil {
		method = map[string]cty.Value{"duration": cty.StringVal("1s")}
	}
	var instances []Instance
	for _, n := range []string{"t0", "t1", "v0", "v1"} {
		instances = append(instances, Instance{Addr: addr("port", n), Host: "dut", Value: cty.EmptyObjectVal})
	}
	instances = append(instances, Instance{Addr: addr("fwd", "vnf"), Host: "dut", Value: cty.EmptyObjectVal},
		Instance{Addr: addr("switch", "sw"), Host: "dut", Value: cty.EmptyObjectVal})
	clock := time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC)
	j := &diary{}
	return Input{
		Benchmarks: []*eval.Benchmark{{Addr: addrs.Object{Kind: "benchmark", Name: "b"}, Generator: gen, Path: path, Method: "continuous",
			MethodCfg: cty.ObjectVal(method), Config: cty.ObjectVal(all)}},
		Generators: []*eval.Generator{{Addr: gen, Host: "dut", Config: cty.EmptyObjectVal}},
		Instances:  instances,
		Set: &providers.Set{Generators: []providers.GeneratorType{modelGen{m}},
			Resources: []providers.Resource{modelType{m, "port"}, modelType{m, "fwd"}, plainType{modelType{m, "switch"}}}},
		Host:     func(_ context.Context, name string) (providers.Host, error) { return modelHost{name: name}, nil },
		Recorder: j,
		Require: func(*eval.Benchmark, *config.CheckRule, cty.Value) (bool, string, hcl.Diagnostics) {
			t.Error("no require block was given")
			return false, "", nil
		},
		Now:     func() time.Time { clock = clock.Add(time.Second); return clock },
		Wait:    func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Testbed: "lineage", Serial: 7, PlumbVersion: "test",
	}, j
}

func measure(t *testing.T, in Input) *Run {
	t.Helper()
	run, err := Measure(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return run
}
