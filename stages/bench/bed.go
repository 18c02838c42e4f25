package bench

import (
	"context"
	"fmt"
	"slices"

	"plumb/lang/eval"
	"plumb/providers"
)

// bed is what a benchmark needs of the testbed: the path's hops with who counts them, the generator, and who watches.
type bed struct {
	subjects  []providers.Subject // the path's distinct instances
	names     []string            // their addresses
	hops      []int               // by hop of the path: index into subjects
	groups    []group
	generator *eval.Generator
	genType   providers.GeneratorType
	genHost   providers.Host // nil for a hostless type
	hosts     []providers.Host
	watchers  []watcher
}

// group is what one call of a Counter covers.
type group struct {
	typ     string
	counter providers.Counter
	host    providers.Host
	of      []int // indices into subjects
}

// watcher is an observer on one host.
type watcher struct {
	name     string
	observer providers.Observer
	host     providers.Host
	of       []providers.Subject
}

// newBed finds everything, or says what is missing. It starts nothing. An empty path is fine here: a model needs none.
func newBed(ctx context.Context, in Input, b *eval.Benchmark) (*bed, error) {
	d := &bed{}
	if err := d.findGenerator(ctx, in, b); err != nil {
		return nil, err
	}
	for _, addr := range b.Path {
		if i := slices.Index(d.names, addr.String()); i >= 0 {
			d.hops = append(d.hops, i)
			continue
		}
		n := slices.IndexFunc(in.Instances, func(i Instance) bool { return i.Addr == addr })
		if n < 0 {
			return nil, fmt.Errorf("%s of the path is not applied; run plumb apply first", addr)
		}
		inst := in.Instances[n]
		counter, ok := resource(in.Set, addr.Resource.Type).(providers.Counter)
		if !ok {
			return nil, fmt.Errorf("%s cannot stand in a path: frames are not counted at a %s", addr, addr.Resource.Type)
		}
		host, err := d.host(ctx, in, inst.Host)
		if err != nil {
			return nil, err
		}
		d.hops = append(d.hops, len(d.subjects))
		d.addTo(addr.Resource.Type, counter, host)
		d.subjects = append(d.subjects, providers.Subject{Addr: addr, Value: plain(inst.Value)})
		d.names = append(d.names, addr.String())
	}
	d.findWatchers(in)
	return d, nil
}

func (d *bed) findGenerator(ctx context.Context, in Input, b *eval.Benchmark) error {
	for _, g := range in.Generators {
		if g.Addr == b.Generator {
			d.generator = g
		}
	}
	if d.generator == nil {
		return fmt.Errorf("there is no %s", b.Generator)
	}
	if d.genType = generatorType(in.Set, b.Generator.Type); d.genType == nil {
		return fmt.Errorf("there is no generator type %s", b.Generator.Type)
	}
	if !plain(d.generator.Config).IsWhollyKnown() {
		return fmt.Errorf("an argument of %s is still unknown", b.Generator)
	}
	if d.generator.Host == "" {
		return nil
	}
	var err error
	d.genHost, err = d.host(ctx, in, d.generator.Host)
	return err
}

// host opens a host once.
func (d *bed) host(ctx context.Context, in Input, name string) (providers.Host, error) {
	if name == "" {
		return nil, nil
	}
	for _, h := range d.hosts {
		if h.Name() == name {
			return h, nil
		}
	}
	h, err := in.Host(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	d.hosts = append(d.hosts, h)
	return h, nil
}

func (d *bed) addTo(typ string, c providers.Counter, h providers.Host) {
	for i := range d.groups {
		if d.groups[i].typ == typ && d.groups[i].host == h {
			d.groups[i].of = append(d.groups[i].of, len(d.subjects))
			return
		}
	}
	d.groups = append(d.groups, group{typ: typ, counter: c, host: h, of: []int{len(d.subjects)}})
}

// findWatchers lists who watches: each type that can, for all its applied instances on the path's hosts, and the host observer.
func (d *bed) findWatchers(in Input) {
	for _, h := range d.hosts {
		all := []providers.Subject{}
		byType := map[string][]providers.Subject{}
		for _, i := range in.Instances {
			if i.Host == h.Name() {
				s := providers.Subject{Addr: i.Addr, Value: plain(i.Value)}
				all, byType[i.Addr.Resource.Type] = append(all, s), append(byType[i.Addr.Resource.Type], s)
			}
		}
		for _, typ := range sortedKeys(byType) {
			if o, ok := resource(in.Set, typ).(providers.Observer); ok {
				d.watchers = append(d.watchers, watcher{name: typ, observer: o, host: h, of: byType[typ]})
			}
		}
		if in.Set.HostObserver != nil {
			d.watchers = append(d.watchers, watcher{name: "the host", observer: in.Set.HostObserver, host: h, of: all})
		}
	}
}

// path is the path as the generator wants it, hop by hop.
func (d *bed) path() []providers.Subject {
	out := make([]providers.Subject, len(d.hops))
	for i, s := range d.hops {
		out[i] = d.subjects[s]
	}
	return out
}

// count reads the counters of all subjects, one round trip for each type and host.
func (d *bed) count(ctx context.Context) ([]providers.Counters, error) {
	out := make([]providers.Counters, len(d.subjects))
	for _, g := range d.groups {
		of := make([]providers.Subject, len(g.of))
		for i, s := range g.of {
			of[i] = d.subjects[s]
		}
		got, err := g.counter.Count(ctx, g.host, of)
		if err != nil {
			return nil, fmt.Errorf("read the counters of %s: %w", g.typ, err)
		}
		if len(got) != len(of) {
			return nil, fmt.Errorf("read the counters of %s: %d answers for %d instances; this is a bug of that provider", g.typ, len(got), len(of))
		}
		for i, s := range g.of {
			out[s] = got[i]
		}
	}
	return out, nil
}

func resource(set *providers.Set, typ string) providers.Resource {
	for _, r := range set.Resources {
		if r.Schema().Type == typ {
			return r
		}
	}
	return nil
}
