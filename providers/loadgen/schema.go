package loadgen

import (
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/lang/schema"
)

const (
	defaultRx      = 32768
	defaultRxJumbo = 8192 // 75 MB
	defaultTx      = 1024
	defaultSample  = 1024
	defaultIdle    = 50 * time.Microsecond // of a CPU that is shared
	longestIdle    = 100 * time.Millisecond
	jumbo          = 2048 // bytes with FCS, above which a queue's default is shorter
)

func generatorSchema() *schema.Generator {
	num := func(least, most int64, what string) *schema.Attribute {
		return &schema.Attribute{Type: cty.Number, Optional: true, Description: what, Validate: schema.Whole(least, most)}
	}
	a := map[string]*schema.Attribute{
		"cpus": {Type: cty.String, Required: true, Canonical: schema.CPUs, Validate: someCPU,
			Description: "CPUs, as a list: 2-3. Each has one thread; the queues of all ports are dealt out to them in turns, those that send first. One is enough: its thread sends and receives in turns."},
		"share_cores": {Type: cty.Bool, Optional: true, Default: cty.False,
			Description: "Accept that the CPUs are shared with other threads that spin, such as a network function's. Threads then sleep when there is nothing to do (idle)."},
		"idle": {Type: cty.String, Optional: true, Validate: duration(0, longestIdle),
			Description: "How long a thread sleeps when it has nothing to send or receive, and after ten times as long at work: 50us. Latencies may come out so much longer. 0s polls, which is the most precise and leaves nothing of the CPU to others. Unset: 50us with share_cores, else 0s."},
		"realtime": num(0, 99, "Real-time priority of the threads (SCHED_FIFO); 0: none. It ends with them. With idle = \"0s\" the kernel stops such threads for 5 % of each second in favour of others on the CPU (kernel.sched_rt_runtime_us)."),
		"window":   num(0, 1<<24, "At most so many frames on their way, for each direction and queue; 0: no limit. With one, a frame waits until there is room: it is no open loop as RFC 2544 wants it, and results say so."),
		"catch_up": num(0, 1<<20, "At most so many frames are sent at once by a thread that was held up, to get back to its rate; less than the smallest queue of the path. 0: half of tx_queue_size."),
		"sample":   num(1, 1<<24, "The latency of one frame in so many is measured: a power of two."),
		"rx_queue_size": num(64, defaultRx, fmt.Sprintf("Descriptors of each receive queue: a power of two. Long ones bridge the times in which the thread does not run; what waits there shows as latency, not as loss. "+
			"Unset: %d for vhost-user, %d with frames above %d bytes; for interfaces what fits them.", defaultRx, defaultRxJumbo, jumbo)),
		"tx_queue_size": num(64, defaultRx, "Descriptors of each transmit queue: a power of two."),
		"max_frame":     num(64, 9216, "Longest frame in bytes with FCS. Unset: what the traffic needs; ports are opened again when that grows."),
	}
	a["realtime"].Default, a["window"].Default, a["catch_up"].Default = cty.Zero, cty.Zero, cty.Zero
	a["sample"].Default, a["tx_queue_size"].Default = cty.NumberIntVal(defaultSample), cty.NumberIntVal(defaultTx)
	for _, n := range []string{"sample", "rx_queue_size", "tx_queue_size"} {
		a[n].Validate = schema.PowerOfTwo(a[n].Validate)
	}
	return &schema.Generator{
		Type: "loadgen",
		Description: "Plumb's own generator, on vhost-user ports and kernel interfaces: it offers a load exactly, or as much as the ports take, counts each of its frames (and none else) by signature and " +
			"number, and measures latency. It needs no hugepages and no DPDK. On another host than this machine it runs as a copy of Plumb that ends with its connection.",
		Example: `generator "loadgen" "tg" {
  cpus = "2-3"
  port {
    vhost_user = "/run/plumb/vhost/tg0"
  }
  port {
    vhost_user = "/run/plumb/vhost/tg1"
  }
}`,
		Block: schema.Block{Attributes: a, Blocks: map[string]*schema.NestedBlock{
			"port": {Nesting: schema.List, MinItems: 1, MaxItems: 2, Block: portBlock()},
		}},
	}
}

func portBlock() schema.Block {
	str := func(what string, check func(cty.Value) error) *schema.Attribute {
		return &schema.Attribute{Type: cty.String, Optional: true, Description: what, Validate: check}
	}
	b := schema.Block{
		Description: "One port: vhost_user or interface says which. The one whose socket the path's first hop has as vhost_server_path sends, the last hop's receives; when the hops name " +
			"no sockets, the first sends. A single port does both, for a path that ends where it begins.",
		Attributes: map[string]*schema.Attribute{
			"vhost_user": str("Path of a vhost-user socket; the port is the virtio side of it, as a VM would be.", schema.SocketPath),
			"server":     {Type: cty.Bool, Optional: true, Default: cty.True, Description: "Make the socket and wait for the switch to connect (ovs_port type dpdkvhostuserclient). false: connect to the switch's socket."},
			"hugepages":  {Type: cty.Bool, Optional: true, Default: cty.False, Description: "Keep the frames of a vhost-user port in hugepages of the default size. Normal pages were as fast where it was tried."},
			"interface":  str("Name of a kernel interface: veth, tap or a NIC that is bound to its kernel driver.", nil),
			"netns":      str("Network namespace that the interface is in, as ip netns knows it. Unset: the host's.", nil),
			"mode":       str("How an interface is attached: af_xdp, af_packet, or auto, the first of these that works.", nil),
			"queues":     {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(1), Validate: schema.Whole(1, 64), Description: "Pairs of queues. Each stream is spread over all of the sending port."},
		},
	}
	b.Attributes["mode"].Default, b.Attributes["mode"].OneOf = cty.StringVal("auto"), []string{"auto", "af_xdp", "af_packet"}
	return b
}

func someCPU(v cty.Value) error {
	if s, err := cpuset.Parse(v.AsString()); err == nil && s.IsEmpty() {
		return errors.New("the list is empty; want at least one CPU")
	}
	return nil
}

func duration(least, most time.Duration) func(cty.Value) error {
	return func(v cty.Value) error {
		d, err := time.ParseDuration(v.AsString())
		switch {
		case err != nil:
			return fmt.Errorf("%q is not a duration such as 50us or 1ms", v.AsString())
		case d < least || d > most:
			return fmt.Errorf("%s is not from %s to %s", d, least, most)
		}
		return nil
	}
}
