package dpdk

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"plumb/lang/cpuset"
	"plumb/providers/internal/marked"
)

// spec is one testpmd: what its command line is made of.
type spec struct {
	cores   []int // ascending
	main    int   // lcore of the console; -1: the lowest
	mode    string
	ports   []port
	memory  []int64 // MB by NUMA node
	prefix  string
	mbufs   int64
	rxq     int64 // 0: testpmd's default, as below
	txq     int64
	rxd     int64
	txd     int64
	burst   int64
	flows   int64 // of flowgen
	topo    string
	oneFile bool
	inMem   bool
	noPCI   bool
	auto    bool // forward at once
	eal     []string
	app     []string
}

// port is one port of a testpmd: exactly one of socket, vdev and pci is set.
type port struct {
	socket    string // vhost-user
	server    bool
	queues    int64
	packed    *bool
	mrgRxbuf  *bool
	queueSize int64
	mac, peer string
	vdev, pci string
}

// device is the value of --vdev of the i-th virtio-user port (doc/guides/howto/virtio_user_for_container_networking.rst and drivers/net/virtio of DPDK).
func (p port) device(i int) string {
	d := fmt.Sprintf("net_virtio_user%d,path=%s,queues=%d", i, p.socket, max(1, p.queues))
	if p.server {
		d += ",server=1"
	}
	flag := func(name string, b *bool) {
		if b != nil {
			n := 0
			if *b {
				n = 1
			}
			d += fmt.Sprintf(",%s=%d", name, n)
		}
	}
	flag("packed_vq", p.packed)
	flag("mrg_rxbuf", p.mrgRxbuf)
	if p.queueSize > 0 {
		d += fmt.Sprintf(",queue_size=%d", p.queueSize)
	}
	if p.mac != "" {
		d += ",mac=" + p.mac
	}
	return d
}

// mainCore is the lcore that runs the console.
func (s spec) mainCore() int {
	if s.main >= 0 || len(s.cores) == 0 {
		return s.main
	}
	return s.cores[0]
}

// forwarding are the lcores that poll: all but the console's.
func (s spec) forwarding() []int {
	return slices.DeleteFunc(slices.Clone(s.cores), func(c int) bool { return c == s.mainCore() })
}

// argv is the whole command line.
func (s spec) argv() []string {
	a := []string{"dpdk-testpmd", "-l", joinInts(s.cores), "--main-lcore", strconv.Itoa(s.mainCore()), "-n", "1", "--file-prefix", s.prefix}
	if len(s.memory) > 0 {
		a = append(a, "--socket-mem", joinInts(s.memory))
	}
	for _, f := range []struct {
		on   bool
		flag string
	}{{s.oneFile, "--single-file-segments"}, {s.inMem, "--in-memory"}, {s.noPCI, "--no-pci"}} {
		if f.on {
			a = append(a, f.flag)
		}
	}
	for i, p := range s.ports {
		switch {
		case p.socket != "":
			a = append(a, "--vdev", p.device(i))
		case p.vdev != "":
			a = append(a, "--vdev", p.vdev)
		default:
			a = append(a, "-a", p.pci)
		}
	}
	return append(append(a, s.eal...), s.appArgs()...)
}

func (s spec) appArgs() []string {
	forwarding := s.forwarding()
	mask, err := cpuset.Of(forwarding...)
	if err != nil { // cores were checked when they were read
		mask = cpuset.Set{}
	}
	a := []string{"--", "-i", "--nb-cores=" + strconv.Itoa(len(forwarding)), "--coremask=" + mask.Mask(), "--forward-mode=" + s.mode,
		"--total-num-mbufs=" + strconv.FormatInt(s.mbufs, 10)}
	if s.topo != "" {
		a = append(a, "--port-topology="+s.topo)
	}
	for _, f := range []struct {
		n    int64
		flag string
	}{{s.rxq, "rxq"}, {s.txq, "txq"}, {s.rxd, "rxd"}, {s.txd, "txd"}, {s.burst, "burst"}, {s.flows, "flowgen-flows"}} {
		if f.n > 0 {
			a = append(a, fmt.Sprintf("--%s=%d", f.flag, f.n))
		}
	}
	for i, p := range s.ports {
		if p.peer != "" {
			a = append(a, fmt.Sprintf("--eth-peer=%d,%s", i, p.peer))
		}
	}
	if s.auto {
		a = append(a, "--auto-start")
	}
	return append(a, s.app...)
}

// sockets are the vhost-user sockets that the process makes.
func (s spec) sockets() []string {
	var out []string
	for _, p := range s.ports {
		if p.socket != "" && p.server {
			out = append(out, p.socket)
		}
	}
	return out
}

func joinInts[T int | int64](l []T) string {
	s := make([]string, len(l))
	for i, n := range l {
		s[i] = strconv.FormatInt(int64(n), 10)
	}
	return strings.Join(s, ",")
}

// shorten makes a short name that no other testbed and address has, and that begins like the address.
func shorten(testbed, address string) string {
	sum := sha256.Sum256([]byte(testbed + "\x00" + address))
	name := address
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	return "plumb-" + marked.Tidy(name)[:min(20, len(marked.Tidy(name)))] + "-" + hex.EncodeToString(sum[:4])
}

// folder is where the process of an address keeps pid, log and console.
func folder(testbed, address string) string {
	name := marked.Tidy(address)
	if name != address {
		sum := sha256.Sum256([]byte(address))
		name += "-" + hex.EncodeToString(sum[:4])
	}
	return path.Join(marked.RunDir, marked.Tidy(testbed), name)
}

const dpdkDir = "/run/dpdk" // DPDK's runtime folders, by file prefix
