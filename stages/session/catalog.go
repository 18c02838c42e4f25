package session

import (
	"plumb/lang/schema"
	"plumb/providers"
	"plumb/stages/bench"
)

// Catalog is all that a configuration may use: what the providers offer, and the benchmark's arguments and methods.
func Catalog(set providers.Set) *schema.Catalog {
	var loader *schema.Block
	if set.Loader != nil {
		loader = set.Loader.Schema()
	}
	cat := &schema.Catalog{
		Resources:  map[string]*schema.Resource{},
		Data:       map[string]*schema.Resource{},
		Generators: map[string]*schema.Generator{},
		Host:       set.HostSchema,
		Benchmark:  bench.Schema(loader),
		Methods:    bench.Methods(),
	}
	for _, r := range set.Resources {
		cat.Resources[r.Schema().Type] = r.Schema()
	}
	for _, d := range set.Data {
		cat.Data[d.Schema().Type] = d.Schema()
	}
	for _, g := range set.Generators {
		cat.Generators[g.Schema().Type] = g.Schema()
	}
	return cat
}
