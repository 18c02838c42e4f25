// Package builtin lists all that Plumb offers, explicitly: a provider that is not named here does not exist.
package builtin

import (
	"slices"

	"plumb/providers"
	"plumb/providers/boot"
	"plumb/providers/dpdk"
	"plumb/providers/dummy"
	"plumb/providers/host"
	"plumb/providers/loadgen"
	"plumb/providers/network"
	"plumb/providers/nic"
	"plumb/providers/ovs"
	"plumb/providers/plumb"
	"plumb/providers/settings"
)

// Set manages the machines of host blocks.
func Set() *providers.Set { return SetWith(host.Connected) }

// SetWith manages whatever machines connect reaches: fake ones in tests. connect is called for each host block and run; the connection is closed with
// the host.
func SetWith(connect host.Connect) *providers.Set {
	resources := []providers.Resource{plumb.NewData(), host.Hugepages{}, dpdk.NewTestpmd()}
	return &providers.Set{
		Resources:    slices.Concat(resources, boot.Resources(), settings.Resources(), nic.Resources(), network.Resources(), ovs.Resources()),
		Data:         []providers.DataSource{host.FactsSource{}},
		Generators:   []providers.GeneratorType{dpdk.NewGenerator(), loadgen.NewGenerator(), dummy.Generator{}},
		HostObserver: host.Observer{},
		Loader:       host.Load{},
		HostSchema:   host.Schema(),
		OpenHost:     host.Opener(connect),
		Examine:      host.Examine,
		Snapshot:     host.Snapshot,

		Reboot:        boot.Reboot,
		RebootAllowed: boot.RebootAllowed,
	}
}
