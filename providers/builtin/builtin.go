// Package builtin lists all that Plumb offers, explicitly: a provider that is not named here does not exist.
package builtin

import (
	"context"

	"plumb/providers"
	"plumb/providers/dpdk"
	"plumb/providers/dummy"
	"plumb/providers/host"
	"plumb/providers/internal/transport"
	"plumb/providers/loadgen"
	"plumb/providers/ovs"
	"plumb/providers/plumb"
)

// Set manages the machine that it runs on.
func Set() *providers.Set {
	return SetWith(func(_ context.Context, name string) (providers.Conn, error) { return transport.NewLocal(name), nil })
}

// SetWith manages whatever machine open reaches: a fake one in tests. open is called for each host block and run; the connection is closed with
// the host.
func SetWith(open func(ctx context.Context, name string) (providers.Conn, error)) *providers.Set {
	resources := []providers.Resource{plumb.NewData(), host.Hugepages{}, dpdk.NewTestpmd()}
	return &providers.Set{
		Resources:    append(resources, ovs.Resources()...),
		Data:         []providers.DataSource{host.FactsSource{}},
		Generators:   []providers.GeneratorType{dpdk.NewGenerator(), loadgen.NewGenerator(), dummy.Generator{}},
		HostObserver: host.Observer{},
		Loader:       host.Load{},
		HostSchema:   host.Schema(),
		OpenHost:     host.Opener(open),
		Snapshot:     host.Snapshot,
	}
}
