package fake

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"
)

const (
	nodes       = 2
	cpusPerNode = 4
	nodeMemory  = 16 << 20 // kB
)

func pageSizes() []string { return []string{"2048kB", "1048576kB"} }

func nodeDir(node int, size string) string {
	return fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-%s", node, size)
}

func globalDir(size string) string { return "/sys/kernel/mm/hugepages/hugepages-" + size }

// writeKernel does what the kernel does on a write below /sys or /proc: most files just keep it.
func (h *host) writeKernel(name, file string, data []byte) error {
	if known, err := h.writeSetting(name, file, string(data)); known {
		return err
	}
	if known, err := h.writePCI(name, string(data)); known {
		return err
	}
	dir, base := path.Split(name)
	if base != "nr_hugepages" {
		return replace(file, data, 0o644)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || n < 0 {
		return syscall.EINVAL
	}
	dir = path.Clean(dir)
	size := strings.TrimPrefix(path.Base(dir), "hugepages-")
	for node := range nodes {
		if dir == nodeDir(node, size) {
			return h.setPages(map[int]int{node: n}, size)
		}
	}
	share := map[int]int{}
	for node := range nodes { // the kernel takes turns
		share[node] = n / nodes
		if node < n%nodes {
			share[node]++
		}
	}
	return h.setPages(share, size)
}

// setPages asks the kernel for pages: it grants what it has, and keeps pages that are in use.
func (h *host) setPages(want map[int]int, size string) error {
	for node := range nodes {
		used := h.usedPages(node, size)
		total, asked := want[node]
		if !asked {
			total = h.pages(node, size)
		}
		total = max(min(total, h.pageLimit(size)), used)
		if err := h.putPages(nodeDir(node, size), total, total-used); err != nil {
			return err
		}
	}
	return h.sumPages(size)
}

func (h *host) putPages(dir string, total, free int) error {
	for name, n := range map[string]int{"nr_hugepages": total, "free_hugepages": free, "surplus_hugepages": 0} {
		if err := h.put(dir+"/"+name, strconv.Itoa(n)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) sumPages(size string) error {
	total, used := 0, 0
	for node := range nodes {
		total += h.pages(node, size)
		used += h.usedPages(node, size)
	}
	if err := h.putPages(globalDir(size), total, total-used); err != nil {
		return err
	}
	return h.put("/proc/meminfo", h.meminfo())
}

func (h *host) pageLimit(size string) int {
	if n, ok := h.settings.HugepageLimit[size]; ok {
		return n
	}
	kB, _ := strconv.Atoi(strings.TrimSuffix(size, "kB"))
	return nodeMemory / 2 / kB
}

func (h *host) pages(node int, size string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(h.get(nodeDir(node, size) + "/nr_hugepages")))
	return n
}

func (h *host) usedPages(node int, size string) int {
	n := 0
	for _, p := range h.state.Procs {
		if size == "2048kB" {
			n += p.Pages[node]
		}
	}
	return n
}

// take takes pages of 2 MB for a process, from any nodes when node is -1. It says how many MB there were if they do not suffice.
func (h *host) take(p *process, node, mb int) (available int, ok bool) {
	from := []int{node}
	if node < 0 {
		from = from[:0]
		for n := range nodes {
			from = append(from, n)
		}
	}
	free := 0
	for _, n := range from {
		free += h.pages(n, "2048kB") - h.usedPages(n, "2048kB")
	}
	need := (mb + 1) / 2
	if need > free {
		return free * 2, false
	}
	if p.Pages == nil {
		p.Pages = map[int]int{}
	}
	for _, n := range from {
		got := min(need, h.pages(n, "2048kB")-h.usedPages(n, "2048kB"))
		p.Pages[n] += got
		need -= got
	}
	return free * 2, true
}

// recount writes the free pages after processes came or went.
func (h *host) recount() error { return h.setPages(nil, "2048kB") }

func (h *host) meminfo() string {
	total, free := 0, 0
	for node := range nodes {
		n := h.pages(node, "2048kB")
		total, free = total+n, free+n-h.usedPages(node, "2048kB")
	}
	all := nodes * nodeMemory
	huge := total * 2048
	for node := range nodes {
		huge += h.pages(node, "1048576kB") * 1048576
	}
	return fmt.Sprintf("MemTotal:       %d kB\nMemFree:        %d kB\nMemAvailable:   %d kB\nHugePages_Total:   %d\nHugePages_Free:    %d\nHugePages_Rsvd:        0\nHugePages_Surp:        0\nHugepagesize:       2048 kB\nHugetlb:        %d kB\n",
		all, all-huge-1<<20, all-huge-1<<20, total, free, huge)
}
