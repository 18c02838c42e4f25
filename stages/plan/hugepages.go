package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"plumb/providers"
)

// pool is the hugepages of one size on one NUMA node; anyNode: of the whole host.
type pool struct {
	size uint64
	node int
}

// anyNode is the node of claims that take pages wherever they are.
const anyNode = -1

// supply is what a pool has to give.
type supply struct {
	pages, foreign uint64
	by             *claimed[providers.HugepageClaim] // who grants it; nil: the host has it
}

// defaultPage is the size of pages where a host provides none yet: it can be had at runtime.
const defaultPage = 2 << 20

// resolvePages gives claims of any size the size that the host provides: what instances grant, else what the host has; the larger of two, which is
// what DPDK takes first.
func (h *hostClaims) resolvePages() {
	size := uint64(0)
	for _, g := range all(h, func(c *providers.Claims) []providers.HugepageClaim { return c.Grants }) {
		if g.claim.Pages > 0 {
			size = max(size, g.claim.Size)
		}
	}
	if size == 0 {
		for _, n := range h.facts.Nodes {
			for _, p := range n.Hugepages {
				if p.Total > 0 {
					size = max(size, p.Size)
				}
			}
		}
	}
	if size == 0 {
		size = defaultPage
	}
	resolve := func(list []providers.HugepageClaim) {
		for i := range list {
			if c := &list[i]; c.Size == 0 {
				c.Size, c.Pages = size, (c.Bytes+size-1)/size
			}
		}
	}
	for i := range h.list {
		resolve(h.list[i].claims.Hugepages)
	}
	resolve(h.held)
}

// checkHugepages holds what is wanted of each pool against what is there: what an instance grants, else what the host has, less what others use. Benchmarks open one generator at
// a time, so each generator is added to the instances alone. One that falls short of a pool which already falls short is not reported.
func (h *hostClaims) checkHugepages() hcl.Diagnostics {
	claims := all(h, func(c *providers.Claims) []providers.HugepageClaim { return c.Hugepages })
	var instances []claimed[providers.HugepageClaim]
	generators := map[*claimant][]claimed[providers.HugepageClaim]{}
	var order []*claimant
	for _, c := range claims {
		if c.claim.Pages == 0 {
			continue
		}
		if !c.by.generator {
			instances = append(instances, c)
			continue
		}
		if generators[c.by] == nil {
			order = append(order, c.by)
		}
		generators[c.by] = append(generators[c.by], c)
	}
	short := map[pool]bool{}
	diags := h.checkPools(instances, short)
	for _, g := range order {
		diags = append(diags, h.checkPools(slices.Concat(instances, generators[g]), short)...)
	}
	return diags
}

// checkPools checks every pool that the claims touch, and the host as a whole for claims on any node.
func (h *hostClaims) checkPools(claims []claimed[providers.HugepageClaim], short map[pool]bool) hcl.Diagnostics {
	wanted := map[pool][]claimed[providers.HugepageClaim]{}
	add := func(k pool, c claimed[providers.HugepageClaim]) { wanted[k] = append(wanted[k], c) }
	for _, c := range claims {
		if c.claim.Node != anyNode {
			add(pool{c.claim.Size, c.claim.Node}, c)
		}
		add(pool{c.claim.Size, anyNode}, c)
	}
	pools := make([]pool, 0, len(wanted))
	for k := range wanted {
		pools = append(pools, k)
	}
	slices.SortFunc(pools, func(a, b pool) int { // nodes before the whole
		return cmp.Or(cmp.Compare(a.size, b.size), boolCompare(a.node == anyNode, b.node == anyNode), cmp.Compare(a.node, b.node))
	})
	var diags hcl.Diagnostics
	for _, k := range pools {
		list := wanted[k]
		if short[k] || k.node == anyNode && (shortNode(short, k.size) || !slices.ContainsFunc(list, func(c claimed[providers.HugepageClaim]) bool { return c.claim.Node == anyNode })) {
			continue
		}
		var need uint64
		for _, c := range list {
			need += c.claim.Pages
		}
		s := h.supply(k)
		if s.by == nil && h.vague {
			continue // what provides them may be what is not known
		}
		if have := s.pages - min(s.pages, s.foreign); need > have {
			short[k] = true
			diags = append(diags, h.shortage(k, list, need, have, s))
		}
	}
	return diags
}

func shortNode(short map[pool]bool, size uint64) bool {
	for k := range short {
		if k.size == size {
			return true
		}
	}
	return false
}

// supply is what a pool will have: what instances of this testbed grant, else what the host has. What others use of it is foreign.
func (h *hostClaims) supply(k pool) supply {
	var s supply
	granted := false
	grants := all(h, func(c *providers.Claims) []providers.HugepageClaim { return c.Grants })
	for i, g := range grants {
		if g.claim.Size != k.size {
			continue
		}
		granted = true
		if g.claim.Node == k.node || k.node == anyNode {
			s.pages += g.claim.Pages
			s.by = &grants[i]
		} else if s.by == nil {
			s.by = &grants[i] // grants other nodes only
		}
	}
	var used uint64
	for _, n := range h.facts.Nodes {
		if n.ID != k.node && k.node != anyNode {
			continue
		}
		for _, p := range n.Hugepages {
			if p.Size == k.size {
				used += p.Total - min(p.Total, p.Free)
				if !granted {
					s.pages += p.Total
				}
			}
		}
	}
	var held uint64
	for _, c := range h.held {
		if c.Size == k.size && (c.Node == k.node || k.node == anyNode || c.Node == anyNode) {
			held += c.Pages
		}
	}
	s.foreign = used - min(used, held)
	return s
}

func (h *hostClaims) shortage(k pool, list []claimed[providers.HugepageClaim], need, have uint64, s supply) *hcl.Diagnostic {
	var terms []string
	for _, c := range list {
		terms = append(terms, fmt.Sprintf("%d (%s %s)", c.claim.Pages, c.by.addr, c.claim.What))
	}
	where := fmt.Sprintf("on node %d of host.%s", k.node, h.name)
	if k.node == anyNode {
		where = "on host." + h.name
	}
	sum := strings.Join(terms, " + ")
	if len(terms) > 1 {
		sum += fmt.Sprintf(" = %d", need)
	}
	from := fmt.Sprintf("the host has %d", s.pages)
	todo := "Add a host_hugepages resource that provides enough, or let them take less."
	last := list[len(list)-1]
	at := last.by.at(last.claim.Path)
	if s.by != nil {
		from = fmt.Sprintf("%s provides %d", s.by.by.addr, s.pages)
		todo = fmt.Sprintf("Raise it to at least %d, or let them take less.", need+s.foreign)
		at = s.by.by.at(s.by.claim.Path)
	}
	if s.foreign > 0 {
		from += fmt.Sprintf(", of which %d are in use by others: %d are left", s.foreign, have)
	}
	return errorAt(at, "Not enough hugepages", "Needed are %s pages of %s %s, and %s. That is %d short. %s", sum, sizeText(k.size), where, from, need-have, todo)
}

// sizeText writes a page size: 2 MB, 1 GB.
func sizeText(n uint64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d KB", n>>10)
}
