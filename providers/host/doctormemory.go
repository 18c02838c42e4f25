package host

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plumb/providers"
)

const (
	mega2 = 2 << 20
	giga  = 1 << 30
)

// enough is what a switch with two ports, a guest and a generator take on one node: 1 GB of socket memory, 2 GB of a guest, 1 GB of a generator.
const enough = 4 << 30

func examineHugepages(m *patient) {
	const why = "DPDK and guests on vhost-user keep their memory in hugepages: without them they do not start, or miss the TLB at every packet."
	bySize := map[uint64]uint64{}
	for _, n := range m.f.Nodes {
		for _, p := range n.Hugepages {
			bySize[p.Size] += p.Total
		}
	}
	if len(bySize) == 0 {
		m.say(providers.Hinders, "hugepages", "The kernel has none.", why, "Use a kernel with hugetlbfs (CONFIG_HUGETLBFS).", "")
		return
	}
	large := m.x86() && m.f.CPUFlags["pdpe1gb"]
	if m.x86() && !large {
		m.say(providers.Advice, "hugepages", "The processor has no pages of 1 GB (pdpe1gb).", "With pages of 2 MB a large mbuf pool takes hundreds of TLB entries.", "In a virtual machine, give it the host's processor. Else use 2M.", "")
	}
	mounts := (&memory{mounts: parseMounts(string(m.files["/proc/mounts"]))})
	total := uint64(0)
	for _, size := range sortedKeys(bySize) {
		n := bySize[size]
		if n == 0 {
			continue
		}
		total += n
		var parts []string
		for _, node := range m.f.Nodes {
			for _, p := range node.Hugepages {
				if p.Size == size {
					parts = append(parts, fmt.Sprintf("node %d: %d, %d free", node.ID, p.Total, p.Free))
				}
			}
		}
		m.ok("hugepages", "%d of %s (%s).", n, formatSize(size), strings.Join(parts, "; "))
		if len(mounts.mounted(size)) == 0 {
			m.say(providers.Warning, "hugepages", fmt.Sprintf("No hugetlbfs with pages of %s is mounted.", formatSize(size)), "DPDK and QEMU reach them by a mount.", "Mount one; host_hugepages does that for its own pages.",
				block("host_mount", "huge_"+strings.ToLower(formatSize(size)), `source = "hugetlbfs"`, fmt.Sprintf(`path = "/mnt/huge-%s"`, formatSize(size)), `type = "hugetlbfs"`, fmt.Sprintf(`options = ["pagesize=%s"]`, formatSize(size))))
		}
	}
	if total == 0 {
		m.say(providers.Warning, "hugepages", "None are reserved.", why, "Reserve some: pages of 2 MB now, or better of 1 GB at boot.", m.reserve(large))
		return
	}
	for _, n := range m.nodesOfNICs() {
		if pages := m.pagesOf(n); pages == 0 {
			m.say(providers.Warning, "hugepages", fmt.Sprintf("There are none on node %d, which has NICs.", n), "DPDK then takes memory for these NICs from another node, and every frame crosses the link between them.", "Reserve some there, too.", "")
		}
	}
}

// reserve proposes pages for every node: of 1 GB at boot where the processor has them and memory is plenty, else of 2 MB now, at most half of what there is.
func (m *patient) reserve(large bool) string {
	var pages []string
	least := uint64(1) << 63
	for _, n := range m.f.Nodes {
		if n.MemoryBytes > 0 {
			least = min(least, n.MemoryBytes)
		}
	}
	size, when := uint64(mega2), "now"
	if large && least >= 4*enough {
		size, when = giga, "boot"
	}
	for _, n := range m.f.Nodes {
		if count := min(enough, n.MemoryBytes/2) / size; count > 0 {
			pages = append(pages, fmt.Sprintf(`"%d" = %d`, n.ID, count))
		}
	}
	if len(pages) == 0 {
		return ""
	}
	lines := []string{fmt.Sprintf("size = %q", formatSize(size)), "pages = { " + strings.Join(pages, ", ") + " }", fmt.Sprintf("when = %q", when)}
	if when == "boot" {
		lines = append(lines, `mount = ""`)
	}
	return block("host_hugepages", "testbed", lines...)
}

func (m *patient) nodesOfNICs() []int {
	var out []int
	for _, n := range m.candidates() {
		if n.Node >= 0 && !slices.Contains(out, n.Node) {
			out = append(out, n.Node)
		}
	}
	slices.Sort(out)
	return out
}

func (m *patient) pagesOf(node int) uint64 {
	var total uint64
	for _, n := range m.f.Nodes {
		for _, p := range n.Hugepages {
			if n.ID == node {
				total += p.Total
			}
		}
	}
	return total
}

func sortedKeys(m map[uint64]uint64) []uint64 {
	var out []uint64
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// dimm is a memory module as SMBIOS tells of it.
type dimm struct {
	where, size string
	speed, runs int // MT/s: what it could, what it is run at; 0: not said
}

// parseDIMMs reads `dmidecode -t 17`: the slots that have a module.
func parseDIMMs(text string) []dimm {
	var out []dimm
	number := regexp.MustCompile(`^(\d+) M(?:T/s|Hz)`)
	for _, part := range strings.Split(text, "\n\n") {
		var d dimm
		for line := range strings.Lines(part) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			value = strings.TrimSpace(value)
			n := 0
			if f := number.FindStringSubmatch(value); f != nil {
				n, _ = strconv.Atoi(f[1])
			}
			switch key {
			case "Size":
				d.size = value
			case "Locator":
				d.where = value
			case "Speed":
				d.speed = n
			case "Configured Memory Speed", "Configured Clock Speed":
				d.runs = n
			}
		}
		if d.size != "" && !strings.HasPrefix(d.size, "No Module") && d.where != "" {
			out = append(out, d)
		}
	}
	return out
}

func examineMemory(m *patient) {
	var total uint64
	for _, n := range m.f.Nodes {
		total += n.MemoryBytes
	}
	dimms := parseDIMMs(m.memory)
	if len(dimms) == 0 || m.virtual() {
		m.ok("memory", "%.0f GB.", float64(total)/(1<<30))
		return
	}
	var slow []string
	for _, d := range dimms {
		if d.runs > 0 && d.runs < d.speed {
			slow = append(slow, fmt.Sprintf("%s at %d of %d MT/s", d.where, d.runs, d.speed))
		}
	}
	m.ok("memory", "%.0f GB in %s.", float64(total)/(1<<30), plural(len(dimms), "module"))
	if len(slow) > 0 {
		m.say(providers.Advice, "memory", "Modules run below what they could: "+strings.Join(slow, ", ")+".", "Frames of many flows or large pools come from memory at its speed.", "Set Memory Frequency, and Enforce POR, in the BIOS, if the processor takes that speed with so many modules.", "")
	}
}
