package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"plumb/providers"
)

// checkIsolation finds polling cores that the scheduler may put other work on, on a host that keeps some cores free of it: an instance says that it will, or the
// running kernel does. Where nothing is isolated, that is what the host is, and plumb doctor says it.
func (h *hostClaims) checkIsolation() hcl.Diagnostics {
	var isolated []int
	by := "the kernel of host." + h.name
	for i := range h.list {
		if c := &h.list[i]; len(c.claims.Isolates) > 0 {
			isolated, by = append(isolated, c.claims.Isolates...), c.addr
		}
	}
	if len(isolated) == 0 {
		for _, c := range h.facts.CPUs {
			if c.Isolated {
				isolated = append(isolated, c.ID)
			}
		}
	}
	if len(isolated) == 0 {
		return nil
	}
	var diags hcl.Diagnostics
	for _, c := range all(h, func(c *providers.Claims) []providers.CoreClaim { return c.Cores }) {
		if !c.claim.Polling || c.claim.Shared {
			continue
		}
		var outside []int
		for _, core := range c.claim.Cores {
			if !slices.Contains(isolated, core) {
				outside = append(outside, core)
			}
		}
		if len(outside) == 0 {
			continue
		}
		diags = append(diags, errorAt(c.by.at(c.claim.Path), plural(len(outside), "Core is not isolated", "Cores are not isolated"),
			"%s polls with %s of host.%s (%s), and %s isolates %s only. The scheduler puts other work on the rest, and each pause of a poll loop is loss. Take isolated cores, isolate %s too, or accept it with share_cores = true.",
			c.by.addr, plural(len(outside), "core ", "cores ")+ranges(outside), h.name, c.claim.Use, by, plural(len(isolated), "core ", "cores ")+ranges(isolated), plural(len(outside), "it", "them")))
	}
	return diags
}

// checkSiblings finds two users that poll on hyperthreads of one core: each gets about half of it. One that takes both threads for itself knows why.
func (h *hostClaims) checkSiblings() hcl.Diagnostics {
	siblings := map[int][]int{}
	for _, c := range h.facts.CPUs {
		siblings[c.ID] = c.Siblings
	}
	claims := all(h, func(c *providers.Claims) []providers.CoreClaim { return c.Cores })
	var diags hcl.Diagnostics
	for i, a := range claims {
		for _, b := range claims[i+1:] {
			if a.by == b.by || apart(a.by, b.by) || !a.claim.Polling || !b.claim.Polling {
				continue
			}
			for _, core := range a.claim.Cores {
				at := slices.IndexFunc(b.claim.Cores, func(o int) bool { return slices.Contains(siblings[core], o) })
				if at < 0 {
					continue
				}
				what := fmt.Sprintf("Cores %d (%s, %s) and %d (%s, %s) of host.%s are hyperthreads of one physical core", core, a.by.addr, a.claim.Use, b.claim.Cores[at], b.by.addr, b.claim.Use, h.name)
				where := b.by.at(b.claim.Path)
				if a.claim.Shared && b.claim.Shared {
					diags = append(diags, warningAt(where, b.by.addr, "Hyperthreads are shared", "%s. Both poll, so each gets about half of it. Both say that this is accepted.", what))
				} else {
					diags = append(diags, errorAt(where, "Hyperthread of a polling core", "%s. Both poll, so each would get about half of it, and what is measured depends on both. Give one of them a thread of another core, or set share_cores = true on both.", what))
				}
				break
			}
		}
	}
	return diags
}

// checkNodes finds devices that no core on their own NUMA node serves. A device whose node the host does not know (-1) is not judged.
func (h *hostClaims) checkNodes() hcl.Diagnostics {
	nodeOf := map[int]int{}
	for _, c := range h.facts.CPUs {
		nodeOf[c.ID] = c.Node
	}
	cores := map[string][]int{} // by use
	for _, c := range all(h, func(c *providers.Claims) []providers.CoreClaim { return c.Cores }) {
		if c.claim.Polling {
			cores[c.claim.Use] = append(cores[c.claim.Use], c.claim.Cores...)
		}
	}
	var diags hcl.Diagnostics
	for _, d := range all(h, func(c *providers.Claims) []providers.DeviceClaim { return c.Devices }) {
		nic := h.facts.NIC(d.claim.PCI)
		if nic == nil || nic.Node < 0 || len(h.facts.Nodes) < 2 || d.claim.Crossing {
			continue
		}
		serving, pinned := d.claim.Cores, len(d.claim.Cores) > 0
		if !pinned {
			serving = cores[d.claim.Use]
		}
		var far []int
		for _, c := range serving {
			if n, known := nodeOf[c]; known && n != nic.Node {
				far = append(far, c)
			}
		}
		if len(far) == 0 || !pinned && len(far) < len(serving) { // a switch gives a NIC cores of its own node where it has some
			continue
		}
		diags = append(diags, errorAt(d.by.at(d.claim.Path), "NUMA nodes are crossed", "%s: NIC %s of host.%s is on NUMA node %d, and %s that %s it (%s) %s on %s. Every frame would cross the link between the nodes. Take cores of node %d (%s), or accept it with allow_cross_numa = true.",
			d.by.addr, d.claim.PCI, h.name, nic.Node, plural(len(far), "core ", "cores ")+ranges(far), plural(len(far), "serves", "serve"), d.claim.Use, plural(len(far), "is", "are"), nodesText(far, nodeOf), nic.Node, h.coresOn(nic.Node)))
	}
	return diags
}

func nodesText(cores []int, nodeOf map[int]int) string {
	var nodes []int
	for _, c := range cores {
		nodes = append(nodes, nodeOf[c])
	}
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	return plural(len(nodes), "node ", "nodes ") + ranges(nodes)
}

func (h *hostClaims) coresOn(node int) string {
	var out []int
	for _, c := range h.facts.CPUs {
		if c.Node == node && c.Online {
			out = append(out, c.ID)
		}
	}
	if len(out) == 0 {
		return "it has none"
	}
	return strings.TrimSpace(plural(len(out), "core ", "cores ") + ranges(out))
}
