package host

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
	"plumb/providers/internal/bootargs"
	"plumb/providers/internal/hostkit"
)

// Plan finds what cannot work on the host: no root, a size that the kernel does not offer, a node that is not there, more than a node has.
func (Hugepages) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: req.Proposed}
	if req.Host == nil {
		return res, nil
	}
	f, err := req.Host.Facts(ctx)
	if err != nil {
		return res, err
	}
	w, err := decodeWant(req.Proposed)
	if err != nil {
		return res, err
	}
	res.Problems = problems(f, req.Host.Name(), w)
	if !w.boot || len(res.Problems) > 0 || !req.Proposed.IsWhollyKnown() {
		return res, nil
	}
	c, err := poolsOf(ctx, req.Host)
	if err != nil {
		return res, err
	}
	m, err := c.look(ctx, req.Host)
	if err != nil {
		return res, err
	}
	res.Cost, res.Problems, err = w.planBoot(ctx, req, f, m)
	return res, err
}

func problems(f *providers.Facts, host string, w want) []providers.Problem {
	var out []providers.Problem
	if !f.Root {
		out = append(out, hostkit.NotRoot(host))
	}
	if w.size == 0 {
		return out
	}
	nodes := map[int]providers.Node{}
	var ids, sizes []string
	offered := false
	for _, n := range f.Nodes {
		nodes[n.ID] = n
		ids = append(ids, strconv.Itoa(n.ID))
		for _, p := range n.Hugepages {
			offered = offered || p.Size == w.size
			if n.ID == f.Nodes[0].ID {
				sizes = append(sizes, formatSize(p.Size))
			}
		}
	}
	if !offered {
		have := "none at all: its kernel was built without hugetlbfs"
		if len(sizes) > 0 {
			have = strings.Join(sizes, ", ")
		}
		return append(out, providers.Problem{Path: cty.GetAttrPath("size"), Summary: "Page size not supported",
			Detail: fmt.Sprintf("The kernel of %s has no hugepages of %s. It offers %s. See /sys/kernel/mm/hugepages.", host, formatSize(w.size), have)})
	}
	for _, id := range w.nodes() {
		path := cty.GetAttrPath("pages").IndexString(strconv.Itoa(id))
		n, ok := nodes[id]
		if !ok {
			out = append(out, providers.Problem{Path: path, Summary: "No such NUMA node",
				Detail: fmt.Sprintf("%s has no NUMA node %d. It has %s.", host, id, strings.Join(ids, ", "))})
			continue
		}
		if need := w.pages[id] * (w.size >> 10) >> 10; n.MemoryBytes > 0 && need > n.MemoryBytes>>20 {
			out = append(out, providers.Problem{Path: path, Summary: "More hugepages than memory",
				Detail: fmt.Sprintf("%d pages of %s are %d MB, and NUMA node %d of %s has %d MB of memory in all.", w.pages[id], formatSize(w.size), need, id, host, n.MemoryBytes>>20)})
		}
	}
	return out
}

// Claims says what the instance grants: totals by node, which stand for what was there before.
func (Hugepages) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	w, err := decodeWant(planned)
	if err != nil || w.size == 0 {
		return providers.Claims{}, err
	}
	var c providers.Claims
	for _, id := range w.nodes() {
		c.Grants = append(c.Grants, providers.HugepageClaim{Size: w.size, Node: id, Pages: w.pages[id], What: "host_hugepages", Path: cty.GetAttrPath("pages").IndexString(strconv.Itoa(id))})
		// Two instances for one pool would undo each other.
		c.Unique = append(c.Unique, providers.Unique{Scope: fmt.Sprintf("hugepages of %s on NUMA node", formatSize(w.size)), Value: strconv.Itoa(id), Path: cty.GetAttrPath("pages").IndexString(strconv.Itoa(id))})
	}
	if w.boot {
		c.Unique = append(c.Unique, bootargs.UniqueSize("hugepagesz="+formatSize(w.size), cty.GetAttrPath("size")))
	}
	return c, nil
}
