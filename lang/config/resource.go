package config

import (
	"github.com/hashicorp/hcl/v2"

	"plumb/lang/addrs"
)

var resourceSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "host"}, {Name: "count"}, {Name: "for_each"}, {Name: "depends_on"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "lifecycle"}},
}

const hostForm = "a reference to a host block, such as host.dut"

// decodeResource decodes the meta-arguments of a resource or data block.
func (l *loader) decodeResource(m *Module, b *hcl.Block) {
	if !l.validName(b, 0, "resource type") || !l.validName(b, 1, "name for a resource") {
		return
	}
	r := &Resource{
		Addr:  addrs.Resource{Module: m.Addr, Type: b.Labels[0], Name: b.Labels[1]},
		Range: b.DefRange,
	}
	if b.Type == "data" {
		r.Addr.Mode = addrs.Data
	}
	var content *hcl.BodyContent
	content, r.Body = l.partial(b.Body, resourceSchema)
	r.Host = l.reference(content.Attributes["host"], "host", 1, hostForm)
	r.Count, r.ForEach = l.repetition(content)
	r.DependsOn = l.dependsOn(content.Attributes["depends_on"])
	r.Lifecycle = l.lifecycle(content.Blocks, b.Type == "data")
	put(l, m.Resources, r.Addr.Local(), header(b.Type, b.Labels...), r, b.DefRange, func(x *Resource) hcl.Range { return x.Range })
}

// decodeHost decodes a host block, which only the root module may have: modules are shapes laid over one set of machines.
func (l *loader) decodeHost(m *Module, b *hcl.Block) {
	if !l.validName(b, 0, "name for a host") {
		return
	}
	if m.Parent != nil {
		l.errorf(b.DefRange, "Host in a called module", "Hosts can only be declared in the root module; they are seen in all modules as host.NAME. Move this block to a file of the root module.")
		return
	}
	h := &Host{Name: b.Labels[0], Body: b.Body, Range: b.DefRange}
	put(l, m.Hosts, h.Name, header("host", h.Name), h, b.DefRange, func(x *Host) hcl.Range { return x.Range })
}

var generatorSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "host"}}}

// decodeGenerator decodes a generator block.
func (l *loader) decodeGenerator(m *Module, b *hcl.Block) {
	if !l.validName(b, 0, "generator type") || !l.validName(b, 1, "name for a generator") {
		return
	}
	g := &Generator{
		Addr:  addrs.Object{Module: m.Addr, Kind: "generator", Type: b.Labels[0], Name: b.Labels[1]},
		Range: b.DefRange,
	}
	var content *hcl.BodyContent
	content, g.Body = l.partial(b.Body, generatorSchema)
	g.Host = l.reference(content.Attributes["host"], "host", 1, hostForm)
	put(l, m.Generators, g.Addr.Type+"."+g.Addr.Name, header("generator", b.Labels...), g, b.DefRange, func(x *Generator) hcl.Range { return x.Range })
}

var benchmarkSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "generator", Required: true}, {Name: "path"}, {Name: "depends_on"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "require"}},
}

// decodeBenchmark decodes what a benchmark refers to; its traffic and method stay for lang/eval.
func (l *loader) decodeBenchmark(m *Module, b *hcl.Block) {
	if !l.validName(b, 0, "name for a benchmark") {
		return
	}
	bench := &Benchmark{
		Addr:  addrs.Object{Module: m.Addr, Kind: "benchmark", Name: b.Labels[0]},
		Range: b.DefRange,
	}
	var content *hcl.BodyContent
	content, bench.Body = l.partial(b.Body, benchmarkSchema)
	bench.Generator = l.reference(content.Attributes["generator"], "generator", 2, "a reference to a generator block, such as generator.testpmd.tg")
	if path, ok := content.Attributes["path"]; ok {
		bench.PathRange = path.Expr.Range()
		bench.Path = l.references(path, "a resource that frames pass", "path = [ovs_port.p0, dpdk_testpmd.vnf, ovs_port.p1]", isHop)
	}
	bench.DependsOn = l.dependsOn(content.Attributes["depends_on"])
	for _, c := range content.Blocks {
		bench.Requires = appendRule(bench.Requires, l.checkRule(c))
	}
	put(l, m.Benchmarks, bench.Addr.Name, header("benchmark", b.Labels...), bench, b.DefRange, func(x *Benchmark) hcl.Range { return x.Range })
}

// isHop says whether the reference can be to a resource or one of its instances.
func isHop(t hcl.Traversal) bool {
	switch t.RootName() {
	case "var", "local", "each", "count", "path", "self", "plumb", "host", "generator", "benchmark", "data":
		return false
	}
	return len(t) >= 2
}
