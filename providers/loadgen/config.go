package loadgen

import (
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/cpuset"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/worker"
)

// config is a generator's configuration. Unknown parts are as if they were null.
type config struct {
	engine   engine.Config
	ports    []worker.PortSpec
	shared   bool
	maxFrame int // with FCS; 0: what the traffic needs
}

func decode(v cty.Value) (config, error) {
	c := config{shared: attr.Truth(v, "share_cores", false), maxFrame: int(attr.Number(v, "max_frame", 0))}
	cpus, err := cpuset.Parse(attr.Text(v, "cpus"))
	if err != nil {
		return c, err
	}
	c.engine = engine.Config{CPUs: cpus.List(), Realtime: int(attr.Number(v, "realtime", 0)), Window: int(attr.Number(v, "window", 0)), CatchUp: int(attr.Number(v, "catch_up", 0)), Sample: int(attr.Number(v, "sample", 0))}
	switch s := attr.Text(v, "idle"); {
	case s != "":
		if c.engine.Idle, err = time.ParseDuration(s); err != nil {
			return c, err
		}
	case c.shared:
		c.engine.Idle = defaultIdle
	}
	ports := v.GetAttr("port")
	if !ports.IsKnown() || ports.IsNull() {
		return c, nil
	}
	for i, p := range ports.AsValueSlice() {
		spec := worker.PortSpec{Kind: worker.VhostUser, Socket: attr.Text(p, "vhost_user"), Queues: max(1, int(attr.Number(p, "queues", 0))), RxSize: int(attr.Number(v, "rx_queue_size", 0)), TxSize: int(attr.Number(v, "tx_queue_size", 0))}
		iface, socket := p.GetAttr("interface"), p.GetAttr("vhost_user")
		switch {
		case socket.IsNull() == iface.IsNull():
			return c, fmt.Errorf("port %d: exactly one of vhost_user and interface must say what it is", i)
		case !socket.IsNull() && !p.GetAttr("netns").IsNull():
			return c, fmt.Errorf("port %d: netns is for an interface", i)
		case !iface.IsNull():
			spec.Kind, spec.Interface, spec.Netns = kindOf(attr.Text(p, "mode")), attr.Text(p, "interface"), attr.Text(p, "netns")
		default:
			spec.Server, spec.Hugepages = attr.Truth(p, "server", false), attr.Truth(p, "hugepages", false)
		}
		c.ports = append(c.ports, spec)
	}
	if len(c.ports) == 2 && c.ports[0] == c.ports[1] && (c.ports[0].Socket != "" || c.ports[0].Interface != "") {
		return c, fmt.Errorf("both ports are the same, %s", c.ports[0])
	}
	return c, nil
}

// kindOf is the kind of port for an interface's mode; one that is not known is auto.
func kindOf(mode string) string {
	switch mode {
	case worker.AFXDP, worker.AFPacket:
		return mode
	}
	return worker.Kernel
}

// sockets of the ports; "" for interfaces.
func (c config) sockets() []string {
	var out []string
	for _, p := range c.ports {
		out = append(out, p.Socket)
	}
	return out
}

// owned are the sockets that the generator makes.
func (c config) owned() []string {
	var out []string
	for _, p := range c.ports {
		if p.Server {
			out = append(out, p.Socket)
		}
	}
	return out
}

// shape is what of the traffic the ports depend on.
type shape struct {
	frame  int // longest, with FCS
	tagged bool
}

// usual is Ethernet's longest frame (IEEE 802.3) with two VLAN tags: ports take as much without being asked.
const usual = 1518 + 2*4

// shapeOf is what ports must be able to carry. An error says that the configuration does not let them.
func (c config) shapeOf(t providers.Traffic) (shape, error) {
	s := shape{frame: usual}
	for _, p := range c.ports {
		s.tagged = s.tagged || p.Kind != worker.VhostUser && len(t.VLANs) > 0
	}
	need := t.FrameSize
	for _, size := range t.Sizes {
		need = max(need, size)
	}
	if c.maxFrame > 0 {
		if need > c.maxFrame {
			return s, fmt.Errorf("frames of %d bytes are longer than max_frame = %d of the generator", need, c.maxFrame)
		}
		s.frame = c.maxFrame
		return s, nil
	}
	s.frame = max(s.frame, need)
	return s, nil
}

// open is what to open for a shape. An interface's longest frame is what its MTU allows, unless more is needed: then opening it says so.
func (c config) open(s shape) worker.Open {
	o := worker.Open{Engine: c.engine}
	for _, p := range c.ports {
		if p.Kind == worker.VhostUser {
			p.Frame = s.frame
			if p.RxSize == 0 {
				p.RxSize = defaultRx
				if s.frame > jumbo {
					p.RxSize = defaultRxJumbo
				}
			}
		} else {
			p.Tagged = s.tagged
			if s.frame > usual || c.maxFrame > 0 {
				p.Frame = s.frame
			}
		}
		o.Ports = append(o.Ports, p)
	}
	return o
}
