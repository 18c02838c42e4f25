package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/bootargs"
)

// With when = "boot" the kernel reserves the pages before anything has fragmented the memory. For 1G there is mostly no other way.

// nodeFormat is the first kernel that takes pages by node: hugepages=0:8,1:8 (commit b5389086ad7b, "hugetlbfs: extend the definition of hugepages parameter to support node allocation").
const nodeFormatMajor, nodeFormatMinor = 5, 15

// bootArgs are the arguments for the kernel. What cannot be said to it is an error for the user.
func bootArgs(w want, f *providers.Facts) ([]string, error) {
	size := "hugepagesz=" + formatSize(w.size)
	var byNode []string
	total, equal := uint64(0), true
	for _, id := range w.nodes() {
		byNode = append(byNode, fmt.Sprintf("%d:%d", id, w.pages[id]))
		total += w.pages[id]
		equal = equal && w.pages[id] == w.pages[w.nodes()[0]]
	}
	switch {
	case len(f.Nodes) > 1 && atLeast(f.Kernel, nodeFormatMajor, nodeFormatMinor):
		return []string{size, "hugepages=" + strings.Join(byNode, ",")}, nil
	case len(f.Nodes) > 1 && (!equal || len(w.pages) != len(f.Nodes)):
		return nil, fmt.Errorf("its kernel, %s, reserves pages at boot only for all NUMA nodes alike; from 5.15 on it is by node. Name all %d nodes with the same number", f.Kernel, len(f.Nodes))
	}
	return []string{size, "hugepages=" + strconv.FormatUint(total, 10)}, nil
}

