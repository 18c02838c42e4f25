package dpdk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/marked"
	"plumb/providers/internal/pathend"
)

// Generator is the traffic generator type testpmd: one testpmd sends into the first hop of a path, another receives behind the last.
type Generator struct{ schema *schema.Generator }

var _ providers.GeneratorType = (*Generator)(nil)

// NewGenerator is the type.
func NewGenerator() *Generator { return &Generator{schema: generatorSchema()} }

// Schema is constant.
func (g *Generator) Schema() *schema.Generator { return g.schema }

func generatorSchema() *schema.Generator {
	opt := func(t cty.Type, def cty.Value, what string) *schema.Attribute {
		return &schema.Attribute{Type: t, Optional: true, Default: def, Description: what}
	}
	a := coreAttributes(opt)
	for _, x := range a {
		x.Cost = schema.Live // a generator lives for one benchmark
	}
	a["cores"].Description = "CPUs, as a list: 0-2. One runs the consoles and idles; of the others the first half sends and the second receives. A single one does both, in turns, and needs share_cores."
	a["memory"].Description += " Each of the two processes takes as much."
	a["ports"] = &schema.Attribute{Type: cty.List(cty.String), Required: true, Validate: validPorts,
		Description: "Two vhost-user sockets that the generator makes: where it sends and where it receives. The one that the path's first hop has as vhost_server_path sends, the last hop's receives; " +
			"when the hops name no sockets, the first sends."}
	a["queue_size"] = opt(cty.Number, cty.NumberIntVal(1024), "Descriptors of the virtqueues: a power of two. Large ones bridge the turns that threads take on a shared CPU.")
	a["queue_size"].Validate = virtqueueSize()
	a["mbufs"].Default = cty.NumberIntVal(16384)
	a["extra_args"] = opt(cty.List(cty.String), cty.NilVal, "More arguments of both testpmds, one word each.")
	return &schema.Generator{
		Type: "testpmd",
		Description: "dpdk-testpmd on vhost-user ports. It sends as fast as it can: there is no rate control and no latency. With one flow it sends UDP over IPv4 from 198.18.0.1 to 198.18.0.2 (txonly); " +
			"with more, or in both directions, the destination address counts up from 10.253.0.0 (flowgen, which also has fixed MAC addresses). It counts every frame that arrives, not only its own.",
		Example: `generator "testpmd" "tg" {
  cores = "0-2"
  ports = ["/run/plumb/vhost/tg0", "/run/plumb/vhost/tg1"]
}`,
		Block: schema.Block{Attributes: a},
	}
}

func validPorts(v cty.Value) error {
	l := v.AsValueSlice()
	if len(l) != 2 {
		return fmt.Errorf("there are %d; want two, one to send and one to receive", len(l))
	}
	for _, p := range l {
		if !p.IsKnown() {
			continue
		}
		if p.IsNull() {
			return errors.New("the list holds a null")
		}
		if err := socketPath(p); err != nil {
			return err
		}
	}
	if l[0].IsKnown() && l[1].IsKnown() && l[0].RawEquals(l[1]) {
		return errors.New("both are the same socket")
	}
	return nil
}

// split deals the forwarding CPUs out to sender and receiver. A single one does both.
func split(all []int) (sender, receiver []int) {
	if len(all) < 2 {
		return all, all
	}
	return all[:len(all)/2], all[len(all)/2:]
}

// baseSpec is what both processes have in common.
func baseSpec(v cty.Value) spec {
	return spec{cores: cores(v), main: int(attr.Number(v, "main_core", -1)), memory: numbers(v, "memory"), mbufs: attr.Number(v, "mbufs", 16384), burst: attr.Number(v, "burst", 32),
		oneFile: true, inMem: true, noPCI: true, app: texts(v, "extra_args")}
}

