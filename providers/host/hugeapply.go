package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"plumb/providers"
)

// converge brings counts and mount to what is planned. When a node does not get all its pages, every count goes back to what it was.
func (h Hugepages) converge(ctx context.Context, req providers.ApplyRequest, m *memory, w want, u undo) error {
	conn := req.Host.Conn()
	if w.boot || u.Boot != nil {
		active, err := w.keep(ctx, req, u)
		if err != nil {
			return err
		}
		if w.boot && !active && !w.granted(m) {
			return nil // they come with the reboot
		}
	}
	// Nodes that the configuration names no longer get back what was found there.
	target := maps.Clone(w.pages)
	for node, n := range u.Pages {
		if id, err := strconv.Atoi(node); err == nil {
			if _, ok := target[id]; !ok {
				target[id] = n
			}
		}
	}
	if err := setPools(ctx, conn, m, w.size, target); err != nil {
		return err
	}
	return h.mount(ctx, conn, m, w, u)
}

// setPools sets the counts of nodes and reads them back. On an error all have the counts that m says.
func setPools(ctx context.Context, conn providers.Conn, m *memory, size uint64, target map[int]uint64) error {
	var done []pool
	back := func(cause error) error {
		for _, p := range done {
			if err := writeCount(ctx, conn, p, p.total); err != nil {
				cause = errors.Join(cause, fmt.Errorf("roll back: %w", err))
			}
		}
		return cause
	}
	// Give back first, so that what one node gives up another may take.
	nodes := slices.SortedFunc(maps.Keys(target), func(a, b int) int {
		pa, _ := m.pool(a, size)
		pb, _ := m.pool(b, size)
		return compareSigned(int64(target[a])-int64(pa.total), int64(target[b])-int64(pb.total))
	})
	for _, node := range nodes {
		p, ok := m.pool(node, size)
		if !ok {
			return back(fmt.Errorf("there are no %s hugepages on NUMA node %d of this machine", formatSize(size), node))
		}
		n := target[node]
		if p.total == n {
			continue
		}
		done = append(done, p)
		if err := writeCount(ctx, conn, p, n); err != nil {
			return back(err)
		}
	}
	if len(done) == 0 {
		return nil
	}
	now, err := readMemory(ctx, conn)
	if err != nil {
		return back(err)
	}
	for _, p := range done {
		got, _ := now.pool(p.node, size)
		if n := target[p.node]; got.total != n {
			return back(shortGrant(got, n))
		}
	}
	return nil
}

func compareSigned(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func shortGrant(got pool, n uint64) error {
	if got.total > n {
		return fmt.Errorf("NUMA node %d keeps %d hugepages of %s where %d were asked for: %d are in use. End what uses them (files of hugetlbfs, DPDK processes, VMs) and try again",
			got.node, got.total, formatSize(got.size), n, got.total-got.free)
	}
	return fmt.Errorf("NUMA node %d was granted %d of %d hugepages of %s (%d MB of %d MB): its memory is used up or fragmented. The counts are back to what they were. "+
		"Ask for less, free memory, or have the kernel reserve the pages when it boots: when = \"boot\"",
		got.node, got.total, n, formatSize(got.size), got.total*got.size>>20, n*got.size>>20)
}

func writeCount(ctx context.Context, conn providers.Conn, p pool, n uint64) error {
	if err := conn.WriteFile(ctx, p.file, []byte(strconv.FormatUint(n, 10)), 0o644); err != nil {
		return fmt.Errorf("set %s hugepages of NUMA node %d: %w", formatSize(p.size), p.node, err)
	}
	return nil
}

// mount makes hugetlbfs reachable when it is not, and takes away mounts of ours that are wanted no more.
func (Hugepages) mount(ctx context.Context, conn providers.Conn, m *memory, w want, u undo) error {
	have := m.mounted(w.size)
	for _, path := range u.Ours {
		if path != w.mount && slices.Contains(have, path) {
			if err := unmount(ctx, conn, path, u); err != nil {
				return err
			}
			have = slices.DeleteFunc(slices.Clone(have), func(p string) bool { return p == path })
		}
	}
	if w.mount == "" || len(have) > 0 {
		return nil
	}
	if slices.Contains(u.Absent, w.mount) {
		if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"mkdir", "-p", w.mount}}); err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
	}
	if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"mount", "-t", "hugetlbfs", "-o", "pagesize=" + formatSize(w.size), "hugetlbfs", w.mount}}); err != nil {
		return fmt.Errorf("mount hugetlbfs: %w", err)
	}
	return nil
}

func unmount(ctx context.Context, conn providers.Conn, path string, u undo) error {
	if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"umount", path}}); err != nil {
		return fmt.Errorf("unmount hugetlbfs: %w", err)
	}
	if slices.Contains(u.Absent, path) {
		if _, err := conn.Run(ctx, providers.Cmd{Args: []string{"rmdir", path}}); err != nil {
			return fmt.Errorf("remove mount point: %w", err)
		}
	}
	return nil
}

// restore puts back what was found: first the mounts, which hold pages, then the counts.
func (Hugepages) restore(ctx context.Context, req providers.ApplyRequest, m *memory, u undo) error {
	conn := req.Host.Conn()
	if u.Boot != nil {
		if _, err := (want{}).keep(ctx, req, u); err != nil {
			return err
		}
	}
	for _, path := range u.Ours {
		if slices.Contains(m.mounted(u.Size), path) && !slices.Contains(u.Mounts, path) {
			if err := unmount(ctx, conn, path, u); err != nil {
				return err
			}
		}
	}
	target := map[int]uint64{}
	for node, n := range u.Pages {
		id, err := strconv.Atoi(node)
		if err != nil {
			return fmt.Errorf("what was recorded of the hugepages found: %w", err)
		}
		target[id] = n
	}
	return setPools(ctx, conn, m, u.Size, target)
}
