package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"plumb/providers"
)

// pool is the hugepages of one size on one NUMA node.
type pool struct {
	node        int
	size        uint64 // bytes
	total, free uint64 // pages
	file        string // that the count is written to
}

// mount is a hugetlbfs.
type mount struct {
	path string
	size uint64 // bytes
}

// memory is the hugepages of a host as they were read.
type memory struct {
	pools  []pool // by node and size
	mounts []mount
}

func hugepageFiles() []string {
	return []string{
		nodeDir + "/node[0-9]*/hugepages/hugepages-*/nr_hugepages", nodeDir + "/node[0-9]*/hugepages/hugepages-*/free_hugepages",
		hugeDir + "/hugepages-*/nr_hugepages", hugeDir + "/hugepages-*/free_hugepages",
	}
}

// parsePools reads the pools by node; where there are no nodes, the pools of the machine are node 0's.
func parsePools(files fileset) ([]pool, error) {
	byNode := regexp.MustCompile(`^` + nodeDir + `/node(\d+)/hugepages/hugepages-(\d+)kB/nr_hugepages$`)
	whole := regexp.MustCompile(`^` + hugeDir + `/hugepages-(\d+)kB/nr_hugepages$`)
	var nodes, flat []pool
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var node, kb string
		into := &nodes
		if m := byNode.FindStringSubmatch(name); m != nil {
			node, kb = m[1], m[2]
		} else if m := whole.FindStringSubmatch(name); m != nil {
			node, kb, into = "0", m[1], &flat
		} else {
			continue
		}
		p := pool{file: name}
		n, err := strconv.Atoi(node)
		size, err2 := strconv.ParseUint(kb, 10, 50)
		total, err3 := strconv.ParseUint(files.text(name), 10, 64)
		free, err4 := strconv.ParseUint(files.text(strings.TrimSuffix(name, "nr_hugepages")+"free_hugepages"), 10, 64)
		if err := errors.Join(err, err2, err3, err4); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p.node, p.size, p.total, p.free = n, size<<10, total, free
		*into = append(*into, p)
	}
	if len(nodes) == 0 {
		nodes = flat
	}
	slices.SortFunc(nodes, func(a, b pool) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.size, b.size)) })
	return nodes, nil
}

// parseMounts reads the hugetlbfs entries of a mounts file (proc_pid_mounts(5)).
func parseMounts(mounts string) []mount {
	var out []mount
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 4 || f[2] != "hugetlbfs" {
			continue
		}
		m := mount{path: unescapeMount(f[1])}
		for opt := range strings.SplitSeq(f[3], ",") {
			if v, ok := strings.CutPrefix(opt, "pagesize="); ok {
				m.size, _ = parseSize(v) // 0 for what the kernel never prints
			}
		}
		out = append(out, m)
	}
	return out
}

// unescapeMount resolves the octal escapes of blanks in mount points.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// mounted are the mount points of hugetlbfs for one page size. The kernel prints the size of every mount.
func (m *memory) mounted(size uint64) []string {
	var out []string
	for _, x := range m.mounts {
		if x.size == size {
			out = append(out, x.path)
		}
	}
	return out
}

func (m *memory) pool(node int, size uint64) (pool, bool) {
	for _, p := range m.pools {
		if p.node == node && p.size == size {
			return p, true
		}
	}
	return pool{}, false
}

type poolsKey struct{}

// poolCache shares one reading among all instances of a host and run; whoever changes something throws it away.
type poolCache struct {
	mu  sync.Mutex
	mem *memory
}

func poolsOf(ctx context.Context, h providers.Host) (*poolCache, error) {
	if h == nil {
		return nil, errors.New("host_hugepages lives on a host, and none is given")
	}
	v, err := h.Shared(ctx, poolsKey{}, func(context.Context) (any, error) { return &poolCache{}, nil })
	if err != nil {
		return nil, err
	}
	return v.(*poolCache), nil
}

func (c *poolCache) look(ctx context.Context, h providers.Host) (*memory, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mem == nil {
		m, err := readMemory(ctx, h.Conn())
		if err != nil {
			return nil, err
		}
		c.mem = m
	}
	return c.mem, nil
}

func (c *poolCache) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mem = nil
}

func readMemory(ctx context.Context, conn providers.Conn) (*memory, error) {
	files, err := conn.ReadFiles(ctx, append(hugepageFiles(), "/proc/mounts")...)
	if err != nil {
		return nil, fmt.Errorf("read hugepages: %w", err)
	}
	pools, err := parsePools(fileset(files))
	if err != nil {
		return nil, err
	}
	return &memory{pools: pools, mounts: parseMounts(string(files["/proc/mounts"]))}, nil
}

// parseSize reads "2M", "1G", "2MB", "2048kB" and the like.
func parseSize(s string) (uint64, error) {
	m := regexp.MustCompile(`^(\d{1,9})\s*([kKmMgG])(i?[bB])?$`).FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, fmt.Errorf("%q is not a page size such as 2M or 1G", s)
	}
	n, err := strconv.ParseUint(m[1], 10, 32)
	if err != nil {
		return 0, err
	}
	shift := map[string]uint{"k": 10, "m": 20, "g": 30}[strings.ToLower(m[2])]
	n <<= shift
	if n == 0 || n&(n-1) != 0 {
		return 0, fmt.Errorf("%q is not a page size: they are powers of two", s)
	}
	return n, nil
}

// formatSize is the short spelling: 2M, 1G, 64K.
func formatSize(n uint64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%dG", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	}
	return fmt.Sprintf("%dK", n>>10)
}
