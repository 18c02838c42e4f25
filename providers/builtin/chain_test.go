package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"plumb/lang/addrs"
	"plumb/providers"
	"plumb/providers/conformance"
)

func has(l []providers.Resource, typ string) bool { return find(l, typ) != nil }

func find(l []providers.Resource, typ string) providers.Resource {
	for _, r := range l {
		if r.Schema().Type == typ {
			return r
		}
	}
	return nil
}

type values = map[string]cty.Value

// bed is a testbed that a test builds and takes down, without the engine.
type bed struct {
	t     testing.TB
	set   *providers.Set
	host  providers.Host
	built []*built
}

type built struct {
	typ   providers.Resource
	addr  addrs.Instance
	value cty.Value
	undo  json.RawMessage
}

func (b *bed) mark(a addrs.Instance) providers.Mark {
	return providers.Mark{Testbed: "chain-test", Address: a.String()}
}

func (b *bed) log(s string) { b.t.Log(s) }

func (b *bed) apply(typ, name string, config values) providers.Subject {
	b.t.Helper()
	r := find(b.set.Resources, typ)
	x := &built{typ: r, addr: addrs.Resource{Type: typ, Name: name}.Instance(addrs.Key{})}
	block := &r.Schema().Block
	planned := conformance.Desired(block, config).AsValueMap()
	for n, a := range block.Attributes {
		if a.Computed && planned[n].IsNull() {
			planned[n] = cty.UnknownVal(a.Type)
		}
	}
	want := cty.ObjectVal(planned)
	req := providers.ApplyRequest{Host: b.host, Mark: b.mark(x.addr), Prior: cty.NullVal(want.Type()), Planned: want, Log: b.log}
	if p, ok := r.(providers.Planner); ok {
		res, err := p.Plan(b.t.Context(), providers.PlanRequest{Host: b.host, Mark: req.Mark, Prior: req.Prior, Desired: conformance.Desired(block, config), Proposed: want})
		if err != nil || len(res.Problems) > 0 {
			b.t.Fatalf("plan %s: %v, %+v", x.addr, err, res.Problems)
		}
		req.Planned = res.Planned
	}
	var err error
	if p, ok := r.(providers.Preparer); ok {
		if x.undo, err = p.Prepare(b.t.Context(), req); err != nil {
			b.t.Fatalf("prepare %s: %v", x.addr, err)
		}
	}
	req.Undo = x.undo
	x.value = req.Planned
	b.built = append(b.built, x)
	res, err := r.Apply(b.t.Context(), req)
	if err != nil {
		b.t.Fatalf("apply %s: %v", x.addr, err)
	}
	x.value = res.New
	return providers.Subject{Addr: x.addr, Value: x.value}
}

// destroy takes everything down, the last first, also when the test has failed.
func (b *bed) destroy() {
	ctx := context.WithoutCancel(b.t.Context())
	for i := len(b.built) - 1; i >= 0; i-- {
		x := b.built[i]
		known, err := cty.Transform(x.value, func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if !v.IsKnown() {
				return cty.NullVal(v.Type()), nil
			}
			return v, nil
		})
		if err == nil {
			_, err = x.typ.Apply(ctx, providers.ApplyRequest{Host: b.host, Mark: b.mark(x.addr), Prior: known, Planned: cty.NullVal(known.Type()), Undo: x.undo, Log: b.log})
		}
		if err != nil {
			b.t.Errorf("destroy %s: %v", x.addr, err)
		}
	}
}

func str(s string) cty.Value        { return cty.StringVal(s) }
func num(n int64) cty.Value         { return cty.NumberIntVal(n) }
func list(s ...cty.Value) cty.Value { return cty.ListVal(s) }

// TestRealChain measures a real Open vSwitch with DPDK, on two CPUs: from port to port, and through a virtual network function. It says nothing of how
// fast it is: with so few CPUs, threads that spin take turns.
func TestRealChain(t *testing.T) { onRealBed(t, (*bed).run) }