// atLeast compares a kernel's release: 6.12.118+deb13-amd64.
func atLeast(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

// kept says whether the boot loader keeps what is wanted. It looks only where pages are for the boot.
func (w want) kept(ctx context.Context, h providers.Host, m providers.Mark) (bool, error) {
	b, args, err := w.atBoot(ctx, h)
	if err != nil {
		return false, err
	}
	kept, _ := b.Kept(m, args)
	return len(bootargs.Missing(kept, args)) == 0, nil
}

func (w want) atBoot(ctx context.Context, h providers.Host) (*bootargs.Boot, []string, error) {
	l, err := bootargs.Of(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	f, err := h.Facts(ctx)
	if err != nil {
		return nil, nil, err
	}
	b, err := l.Look(ctx)
	if err != nil {
		return nil, nil, err
	}
	args, err := bootArgs(w, f)
	return b, args, err
}

// planBoot says what it costs, and what cannot work. m is what there is now.
func (w want) planBoot(ctx context.Context, req providers.PlanRequest, f *providers.Facts, m *memory) (cost schema.Cost, problems []providers.Problem, err error) {
	host := req.Host.Name()
	args, err := bootArgs(w, f)
	if err != nil {
		return cost, []providers.Problem{{Path: cty.GetAttrPath("pages"), Summary: "Pages cannot be reserved by node", Detail: fmt.Sprintf("On %s, %s.", host, err)}}, nil
	}
	l, err := bootargs.Of(ctx, req.Host)
	if err != nil {
		return cost, nil, err
	}
	b, err := l.Look(ctx)
	if err != nil {
		return cost, nil, err
	}
	if b.Kind == bootargs.None {
		return cost, []providers.Problem{{Host: host, Summary: "Unknown boot loader", Detail: fmt.Sprintf("On %s %s. Set the arguments by hand, and leave out when = \"boot\".", host, bootargs.Unknown)}}, nil
	}
	if w.elsewhere(b, req, f) {
		problems = append(problems, providers.Problem{Path: cty.GetAttrPath("size"), Summary: "Pages of that size are reserved already",
			Detail: fmt.Sprintf("The command line of %s has %s by itself (%s), and the kernel takes no notice of a second one. Take it out there, or use when = \"now\".", host, args[0], b.Source)})
	}
	if w.granted(m) || b.Active(args) {
		return cost, problems, nil
	}
	if w.mount != "" && len(m.mounted(w.size)) == 0 {
		size := formatSize(w.size)
		problems = append(problems, providers.Problem{Path: cty.GetAttrPath("mount"), Summary: "Nothing mounts these pages at boot",
			Detail: fmt.Sprintf("%s has no hugetlbfs for pages of %s, and a mount made now would not outlive the reboot. Set mount = \"\", and add a host_mount with type = \"hugetlbfs\", source = \"hugetlbfs\", target = \"/dev/hugepages%s\", options = [\"pagesize=%s\"].", host, size, size, size)})
	}
	return schema.HostReboot, problems, nil
}

// elsewhere says whether the size stands on the command line to come without this instance.
func (w want) elsewhere(b *bootargs.Boot, req providers.PlanRequest, f *providers.Facts) bool {
	others := b.Others(req.Mark)
	if b.Kind == bootargs.Grubby || b.Kind == bootargs.Entries { // ours stand among the others
		for _, v := range []cty.Value{req.Prior, req.Proposed} {
			if args := reserved(v, f); args != nil && len(bootargs.Missing(others, args)) == 0 {
				return false
			}
		}
	}
	return slices.Contains(others, "hugepagesz="+formatSize(w.size))
}

// reserved are the arguments of an object that has its pages reserved at boot; nil for one that has not.
func reserved(v cty.Value, f *providers.Facts) []string {
	if v.IsNull() {
		return nil
	}
	w, err := decodeWant(v)
	if err != nil || !w.boot {
		return nil
	}
	args, err := bootArgs(w, f)
	if err != nil {
		return nil
	}
	return args
}

// granted says whether the nodes have what is wanted.
func (w want) granted(m *memory) bool {
	for node, n := range w.pages {
		if p, ok := m.pool(node, w.size); !ok || p.total != n {
			return false
		}
	}
	return true
}

// keep has the boot loader keep what is wanted, or forget it. active says that the running kernel was booted so.
func (w want) keep(ctx context.Context, req providers.ApplyRequest, u undo) (active bool, err error) {
	l, err := bootargs.Of(ctx, req.Host)
	if err != nil {
		return false, err
	}
	f, err := req.Host.Facts(ctx)
	if err != nil {
		return false, err
	}
	c := bootargs.Change{Mark: req.Mark, Found: u.Boot}
	if w.boot {
		if c.Want, err = bootArgs(w, f); err != nil {
			return false, err
		}
		req.Log("keeping for the next boot: " + strings.Join(c.Want, " "))
	}
	if err := l.Set(ctx, c); err != nil {
		return false, fmt.Errorf("reserve hugepages at boot: %w", err)
	}
	if !w.boot {
		return false, nil
	}
	b, err := l.Look(ctx)
	if err != nil {
		return false, err
	}
	return b.Active(c.Want), nil
}

// found is what the boot loader had before.
func (w want) found(ctx context.Context, req providers.ApplyRequest, before bootargs.Found) (bootargs.Found, error) {
	if !w.boot {
		return before, nil
	}
	b, args, err := w.atBoot(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	return before.Find(b.Others(req.Mark), args), nil
}

var _ providers.Remover = Hugepages{}

// Removal costs a reboot when the running kernel was booted with the pages.
func (Hugepages) Removal(ctx context.Context, req providers.RemovalRequest) (providers.RemovalResult, error) {
	var res providers.RemovalResult
	u, err := decodeUndo(req.Undo)
	if err != nil || u.Boot == nil {
		return res, err
	}
	l, err := bootargs.Of(ctx, req.Host)
	if err != nil {
		return res, err
	}
	b, err := l.Look(ctx)
	if err != nil {
		return res, err
	}
	if ours := u.Boot.Ours(); len(b.Gone(ours, u.Boot.Foreign(ours))) > 0 {
		res.Cost = schema.HostReboot
	}
	return res, nil
}