// Claims are the CPUs and memory of both processes, and the sockets.
func (g *Generator) Claims(_ context.Context, _ providers.Host, config cty.Value) (providers.Claims, error) {
	base := baseSpec(config)
	shared := attr.Truth(config, "share_cores", false)
	var c providers.Claims
	sender, receiver := split(base.forwarding())
	for _, side := range []struct {
		who   string
		cores []int
	}{{"testpmd sender", sender}, {"testpmd receiver", receiver}} {
		s := base
		if len(base.cores) > 0 {
			s.main, s.cores = base.mainCore(), append([]int{base.mainCore()}, side.cores...)
		}
		more := resourceClaims(s, side.who, shared)
		c.Cores, c.Hugepages = append(c.Cores, more.Cores...), append(c.Hugepages, more.Hugepages...)
	}
	for i, p := range texts(config, "ports") {
		c.Sockets = append(c.Sockets, providers.SocketEnd{Socket: p, Server: true, Queues: 1, Path: cty.GetAttrPath("ports").IndexInt(i)})
	}
	return c, nil
}

// assign says which port sends and which receives.
func assign(ports []string, hops []providers.Subject) (from, to string, err error) {
	if len(ports) != 2 {
		return "", "", fmt.Errorf("the generator has %d ports; it needs two", len(ports))
	}
	first, last := pathend.Assign(ports, hops)
	if first == last {
		return "", "", fmt.Errorf("the path begins and ends at the same port, %s (%s): this generator sends and receives on two", hops[0].Addr, ports[first])
	}
	return ports[first], ports[last], nil
}

// Open starts both processes and returns when their ports run.
func (g *Generator) Open(ctx context.Context, req providers.OpenRequest) (providers.Generator, error) {
	if req.Host == nil {
		return nil, errNoHost
	}
	if err := checkTraffic(req.Traffic, 0); err != nil {
		return nil, err
	}
	for _, p := range coreProblems(req.Config) {
		return nil, errors.New(p.Detail)
	}
	from, to, err := assign(texts(req.Config, "ports"), req.Path)
	if err != nil {
		return nil, err
	}
	base := baseSpec(req.Config)
	sender, receiver := split(base.forwarding())
	size := attr.Number(req.Config, "queue_size", 1024)
	side := func(role, socket string, forwarding []int) *side {
		s := base
		s.main, s.cores = base.mainCore(), append([]int{base.mainCore()}, forwarding...)
		slices.Sort(s.cores)
		s.ports = []port{{socket: socket, server: true, queues: 1, queueSize: size}}
		m := providers.Mark{Testbed: req.Mark.Testbed, Address: req.Mark.Address + "." + role}
		s.prefix = shorten(m.Testbed, m.Address)
		return &side{instance: &instance{marked.Process{Conn: req.Host.Conn(), Mark: m, Dir: generatorFolder(m)}}, spec: s}
	}
	r := &rig{log: req.Log, tx: side("sender", from, sender), rx: side("receiver", to, receiver), now: wallClock()}
	if err := r.start(ctx, shapeOf(req.Traffic)); err != nil {
		return nil, err
	}
	return r, nil
}

// generatorFolder is apart from those of resources, so that Sweep finds what is a generator's.
func generatorFolder(m providers.Mark) string {
	return path.Join(generatorsDir(m.Testbed), path.Base(folder(m.Testbed, m.Address)))
}

func generatorsDir(testbed string) string { return marked.Group(testbed, "generator") }

// Sweep ends the processes in the testbed's folder of generators and removes what they left.
func (g *Generator) Sweep(ctx context.Context, h providers.Host, testbed string) error {
	if h == nil {
		return errNoHost
	}
	dir := generatorsDir(testbed)
	files, err := h.Conn().ReadFiles(ctx, dir+"/*/command", dir+"/*/pid")
	if err != nil {
		return err
	}
	swept := map[string]bool{}
	for name := range files {
		d := path.Dir(name)
		if swept[d] {
			continue
		}
		swept[d] = true
		in := &instance{marked.Process{Conn: h.Conn(), Mark: providers.Mark{Testbed: testbed}, Dir: d}}
		if err := in.stop(ctx, leftBy(fields(files[path.Join(d, "command")]))); err != nil {
			return fmt.Errorf("sweep %s: %w", d, err)
		}
	}
	return nil
}
