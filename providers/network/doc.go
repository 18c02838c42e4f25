// Package network manages what the kernel of a host has for links: settings of interfaces (nic_link), network namespaces, veth pairs, taps, bridges and routes.
//
// All is read in one round trip per host and run (look.go): ip(8) tells of links, addresses, routes and permanent neighbours of all namespaces, and is not asked again until something was changed. What
// ethtool(8) tells costs another one, and only for the interfaces whose settings are managed. A change is one round trip as well (change.go): its lines go to `ip -batch -`, in which every word has been
// checked to be one word. What was changed is read back and compared.
//
// A link of ours has our mark in its alias (ip-link(8), ifalias), a namespace in that of its loopback interface, a route in its protocol number. Nothing survives a reboot. Start reading at session.
package network

import "plumb/providers"

// Resources lists the types of this package.
func Resources() []providers.Resource {
	return []providers.Resource{namespaceType{}, vethType{}, tapType{}, bridgeType{}, nicType{}, routeType{}}
}