// onRealBed runs on this machine and takes down what was made; the machine must be as it was.
func onRealBed(t *testing.T, run func(*bed)) {
	t.Helper()
	if os.Getenv("PLUMB_REAL") == "" {
		t.Skip("PLUMB_REAL is not set")
	}
	if os.Geteuid() != 0 {
		t.Fatal("the real tests need root")
	}
	set := Set()
	h, err := set.OpenHost(t.Context(), "dut", conformance.Desired(set.HostSchema, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	before, err := set.Snapshot(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, set: set, host: h}
	func() {
		defer b.destroy()
		run(b)
	}()
	after, err := set.Snapshot(context.WithoutCancel(t.Context()), h)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the machine is not as it was (-before +after):\n%s", diff)
	}
}

func (b *bed) run() {
	t, h := b.t, b.host
	sockets := t.TempDir()
	sock := func(n string) string { return filepath.Join(sockets, n) }
	b.apply("host_hugepages", "dut", values{"size": str("2M"), "pages": cty.MapVal(values{"0": num(600)})})
	sw := find(b.set.Resources, "ovs_switch").Schema().Block.Blocks["dpdk"]
	b.apply("ovs_switch", "dut", values{"dpdk": conformance.Desired(&sw.Block, values{"socket_mem": list(num(512)), "socket_limit": list(num(512)), "pmd_cores": str("0"), "extra": str("--no-pci")})})
	b.apply("ovs_bridge", "br0", values{"name": str("br0"), "datapath": str("netdev")})
	hops := map[string]providers.Subject{}
	for i, n := range []string{"tg0", "tg1", "vnf0"} {
		hops[n] = b.apply("ovs_port", n, values{"bridge": str("br0"), "name": str(n), "type": str("dpdkvhostuserclient"), "ofport": num(int64(i + 1)), "vhost_server_path": str(sock(n))})
	}
	port := find(b.set.Resources, "dpdk_testpmd").Schema().Block.Blocks["port"]
	hops["vnf"] = b.apply("dpdk_testpmd", "vnf", values{"cores": str("0-1"), "share_cores": cty.True, "port": list(conformance.Desired(&port.Block, values{"vhost_user": str(sock("vnf0"))}))})

	g := b.set.Generators[0]
	open := func(path ...providers.Subject) providers.Generator {
		gen, err := g.Open(t.Context(), providers.OpenRequest{Host: h, Mark: providers.Mark{Testbed: "chain-test", Address: "generator.testpmd.tg"}, Path: path, Log: b.log,
			Config:  conformance.Desired(&g.Schema().Block, values{"cores": str("0-1"), "share_cores": cty.True, "ports": list(str(sock("tg0")), str(sock("tg1")))}),
			Traffic: providers.Traffic{FrameSize: 64, Flows: 1, Headers: "ipv4"}})
		if err != nil {
			t.Fatalf("open generator: %v", err)
		}
		return gen
	}
	flows := func(l ...string) {
		var v []cty.Value
		for _, f := range l {
			v = append(v, str(f))
		}
		b.apply("ovs_flows", "br0", values{"bridge": str("br0"), "flows": cty.ListVal(v)})
	}
	flows("in_port=1 actions=output:2", "in_port=2 actions=output:1")
	gen := open(hops["tg0"], hops["tg1"])
	func() {
		defer closeGenerator(t, gen)
		b.proof(gen, false)
		b.proof(gen, true)
		for _, tr := range []providers.Traffic{{FrameSize: 64, Flows: 1, Headers: "ipv4"}, {FrameSize: 1518, Flows: 1, Headers: "ipv4"}, {FrameSize: 64, Flows: 1000, Headers: "ipv4"},
			{FrameSize: 64, Flows: 1000, Headers: "ipv4", Bidirectional: true}} {
			b.trial(gen, tr)
		}
	}()

	b.built = b.built[:len(b.built)-1] // the next flows replace these
	flows("in_port=1 actions=output:3", "in_port=3 actions=output:2")
	gen = open(hops["tg0"], hops["vnf0"], hops["vnf"], hops["vnf0"], hops["tg1"])
	vnf := find(b.set.Resources, "dpdk_testpmd").(providers.Counter)
	count := func() providers.Counters {
		c, err := vnf.Count(t.Context(), h, []providers.Subject{hops["vnf"]})
		if err != nil {
			t.Fatal(err)
		}
		return c[0]
	}
	was := count()
	b.proof(gen, false)
	if now := count(); now.Rx-was.Rx != 8 || now.Tx-was.Tx != 8 || !now.Through {
		t.Errorf("8 frames went through the network function, and it counts %+v after %+v", now, was)
	}
	b.trial(gen, providers.Traffic{FrameSize: 64, Flows: 1, Headers: "ipv4"})
	finish, err := b.set.HostObserver.Observe(t.Context(), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d observations", len(seen))

	// Instead of closing, the generator is left as by a Plumb that was killed.
	for range 2 {
		if err := g.Sweep(t.Context(), h, "chain-test"); err != nil {
			t.Errorf("sweep: %v", err)
		}
	}
}

func closeGenerator(t testing.TB, g providers.Generator) {
	if err := g.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("close generator: %v", err)
	}
}

// proof sends 8 frames; each must arrive.
func (b *bed) proof(g providers.Generator, both bool) {
	b.t.Helper()
	res, err := g.Trial(b.t.Context(), providers.TrialRequest{Traffic: providers.Traffic{FrameSize: 64, Flows: 1, Headers: "ipv4", Bidirectional: both}, Frames: 8, Drain: time.Second})
	if err != nil {
		b.t.Fatalf("proof: %v", err)
	}
	b.t.Logf("proof, both ways %t: %+v", both, res)
	for i, d := range res.Directions {
		if d.Sent != 8 || d.Received != 8 {
			b.t.Errorf("direction %d: %d sent, %d received; want 8", i, d.Sent, d.Received)
		}
	}
}

func (b *bed) trial(g providers.Generator, tr providers.Traffic) {
	b.t.Helper()
	res, err := g.Trial(b.t.Context(), providers.TrialRequest{Traffic: tr, Duration: 2 * time.Second, Drain: time.Second})
	if err != nil {
		b.t.Fatalf("trial %+v: %v", tr, err)
	}
	b.t.Logf("%+v: %+v", tr, res)
	for i, d := range res.Directions {
		if d.Sent == 0 || d.Received == 0 || d.Received > d.Sent {
			b.t.Errorf("direction %d of %+v: %+v", i, tr, d)
		}
	}
	if len(res.Health) > 0 {
		b.t.Errorf("%+v: %q", tr, res.Health)
	}
}
